"""Reranking: the first passages of a ranking put in another order, by words or by a model."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError, TunerError, one_line
from tuner.core.rankings import NO_DOCUMENT, FloatArray, IntArray
from tuner.core.registry import call_problem
from tuner.retrieval.hybrid.text import Bm25, analyse

NONE, LEXICAL = "none", "lexical"
RERANKERS = (NONE, LEXICAL)
COVERAGE = 0.4
"""What it adds to a passage's score to cover the whole question."""
MOST_TERMS = 64
_MANY = 0.4

Masks = npt.NDArray[np.uint64]
Reranker = Callable[[str, list[str]], Any]


@dataclass(frozen=True)
class Questions:
    """Which terms of its question each passage holds.

    Attributes:
        weights: shape (queries, terms), the share of each of a question's terms in its
            information, ``log(1 + (n - df + 1/2) / (df + 1/2))``; 0 fills.
        covered: shape (queries, passages), the terms that a passage holds, a bit each.
    """

    weights: FloatArray
    covered: Masks

    @classmethod
    def of(
        cls, bm25: Bm25, texts: Sequence[str], passages: npt.NDArray[np.signedinteger]
    ) -> Questions:
        """Look up the terms of ``texts`` in ``passages``, shape (queries, passages), -1 fills.

        Terms that no passage of the corpus holds are left out, and so are those beyond the 64 that
        tell most.
        """
        weights = bm25.weights
        frequency = np.diff(weights.indptr)
        information = np.log1p((weights.shape[1] - frequency + 0.5) / (frequency + 0.5))
        shares = np.zeros((len(texts), MOST_TERMS))
        covered = np.zeros(passages.shape, dtype=np.uint64)
        for row, terms in enumerate(analyse(texts)):
            numbers = [bm25.terms.get(term) for term in dict.fromkeys(terms)]
            known = sorted((n for n in numbers if n is not None), key=lambda n: -information[n])
            known = known[:MOST_TERMS]
            for bit, number in enumerate(known):
                holding = weights.indices[weights.indptr[number] : weights.indptr[number + 1]]
                # Ascending, and often very many more than the passages.
                asked = passages[row].astype(holding.dtype)
                near = np.minimum(np.searchsorted(holding, asked), len(holding) - 1)
                is_held = holding[near] == asked
                covered[row] |= is_held.astype(np.uint64) << np.uint64(bit)
            if known:
                shares[row, : len(known)] = information[known] / information[known].sum()
        return cls(shares, covered)


def by_coverage(
    scores: FloatArray, questions: Questions, *, depth: int, count: int
) -> tuple[IntArray, FloatArray]:
    """Order the first ``depth`` columns so that each next one tells what those before do not.

    The next is that of the greatest ``score + COVERAGE * share``, where the share is that of the
    question's information in terms that the column holds and none before does. Of equal ones the
    earlier comes first. Returns the order of columns and their new scores, ``count`` of each.
    """
    width = scores.shape[1]
    depth = min(depth, width)
    terms = max(_used(questions.weights), 1)
    covered = np.ascontiguousarray(questions.covered[:, :depth], dtype="<u8")
    # In the order of bits, whatever the machine's order of bytes is.
    octets = covered[:, :, None].view(np.uint8)
    holds = np.unpackbits(octets, axis=2, count=terms, bitorder="little").astype(np.float64)
    left = questions.weights[:, :terms].copy()
    order = np.tile(np.arange(width), (len(scores), 1))
    ranked = scores.copy()
    open_scores = np.where(scores[:, :depth] > 0, scores[:, :depth], -np.inf)
    rows = np.arange(len(scores))
    told = np.zeros(len(scores), dtype=np.uint64)
    gains = _gains(open_scores, holds, left)
    done = min(depth, count)
    for place in range(done):
        pick = gains.argmax(axis=1)
        order[:, place] = pick
        ranked[:, place] = gains[rows, pick]
        if place == done - 1:
            break
        gains[rows, pick] = open_scores[rows, pick] = -np.inf
        adds = covered[rows, pick]
        changed = np.flatnonzero(adds & ~told)
        told |= adds
        # Measured: some rows are copied first, which pays where they are few.
        if len(changed) > _MANY * len(rows):
            left *= 1 - holds[rows, pick]
            gains = _gains(open_scores, holds, left)
        elif len(changed):
            rest = left[changed] * (1 - holds[changed, pick[changed]])
            left[changed] = rest
            gains[changed] = _gains(open_scores[changed], holds[changed], rest)
    # What has no score fills the end, and has none now either.
    is_none = np.isneginf(ranked)
    order[is_none], ranked[is_none] = width - 1, 0.0
    return order[:, :count], ranked[:, :count]


def _gains(open_scores: FloatArray, holds: FloatArray, left: FloatArray) -> FloatArray:
    """Return what each column is worth next, shape (queries, columns).

    Rounded, because equal sums of shares in another order differ in the last digit.
    """
    shares = np.matmul(holds, left[:, :, None])[:, :, 0]
    gains: FloatArray = np.round(open_scores + COVERAGE * shares, 9)
    return gains


def _used(weights: FloatArray) -> int:
    """Return how many terms the longest question has."""
    return int((weights > 0).sum(axis=1).max(initial=0))


@dataclass(frozen=True)
class ModelScores:
    """What a model says of pairs of question and passage, each asked once a process."""

    name: str
    known: dict[tuple[str, int], float] = field(default_factory=dict, repr=False)

    def order(
        self,
        texts: Sequence[str],
        passages: IntArray,
        passage_texts: Sequence[str],
        *,
        depth: int,
    ) -> IntArray:
        """Return the order of columns: the first ``depth`` by the model, best first.

        Args:
            texts: the questions.
            passages: shape (queries, columns), positions; -1 fills.
            passage_texts: the text of every passage.
            depth: how many columns the model is asked about.

        Raises:
            TunerError: the model failed, or gave something else than a number a passage.
        """
        order = np.tile(np.arange(passages.shape[1]), (len(texts), 1))
        for row, text in enumerate(texts):
            found = passages[row, :depth]
            found = found[found != NO_DOCUMENT].tolist()
            scores = self._scores(text, found, passage_texts)
            order[row, : len(found)] = np.argsort(-scores, kind="stable")
        return order

    def _scores(self, text: str, passages: list[int], passage_texts: Sequence[str]) -> FloatArray:
        new = [place for place in passages if (text, place) not in self.known]
        if new:
            asked = [passage_texts[place] for place in new]
            try:
                given = np.asarray(_opened(self.name)(text, asked), dtype=np.float64)
            except TunerError:
                raise
            except Exception as error:
                raise TunerError(f"the reranker {self.name!r} failed: {one_line(error)}") from error
            if given.shape != (len(new),) or not np.isfinite(given).all():
                raise TunerError(
                    f"the reranker {self.name!r} must give one finite number for each of "
                    f"{len(new)} passages, and gave shape {given.shape}"
                )
            self.known.update(((text, n), float(s)) for n, s in zip(new, given, strict=True))
        return np.array([self.known[text, place] for place in passages])


@lru_cache(maxsize=4)
def model_scores(name: str, index: str) -> ModelScores:  # noqa: ARG001
    """Return what is known of a model over the index of that name, kept for the process."""
    return ModelScores(name)


def check(name: str) -> None:
    """Refuse a reranker that is not there.

    Raises:
        InputError: no such function or model, or its package is not installed.
    """
    if name not in RERANKERS:
        _opened(name)


@lru_cache(maxsize=2)
def _opened(name: str) -> Reranker:
    """Load a model once a process."""
    if ":" in name:
        return _function(name)
    try:
        from sentence_transformers import CrossEncoder
        from transformers.utils.logging import disable_progress_bar
    except ImportError as error:
        message = "a cross-encoder needs sentence-transformers: pip install 'graphrag-tuner[dense]'"
        raise InputError(message, key=("rerank",)) from error
    disable_progress_bar()
    try:
        model = CrossEncoder(name)
    except OSError as error:  # of a name that is none, or without a network
        raise InputError(f"cannot load {name!r}: {error}", key=("rerank",)) from error
    return lambda text, passages: model.predict([(text, each) for each in passages])


def _function(name: str) -> Reranker:
    module_name, _, attribute = name.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"cannot import {name!r}: {error}", key=("rerank",)) from error
    if problem := call_problem(found, "query", "passages"):
        message = f"{name!r} {problem}; write a function of a query and a list of passages"
        raise InputError(message, key=("rerank",))
    reranker: Reranker = found
    return reranker
