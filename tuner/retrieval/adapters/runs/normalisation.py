"""Make the scores of one leg comparable with those of another, query by query."""

from __future__ import annotations

import numpy as np

from tuner.core.errors import InputError, did_you_mean
from tuner.core.rankings import FloatArray, IntArray

NORMALISATIONS = ("min_max", "z", "dbsf", "max", "none")


def normalise(scores: FloatArray, lengths: IntArray, method: str) -> FloatArray:
    """Return normalised scores of the same shape (queries, depth), each row best first.

    ``lengths`` says how many scores of each row are real; what comes after them is filling, and
    its values mean nothing. With s a score, and all else taken over the real scores of the row:

    - min_max: (s - min) / (max - min) (Lee 1997, "Analyses of multiple evidence combination").
    - z: (s - mean) / sd, sd over n, not n - 1 (Montague & Aslam 2001, "Relevance score
      normalization for metasearch": zero-mean, unit-variance).
    - dbsf: (s - (mean - 3 sd)) / (6 sd), cut to [0, 1] (Mazzeschi 2023, "Distribution-based score
      fusion").
    - max: s / the largest absolute score, which is s / max where no score is negative.
    - none: s.

    Equal scores, such as one alone, tell nothing of each other: they become 1, except under none.

    >>> normalise(np.array([[4.0, 3.0, 2.0]]), np.array([3]), "min_max").tolist()
    [[1.0, 0.5, 0.0]]

    Raises:
        InputError: an unknown method.
    """
    if method not in NORMALISATIONS:
        hint = did_you_mean(method, NORMALISATIONS)
        raise InputError(f"unknown normalisation {method!r}{hint}")
    if method == "none":
        return scores
    lowest = last_of(scores, lengths)
    span = scores[:, :1] - lowest
    is_equal = span <= 0
    if method == "max":
        size = np.maximum(np.abs(scores[:, :1]), np.abs(lowest))
        values = scores / np.where(is_equal, 1.0, size)
    else:
        values = (scores - lowest) / np.where(is_equal, 1.0, span)
        if method != "min_max":
            # Neither depends on scale and place, and numbers in [0, 1] lose no digits.
            values = _standard(values, lengths)
        if method == "dbsf":
            values = np.clip((values + 3.0) / 6.0, 0.0, 1.0)
    values[is_equal[:, 0]] = 1.0
    return values


def missing(normalised: FloatArray, lengths: IntArray) -> FloatArray:
    """Return what a document that the leg lacks counts in each row, shape (queries, 1).

    The lowest normalised score of the row, but at most 0: the leg would have put it below what it
    returned. That is 0 under min_max and dbsf, under max and none unless scores are negative, and
    the lowest score, below 0, under z. Where the leg has nothing at all for a query, 0.
    """
    lowest = np.minimum(last_of(normalised, lengths), 0.0)
    return np.where(lengths[:, None] > 0, lowest, 0.0)


def last_of(scores: FloatArray, lengths: IntArray) -> FloatArray:
    """Return the last real score of each row, shape (queries, 1); the first of an empty row."""
    return np.take_along_axis(scores, np.maximum(lengths - 1, 0)[:, None], axis=1)


def _standard(values: FloatArray, lengths: IntArray) -> FloatArray:
    """Return ``(value - mean) / sd`` over the real values of each row."""
    is_real = np.arange(values.shape[1]) < lengths[:, None]
    counts = np.maximum(lengths, 1)[:, None]
    means = np.where(is_real, values, 0.0).sum(axis=1, keepdims=True) / counts
    away = np.where(is_real, values - means, 0.0)
    deviations = np.sqrt((away * away).sum(axis=1, keepdims=True) / counts)
    return away / np.where(deviations > 0, deviations, 1.0)
