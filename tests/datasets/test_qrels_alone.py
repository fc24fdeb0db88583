"""Judgements without texts, which are a data set only where that is asked for."""

from pathlib import Path

import pytest

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.qrels import Qrels

TREC = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\n"
TSV = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td3\t1\n"
JSON = '{"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}'


@pytest.mark.parametrize(("name", "text"), [("q.txt", TREC), ("q.tsv", TSV), ("q.json", JSON)])
def test_every_format_of_judgements(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    dataset = open_dataset(tmp_path / name, format="qrels")
    assert dataset.queries == (Query("q1", "q1"), Query("q2", "q2"))
    assert dataset.qrels == {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d3": 1.0}}
    assert dataset.corpus.documents == ()
    assert dataset.name == "q"


def test_it_is_never_found_by_itself(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text(TREC)
    assert not Qrels.detect(tmp_path / "qrels.txt")
    with pytest.raises(InputError, match="or write format: qrels for runs"):
        open_dataset(tmp_path / "qrels.txt")


def test_what_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text(TREC + "q2 0 d3 1\n")
    with pytest.raises(InputError, match=r"qrels\.txt:4: duplicate judgement"):
        open_dataset(tmp_path / "qrels.txt", format="qrels")
    with pytest.raises(InputError, match="no judgements named 'dev'"):
        open_dataset(tmp_path / "qrels.txt", format="qrels", split_name="dev")
