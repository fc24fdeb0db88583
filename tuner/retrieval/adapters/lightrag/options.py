"""What LightRAG can be tuned by: its own parameters, ranges and defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tuner.core.checks import is_whole
from tuner.core.errors import InputError
from tuner.retrieval.adapters.embedding import embedder_knob
from tuner.retrieval.knobs import Knob, knob, knobs_of

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

CHUNK_TOKENS, OVERLAP_TOKENS = 1200, 100  # LightRAG's own
_SHORTER = "chunk_overlap_token_size < chunk_token_size"
_CHUNKING = (
    Knob(
        "chunk_token_size",
        "integer",
        CHUNK_TOKENS,
        low=16,
        high=8192,
        scale="log",
        stage="index",
        description="how many tokens a chunk of a document has at most",
    ),
    Knob(
        "chunk_overlap_token_size",
        "integer",
        OVERLAP_TOKENS,
        low=0,
        high=4096,
        stage="index",
        constraint=_SHORTER,
        description="how many tokens two neighbouring chunks have in common",
    ),
)


def index_knobs(chunk_tokens: int, overlap_tokens: int, embedder: str) -> tuple[Knob, ...]:
    """Return the parameters of an index that is made from a corpus.

    Raises:
        InputError: sizes that cannot be.
    """
    check_chunking(chunk_tokens, overlap_tokens)
    today = zip(_CHUNKING, (chunk_tokens, overlap_tokens), strict=True)
    sizes = (
        replace(knob, default=size, low=min(knob.low or 0, size), high=max(knob.high or 0, size))
        for knob, size in today
    )
    return (*sizes, embedder_knob(embedder))


def check_chunking(chunk_tokens: object, overlap_tokens: object) -> None:
    """Check sizes of chunks.

    Raises:
        InputError: one is no whole number in its range, or an overlap is as long as a chunk.
    """
    if not is_whole(chunk_tokens) or chunk_tokens < 1:
        message = f"must be a whole number from 1, got {chunk_tokens!r}"
        raise InputError(message, key=("chunk_token_size",))
    if not is_whole(overlap_tokens) or overlap_tokens < 0:
        message = f"must be a whole number from 0, got {overlap_tokens!r}"
        raise InputError(message, key=("chunk_overlap_token_size",))
    if overlap_tokens >= chunk_tokens:
        raise InputError(
            f"{overlap_tokens} must be less than chunk_token_size, {chunk_tokens}; where both are "
            f'searched, write space_constraints: ["{_SHORTER}"]',
            key=("chunk_overlap_token_size",),
        )
