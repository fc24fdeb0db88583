"""What rankings are worth for every value of a cut-off on their scores at once.

As a cut-off rises, documents leave a ranking from its end, each where the cut-off passes its score.
So what a ranking is worth is a step function of the cut-off, and its steps lie at the scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuner.core.errors import TunerError
from tuner.core.rankings import NO_DOCUMENT, FloatArray, IntArray, Rankings
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.free.sweep import Steps, Worth


def cut_steps(
    evaluator: Evaluator,
    rankings: Rankings,
    worth: Worth,
    depths: Sequence[int],
    bounds: tuple[float, float],
    *,
    looks_to: int,
) -> list[Steps] | None:
    """Return the steps of the objective over a cut-off, for each depth.

    None where tokens are paid for, and nobody knows those of each passage.

    Args:
        evaluator: judges the rankings.
        rankings: an answer with the lowest cut-off and at least the largest depth.
        worth: what a ranking is worth.
        depths: how many documents are returned at most.
        bounds: the range of the cut-off.
        looks_to: the rank down to which the metrics look.

    Raises:
        TunerError: the rankings have no scores.
    """
    if rankings.scores is None:
        raise TunerError("the answers carry no scores")
    tokens = rankings.tokens
    if worth.token_price and (evaluator.counts_tokens or tokens is None):
        if evaluator.passages is None:
            return None
        tokens = evaluator.passages.tokens_of(rankings)
    values = _by_length(evaluator, rankings, worth, min(looks_to, rankings.depth))
    lengths = (rankings.documents != NO_DOCUMENT).sum(axis=1)
    paid = np.zeros(rankings.documents.shape)
    if tokens is not None and worth.token_price:
        paid = worth.token_price * np.asarray(tokens, dtype=np.float64)
    return [
        _steps(values, paid, rankings.scores, np.minimum(lengths, depth), depth, bounds)
        for depth in depths
    ]


def _by_length(evaluator: Evaluator, rankings: Rankings, worth: Worth, counted: int) -> FloatArray:
    """Return what the metrics make of the first documents of each ranking.

    Shape (queries, depth + 1), for 0 documents, 1, …; NaN where a query is undefined.
    """
    queries, depth = rankings.documents.shape
    gains = evaluator.qrels.judge(rankings).gains[:, :counted]
    places = np.arange(counted)
    values = np.stack(
        [
            worth.of(np.where(places < length, gains, 0.0), np.arange(queries))
            for length in range(counted + 1)
        ],
        axis=1,
    )
    below: FloatArray = np.repeat(values[:, -1:], depth - counted, axis=1)
    return np.concatenate([values, below], axis=1)


def _steps(
    values: FloatArray,
    paid: FloatArray,
    scores: FloatArray,
    lengths: IntArray,
    depth: int,
    bounds: tuple[float, float],
) -> Steps:
    low, high = bounds
    queries, width = paid.shape
    is_there = np.arange(width) < lengths[:, None]
    all_rows = np.arange(queries)
    whole = values[all_rows, lengths]
    defined = int((~np.isnan(whole)).sum())
    tokens = np.where(is_there, paid, 0.0).sum(axis=1)
    # What scores as much as the cut-off stays, so a document leaves just above its score.
    rows, places = np.nonzero(is_there & (scores < high))
    at = np.nextafter(scores[rows, places], np.inf)
    of_metrics = values[rows, places] - values[rows, places + 1]
    of_tokens = paid[rows, places]
    is_known = ~np.isnan(of_metrics)
    # As everywhere: of what tokens cost the mean is over all queries, of metrics over those that
    # define them.
    of_mean = np.where(is_known, of_metrics, 0.0) / max(defined, 1) + of_tokens / max(queries, 1)
    order = np.argsort(at, kind="stable")
    mean = float(np.nansum(whole)) / max(defined, 1) - float(tokens.sum()) / max(queries, 1)
    return Steps(
        depth,
        np.concatenate([[low], at[order], [high]]),
        mean + np.concatenate([[0.0], np.cumsum(of_mean[order])]),
        rows[order],
        at[order],
        (np.where(is_known, of_metrics, 0.0) + of_tokens)[order],
        whole - tokens,
    )
