"""GraphRAG's index in the built-in engine: what is judged, and a study by two backends."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

import numpy as np
import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError
from tuner.datasets import Dataset, open_dataset
from tuner.evaluation.evaluator import Evaluator
from tuner.retrieval.adapters.ms_graphrag import MsGraphrag
from tuner.retrieval.adapters.ms_graphrag.output import read_output
from tuner.testing import RetrieverCase, RetrieverContract
from tuner.testing.free_knobs import need_computed

FIXTURE = Path(__file__).resolve().parents[1] / "data" / "ms_graphrag"
OUTPUT = FIXTURE / "output"
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "Which bridge crosses the Lissa near Kvarnby?"),
    Query("c", "zymurgy"),
)
PARAMS: tuple[dict[str, Any], ...] = (
    {},
    {"graph_weight": 1.0, "max_hops": 3, "top_k": 20},
    {"graph_weight": 0.0, "top_k": 2},
)

Rows = list[dict[str, Any]]
Edit = Callable[[str, Callable[[Rows], Rows]], None]


def build(corpus: Corpus, **options: Any) -> MsGraphrag:
    given = {"path": str(OUTPUT), "cache_dir": Path(mkdtemp()), **options}
    return MsGraphrag.build(corpus, **given)


def corpus() -> Corpus:
    return open_dataset(FIXTURE / "data").corpus


class TestContractOfDocuments(RetrieverContract):
    case: ClassVar = RetrieverCase(
        lambda: build(corpus()),
        QUERIES,
        PARAMS,
        document_ids=[document.id for document in corpus().documents],
    )


class TestContractOfTextUnits(RetrieverContract):
    case: ClassVar = RetrieverCase(
        lambda: build(Corpus(()), judge="text_unit"),
        QUERIES,
        PARAMS,
        document_ids=[unit.id for unit in read_output(OUTPUT).units],
    )


class TestFree:
    def test_text_units_have_all_that_is_free_in_the_engine(self) -> None:
        units = build(Corpus(()), judge="text_unit")
        free = units.free_knobs({}, ["top_k", "graph_weight"])
        assert free.names == ("top_k", "graph_weight")
        assert units.free_knobs({"rerank": "lexical"}, ["top_k"]).names == ("top_k",)

    def test_of_documents_with_several_text_units_top_k_alone_is_free(self) -> None:
        documents = build(corpus())
        assert len(documents.judged) < len(documents.places)
        assert documents.free_knobs({}, ["top_k", "graph_weight"]).names == ("top_k",)
        answer = documents.telling_legs().retrieve(QUERIES, {"top_k": 20})
        assert answer.legs is None
        assert answer.by_count is not None
        sums = answer.by_count.context_tokens
        assert sums is not None
        assert answer.context_tokens is not None
        assert sums[:, -1].tolist() == answer.context_tokens.tolist()

    def test_a_document_that_is_one_text_unit_has_a_free_weight(self) -> None:
        units = read_output(OUTPUT).units
        own = {unit.document_id: unit.id for unit in units}
        whole = build(corpus())
        # As if the text units beyond one of each document had documents of their own.
        ids = sorted(unit.id for unit in units)
        names = [f"d-{id_}" for id_ in ids]
        one = replace(whole, judged=tuple(names), places=np.arange(len(ids)))
        assert len(own) < len(ids)
        one.prepare(QUERIES)
        need_computed(one, QUERIES, {})
        assert one.free_knobs({}, ["graph_weight"]).mixing is not None


class TestJudging:
    def test_text_units_count_as_their_documents(self, dataset: Dataset) -> None:
        params = {"top_k": 20, "graph_weight": 1.0, "max_hops": 5}
        units = build(Corpus(()), judge="text_unit").retrieve(dataset.queries, params)
        documents = build(dataset.corpus).retrieve(dataset.queries, params)
        document_of = {unit.id: unit.document_id for unit in read_output(OUTPUT).units}
        for row in range(len(dataset.queries)):
            expected = list(dict.fromkeys(document_of[id_] for id_ in units.ids(row)))
            assert documents.ids(row) == expected
        repeated = [len(set(units.ids(row))) > len(documents.ids(row)) for row in range(16)]
        assert any(repeated)
        # The context is what was retrieved, and that is text units.
        assert documents.context_tokens is not None
        assert documents.context_tokens.tolist() == units.context_tokens.tolist()  # type: ignore[union-attr]

    @pytest.mark.parametrize(
        "called", [lambda d: d.title, lambda d: f"{d.title}.txt", lambda d: f"in/{d.title}.txt"]
    )
    def test_documents_found_by_title_or_file_name(
        self, dataset: Dataset, folder: Path, edit: Edit, called: Callable[[Document], str]
    ) -> None:
        # GraphRAG knows the documents by hashes, and calls them by their titles or files.
        by_id = {document.id: document for document in dataset.corpus.documents}
        edit("documents", lambda rows: [{**r, "title": called(by_id[r["id"]])} for r in rows])
        edit("documents", lambda rows: [{**r, "id": f"hash-{r['id']}"} for r in rows])
        edit(
            "text_units",
            lambda rows: [{**r, "document_id": f"hash-{r['document_id']}"} for r in rows],
        )
        titled = Corpus(tuple(Document(d.title, "", d.text) for d in dataset.corpus.documents))
        rankings = build(titled, path=str(folder)).retrieve(QUERIES, {"top_k": 1})
        assert rankings.ids(0) == ["Night Ferry"]

    def test_documents_that_are_not_in_the_data_set(self, dataset: Dataset) -> None:
        few = Corpus(dataset.corpus.documents[:3])
        with pytest.raises(InputError, match="documents the data set has 3 by id, 0 by title") as e:
            build(few)
        assert e.value.problems[0].key == ("judge",)

    def test_text_units_that_are_not_in_the_data_set(self, dataset: Dataset) -> None:
        with pytest.raises(
            InputError, match="none of the data set's documents, such as 'ada-holm'"
        ):
            build(dataset.corpus, judge="text_unit")

    def test_judgements_alone_tell_no_documents(self) -> None:
        with pytest.raises(InputError, match="needs the data set's corpus"):
            build(Corpus(()))

    def test_another_word(self, dataset: Dataset) -> None:
        with pytest.raises(InputError, match="did you mean 'text_unit'"):
            build(dataset.corpus, judge="text_units")


class TestGraph:
    def test_the_graph_is_graphrags_own(self, dataset: Dataset, folder: Path, edit: Edit) -> None:
        """Without entities in the first document only its title leads there."""
        edit("documents", lambda rows: [{**row, "title": "x.txt"} for row in rows])
        query = [Query("q", "the Silver Lantern")]
        params = {"graph_weight": 1.0, "max_hops": 1, "top_k": 3}
        found = build(dataset.corpus, path=str(folder)).retrieve(query, params)
        assert found.ids(0)[0] == "night-ferry"
        assert found.graph_used is not None
        assert found.graph_used.tolist() == [True]
        edit("entities", lambda rows: [r for r in rows if r["title"] != "SILVER LANTERN"])
        edit("relationships", lambda rows: [r for r in rows if r["source"] != "SILVER LANTERN"])
        lost = build(dataset.corpus, path=str(folder)).retrieve(query, params)
        assert lost.graph_used is not None
        assert lost.graph_used.tolist() == [False]

    def test_entities_and_relationships_explain_an_answer(self, dataset: Dataset) -> None:
        retriever = build(dataset.corpus)
        params = {"graph_weight": 0.7, "temperature": 0.01}
        rankings = retriever.retrieve(QUERIES[:1], params)
        told = retriever.explain(QUERIES[:1], params, rankings)
        assert told.documents is rankings.documents
        assert told.entities is not None
        assert told.entities[0][0] == "night ferry"
        assert told.paths is not None

    def test_serving_answers_as_the_batch_does(self, dataset: Dataset) -> None:
        retriever = build(dataset.corpus)
        retriever.prepare(QUERIES)
        for row, query in enumerate(QUERIES):
            assert retriever.serve(query, {}).ids(0) == retriever.retrieve(QUERIES, {}).ids(row)

    def test_a_pickle_is_small(self, dataset: Dataset) -> None:
        assert len(pickle.dumps(build(dataset.corpus))) < 3000

    def test_options_of_the_engine(self, dataset: Dataset) -> None:
        assert build(dataset.corpus, bm25_k1=2.0).fingerprint != build(dataset.corpus).fingerprint
        with pytest.raises(InputError, match="did you mean 'bm25_k1'"):
            build(dataset.corpus, bm25_k=2.0)


def test_every_metric_of_the_graph_can_be_computed(dataset: Dataset) -> None:
    names = ["ndcg@10", "density", "coverage", "context_tokens", "graph_used"]
    evaluator = Evaluator.build(
        build(dataset.corpus),
        dataset.queries,
        dataset.qrels,
        names,
        documents=dataset.corpus.documents,
    )
    assert evaluator({}).metrics.keys() == set(names)
