"""What is written reads back as the same data set, or is not written at all."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.corpus import Document, Query, Triple
from tuner.core.errors import InputError
from tuner.datasets import Dataset, Evidence, open_dataset
from tuner.evalset.writing import LAYOUTS, write_dataset


def full_dataset() -> Dataset:
    return Dataset.create(
        "full",
        "here",
        documents=[Document("00123", "Ada", "text\u2028one"), Document("d 2", "", "巴黎")],
        queries=[
            Query("q1", 'Who "is" it?', "bridge", "hard", "g"),
            Query("q2", "谁？"),
        ],
        qrels={"q1": {"d 2": 2, "00123": 0.5}, "q2": {"00123": 1.0, "d 2": -1.0}},
        triples=[Triple("00123", "Ada", "", "Paris"), Triple("d 2", "b", "r", "c")],
        entities={"d 2": ("巴黎", "b"), "00123": ()},
        evidences={"q1": Evidence(("Ada",), ((("Ada", "r", "Paris"), ("Paris", "", "x")),))},
        answers={"q2": ("first", "second")},
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_that_a_data_set_may_hold_comes_back(tmp_path: Path, layout):
    dataset = full_dataset()
    copy = write_dataset(dataset, tmp_path / "new" / "copy", layout=layout)
    assert copy.fingerprint == dataset.fingerprint
    assert copy.corpus == dataset.corpus
    assert copy.queries == dataset.queries
    assert copy.qrels == dataset.qrels
    assert copy.evidences == dataset.evidences
    assert copy.answers == dataset.answers
    assert open_dataset(tmp_path / "new" / "copy").fingerprint == dataset.fingerprint
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["copy"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back_over_the_other_layout(tmp_path: Path, layout):
    other = next(name for name in LAYOUTS if name != layout)
    first = write_dataset(open_dataset("builtin:atlas"), tmp_path / "a", layout=layout)
    second = write_dataset(first, tmp_path / "b", layout=other)
    assert second.fingerprint == open_dataset("builtin:atlas").fingerprint


SAFE = st.characters(codec="utf-8", exclude_characters="\0")


@settings(max_examples=25)
@given(
    st.text(SAFE, min_size=1).filter(str.strip),
    st.floats(-1e9, 1e9, allow_subnormal=False),
    st.sampled_from(LAYOUTS),
)
def test_any_text_and_any_grade_come_back(tmp_path_factory, text, grade, layout):
    folder = tmp_path_factory.mktemp("any") / "copy"
    dataset = Dataset.create(
        "any",
        "here",
        documents=[Document("d1", text, text), Document("d2", "", text)],
        queries=[Query("q1", text, text, text, text)],
        qrels={"q1": {"d1": 1.0, "d2": grade}},
        answers={"q1": (text,)},
    )
    assert write_dataset(dataset, folder, layout=layout).fingerprint == dataset.fingerprint


def test_judgements_of_documents_that_are_not_there_are_not_written(tmp_path: Path):
    dataset = Dataset.create(
        "lacking",
        "here",
        documents=[Document("d1", "", "text")],
        queries=[Query("q1", "one")],
        qrels={"q1": {"d1": 1.0, "zz": 1.0}},
    )
    for layout in LAYOUTS:
        with pytest.raises(InputError, match="unknown document 'zz'"):
            write_dataset(dataset, tmp_path / "copy", layout=layout)
    assert list(tmp_path.iterdir()) == []


def test_a_negative_zero_is_a_zero(tmp_path: Path):
    zero, negative = (
        Dataset.create(
            "zero",
            "here",
            documents=[Document("d1", "", "text"), Document("d2", "", "more")],
            queries=[Query("q1", "one")],
            qrels={"q1": {"d1": 1.0, "d2": grade}},
        )
        for grade in (0.0, -0.0)
    )
    assert negative.fingerprint == zero.fingerprint
    assert write_dataset(negative, tmp_path / "copy").fingerprint == zero.fingerprint


def test_what_a_layout_cannot_hold_is_refused_and_leaves_nothing(tmp_path: Path):
    dataset = Dataset.create(
        "hopeless",
        "here",
        documents=[Document("d1", "", "text")],
        queries=[Query("q1", "one"), Query("q2", "two")],
        qrels={"q1": {"d1": 1.0}, "q2": {"d1": 0.0}},
    )
    with pytest.raises(InputError, match=r"1 of 2 queries have no relevant.*'q2'.*write 'beir'"):
        write_dataset(dataset, tmp_path / "copy", layout="samples")
    assert list(tmp_path.iterdir()) == []
    assert write_dataset(dataset, tmp_path / "copy").fingerprint == dataset.fingerprint


def test_what_reads_back_otherwise_is_named(tmp_path: Path):
    dataset = Dataset.create(
        "bare evidence",
        "here",
        documents=[Document("d1", "", "text")],
        queries=[Query("q1", "one")],
        qrels={"q1": {"d1": 1.0}},
        evidences={"q1": Evidence()},
    )
    with pytest.raises(InputError, match=r"cannot hold these evidences as they are.*'beir'"):
        write_dataset(dataset, tmp_path / "copy", layout="samples")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="is there already"):
        write_dataset(full_dataset(), tmp_path / "full")
    (tmp_path / "empty").mkdir()
    assert write_dataset(full_dataset(), tmp_path / "empty").name == "empty"
    with pytest.raises(InputError, match="cannot write"):
        write_dataset(full_dataset(), tmp_path / "full" / "precious" / "below")
    with pytest.raises(InputError, match="did you mean 'samples'"):
        write_dataset(full_dataset(), tmp_path / "new", layout="sample")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["musique", "hotpotqa.json", "2wiki.json"])
def test_published_sets_come_back(published, tmp_path: Path, name, layout):
    is_folder = name == "musique"
    dataset = open_dataset(published.folder / name if is_folder else published.sample(name))
    copy = write_dataset(dataset, tmp_path / "copy", layout=layout)
    assert copy.fingerprint == dataset.fingerprint
