"""Fusion: one score a document from the graph's and the text leg's, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.floating]

# A document that matches never falls to 0, which would say that there is no evidence at all.
TRACE = 1e-3
# Scores closer than this count as equal, so that rounding in the last digits of a sum cannot
# decide between two passages: ties are the document ids' to break.
SCORE_STEP = 2.0**-20


def spread(scores: Scores) -> Scores:
    """Scale each row from its least (0) to its greatest score (1); equal scores become 1."""
    low = scores.min(axis=1, keepdims=True)
    span = scores.max(axis=1, keepdims=True) - low
    # Measured: a division with a condition for each number takes several times as long.
    is_flat = span <= 0
    spread_out: npt.NDArray[Any] = scores - low
    spread_out /= np.where(is_flat, span.dtype.type(1), span)
    spread_out[is_flat[:, 0]] = 1
    return spread_out


def normalise_text(scores: Scores) -> npt.NDArray[np.float32]:
    """Spread each row over [0, 1]; what scored 0 stays 0, whatever scored more stays above it."""
    kept = np.where(scores > 0, np.maximum(spread(scores), TRACE), 0.0)
    return np.asarray(kept, dtype=np.float32)


def normalise_graph(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return ``(score / greatest of its row) ^ (1/4)``; a row of 0 stays 0.

    Scores of walks fall by orders of magnitude with each hop; the fourth root brings the second
    hop back into sight of the first.
    """
    greatest = scores.max(axis=1, keepdims=True, initial=0.0)
    greatest[greatest == 0] = 1
    roots: npt.NDArray[np.float32] = scores / greatest
    np.sqrt(roots, out=roots)
    return np.sqrt(roots, out=roots)


def fuse(
    graph: npt.NDArray[np.float32], text: npt.NDArray[np.float32], graph_weight: float
) -> npt.NDArray[np.float32]:
    """Return ``w * graph + (1 - w) * text``; rows where the graph is silent are text alone."""
    if graph_weight == 0.0:
        return text
    weight = np.float32(graph_weight)
    fused = graph * weight
    if graph_weight < 1.0:
        fused += text * (np.float32(1.0) - weight)
    is_silent = graph.max(axis=1, initial=0.0) <= 0
    if is_silent.any():
        fused[is_silent] = text[is_silent]
    return fused


@dataclass(frozen=True)
class Groups:
    """Which neighbouring columns of each row belong together.

    Attributes:
        numbers: shape (rows, columns), ascending in a row but for what fills its end.
        starts: where each group begins in the flattened ``numbers``.
        places: where each group stands in a flattened table of rows and groups.
        most: how many groups a row has at most.
    """

    numbers: npt.NDArray[Any]
    starts: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    most: int

    @classmethod
    def of(cls, numbers: npt.NDArray[Any]) -> Groups:
        """Find the groups: runs of equal numbers in a row."""
        rows, width = numbers.shape
        is_start = np.ones(numbers.shape, dtype=bool)
        is_start[:, 1:] = numbers[:, 1:] != numbers[:, :-1]
        starts = np.flatnonzero(is_start)
        counts = is_start.sum(axis=1)
        most = int(counts.max(initial=0))
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]) if rows else counts
        owners = starts // max(width, 1)
        return cls(numbers, starts, owners * most + np.arange(len(starts)) - first[owners], most)


def best(
    fused: npt.NDArray[np.float32], count: int, groups: Groups | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return columns and scores of the ``count`` best of each row, best first; -1 and 0 fill.

    Columns with score 0 are never returned. Of equal scores the lower column comes first. Of the
    columns of a group only the best is returned.
    """
    width = fused.shape[1]
    depth = min(count, width if groups is None else groups.most)
    if depth == 0:
        return np.zeros((len(fused), 0), dtype=np.int64), np.zeros((len(fused), 0))
    # Score and column in one number: sorting it breaks ties by column and needs no second pass.
    # In 32 bits, where they fit, the selection takes a tenth of the time.
    steps = round(1 / SCORE_STEP)
    kind = np.int32 if (steps + 1) * width <= np.iinfo(np.int32).max else np.int64
    keys: npt.NDArray[Any] = (fused * np.float32(steps) + np.float32(0.5)).astype(kind)
    keys *= kind(width)
    keys += np.arange(width - 1, -1, -1, dtype=kind)
    if groups is not None:
        table = np.zeros(len(fused) * groups.most, dtype=kind)
        table[groups.places] = np.maximum.reduceat(keys.ravel(), groups.starts)
        keys = table.reshape(len(fused), groups.most)
    columns = keys.shape[1]
    keys.partition(columns - depth, axis=1)
    top = np.sort(keys[:, columns - depth :], axis=1)[:, ::-1].astype(np.int64)
    scores, reversed_columns = np.divmod(top, width)
    return np.where(scores > 0, width - 1 - reversed_columns, -1), scores * SCORE_STEP
