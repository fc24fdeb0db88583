"""Pipelines of Haystack's, as users make them."""

from __future__ import annotations

from haystack import Document, Pipeline, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.rankers import MetaFieldRanker
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy

TEXTS = {
    "d0": "Lima lies on a river called Rimac.",
    "d1": "Cairo lies on a river called Nile.",
    "d2": "Paris lies on a river called Seine.",
    "d3": "Rome lies on a river called Tiber, and Rome is old.",
}


def store(k1: float = 1.5, b: float = 0.75, texts: dict[str, str] = TEXTS) -> InMemoryDocumentStore:
    made = InMemoryDocumentStore(bm25_algorithm="BM25Okapi", bm25_parameters={"k1": k1, "b": b})
    documents = [
        Document(id=id_, content=text, meta={"doc_id": id_, "length": len(text)})
        for id_, text in texts.items()
    ]
    made.write_documents(documents, policy=DuplicatePolicy.OVERWRITE)
    return made


def make_retriever() -> InMemoryBM25Retriever:
    return InMemoryBM25Retriever(store(), top_k=3)


def make_pipeline(k1: float = 1.5, b: float = 0.75) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("bm25", InMemoryBM25Retriever(store(k1, b), top_k=3))
    return pipeline


def make_joined() -> Pipeline:
    """Two retrievers, of which the second takes each text for the next document's, and a joiner."""
    moved = dict(zip(TEXTS, [*list(TEXTS.values())[1:], TEXTS["d0"]], strict=True))
    pipeline = Pipeline()
    pipeline.add_component("bm25", InMemoryBM25Retriever(store(), top_k=3))
    pipeline.add_component("fold", Fold())
    pipeline.add_component("back", InMemoryBM25Retriever(store(texts=moved), top_k=2))
    pipeline.add_component("join", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.connect("fold.query", "back.query")
    pipeline.connect("bm25.documents", "join.documents")
    pipeline.connect("back.documents", "join.documents")
    return pipeline


def make_ranked() -> Pipeline:
    pipeline = make_pipeline()
    pipeline.add_component("rank", MetaFieldRanker(meta_field="length"))
    pipeline.connect("bm25.documents", "rank.documents")
    return pipeline


@component
class Fold:
    """Leaves out the case of letters."""

    @component.output_types(query=str)
    def run(self, text: str) -> dict[str, str]:
        return {"query": text.lower()}


@component
class Nothing:
    """Tells of no documents."""

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, None]:
        return {"documents": None}


def make_silent() -> Nothing:
    return Nothing()


def make_empty() -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("bm25", InMemoryBM25Retriever(InMemoryDocumentStore()))
    return pipeline


def make_indexed(documents: tuple[object, ...], keeps: str = "all") -> InMemoryBM25Retriever:
    """Index the documents of the data set, with ids of Haystack's own."""
    made = InMemoryDocumentStore()
    made.write_documents(
        [
            Document(content=one.text, meta={"doc_id": one.id})
            for one in documents
            if keeps == "all" or len(one.text) > 35
        ]
    )
    return InMemoryBM25Retriever(made, top_k=3)


def make_deep(depth: int = 3) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("bm25", InMemoryBM25Retriever(store(), top_k=depth))
    return pipeline


def make_named() -> Pipeline:
    """Components with names that Haystack takes, and a space does not."""
    pipeline = Pipeline()
    pipeline.add_component("by-words 1", InMemoryBM25Retriever(store(), top_k=3))
    pipeline.add_component("2nd", DocumentJoiner())
    pipeline.connect("by-words 1.documents", "2nd.documents")
    return pipeline


def make_needy(k1: float) -> Pipeline:
    return make_pipeline(k1)


def make_dense() -> Pipeline:
    pipeline = make_pipeline()
    pipeline.add_component("dense", InMemoryEmbeddingRetriever(store()))
    return pipeline


def make_two() -> Pipeline:
    pipeline = make_pipeline()
    pipeline.add_component("other", InMemoryBM25Retriever(store(), top_k=1))
    return pipeline


def make_nothing() -> None:
    return None


def make_any(**options: float) -> None:
    raise AssertionError("it is not called")


def make_failing() -> Pipeline:
    raise OSError("the disk is full")


pipeline = object()


made = make_retriever()
