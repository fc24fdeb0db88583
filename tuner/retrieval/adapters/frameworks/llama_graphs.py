"""Which documents the facts stand in that a retriever of LlamaIndex's finds in a property graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SOURCE = "triplet_source_id"


def is_of_graph(part: Any) -> bool:
    """Say whether a retriever finds facts of a property graph, or asks some that do."""
    return _finds_facts(part) or any(map(_finds_facts, getattr(part, "sub_retrievers", ())))


def by_relations(part: Any) -> None:
    """Let a retriever of a trial's own tell the document of each fact by the fact's relation.

    LlamaIndex goes by the entity that a fact begins with, which knows one document, however many
    speak of it. Where a retriever returns texts of chunks, those are what it found, and stay.
    """
    if not _finds_facts(part) or part.include_text:
        return
    as_nodes, store = part._get_nodes_with_score, part._graph_store
    chunks: dict[str | None, Any] = {}  # by id; None: there is no such chunk

    def told(triplets: Sequence[Any], scores: list[float] | None = None) -> list[Any]:
        nodes: list[Any] = as_nodes(triplets, scores)
        sources = [_source(triplet) for triplet in triplets]
        unknown = [one for one in dict.fromkeys(sources) if one is not None and one not in chunks]
        if unknown:  # asked for none, a store returns all
            chunks.update(dict.fromkeys(unknown))
            chunks.update({node.node_id: node for node in store.get_llama_nodes(unknown)})
        for node, source, triplet in zip(nodes, sources, triplets, strict=True):
            _tell(node.node, source, chunks.get(source), triplet[1].properties)
        return nodes

    part._get_nodes_with_score = told


def _finds_facts(part: Any) -> bool:
    return any(
        base.__name__ == "BasePGRetriever" and base.__module__.startswith("llama_index.")
        for base in type(part).__mro__
    )


def _source(triplet: Sequence[Any]) -> str | None:
    """Return what a fact was read from: as its relation says, else as its first entity does."""
    subject, relation, _ = triplet
    found = relation.properties.get(_SOURCE, subject.properties.get(_SOURCE))
    return None if found is None else str(found)


def _tell(node: Any, source: str | None, chunk: Any, properties: Mapping[str, Any]) -> None:
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo

    document = source if chunk is None else (chunk.ref_doc_id or source)
    if document is not None:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=document)
    node.metadata = {**({} if chunk is None else chunk.metadata), **properties}
