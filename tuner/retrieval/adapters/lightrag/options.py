"""What LightRAG's retrieval can be tuned by: its own parameters, ranges and defaults."""

from __future__ import annotations

from dataclasses import dataclass

from tuner.retrieval.knobs import knob, knobs_of

MODES = ("naive", "local", "global", "hybrid", "mix")
_WITH_GRAPH = {"mode": MODES[1:]}


@dataclass(frozen=True)
class Settings:
    """One trial's parameters, checked."""

    mode: str = knob(
        "how passages are found. naive: by vectors; local: by entities; global: by "
        "relations; hybrid: by both; mix: by all three",
        "mix",
        choices=MODES,
    )
    top_k: int = knob(
        "how many entities and relations the vector search returns",
        40,
        within=(1, 200),
        scale="log",
        when=_WITH_GRAPH,
    )
    chunk_top_k: int = knob(
        "how many passages are returned at most", 20, within=(1, 100), scale="log"
    )
    max_entity_tokens: int = knob(
        "tokens for entities; an entity beyond them brings no passages",
        6000,
        within=(50, 20_000),
        scale="log",
        when=_WITH_GRAPH,
    )
    max_relation_tokens: int = knob(
        "tokens for relations; a relation beyond them brings no passages",
        8000,
        within=(50, 20_000),
        scale="log",
        when=_WITH_GRAPH,
    )
    max_total_tokens: int = knob(
        "tokens for the whole prompt: about 1000 for its fixed text, then entities and "
        "relations, then passages in what is left",
        30_000,
        within=(1000, 100_000),
        scale="log",
    )
    cosine_better_than_threshold: float = knob(
        "vectors less similar than this do not count as found; useful values depend on "
        "the embedder",
        0.2,
        within=(0.0, 1.0),
    )
    related_chunk_number: int = knob(
        "how many passages are taken for each entity or relation",
        5,
        within=(1, 100),
        scale="log",
        when=_WITH_GRAPH,
    )
    kg_chunk_pick_method: str = knob(
        "which passages of an entity are taken: the most similar to the query "
        "(VECTOR), or the most often named (WEIGHT)",
        "VECTOR",
        choices=("VECTOR", "WEIGHT"),
        when=_WITH_GRAPH,
    )


KNOBS = knobs_of(Settings)
