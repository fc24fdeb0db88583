"""Reading 2WikiMultihopQA, and joining its triples to paths."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.dataset import Evidence, Step
from tuner.datasets.texts import join_steps, names_in
from tuner.datasets.wiki2 import Wiki2

NAMES = st.sampled_from(["", "a", "A", "b", "c", "d", "ß", "ss"])
STEPS = st.lists(st.tuples(NAMES, st.sampled_from("rs"), NAMES), max_size=8)


def record(**changes: Any) -> dict[str, Any]:
    good = {
        "_id": "q1",
        "question": "Where did Ada's mother die?",
        "answer": "UK",
        "type": "compositional",
        "supporting_facts": [["Ada", 0]],
        "context": [["Ada", ["Ada's mother was Anne.", "Anne died in the UK."]]],
        "evidences": [["Ada", "mother", "Anne"], ["anne", "died in", "UK"]],
    }
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


def write(folder: Path, *records: object) -> Path:
    file = folder / "questions.json"
    file.write_text(json.dumps(records))
    return file


def problems_of(file: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        Wiki2.read(file)
    return [str(problem).removeprefix(f"{file}: ") for problem in caught.value.problems]


class TestWhatIsRead:
    def test_a_record(self, tmp_path: Path) -> None:
        dataset = Wiki2.read(write(tmp_path, record()))
        assert dataset.corpus.documents[0].text == "Ada's mother was Anne. Anne died in the UK."
        assert (dataset.queries[0].query_type, dataset.queries[0].difficulty) == (
            "compositional",
            "",
        )
        path = (("Ada", "mother", "Anne"), ("anne", "died in", "UK"))
        assert dataset.evidences == {"q1": Evidence(("Ada", "Anne", "anne", "UK"), (path,))}
        assert dataset.answers == {"q1": ("UK",)}

    def test_columns_read_as_triples_do(self, tmp_path: Path) -> None:
        plain = Wiki2.read(write(tmp_path, record()))
        columns = {
            "fact": ["Ada", "anne"],
            "relation": ["mother", "died in"],
            "entity": ["Anne", "UK"],
        }
        nested = Wiki2.read(write(tmp_path, record(evidences=columns)))
        assert nested.fingerprint == plain.fingerprint

    def test_lists_as_strings_of_json_read_the_same(self, tmp_path: Path) -> None:
        plain = Wiki2.read(write(tmp_path, record()))
        keys = ("context", "supporting_facts", "evidences")
        strings = {key: json.dumps(record()[key]) for key in keys}
        file = write(tmp_path, record(**strings))
        assert Wiki2.detect(file)
        assert Wiki2.read(file).fingerprint == plain.fingerprint


class TestProblems:
    @pytest.mark.parametrize(
        ("evidences", "expected"),
        [
            (..., "record 1: 'evidences' is missing; the keys are: _id, question, answer, type, "
             "supporting_facts, context"),
            ("none", "record 1.evidences: must be a list of [subject, relation, object] triples, "
             "got a string"),
            ([["a", "r", "b"], ["a", "r"]], "record 1.evidences[1]: must be three strings "
             "[subject, relation, object]"),
            ([["a", "r", 4]], "record 1.evidences[0]: must be three strings "
             "[subject, relation, object]"),
            ({"fact": ["a"], "relation": ["r"]}, "record 1.evidences: must have the lists 'fact', "
             "'relation', 'entity'"),
            ({"fact": ["a"], "relation": ["r"], "entity": []}, "record 1.evidences: must have "
             "columns of the same length"),
        ],
    )  # fmt: skip
    def test_one(self, tmp_path: Path, evidences: object, expected: str) -> None:
        assert problems_of(write(tmp_path, record(evidences=evidences))) == [expected]

    def test_those_of_hotpotqa_are_found_too(self, tmp_path: Path) -> None:
        file = write(tmp_path, record(evidences=[1], context=[], supporting_facts=3))
        assert problems_of(file) == [
            "record 1.supporting_facts: must be a list of [title, sent_id] pairs, or two columns, "
            "got the number 3",
            "record 1.evidences[0]: must be three strings [subject, relation, object]",
        ]


class TestJoin:
    def test_a_bridge_comparison_has_two_paths(self) -> None:
        steps = [
            ("Film A", "director", "X"),
            ("Film B", "director", "Y"),
            ("X", "born", "1900"),
            ("Y", "born", "1910"),
        ]
        assert join_steps(steps) == ((steps[0], steps[2]), (steps[1], steps[3]))

    def test_the_order_of_the_steps_does_not_matter_to_a_chain(self) -> None:
        chain = [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d")]
        assert join_steps(chain[::-1]) == (tuple(chain),)

    def test_a_branch_begins_a_chain_of_its_own(self) -> None:
        steps = [("a", "r", "b"), ("b", "r", "c"), ("b", "s", "d")]
        assert join_steps(steps) == ((steps[0], steps[1]), (steps[2],))

    def test_nothing_is_joined_at_an_empty_name(self) -> None:
        steps = [("a", "r", ""), ("", "r", "b")]
        assert join_steps(steps) == ((steps[0],), (steps[1],))

    def test_circles_end(self) -> None:
        circle = [("a", "r", "b"), ("b", "r", "a")]
        assert join_steps(circle) == (tuple(circle),)
        assert join_steps([("a", "r", "a")]) == ((("a", "r", "a"),),)

    @given(STEPS)
    def test_each_step_is_in_exactly_one_chain_and_links_hold(self, steps: list[Step]) -> None:
        chains = join_steps(steps)
        assert Counter(step for chain in chains for step in chain) == Counter(set(steps))
        for chain in chains:
            for step, following in pairwise(chain):
                assert step[2].casefold() == following[0].casefold() != ""

    @given(STEPS)
    def test_no_name_is_lost(self, steps: list[Step]) -> None:
        chains = join_steps(steps)
        assert set(names_in(steps)) == {n for c in chains for s, _, o in c for n in (s, o) if n}


class TestPublishedSample:
    def test_counts(self, published: Any) -> None:
        dataset = open_dataset(published.sample("2wiki.json"))
        summary = dataset.summary()
        counts = (32, 10, 24) if published.is_ours else (193, 20, 50)
        assert (summary.documents, summary.queries, summary.relevant) == counts
        each = {2, 3} if published.is_ours else {5}
        assert set(summary.query_types.values()) == each
        assert len(summary.query_types) == 4
        assert dataset.warnings == ()

    def test_the_converted_set_says_the_same(self, published: Any) -> None:
        sample = open_dataset(published.sample("2wiki.json"))
        whole = open_dataset(published.folder / "2wiki").select(sample.qrels)
        assert {q.id: q for q in whole.queries} == {q.id: q for q in sample.queries}
        assert (whole.qrels, whole.evidences) == (sample.qrels, sample.evidences)
        assert whole.answers == sample.answers
        assert set(sample.corpus.documents) <= set(whole.corpus.documents)

    def test_paths_of_the_whole_set_are_joined_the_same_way(self, published: Any) -> None:
        evidences = open_dataset(published.folder / "2wiki").evidences
        for evidence in evidences.values():
            steps = [step for path in evidence.paths for step in path]
            assert set(join_steps(steps)) == set(evidence.paths)
        count = sum(len(evidence.paths) for evidence in evidences.values())
        assert count == (15 if published.is_ours else 804)
