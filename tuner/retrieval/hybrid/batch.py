"""A batch of prepared queries: what a trial weighs, adds up and ranks; arrays, and few passes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuner.core.corpus import Query
from tuner.core.rankings import BoolArray, Float32Array, FloatArray
from tuner.retrieval.hybrid.fusion import Groups, normalise_graph
from tuner.retrieval.hybrid.knobs import Settings
from tuner.retrieval.hybrid.mixture import mixed, passage_weights, scaled
from tuner.retrieval.hybrid.propagation import DECAY, hop_weights
from tuner.retrieval.hybrid.rerank import Questions
from tuner.retrieval.hybrid.seeds import softmax

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Remember the last few computed values; threads may share it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, key: Key) -> Value | None:
        """Return the value of ``key`` if it is remembered."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        return None

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """Return the value of ``key``, computed now if it is not remembered."""
        if (known := self.known(key)) is not None:
            return known
        value = compute()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value


@dataclass(frozen=True)
class Batch:
    """Some prepared queries, in the order in which they are asked.

    Attributes:
        pool: shape (queries, pool), ascending positions of passages; -1 fills.
        groups: same shape, the documents of these passages; None where they are the same.
        text: same shape, what words say, in [0, 1]; 0 in the fill.
        dense: same shape, what vectors say; None where there are none, and ``text`` is then the
            text leg's score.
        corners: shape (2, queries, corners), see ``mixture.corners``; None likewise.
        is_further: shape (queries, pool), documents that only walks from passages brought in: they
            count where such walks do.
        questions: which words of the questions the pool's passages hold.
        seed_scores: shape (queries, seeds), -inf fills.
        graph: shape (hops, queries, seeds + passages, pool), cumulative scores after each hop of
            walks from the seeds, and then from the best passages, see ``Index.best_passages``.
    """

    pool: npt.NDArray[np.int32]
    groups: Groups | None
    text: Float32Array
    dense: Float32Array | None
    corners: Float32Array | None
    is_further: BoolArray
    questions: Questions
    seed_scores: FloatArray
    graph: tuple[Float32Array, ...]
    _recent: Recent[tuple[float, ...], Float32Array] = field(
        default_factory=lambda: Recent(8), repr=False
    )

    @property
    def has_seeds(self) -> BoolArray:
        """Return which queries a walk from a name starts for."""
        return np.isfinite(self.seed_scores[:, 0])

    def text_scores(self, settings: Settings) -> Float32Array:
        """Return the text leg's scores, shape (queries, pool); the last few are remembered."""
        has_further = settings.passage_weight > 0
        text, dense = (self.text, self.dense) if has_further else self._usual
        corners, weight = self.corners, settings.dense_weight
        if dense is None or corners is None:
            return text

        def compute() -> Float32Array:
            first, second = corners
            return scaled(mixed(text, dense, weight), mixed(first, second, weight))

        return self._recent.get((weight, float(has_further)), compute)

    @cached_property
    def _usual(self) -> tuple[Float32Array, Float32Array | None]:
        """What words and vectors say, without the documents that only passages brought in."""
        is_usual = ~self.is_further
        return self.text * is_usual, None if self.dense is None else self.dense * is_usual

    def graph_scores(self, settings: Settings) -> Float32Array:
        """Return normalised graph scores, shape (queries, pool); the last few are remembered."""
        hops, decay = settings.max_hops, settings.hop_decay

        def compute() -> Float32Array:
            weights = self._start_weights(settings)
            *inner, (_, last) = hop_weights(decay, hops)
            total = self._reached(hops, weights)
            if inner:
                total *= np.float32(last)
                for hop, share in inner:
                    total += self._reached(hop, weights * np.float32(share))
            if decay > DECAY:
                # Rounding must not make a score of 0 negative: its root is taken.
                np.maximum(total, 0, out=total)
            return normalise_graph(total)

        passages = settings.passage_weight
        is_mixed = self.dense is not None and passages > 0
        mixture = settings.dense_weight if is_mixed else 0.0
        key = (settings.temperature, hops, settings.seeds, decay, passages, mixture)
        return self._recent.get(key, compute)

    def _reached(self, hops: int, weights: Float32Array) -> Float32Array:
        """Add up walks of so many hops by their weights; shapes (queries, starts) and pool."""
        starts = weights.shape[1]
        if hops == 1 and starts * len(weights) > 0:
            every = np.zeros((len(weights), self.graph[0].shape[1]), dtype=np.float32)
            every[:, :starts] = weights
            reached: Float32Array = self._first_hop @ every.ravel()
            return reached.reshape(self.pool.shape)
        walks = self.graph[hops - 1][:, :starts]
        summed: Float32Array = np.matmul(weights[:, None, :], walks)[:, 0, :]
        return summed

    @cached_property
    def _first_hop(self) -> sparse.csc_array:
        """The first hop as a matrix from starts to places of the pool: few lead anywhere."""
        queries, starts, width = self.graph[0].shape
        rows, start, column = np.nonzero(self.graph[0])
        values = self.graph[0][rows, start, column]
        places = (rows * width + column, rows * starts + start)
        return sparse.csc_array((values, places), shape=(queries * width, queries * starts))

    def _start_weights(self, settings: Settings) -> Float32Array:
        """Return what each walk counts, shape (queries, starts)."""
        names = softmax(self.seed_scores[:, : settings.seeds], settings.temperature)
        if settings.passage_weight == 0:
            return names.astype(np.float32)
        room = self.seed_scores.shape[1]
        weights = np.zeros((len(names), self.graph[0].shape[1]), dtype=np.float32)
        weights[:, : settings.seeds] = names
        weights[:, room:] = passage_weights(settings, weights.shape[1] - room)
        return weights


@dataclass(frozen=True)
class PreparedQueries:
    """Prepared queries in one directory of the cache; ``rows`` finds them by their text."""

    rows: dict[str, int]
    everything: Batch
    _recent: Recent[tuple[str, ...], Batch] = field(default_factory=lambda: Recent(4), repr=False)

    def batch(self, queries: Sequence[Query]) -> Batch | None:
        """Return the batch of exactly these queries, or None where one of them is not prepared."""
        texts = tuple([query.text for query in queries])
        if (known := self._recent.known(texts)) is not None:
            return known
        if not all(text in self.rows for text in texts):
            return None
        return self._recent.get(texts, lambda: self._select(texts))

    def _select(self, texts: tuple[str, ...]) -> Batch:
        whole = self.everything
        rows = [self.rows[text] for text in texts]
        if rows == list(range(len(self.rows))):
            return whole
        return Batch(
            whole.pool[rows],
            None if whole.groups is None else Groups.of(whole.groups.numbers[rows]),
            whole.text[rows],
            None if whole.dense is None else whole.dense[rows],
            None if whole.corners is None else whole.corners[:, rows],
            whole.is_further[rows],
            Questions(whole.questions.weights[rows], whole.questions.covered[rows]),
            whole.seed_scores[rows],
            tuple(hop[rows] for hop in whole.graph),
        )
