"""What runs are scored with: groups of queries, and what a data set and options bring."""

from __future__ import annotations

import pytest

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.grades import GradeScale
from tuner.datasets import Dataset
from tuner.scoring.run_files import inputs_of, read_files, read_groups


@pytest.fixture
def dataset():
    return Dataset.create(
        "small",
        "here",
        documents=[Document("d1", "", "a river")],
        queries=[Query("q1", "which?", "hop", "easy"), Query("q2", "what?", "", "easy")],
        qrels={"q1": {"d1": 1}, "q2": {"d1": 1}},
    )


def test_groups_are_those_of_a_data_set_or_of_a_file(dataset, tmp_path):
    # All are easy, so that difficulty tells nothing.
    assert read_groups(dataset, ["q2", "q1"]) == {"query_type": ["unlabelled", "hop"]}
    file = tmp_path / "queries.jsonl"
    file.write_text('{"_id": "q1", "text": "which?", "query_type": "hop"}\n')
    assert read_groups(str(file), ["q2", "q1"]) == {"query_type": ["unlabelled", "hop"]}
    with pytest.raises(InputError, match="here: holds none of the judged queries, such as 'q9'"):
        read_groups(dataset, ["q9"])


def test_inputs_are_what_data_set_runs_and_options_bring(dataset, tmp_path):
    run = tmp_path / "mine.json"
    run.write_text('{"q1": ["d1"]}')
    files = read_files(None, [str(run)], dataset=dataset)
    scale = GradeScale(2.0)
    options = {"tokenizer": None, "discount": [1.0, 0.5], "scale": scale}
    inputs = inputs_of(files, dataset, **options)
    assert inputs.query_texts == {"q1": "which?", "q2": "what?"}
    assert [document.id for document in inputs.documents] == ["d1"]
    assert list(inputs.told) == ["mine"]
    assert (list(inputs.options.discount), inputs.scale) == ([1.0, 0.5], scale)
    bare = inputs_of(files, None, **options)
    assert (bare.documents, bare.query_texts, bare.evidences) == ((), {}, {})
