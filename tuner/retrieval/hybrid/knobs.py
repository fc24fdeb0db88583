"""Knobs of the hybrid engine: what each does, what values it takes, and one setting of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tuner.core.checks import native
from tuner.core.errors import Problem, refuse
from tuner.core.trial import Params
from tuner.retrieval.hybrid.embedders import EMBEDDERS, LSA, NONE, WORDLLAMA
from tuner.retrieval.hybrid.options import MOST_HOPS, NAMES, HybridOptions
from tuner.retrieval.hybrid.propagation import DECAY
from tuner.retrieval.hybrid.rerank import NONE as NO_RERANKER
from tuner.retrieval.hybrid.rerank import RERANKERS
from tuner.retrieval.knobs import Knob, knob_params

KNOBS = (
    Knob(
        "graph_weight",
        "real",
        0.5,
        low=0.0,
        high=1.0,
        description="share of the graph in a document's score: 0 is text alone, 1 graph alone",
    ),
    Knob(
        "max_hops",
        "integer",
        2,
        low=1,
        high=MOST_HOPS,
        description="how many times a walk goes from names to the passages that mention them",
    ),
    Knob("top_k", "integer", 10, low=1, high=100, description="how many passages are returned"),
    Knob(
        "temperature",
        "real",
        0.1,
        low=0.001,
        high=10.0,
        scale="log",
        description="how evenly walks start: near 0 from the best matching name alone, "
        "at 1 nearly evenly from all that match",
    ),
    Knob(
        "seeds",
        "integer",
        8,
        low=1,
        high=8,
        description="how many names of the graph a query starts from, at most `most_seeds`",
    ),
    Knob(
        "dense_weight",
        "real",
        0.5,
        low=0.0,
        high=1.0,
        when={"embedder": (LSA, WORDLLAMA)},
        description="share of the dense vectors in the search by text",
    ),
    Knob(
        "hop_decay",
        "real",
        DECAY,
        low=0.05,
        high=1.0,
        description="what a further hop of a walk is worth, as a share of the hop before it",
    ),
    Knob(
        "passage_weight",
        "real",
        0.0,
        low=0.0,
        high=2.0,
        description="what a walk from the names of the best passage by text counts, where walks "
        "from the query's own names count 1 in all",
    ),
    Knob(
        "rerank",
        "categorical",
        NO_RERANKER,
        choices=RERANKERS,
        description="what orders the first passages anew: words that those before do not hold, or "
        "the model that the option `rerank` names",
        hint="name a model by the option too, `retriever: {rerank: …}`, so that the index keeps "
        "the texts that it reads",
    ),
    Knob(
        "rerank_depth",
        "integer",
        20,
        low=2,
        high=100,
        when={"rerank": RERANKERS[1:]},
        description="how many passages are ordered anew",
    ),
    Knob(
        "bm25_k1",
        "real",
        1.5,
        low=0.01,
        high=10.0,
        stage="index",
        description="k1 of BM25: the higher, the more a repeated word adds",
    ),
    Knob(
        "bm25_b",
        "real",
        0.75,
        low=0.0,
        high=1.0,
        stage="index",
        description="b of BM25: the higher, the more long passages are held back",
    ),
    Knob(
        "chunk_tokens",
        "integer",
        0,
        low=0,
        high=2000,
        stage="index",
        description="documents are cut into passages of so many words at most; 0: they are whole",
    ),
    Knob(
        "chunk_overlap",
        "integer",
        0,
        low=0,
        high=1000,
        stage="index",
        constraint="2 * chunk_overlap <= chunk_tokens",
        description="so many words of a passage begin the next one too",
    ),
    Knob(
        "names",
        "categorical",
        "both",
        choices=NAMES,
        stage="index",
        description="where the graph's names come from: titles and capitalised phrases, triples "
        "and entities of the data set, or both",
    ),
    Knob(
        "hub_cut",
        "real",
        0.02,
        low=0.001,
        high=1.0,
        scale="log",
        stage="index",
        description="names in more than this share of the passages make no links",
    ),
    Knob(
        "edge_weight",
        "real",
        10.0,
        low=0.1,
        high=100.0,
        scale="log",
        stage="index",
        description="what a passage's own title weighs in its links, where a mention weighs 1",
    ),
    Knob(
        "synonym_threshold",
        "real",
        0.0,
        low=0.0,
        high=1.0,
        stage="index",
        description="names that are written alike, or whose vectors are, by at least this much "
        "lead to each other's passages; 0: none do",
    ),
    Knob(
        "embedder",
        "categorical",
        NONE,
        choices=EMBEDDERS,
        is_open=True,
        stage="index",
        description="what makes dense vectors: latent semantic analysis, the static model "
        "wordllama, module:function, or a model of sentence-transformers by name",
    ),
    Knob(
        "embedding_dim",
        "integer",
        0,
        low=0,
        high=4096,
        stage="index",
        when={"embedder": (LSA, WORDLLAMA)},
        description="how many leading numbers of each vector are kept; 0 keeps all",
    ),
)
"""Every knob, with the defaults that hold where the configuration gives no option."""


@lru_cache(maxsize=64)
def knobs_of(options: HybridOptions) -> Mapping[str, Knob]:
    """Return an engine's knobs by name: what its options set are their defaults."""
    knobs = {knob.name: _with_options(knob, options) for knob in KNOBS}
    if options.dense is not None:  # vectors from files, of whole documents
        for name in ("embedder", "chunk_tokens", "chunk_overlap"):
            del knobs[name]
    return knobs


def _with_options(knob: Knob, options: HybridOptions) -> Knob:
    default: Any = getattr(options, knob.name, knob.default)
    if "embedder" in knob.when:
        names = dict.fromkeys((*EMBEDDERS[1:], options.embedder))
        names.pop(NONE, None)
        knob = replace(knob, when={} if options.dense is not None else {"embedder": tuple(names)})
    if "rerank" in knob.when:
        names = dict.fromkeys((*RERANKERS, options.rerank))
        knob = replace(knob, when={"rerank": tuple(names)[1:]})
    if knob.kind == "categorical":
        return replace(
            knob, default=default, choices=tuple(dict.fromkeys((*knob.choices, default)))
        )
    low, high = knob.low, _most(knob, options)
    if knob.name == "max_hops":
        return replace(knob, default=min(default, options.most_hops), high=high)
    if low is None or high is None:
        return replace(knob, default=default)
    # An option may lie outside of what is worth searching; the knob holds its default all the same.
    return replace(knob, default=default, low=min(low, default), high=max(high, default))


def _most(knob: Knob, options: HybridOptions) -> float | None:
    return {"seeds": options.seed_room, "max_hops": options.most_hops}.get(knob.name, knob.high)


@dataclass(frozen=True)
class Settings:
    """One valid setting of the knobs of the query stage."""

    graph_weight: float
    max_hops: int
    top_k: int
    temperature: float
    seeds: int
    dense_weight: float
    hop_decay: float
    passage_weight: float
    rerank: str
    rerank_depth: int

    @property
    def ranked(self) -> int:
        """Return how many passages are ranked before some are ordered anew."""
        return self.top_k if self.rerank == NO_RERANKER else max(self.top_k, self.rerank_depth)


def read_params(params: Params, knobs: Mapping[str, Knob]) -> Settings:
    """Check parameters against the knobs of an engine and fill in defaults.

    Knobs of the index may be given with the value that the index was built with, and no other.

    Raises:
        InputError: unknown names, wrong types, values out of range, or one that needs another
            index; all of them at once.
    """
    given = {name: native(value) for name, value in params.items()}
    values: dict[str, Any] = knob_params(given, tuple(knobs.values()))
    refuse(
        Problem(f"{name}={value} needs another index: this one has {name}={knobs[name].default}")
        for name, value in values.items()
        if knobs[name].stage == "index" and value != knobs[name].default
    )
    return Settings(**{name: v for name, v in values.items() if knobs[name].stage == "query"})
