"""The retriever over run files: reading, keeping, answering, and a whole study on atlas."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

import numpy as np
import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError
from tuner.core.trial import Params
from tuner.datasets.run_files import read_run
from tuner.retrieval.adapters.runs import Runs
from tuner.retrieval.adapters.runs.legs import Run
from tuner.retrieval.computed import answer_at
from tuner.testing import IndexCase, IndexContract, RetrieverCase, RetrieverContract

QUERIES = [Query("q1", "first"), Query("q2", "second"), Query("q3", "third")]
TREC = "q1 Q0 d1 1 4 x\nq1 Q0 d2 2 3 x\nq1 Q0 d3 3 2 x\nq2 Q0 d1 1 1 x\n"
JSON = json.dumps({"q1": {"d2": 10, "d4": 0}, "q3": ["d4", "d1"]})
CORPUS = Corpus(tuple(Document(f"d{n}", "", "word " * n) for n in range(1, 5)))

Build = Callable[..., Runs]


def answers(path: Path) -> Run:
    return read_run(path).answers


@pytest.fixture(autouse=True)
def builders_find_this_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.run").write_text(TREC)
    (tmp_path / "b.json").write_text(JSON)
    return tmp_path


@pytest.fixture
def build(folder: Path) -> Build:
    def made(corpus: Corpus = CORPUS, read: object = answers, **legs: str) -> Runs:
        named = legs or {"a": "a.run", "b": "b.json"}
        paths = {name: str(folder / file) for name, file in named.items()}
        return Runs.build(corpus, cache_dir=folder / "cache", legs=paths, read_run=read)  # type: ignore[arg-type]

    return made


def build_two() -> Runs:
    folder = Path(mkdtemp())
    (folder / "a.run").write_text(TREC)
    (folder / "b.json").write_text(JSON)
    legs = {"a": str(folder / "a.run"), "b": str(folder / "b.json")}
    return Runs.build(CORPUS, cache_dir=folder, legs=legs, read_run=answers)


class TestContract(RetrieverContract):
    case: ClassVar = RetrieverCase(
        build_two,
        [*QUERIES, Query("unheard-of", "fourth")],
        [
            {},
            {"weight_a": 0.0, "top_k": 1},
            {"normalisation": "z", "depth_b": 1},
            {"normalisation": "none", "weight_b": 0.2},
            {"fusion": "rrf", "rrf_k": 1},
        ],
        document_ids=["d1", "d2", "d3", "d4"],
    )


OTHER = "q1 Q0 d3 1 4 x\nq2 Q0 d2 1 3 x\nq2 Q0 d1 2 2 x\nq2 Q0 d4 3 1 x\nq2 Q0 d3 4 0.5 x\n"


def two_files_of_a(folder: Path) -> dict[str, Any]:
    (folder / "a.run").write_text(TREC)
    (folder / "other.run").write_text(OTHER)
    (folder / "b.json").write_text(JSON)
    files = {"today": str(folder / "a.run"), "other": str(folder / "other.run")}
    return {"legs": {"a": files, "b": str(folder / "b.json")}, "read_run": answers}


@pytest.mark.slow
class TestIndexContract(IndexContract):
    case: ClassVar = IndexCase(
        Runs,
        CORPUS,
        QUERIES,
        first={"run_a": "today"},
        other={"run_a": "other"},
        options=two_files_of_a(Path(mkdtemp())),
    )


class TestChoices:
    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return two_files_of_a(tmp_path)

    @pytest.fixture
    def built(self, options: dict[str, Any], tmp_path: Path) -> Callable[..., Runs]:
        def make(**chosen: str) -> Runs:
            place = tmp_path / "cache"
            return Runs.build(CORPUS, cache_dir=place, index_params=chosen or None, **options)

        return make

    def test_each_file_answers_as_when_it_is_the_only_one(
        self, built: Callable[..., Runs], options: dict[str, Any], tmp_path: Path
    ) -> None:
        for name, file in options["legs"]["a"].items():
            alone = Runs.build(
                CORPUS,
                cache_dir=tmp_path / "alone",
                legs={"a": file, "b": options["legs"]["b"]},
                read_run=answers,
            )
            among = built(run_a=name)
            for params in ({}, {"weight_b": 0.3, "normalisation": "z"}, {"fusion": "rrf"}):
                found, wanted = (one.retrieve(QUERIES, params) for one in (among, alone))
                assert [found.ids(row) for row in range(3)] == [wanted.ids(row) for row in range(3)]
                assert np.array_equal(found.context_tokens, wanted.context_tokens)

    def test_the_first_is_todays(self, built: Callable[..., Runs]) -> None:
        assert built() == built(run_a="today") != built(run_a="other")

    def test_knobs_are_the_same_whichever_is_chosen(
        self, built: Callable[..., Runs], options: dict[str, Any]
    ) -> None:
        assert built().knobs == built(run_a="other").knobs
        declared = {knob.name: knob for knob in Runs.declare_knobs(**options)}
        choice = declared.pop("run_a")
        assert (choice.default, choice.choices, choice.stage) == (
            "today",
            ("today", "other"),
            "index",
        )
        assert tuple(declared.values()) == built().knobs
        # The deeper of today's 3 documents and the other's 4.
        assert (declared["depth_a"].default, declared["depth_a"].high) == (4, 4)
        assert Runs.declare_knobs(legs=options["legs"]) == (choice,)

    def test_files_are_read_once(self, built: Callable[..., Runs], options: dict[str, Any]) -> None:
        first = built()

        def refuse(path: Path) -> Run:
            raise AssertionError(f"{path} was read again")

        options["read_run"] = refuse
        assert built() == first

    def test_an_index_is_of_the_content_of_all_files(
        self, options: dict[str, Any], tmp_path: Path
    ) -> None:
        before = Runs.identify_index({"run_a": "today"}, legs=options["legs"])
        assert Runs.identify_index({"run_a": "other"}, legs=options["legs"]) == before
        (tmp_path / "other.run").write_text(OTHER + "q3 Q0 d1 1 1 x\n")
        assert Runs.identify_index({"run_a": "today"}, legs=options["legs"]) != before

    def test_what_is_wrong_with_any_file_is_told_at_once(
        self, built: Callable[..., Runs], tmp_path: Path
    ) -> None:
        (tmp_path / "other.run").unlink()
        (tmp_path / "b.json").write_text("[")
        with pytest.raises(InputError) as caught:
            built()
        told = "\n".join(map(str, caught.value.problems))
        assert "other.run: no such file" in told
        assert "b.json" in told

    def test_paths_hold_from_anywhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        legs = {"a": {"x": "x.run", "y": 3}, "b": "b.run"}
        resolved = Runs.resolve_options({"legs": legs}, Path("elsewhere"))["legs"]
        assert resolved == {
            "a": {"x": str(tmp_path / "x.run"), "y": 3},
            "b": str(tmp_path / "b.run"),
        }


class TestAnswers:
    def test_a_batch_in_its_order(self, build: Build) -> None:
        rankings = build().retrieve(list(reversed(QUERIES)), {"top_k": 3})
        assert list(rankings.query_ids) == ["q3", "q2", "q1"]
        # q1: d2 .5 + 1, d1 1 + 0; of d3 and d4, both 0, the greater id
        assert [rankings.ids(row) for row in range(3)] == [["d4", "d1"], ["d1"], ["d2", "d1", "d4"]]
        assert rankings.scores is not None
        assert rankings.scores.tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.5, 1.0, 0.0]]

    def test_contexts_are_counted_by_the_corpus(self, build: Build) -> None:
        rankings = build().retrieve(QUERIES, {"top_k": 2})
        assert rankings.context_tokens is not None
        # d2 + d1, d1, d4 + d1
        assert rankings.context_tokens.tolist() == [3.0, 1.0, 5.0]

    @pytest.mark.parametrize("params", [{}, {"fusion": "rrf"}, {"weight_a": 0.0}])
    def test_shorter_answers_are_computed(self, build: Build, params: Params) -> None:
        retriever = build()
        free = retriever.free_knobs({}, ["top_k"])
        answer = retriever.retrieve(QUERIES, {**params, "top_k": 4})
        for top_k in range(1, 5):
            computed = answer_at(free, answer, {**params, "top_k": top_k})
            given = retriever.retrieve(QUERIES, {**params, "top_k": top_k})
            assert [computed.ids(row) for row in range(3)] == [given.ids(row) for row in range(3)]
            np.testing.assert_array_equal(computed.context_tokens, given.context_tokens)

    def test_without_a_corpus_any_document_will_do(self, build: Build) -> None:
        rankings = build(Corpus(())).retrieve(QUERIES, {"top_k": 2})
        assert rankings.ids(0) == ["d2", "d1"]
        assert rankings.context_tokens is None

    def test_unknown_queries_have_empty_answers(self, build: Build) -> None:
        rankings = build().retrieve([Query("new", "?")], {})
        assert rankings.ids(0) == []
        assert build().retrieve([], {}).documents.shape[0] == 0

    def test_knobs_tell_the_legs_and_their_depths(self, build: Build) -> None:
        ranges = {knob.name: (knob.default, knob.low, knob.high) for knob in build().knobs}
        assert ranges == {
            "weight_a": (1.0, 0.0, 1.0),
            "weight_b": (1.0, 0.0, 1.0),
            "fusion": ("score", None, None),
            "normalisation": ("min_max", None, None),
            "rrf_k": (60, 1, 1000),
            "depth_a": (3, 1, 3),
            "depth_b": (2, 1, 2),
            "top_k": (10, 1, 100),
        }


class TestKeeping:
    def test_a_pickle_is_small_and_answers_alike(self, build: Build) -> None:
        runs = build()
        sent = pickle.dumps(runs)
        assert len(sent) < 3000
        again = pickle.loads(sent).retrieve(QUERIES, {"weight_a": 0.3})
        assert (
            again.documents.tolist() == runs.retrieve(QUERIES, {"weight_a": 0.3}).documents.tolist()
        )

    def test_files_are_read_once(self, build: Build) -> None:
        first = build()

        def refuse(path: Path) -> Mapping[str, object]:
            raise AssertionError(f"{path} was read again")

        assert build(read=refuse) == first

    def test_the_fingerprint_tells_contents_and_names(self, build: Build, folder: Path) -> None:
        names = {build().fingerprint, build(Corpus(())).fingerprint}
        names |= {build(a="a.run", c="b.json").fingerprint}
        (folder / "a.run").write_text(TREC + "q3 Q0 d1 1 1 x\n")
        names |= {build().fingerprint}
        assert len(names) == 4

    def test_a_gzipped_file_and_lines_in_another_order_rank_alike(
        self, build: Build, folder: Path
    ) -> None:
        lines = TREC.splitlines(keepends=True)
        (folder / "a.run.gz").write_bytes(gzip.compress("".join(reversed(lines)).encode()))
        one, other = build(), build(a="a.run.gz", b="b.json")
        assert [one.retrieve(QUERIES, {}).ids(row) for row in range(3)] == [
            other.retrieve(QUERIES, {}).ids(row) for row in range(3)
        ]


class TestWrong:
    def test_everything_in_all_files_at_once(self, build: Build, folder: Path) -> None:
        (folder / "a.run").write_text("q1 Q0 d1 1 high x\nq1 Q0 d2 2 nan x\nq1 Q0 d1 3 2 x\n")
        with pytest.raises(InputError) as caught:
            build(a="a.run", b="missing.run", c="b.json")
        told = "\n".join(map(str, caught.value.problems))
        for part in (
            "a.run:1: ",
            "'high'",
            "a.run:2: ",
            "'nan'",
            "a.run:3: duplicate",
            "no such file",
        ):
            assert part in told

    @pytest.mark.parametrize(
        ("legs", "message"),
        [
            (["a.run"], "must map names to run files"),
            ({"a": "a.run"}, "a fusion needs two runs or more, got 1"),
            ({"a": "a.run", "b-c": "b.run"}, "legs.b-c: a leg's name starts with a letter"),
            ({"a": "a.run", "b": 3}, "legs.b: must be a run file, got 3"),
            ({"a": "a.run", "b": {"x": 3}}, r"legs\.b\.x: must be a path, got 3"),
            ({"a": "a.run", "b": {}}, r"legs\.b: must map names to paths"),
            ({"a": "a.run", "b": {1: "b.run"}}, r"a name must be a text, got 1"),
        ],
    )
    def test_legs(self, tmp_path: Path, legs: object, message: str) -> None:
        with pytest.raises(InputError, match=message):
            Runs.build(CORPUS, cache_dir=tmp_path, legs=legs, read_run=answers)

    def test_a_leg_that_knows_none_of_the_queries(self, build: Build) -> None:
        runs = build()
        runs.prepare(QUERIES)
        with pytest.raises(InputError) as caught:
            runs.prepare([Query("q2", "second"), Query("query-3", "third")])
        (problem,) = caught.value.problems
        assert str(problem) == (
            "retriever.legs.b: the run has none of the data set's queries: it has 'q1', 'q3', "
            "the data set has 'q2', 'query-3'"
        )

    def test_documents_that_are_not_in_the_corpus(self, build: Build) -> None:
        with pytest.raises(InputError, match=r"legs\.b: .*'d4' is not in the data set's corpus"):
            build(Corpus(CORPUS.documents[:3]))
