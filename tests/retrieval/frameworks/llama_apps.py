"""Retrievers of LlamaIndex's, as users make them."""

from __future__ import annotations

import zlib
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
    TransformComponent,
)

TEXTS = {
    "d0": "Lima lies on a river called Rimac.",
    "d1": "Cairo lies on a river called Nile.",
    "d2": "Paris lies on a river called Seine.",
    "d3": "Rome lies on a river called Tiber, and Rome is old.",
}


class Words(BaseEmbedding):
    """Counts of hashed words."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.01] * 64
        for word in text.lower().replace(",", " ").replace(".", " ").split():
            vector[zlib.crc32(word.encode()) % 64] += 1.0
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def nodes_of(texts: dict[str, str] = TEXTS) -> list[TextNode]:
    """One chunk a document, with an id of its own."""
    return [
        TextNode(
            id_=f"chunk-{id_}",
            text=text,
            metadata={"doc_id": id_},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=id_)},
            excluded_embed_metadata_keys=["doc_id"],
        )
        for id_, text in texts.items()
    ]


def make_vectors() -> Any:
    return VectorStoreIndex(nodes_of(), embed_model=Words()).as_retriever(similarity_top_k=3)


def make_misspelt() -> Any:
    return VectorStoreIndex(nodes_of(), embed_model=Words()).as_retriever(
        vector_store_query_mode="mmr", vector_store_kwargs={"mmr_treshold": 0.2}
    )


def make_dropped(depth: int = 3) -> Any:
    index = VectorStoreIndex(nodes_of(), embed_model=Words())
    return index.as_retriever(similarity_topk=depth)


def make_empty() -> Any:
    return VectorStoreIndex([], embed_model=Words()).as_retriever()


def make_bm25(k1: float = 1.5, b: float = 0.75, texts: dict[str, str] = TEXTS) -> Any:
    import bm25s
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = nodes_of(texts)
    made = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=3)
    index = bm25s.BM25(k1=k1, b=b)
    index.index(
        bm25s.tokenize([node.text for node in nodes], show_progress=False, stemmer=made.stemmer),
        show_progress=False,
    )
    index.corpus = made.corpus
    return BM25Retriever(existing_bm25=index, similarity_top_k=3)


def make_bm25_of(documents: Any) -> Any:
    """Ask for many: it lowers its depth to the number of documents by itself."""
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = nodes_of({one.id: one.text for one in documents})
    return BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=100)


def make_fusion() -> Any:
    moved = dict(zip(TEXTS, [*list(TEXTS.values())[1:], TEXTS["d0"]], strict=True))
    parts = [
        VectorStoreIndex(nodes_of(texts), embed_model=Words()).as_retriever(similarity_top_k=3)
        for texts in (TEXTS, moved)
    ]
    return QueryFusionRetriever(
        parts,
        llm=MockLLM(),
        num_queries=1,
        similarity_top_k=3,
        mode="relative_score",
        use_async=False,
    )


def make_fusion_of_graph() -> Any:
    return QueryFusionRetriever([make_graph(), make_vectors()], llm=MockLLM(), num_queries=1)


def make_more_queries() -> Any:
    return QueryFusionRetriever([make_vectors()], llm=MockLLM(), num_queries=3)


def make_chunks() -> Any:
    """Chunks that do not know their document."""
    nodes = [TextNode(id_=f"chunk-{id_}", text=text) for id_, text in TEXTS.items()]
    return VectorStoreIndex(nodes, embed_model=Words()).as_retriever(similarity_top_k=3)


def make_graph() -> Any:
    """Cities and rivers, and which lies on which; a relation leads to its document."""
    from llama_index.core.graph_stores import SimplePropertyGraphStore
    from llama_index.core.graph_stores.types import EntityNode, Relation
    from llama_index.core.indices.property_graph import VectorContextRetriever
    from llama_index.core.vector_stores import SimpleVectorStore

    graph, vectors = SimplePropertyGraphStore(), SimpleVectorStore()
    for id_, text in TEXTS.items():
        words = text.replace(",", " ").replace(".", " ").split()
        city, river = words[0], words[6]
        source = {"triplet_source_id": id_}
        nodes = [EntityNode(name=name, properties=source) for name in (city, river)]
        graph.upsert_nodes(nodes)
        graph.upsert_relations(
            [
                Relation(
                    label="LIES_ON", source_id=nodes[0].id, target_id=nodes[1].id, properties=source
                )
            ]
        )
        graph.upsert_llama_nodes([TextNode(id_=id_, text=text)])
        for node in nodes:
            vector = Words().get_text_embedding(node.name)
            vectors.add([TextNode(id_=node.id, text=node.name, embedding=vector)])
    return VectorContextRetriever(
        graph, embed_model=Words(), vector_store=vectors, similarity_top_k=3, include_text=False
    )


class Cities(TransformComponent):
    """Reads which city lies on which river, in place of a language model."""

    def __call__(self, nodes: Any, **given: Any) -> Any:
        from llama_index.core.graph_stores.types import (
            KG_NODES_KEY,
            KG_RELATIONS_KEY,
            EntityNode,
            Relation,
        )

        for node in nodes:
            words = node.text.replace(",", " ").replace(".", " ").split()
            city, river = EntityNode(name=words[0]), EntityNode(name=words[6])
            node.metadata[KG_NODES_KEY] = [city, river]
            relation = Relation(label="LIES_ON", source_id=city.id, target_id=river.id)
            node.metadata[KG_RELATIONS_KEY] = [relation]
        return nodes


def make_graph_index(include_text: bool = False) -> Any:
    """What LlamaIndex makes of documents by itself: facts that know the chunk they stand in."""
    from llama_index.core import Document, PropertyGraphIndex
    from llama_index.core.indices.property_graph import VectorContextRetriever
    from llama_index.core.vector_stores import SimpleVectorStore

    index = PropertyGraphIndex.from_documents(
        [Document(id_=id_, text=text, metadata={"doc_id": id_}) for id_, text in TEXTS.items()],
        kg_extractors=[Cities()],
        llm=MockLLM(),
        embed_model=Words(),
        vector_store=SimpleVectorStore(),
        use_async=False,
    )
    part = VectorContextRetriever(
        index.property_graph_store,
        embed_model=Words(),
        vector_store=index.vector_store,
        include_text=include_text,
    )
    return index.as_retriever(sub_retrievers=[part])


def make_graph_texts() -> Any:
    return make_graph_index(include_text=True)


def make_shared_name() -> Any:
    """Two facts on Lima, of two documents: an entity knows the document that came last."""
    from llama_index.core.graph_stores import SimplePropertyGraphStore
    from llama_index.core.graph_stores.types import EntityNode, Relation
    from llama_index.core.indices.property_graph import VectorContextRetriever
    from llama_index.core.vector_stores import SimpleVectorStore

    graph, vectors = SimplePropertyGraphStore(), SimpleVectorStore()
    for id_, label, other in (("d0", "LIES_ON", "Rimac"), ("d1", "OLDER_THAN", "Cairo")):
        source = {"triplet_source_id": id_}
        nodes = [EntityNode(name=name, properties=source) for name in ("Lima", other)]
        graph.upsert_nodes(nodes)
        relation = Relation(
            label=label, source_id=nodes[0].id, target_id=nodes[1].id, properties=source
        )
        graph.upsert_relations([relation])
    for name in ("Lima", "Rimac", "Cairo"):
        vector = Words().get_text_embedding(name)
        vectors.add([TextNode(id_=name, text=name, embedding=vector)])
    return VectorContextRetriever(
        graph, embed_model=Words(), vector_store=vectors, include_text=False
    )


def make_empty_graph() -> Any:
    from llama_index.core.graph_stores import SimplePropertyGraphStore
    from llama_index.core.indices.property_graph import VectorContextRetriever
    from llama_index.core.vector_stores import SimpleVectorStore

    return VectorContextRetriever(
        SimplePropertyGraphStore(), embed_model=Words(), vector_store=SimpleVectorStore()
    )


class Awaited(BaseRetriever):
    """A client of a service that has no other way to be asked."""

    def _retrieve(self, query_bundle: Any) -> Any:
        raise NotImplementedError

    async def _aretrieve(self, query_bundle: Any) -> Any:
        return [NodeWithScore(node=node) for node in nodes_of()]


def make_awaited() -> Any:
    return Awaited()


def make_class() -> Any:
    return Words


def make_generator() -> Any:
    yield make_vectors()


def make_nothing() -> None:
    return None


made = make_vectors()
