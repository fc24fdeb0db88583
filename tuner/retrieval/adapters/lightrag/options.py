"""What LightRAG's retrieval can be tuned by: its own parameters, ranges and defaults."""

from __future__ import annotations

from dataclasses import dataclass

from tuner.retrieval.knobs import Knob

MODES = ("naive", "local", "global", "hybrid", "mix")
_WITH_GRAPH = {"mode": MODES[1:]}

KNOBS = (
    Knob(
        "mode",
        "categorical",
        "mix",
        choices=MODES,
        description="how passages are found. naive: by vectors; local: by entities; global: by "
        "relations; hybrid: by both; mix: by all three",
    ),
    Knob(
        "top_k",
        "integer",
        40,
        low=1,
        high=200,
        scale="log",
        description="how many entities and relations the vector search returns",
        when=_WITH_GRAPH,
    ),
    Knob(
        "chunk_top_k",
        "integer",
        20,
        low=1,
        high=100,
        scale="log",
        description="how many passages are returned at most",
    ),
    Knob(
        "max_entity_tokens",
        "integer",
        6000,
        low=50,
        high=20_000,
        scale="log",
        description="tokens for entities; an entity beyond them brings no passages",
        when=_WITH_GRAPH,
    ),
    Knob(
        "max_relation_tokens",
        "integer",
        8000,
        low=50,
        high=20_000,
        scale="log",
        description="tokens for relations; a relation beyond them brings no passages",
        when=_WITH_GRAPH,
    ),
    Knob(
        "max_total_tokens",
        "integer",
        30_000,
        low=1000,
        high=100_000,
        scale="log",
        description="tokens for the whole prompt: about 1000 for its fixed text, then entities and "
        "relations, then passages in what is left",
    ),
    Knob(
        "cosine_better_than_threshold",
        "real",
        0.2,
        low=0.0,
        high=1.0,
        description="vectors less similar than this do not count as found; useful values depend on "
        "the embedder",
    ),
    Knob(
        "related_chunk_number",
        "integer",
        5,
        low=1,
        high=100,
        scale="log",
        description="how many passages are taken for each entity or relation",
        when=_WITH_GRAPH,
    ),
    Knob(
        "kg_chunk_pick_method",
        "categorical",
        "VECTOR",
        choices=("VECTOR", "WEIGHT"),
        description="which passages of an entity are taken: the most similar to the query "
        "(VECTOR), or the most often named (WEIGHT)",
        when=_WITH_GRAPH,
    ),
)


@dataclass(frozen=True)
class Settings:
    """One trial's parameters, checked."""

    mode: str
    top_k: int
    chunk_top_k: int
    max_entity_tokens: int
    max_relation_tokens: int
    max_total_tokens: int
    cosine_better_than_threshold: float
    related_chunk_number: int
    kg_chunk_pick_method: str
