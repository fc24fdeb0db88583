"""Retrievers of LangChain's, as users make them."""

from __future__ import annotations

import zlib

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

TEXTS = {
    "d0": "Lima lies on a river called Rimac.",
    "d1": "Cairo lies on a river called Nile.",
    "d2": "Paris lies on a river called Seine.",
    "d3": "Rome lies on a river called Tiber, and Rome is old.",
}


class Words(Embeddings):
    """Counts of hashed words."""

    def embed_query(self, text: str) -> list[float]:
        vector = [0.01] * 64
        for word in text.lower().replace(",", " ").replace(".", " ").split():
            vector[zlib.crc32(word.encode()) % 64] += 1.0
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def documents_of(texts: dict[str, str] = TEXTS) -> list[Document]:
    return [
        Document(id=id_, page_content=text, metadata={"doc_id": id_, "kind": "city"})
        for id_, text in texts.items()
    ]


def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(Words())
    made.add_documents(documents_of())
    return made


def make_vectors():
    return store().as_retriever(search_kwargs={"k": 3})


def make_empty():
    return InMemoryVectorStore(Words()).as_retriever()


def make_bm25(k1: float = 1.5, b: float = 0.75):
    from langchain_community.retrievers import BM25Retriever

    params = {"k1": k1, "b": b}
    return BM25Retriever.from_documents(documents_of(), bm25_params=params, k=3)


def make_ensemble():
    from langchain_classic.retrievers import EnsembleRetriever

    moved = dict(zip(TEXTS, [*list(TEXTS.values())[1:], TEXTS["d0"]], strict=True))
    from langchain_community.retrievers import BM25Retriever

    other = BM25Retriever.from_documents(documents_of(moved), k=2)
    return EnsembleRetriever(retrievers=[make_vectors(), other], id_key="doc_id")


def make_graph():
    from graph_retriever.strategies import Eager
    from langchain_graph_retriever import GraphRetriever

    strategy = Eager(select_k=3, start_k=1, adjacent_k=2, max_depth=1)
    return GraphRetriever(store=store(), edges=[("kind", "kind")], strategy=strategy)


def make_mmr_graph():
    from graph_retriever.strategies import Mmr
    from langchain_graph_retriever import GraphRetriever

    strategy = Mmr(select_k=3, start_k=1, adjacent_k=2, max_depth=1)
    return GraphRetriever(store=store(), edges=[("kind", "kind")], strategy=strategy)


class Strict(InMemoryVectorStore):
    """Raises at a keyword that it does not know."""

    def similarity_search(self, query: str, k: int = 4) -> list[Document]:
        return super().similarity_search(query, k)


def make_strict():
    made = Strict(Words())
    made.add_documents(documents_of())
    return made.as_retriever(search_kwargs={"k": 3})


def make_misspelt():
    return store().as_retriever(search_type="mmr", search_kwargs={"k": 3, "lambda_mul": 0.2})


class Own(InMemoryVectorStore):
    """Reads keywords that its signatures do not name."""

    def similarity_search(self, query: str, k: int = 4, **kwargs) -> list[Document]:
        kwargs.pop("filters", None)
        return super().similarity_search(query, k, **kwargs)


def make_own():
    made = Own(Words())
    made.add_documents(documents_of())
    return made.as_retriever(search_kwargs={"k": 3, "filters": {}, "tenant": "ours"})


def make_bare():
    """Documents without ids of their own."""
    from langchain_core.runnables import RunnableLambda

    documents = [
        Document(page_content=one.page_content, metadata=one.metadata) for one in documents_of()
    ]
    return RunnableLambda(lambda query: documents)


def make_nothing():
    return None


def make_words():
    from langchain_core.runnables import RunnableLambda

    return RunnableLambda(lambda query: query.split())


made = make_vectors()
