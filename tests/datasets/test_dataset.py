"""Data sets as a whole: fingerprints, selection, counts, and opening one by its path."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Corpus, Document, Query, Triple, corpus_fingerprint
from tuner.core.errors import InputError
from tuner.core.grades import GradeScale
from tuner.datasets import Dataset, Evidence, builtin_names, open_dataset
from tuner.evalset.writing import write_dataset

Write = Callable[[Path, list[object]], None]

CONTENT: dict[str, Any] = {
    "documents": [Document("d1", "T", "one"), Document("d2", "", "two")],
    "queries": [Query("q1", "?", "bridge", "hard"), Query("q2", "!", "bridge", "easy")],
    "qrels": {"q1": {"d1": 1.0, "d2": 0.0}, "q2": {"d2": 2.0}},
    "triples": [Triple("d1", "a", "r", "b")],
    "entities": {"d1": ["a", "b"], "d2": ["c"]},
    "evidences": {"q1": Evidence(("a",), ((("a", "r", "b"),),))},
    "answers": {"q1": ["b"]},
}


def create(**changes: Any) -> Dataset:
    return Dataset.create("small", "somewhere", **{**CONTENT, **changes})


class TestFingerprint:
    def test_name_path_and_warnings_are_no_content(self) -> None:
        moved = Dataset.create("other", "elsewhere", **CONTENT, warnings=["odd"])
        assert moved.fingerprint == create().fingerprint

    def test_known_value(self) -> None:
        # Cached indexes and unfinished studies are found again by it: a change is breaking.
        assert (
            create().corpus.fingerprint
            == "de41db7cd9161365560d075b20a882ce831ca0d27b3fc2c8cf3285363b02042a"
        )
        assert (
            create().fingerprint
            == "8c9c1e6f9735eb7dbde276a4f4b06a6780921f436797146b04d8f16ff7ca49c1"
        )

    @pytest.mark.parametrize(
        "changes",
        [
            {"documents": [Document("d1", "T", "one"), Document("d2", "", "two!")]},
            {"documents": [Document("d1", "To", "ne"), Document("d2", "", "two")]},
            {"documents": [Document("d2", "", "two"), Document("d1", "T", "one")]},
            {"triples": [Triple("d1", "a", "r", "c")]},
            {"triples": []},
            {"entities": {"d1": ["a"], "d2": ["b", "c"]}},
        ],
    )
    def test_every_part_of_the_corpus_counts(self, changes: dict[str, Any]) -> None:
        assert create(**changes).corpus.fingerprint != create().corpus.fingerprint
        assert create(**changes).fingerprint != create().fingerprint

    @pytest.mark.parametrize(
        "changes",
        [
            {"queries": [Query("q1", "?", "bridge", "hard"), Query("q2", "!", "bridge", "hard")]},
            {"queries": [Query("q1", "?", "bridge", "hard")]},
            {"qrels": {"q1": {"d1": 1.0, "d2": 0.0}, "q2": {"d2": 1.0}}},
            {"qrels": {"q1": {"d1": 1.0}, "q2": {"d2": 2.0}}},
            {"evidences": {}},
            {"answers": {"q1": ["c"]}},
        ],
    )
    def test_labels_count_for_the_data_set_only(self, changes: dict[str, Any]) -> None:
        assert create(**changes).corpus.fingerprint == create().corpus.fingerprint
        assert create(**changes).fingerprint != create().fingerprint

    def test_order_of_mappings_and_number_types_do_not_count(self) -> None:
        same = create(
            qrels={"q2": {"d2": 2}, "q1": {"d2": 0, "d1": 1}},
            entities={"d2": ("c",), "d1": ("a", "b")},
        )
        assert same.fingerprint == create().fingerprint
        assert same.corpus.fingerprint == create().corpus.fingerprint

    def test_function_agrees_and_ignores_what_is_stored(self) -> None:
        corpus = create().corpus
        assert corpus_fingerprint(corpus) == corpus.fingerprint
        assert corpus_fingerprint(replace(corpus, fingerprint="old")) == corpus.fingerprint
        assert corpus_fingerprint(Corpus(())) != corpus.fingerprint


class TestDataset:
    def test_select_keeps_the_order_of_the_data_set_and_the_corpus(self) -> None:
        dataset = create()
        assert dataset.select(["q2", "q1"]).queries == dataset.queries
        chosen = dataset.select(["q1"])
        assert chosen.corpus is dataset.corpus
        assert [query.id for query in chosen.queries] == ["q1"]
        assert chosen.qrels == {"q1": {"d1": 1.0, "d2": 0.0}}
        assert chosen.evidences == dataset.evidences
        assert dataset.select(["q2"]).evidences == {}

    def test_select_has_the_fingerprint_of_its_content(self) -> None:
        dataset = create()
        assert dataset.select(["q1", "q2"]).fingerprint == dataset.fingerprint
        assert (
            dataset.select(["q1"]).fingerprint == create(queries=CONTENT["queries"][:1]).fingerprint
        )

    def test_select_names_unknown_queries(self) -> None:
        with pytest.raises(InputError) as caught:
            create().select(["q1", "query 7", "q-2"])
        expected = "data set 'small' has no query 'q-2' (nor 1 more); did you mean 'q2'?"
        assert str(caught.value) == expected

    def test_select_nothing(self) -> None:
        with pytest.raises(InputError, match="no query was selected"):
            create().select([])

    def test_summary(self) -> None:
        summary = create().summary()
        assert (summary.documents, summary.queries, summary.triples) == (2, 2, 1)
        assert (summary.judgements, summary.relevant, summary.evidences) == (3, 2, 1)
        assert summary.query_types == {"bridge": 2}
        assert summary.difficulties == {"easy": 1, "hard": 1}

    def test_a_query_without_judgements_is_refused(self) -> None:
        with pytest.raises(InputError, match="'q2' has no judgements"):
            create(qrels={"q1": {"d1": 1.0}})

    def test_labels_never_reach_the_corpus(self) -> None:
        secret = {"q1": Evidence(("Secret",), ((("Secret", "Secret", "Secret"),),))}
        corpus = create(evidences=secret, answers={"q1": ["Secret"]}).corpus
        assert "Secret" not in repr(corpus)

    def test_changing_what_was_given_changes_nothing(self) -> None:
        qrels = {"q1": {"d1": 1.0}, "q2": {"d2": 1.0}}
        dataset = create(qrels=qrels)
        qrels["q1"]["d2"] = 5.0
        assert dataset.qrels["q1"] == {"d1": 1.0}

    def test_survives_pickling(self) -> None:
        again = pickle.loads(pickle.dumps(create()))
        assert again.fingerprint == create().fingerprint
        assert again.qrels == create().qrels


class TestOpen:
    def test_a_folder_is_recognised(self, folder: Path) -> None:
        dataset = open_dataset(folder)
        assert (dataset.name, dataset.path) == ("small", str(folder))
        assert open_dataset(str(folder), format="beir").fingerprint == dataset.fingerprint

    def test_relative_path(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        dataset = open_dataset(".")
        assert (dataset.name, dataset.path) == ("small", ".")

    def test_home_folder(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(folder.parent))
        monkeypatch.setenv("USERPROFILE", str(folder.parent))
        assert open_dataset("~/small").name == "small"

    def test_split_name(self, folder: Path, write_lines: Write) -> None:
        write_lines(folder / "qrels/dev.tsv", ["q1\td3\t1"])
        assert open_dataset(folder, split_name="dev").qrels == {"q1": {"d3": 1.0}}

    def test_an_incomplete_folder_says_what_is_missing(self, folder: Path) -> None:
        (folder / "queries.jsonl").unlink()
        with pytest.raises(InputError, match=r"queries\.jsonl: not found; expected a folder with"):
            open_dataset(folder)

    def test_a_misspelt_path_names_the_sibling(self, folder: Path) -> None:
        with pytest.raises(InputError) as caught:
            open_dataset(folder.parent / "smal")
        wrong = str(folder.parent / "smal")
        assert str(caught.value) == (f"no such file or folder: {wrong!r}; did you mean 'small'?")

    def test_a_relative_path_says_where_it_starts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError) as caught:
            open_dataset("nowhere/at/all")
        assert str(tmp_path) in str(caught.value)

    def test_a_busy_folder_is_not_listed(self, tmp_path: Path) -> None:
        for number in range(30):
            (tmp_path / f"file{number}").touch()
        with pytest.raises(InputError) as caught:
            open_dataset(tmp_path / "zzz")
        assert "file1" not in str(caught.value)

    def test_nothing_matches_lists_the_formats(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            open_dataset(tmp_path)
        message = str(caught.value)
        assert message.startswith(f"not a data set in a known format: {str(tmp_path)!r}\n")
        assert "beir: a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv" in message

    def test_the_folder_around_data_sets_points_inside(self, folder: Path) -> None:
        with pytest.raises(InputError) as caught:
            open_dataset(folder.parent)
        assert f"did you mean {str(folder)!r}?" in str(caught.value)

    @pytest.mark.parametrize("name", ["corpus.jsonl", "qrels/test.tsv"])
    def test_a_file_of_a_data_set_points_to_its_folder(self, folder: Path, name: str) -> None:
        with pytest.raises(InputError) as caught:
            open_dataset(folder / name)
        assert f"did you mean {str(folder)!r}?" in str(caught.value)

    def test_unknown_format(self, folder: Path) -> None:
        with pytest.raises(InputError, match="'bier'; did you mean 'beir'"):
            open_dataset(folder, format="bier")

    def test_a_path_that_the_system_refuses(self) -> None:
        with pytest.raises(InputError, match=r"cannot read|no such file"):
            open_dataset("x" * 5000)

    def test_loads_no_heavy_package(self) -> None:
        code = (
            "import sys, tuner.datasets, tuner.datasets.beir\n"
            "print({'pandas', 'mlflow', 'optuna', 'skopt', 'sklearn'} & set(sys.modules))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        assert done.stdout.strip() == "set()"


class TestBuiltin:
    def test_unknown_name(self) -> None:
        with pytest.raises(InputError, match="no built-in data set 'atlos'"):
            open_dataset("builtin:atlos")

    def test_atlas(self) -> None:
        assert "atlas" in builtin_names()
        dataset = open_dataset("builtin:atlas")
        assert (dataset.name, dataset.path) == ("atlas", "builtin:atlas")
        assert dataset.warnings == ()
        summary = dataset.summary()
        assert summary.documents >= 1200
        assert summary.queries >= 300
        assert len(summary.query_types) >= 5
        assert "" not in summary.query_types
        assert "" not in summary.difficulties
        assert summary.evidences == summary.queries

    def test_without_the_prefix_it_is_suggested(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match="did you mean 'builtin:atlas'"):
            open_dataset("atlas")


QRELS = "q1 0 d1 1\nq1 0 zz 2\nq1 0 yy 0\n"


def lacking_sets(folder: Path) -> list[tuple[Path, str]]:
    """Write one data set in each layout, with judgements of documents that are not there."""
    corpus = '{"_id": "d1", "text": "Ada."}\n'
    contents = {
        "beir/corpus.jsonl": corpus,
        "beir/queries.jsonl": '{"_id": "q1", "text": "Who?"}\n',
        "beir/qrels/test.tsv": QRELS.replace(" 0 ", "\t").replace(" ", "\t"),
        "samples/corpus.jsonl": corpus,
        "samples/samples.jsonl": '{"id": "q1", "query": "Who?", "relevant_docs": ["d1", "zz"], '
        '"grades": {"zz": 2, "yy": 0}}\n',
        "trec/corpus.jsonl": corpus,
        "trec/topics.txt": "q1\tWho?\n",
        "trec/qrels.txt": QRELS,
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    files = [("beir", "test.tsv:2"), ("samples", "samples.jsonl:1"), ("trec", "qrels.txt:2")]
    return [(folder / name, place) for name, place in files]


def test_judged_documents_that_the_corpus_lacks_are_refused_but_can_be_looked_at(tmp_path):
    for path, place in lacking_sets(tmp_path):
        with pytest.raises(InputError) as caught:
            open_dataset(path)
        assert f"{place}: unknown document 'zz'" in str(caught.value)
        assert "unknown document 'yy'" in str(caught.value)
        dataset = open_dataset(path, is_strict=False)
        assert dataset.qrels == {"q1": {"d1": 1.0, "zz": 2.0, "yy": 0.0}}
        assert len(dataset.lacking) == 2
        assert dataset.select(["q1"]).lacking == dataset.lacking


def test_what_else_is_wrong_is_refused_in_any_case(tmp_path):
    path, _ = lacking_sets(tmp_path)[0]
    with (path / "qrels/test.tsv").open("a") as file:
        file.write("q1\td1\n")
    with pytest.raises(InputError) as caught:
        open_dataset(path, is_strict=False)
    assert len(caught.value.problems) == 3


def test_a_data_set_of_fractions_is_read_where_it_is_said_from_where_on_they_are_relevant(
    tmp_path: Path,
) -> None:
    write = {
        "corpus.jsonl": '{"_id": "d1", "text": "a"}\n{"_id": "d2", "text": "b"}\n',
        "queries.jsonl": '{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "b"}\n',
        "qrels/test.tsv": "q1\td1\t0.9\nq1\td2\t0.4\nq2\td2\t0.3\n",
    }
    (tmp_path / "qrels").mkdir()
    for name, text in write.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"no grade reaches 1, the highest is 0\.9"):
        open_dataset(tmp_path)
    dataset = open_dataset(tmp_path, scale=GradeScale(0.5, 1.0))
    assert dataset.warnings == (
        "1 of 2 queries have judgements but no relevant document (in line 2)",
    )
    assert dataset.summary().relevant == 1
    assert dataset.qrels["q1"] == {"d1": 0.9, "d2": 0.4}
    # Grades that are read otherwise are another data set: no study mixes the two.
    low = open_dataset(tmp_path, scale=GradeScale(0.2))
    assert low.summary().relevant == 3
    assert low.fingerprint != dataset.fingerprint
    assert dataset.select(["q1"]).scale == dataset.scale
    copy = write_dataset(dataset, tmp_path / "copy")
    assert (copy.fingerprint, copy.scale) == (dataset.fingerprint, dataset.scale)
