"""Which model, if any, is better than the fixed winner: by nested cross-validation of queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.rankings import FloatArray, IntArray
from tuner.evaluation.by_features.menu import Menu
from tuner.evaluation.by_features.models import Fitted, FittedLeaf, Model

FOLDS = 5
# By so many standard errors the gain out of fold is above 0 where the winner is left.
CLEAR = 1.0
# With fewer clusters of queries nothing is learned.
FEWEST = 20


@dataclass(frozen=True, eq=False)
class Chosen:
    """What was learned.

    Attributes:
        fitted: gives each query its setting; the winner to all where nothing is better.
        model: how it was learned; None: nothing is better.
        gain: the mean gain of the whole procedure over the winner on queries it had not seen.
        error: its standard error; NaN below two clusters of queries.
    """

    fitted: Fitted
    model: Model | None
    gain: float
    error: float


def choose_model(
    z: FloatArray,
    menu: Menu,
    models: Sequence[Model],
    clusters: npt.NDArray[Any],
    *,
    seed: int,
) -> Chosen:
    """Choose a model, or the winner, on queries that one learns from.

    ``z`` has shape (queries, features). ``clusters`` has a label for each query: those of one are
    in the same part of every cross-validation. Inside, the model with the highest gain out of fold
    is taken if that is above 0 by a standard error. The same is done without each of five parts,
    and tried on it: only where this gain is above 0 by a standard error too is anything else than
    the winner returned.
    """
    labels = np.unique(clusters, return_inverse=True)[1]
    rows = np.arange(len(z))
    nothing = FittedLeaf(0)
    if len(np.unique(labels)) < FEWEST or not z.shape[1] or not models:
        return Chosen(nothing, None, 0.0, math.nan)
    gains = np.zeros(len(z))
    for number, held in enumerate(_parts(labels, rows, seed)):
        rest = np.setdiff1d(rows, held)
        found = _selected(z, menu, models, labels, rest, seed + number + 1)
        if found is not None:
            gains[held] = _gained(found.fit(z, menu, rest), z, menu, held)
    gain, error = float(gains.mean()), _error(gains, labels)
    model = _selected(z, menu, models, labels, rows, seed) if _is_clear(gain, error) else None
    if model is None:
        return Chosen(nothing, None, gain, error)
    return Chosen(model.fit(z, menu, rows), model, gain, error)


def _selected(
    z: FloatArray,
    menu: Menu,
    models: Sequence[Model],
    labels: IntArray,
    rows: IntArray,
    seed: int,
) -> Model | None:
    """Return the model with the highest gain out of fold; None where it is not clear."""
    gains = np.zeros((len(models), len(z)))
    for held in _parts(labels, rows, seed):
        rest = np.setdiff1d(rows, held)
        for place, model in enumerate(models):
            gains[place, held] = _gained(model.fit(z, menu, rest), z, menu, held)
    of_rows = gains[:, rows]
    best = int(of_rows.mean(axis=1).argmax())
    gain, error = float(of_rows[best].mean()), _error(of_rows[best], labels[rows])
    return models[best] if _is_clear(gain, error) else None


def _is_clear(gain: float, error: float) -> bool:
    return gain > 1e-12 and gain > CLEAR * error


def _gained(fitted: Fitted, z: FloatArray, menu: Menu, rows: IntArray) -> FloatArray:
    gains: FloatArray = menu.gains[fitted.choose(z[rows]), rows]
    return gains


def _parts(labels: IntArray, rows: IntArray, seed: int) -> list[IntArray]:
    """Cut rows into parts of about equal size; those of a cluster stay together."""
    names, counts = np.unique(labels[rows], return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    # Large clusters first, each into the part that is smallest so far.
    order = order[np.argsort(-counts[order], kind="stable")]
    sizes = np.zeros(min(FOLDS, len(names)), dtype=np.int64)
    part_of = np.empty(len(names), dtype=np.int64)
    for place in order:
        part_of[place] = sizes.argmin()
        sizes[part_of[place]] += counts[place]
    parts = part_of[np.searchsorted(names, labels[rows])]
    return [rows[parts == number] for number in range(len(sizes))]


def _error(gains: FloatArray, labels: IntArray) -> float:
    """Return the standard error of a mean over queries that depend within clusters."""
    sums = np.bincount(labels, gains - gains.mean(), minlength=int(labels.max()) + 1)
    there = np.unique(labels)
    count = len(there)
    if count < 2:
        return math.nan
    return math.sqrt(float((sums[there] ** 2).sum()) * count / (count - 1)) / len(gains)
