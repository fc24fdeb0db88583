"""Retrievers of neo4j-graphrag's, as users make them, over a stand-in for Neo4j's driver.

No server is asked: the stand-in answers the statements that the package writes over four texts. So
what the package sends, and what is read from its records, is tried; that Neo4j agrees is not.
"""

from __future__ import annotations

import re
import zlib
from types import SimpleNamespace
from typing import Any

import neo4j
from neo4j.exceptions import ClientError, ServiceUnavailable
from neo4j_graphrag.embeddings import Embedder
from neo4j_graphrag.retrievers import (
    HybridCypherRetriever,
    HybridRetriever,
    VectorCypherRetriever,
    VectorRetriever,
)

TEXTS = {
    "d0": "Lima lies on a river called Rimac.",
    "d1": "Cairo lies on a river called Nile.",
    "d2": "Paris lies on a river called Seine.",
    "d3": "Rome lies on a river called Tiber, and Rome is old.",
}
ASKED: list[tuple[str, dict[str, Any]]] = []
EMBEDDED: list[str] = []


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


class Words(Embedder):
    """Counts of hashed words."""

    def embed_query(self, text: str) -> list[float]:
        EMBEDDED.append(text)
        vector = [0.01] * 64
        for word in words_of(text):
            vector[zlib.crc32(word.encode()) % 64] += 1.0
        return vector


class StandIn(neo4j.Driver):
    """Answers as Neo4j would, as far as the package asks."""

    def __init__(self, version: str = "2026.1.0", is_empty: bool = False) -> None:
        self.version, self.is_empty = version, is_empty
        self._pool = SimpleNamespace(pool_config=SimpleNamespace())
        self._closed = True

    def __del__(self) -> None:
        pass

    def verify_connectivity(self, **given: Any) -> None:
        pass

    def execute_query(self, query_: str, parameters_: Any = None, **given: Any) -> Any:
        ASKED.append((query_, dict(parameters_ or {})))
        records = [neo4j.Record(one) for one in self._rows(query_, parameters_ or {})]
        return neo4j.EagerResult(records, None, [])

    def _rows(self, statement: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        if "dbms.components" in statement:
            return [{"versions": [self.version], "edition": "community"}]
        if "SHOW VECTOR INDEXES" in statement:
            about = {"labels": ["Chunk"], "properties": ["embedding"], "dimensions": 64}
            return [{**about, "filterable_properties": []}]
        if "IS NOT NULL RETURN 1" in statement:
            return [] if self.is_empty else [{"one": 1}]
        return self._found(statement, given)

    def _found(self, statement: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        near = by_vectors(given["query_vector"], given["top_k"])
        if "fulltext" in statement:
            alpha = given["alpha"] if "$alpha" in statement else None
            near = merged(near, by_words(given["query_text"], given["top_k"]), alpha)
        best = sorted(near, key=lambda id_: (-near[id_], id_))[: given["top_k"]]
        if "AS found" in statement:  # the user's own query: each text twice
            least = given["least"]
            rows = [{"id": id_, "found": near[id_]} for id_ in best for _ in (1, 2)]
            return [row for row in rows if row["found"] >= least]
        return [
            {
                "node": {"id": id_, "doc_id": id_, "text": TEXTS[id_], "embedding": None},
                "nodeLabels": ["Chunk"],
                "elementId": f"4:x:{id_}",
                "id": f"4:x:{id_}",
                "score": near[id_],
            }
            for id_ in best
        ]


def by_vectors(vector: list[float], top_k: int) -> dict[str, float]:
    near = {}
    for id_, text in TEXTS.items():
        other = Words().embed_query(text)
        EMBEDDED.pop()
        near[id_] = sum(a * b for a, b in zip(vector, other, strict=True))
    return dict(sorted(near.items(), key=lambda pair: (-pair[1], pair[0]))[:top_k])


def by_words(query: str, top_k: int) -> dict[str, float]:
    if re.search(r"(?<!\\)[?()]|\bAND\b", query):
        raise ClientError("org.apache.lucene.queryparser.classic.ParseException")
    shared = {id_: len({*words_of(query)} & {*words_of(t)}) / 9 for id_, t in TEXTS.items()}
    found = {id_: score for id_, score in shared.items() if score}
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:top_k])


def merged(near: dict[str, float], like: dict[str, float], alpha: float | None) -> dict[str, float]:
    found: dict[str, float] = {}
    for scores, weight in ((near, alpha), (like, None if alpha is None else 1 - alpha)):
        for id_, score in scores.items():
            share = score / max(scores.values())
            plain = max(found.get(id_, 0.0), share)
            found[id_] = plain if weight is None else found.get(id_, 0.0) + weight * share
    return found


def make_vectors() -> VectorRetriever:
    return VectorRetriever(StandIn(), "chunks", Words(), return_properties=["id"])


def make_hybrid(version: str = "2026.1.0") -> HybridRetriever:
    return HybridRetriever(StandIn(version), "chunks", "texts", Words())


def make_older() -> HybridRetriever:
    return make_hybrid("5.20.0")


OWN_QUERY = """
WITH node, score WHERE score >= $least  // not $this
RETURN node.id AS id, score AS found, '$nor this' AS note ORDER BY found DESC, id
"""


def make_own_query() -> VectorCypherRetriever:
    return VectorCypherRetriever(StandIn(), "chunks", OWN_QUERY, Words())


def make_hybrid_query() -> HybridCypherRetriever:
    return HybridCypherRetriever(StandIn(), "chunks", "texts", OWN_QUERY, Words())


def make_empty() -> VectorRetriever:
    return VectorRetriever(StandIn(is_empty=True), "chunks", Words())


def make_without_embedder() -> VectorRetriever:
    return VectorRetriever(StandIn(), "chunks")


def make_away() -> None:
    raise ServiceUnavailable("Couldn't connect to localhost:7687")


def make_nothing() -> None:
    return None


made = make_vectors()
