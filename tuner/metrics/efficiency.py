"""Context efficiency: what the tokens that a query's passages cost are worth, from their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from tuner.core import registry
from tuner.core.errors import InputError, MetricError, did_you_mean, one_line
from tuner.core.rankings import FloatArray
from tuner.core.words import split_words
from tuner.metrics.base import MetricFamily

Tokenizer = Callable[[str], Sequence[object]]
"""From a text to its tokens. The default counts words, and characters where there are no spaces."""

default_tokenizer: Tokenizer = split_words

EFFICIENCY_PARTS = ("density", "coverage", "redundancy", "budget")
"""What ``context_efficiency`` is made of; redundancy counts by what is not repeated."""


def load_tokenizer(name: str) -> Tokenizer:
    """Import a tokenizer that is named in full, ``package.module:function``, and try it.

    Raises:
        InputError: it cannot be imported, or does not turn a text into a list of tokens.
    """
    tokenizer = registry.load_outside("tokenizer", name)
    try:
        tokens = tokenizer("Lima is in Peru.")
        len(tokens)
    except Exception as error:  # whatever code from outside raises
        reason = one_line(error)
        raise InputError(
            f"the tokenizer {name!r} must turn a text into a list of tokens; it raised {reason}"
        ) from error
    # The length of a text, or of a mapping such as {"input_ids": …}, would be counted in silence.
    if isinstance(tokens, str | bytes | Mapping):
        raise InputError(
            f"the tokenizer {name!r} must turn a text into a list of tokens; it returned a "
            f"{type(tokens).__name__}; name a function that returns a list, such as its input_ids"
        )
    return cast(Tokenizer, tokenizer)


@dataclass(frozen=True, eq=False)
class JudgedContexts:
    """The contexts of a batch of queries, measured; every array has shape (queries,).

    Attributes:
        tokens: tokens of all retrieved passages.
        relevant_tokens: tokens of the relevant ones; NaN for a query without relevant documents.
        grams, different_grams: n-grams of the passages, and how many of them are different.
        terms, covered_terms: different terms of the query, and how many stand in a passage.
    """

    tokens: FloatArray
    relevant_tokens: FloatArray
    grams: FloatArray
    different_grams: FloatArray
    terms: FloatArray
    covered_terms: FloatArray


def density(judged: JudgedContexts) -> FloatArray:
    """Return tokens of relevant passages / all tokens; 0 for an empty context.

    NaN for a query without relevant documents.
    """
    return _ratio(judged.relevant_tokens, judged.tokens, of_nothing=0.0)


def redundancy(judged: JudgedContexts) -> FloatArray:
    """Return the share of n-grams that repeat an earlier one, lower is better; 0 if empty.

    N-grams of words, or characters where the script has no spaces, that stay within a passage.
    """
    repeated = judged.grams - judged.different_grams
    return np.where(judged.grams > 0, repeated / np.maximum(judged.grams, 1.0), 0.0)


def coverage(judged: JudgedContexts) -> FloatArray:
    """Return the share of the query's different terms that stand in a retrieved passage.

    Terms are whole words without English function words ("art" is not in "smart"), and bigrams
    where the script has no spaces. NaN for a query without terms.
    """
    return judged.covered_terms / np.where(judged.terms > 0, judged.terms, np.nan)


def budget_use(judged: JudgedContexts, cutoff: float) -> FloatArray:
    """Return 1 up to ``cutoff`` tokens and ``cutoff / tokens`` above.

    Being over the budget costs; filling a context up to it earns nothing.

    Raises:
        MetricError: a budget that is not above 0.
    """
    if not cutoff > 0:
        raise MetricError(f"the budget is {cutoff} tokens; it must be above 0")
    return cutoff / np.maximum(judged.tokens, cutoff)


def context_efficiency(
    judged: JudgedContexts,
    cutoff: float | None = None,
    *,
    efficiency: Mapping[str, float] | None = None,
) -> FloatArray:
    """Return a composite from 0 to 100.

    ``100 * (density + coverage) / 2 * (1 - redundancy) * budget_use``: what the context holds,
    less what it repeats and what exceeds ``cutoff`` tokens (None: no budget). An empty context
    scores 0, padding lowers density. Where the query has no terms, density stands alone; NaN for
    a query without relevant documents.

    ``efficiency`` gives the parts weights of one's own: 100 times the weighted mean of density,
    coverage, 1 - redundancy and budget_use, of which some may be left out. There too an empty
    context scores 0, and what is undefined for a query (coverage without terms, a budget that is
    not given) is left out of its mean.

    Raises:
        MetricError: unknown parts, or weights that are negative, not finite or all 0.
    """
    covered = coverage(judged)
    dense = density(judged)
    if efficiency is not None:
        return _weighted(judged, cutoff, check_efficiency(efficiency))
    worth = np.where(np.isnan(covered), dense, (dense + covered) / 2.0)
    within = 1.0 if cutoff is None else budget_use(judged, cutoff)
    return 100.0 * worth * (1.0 - redundancy(judged)) * within


def check_efficiency(weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return weights of the parts of ``context_efficiency`` once they are known to be that.

    Raises:
        MetricError: see ``context_efficiency``.
    """
    unknown = [name for name in weights if name not in EFFICIENCY_PARTS]
    if unknown:
        hint = did_you_mean(unknown[0], EFFICIENCY_PARTS)
        raise MetricError(f"context_efficiency has no part {unknown[0]!r}{hint}")
    values = np.array([*weights.values()], dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or not values.any():
        raise MetricError("the weights of context_efficiency are numbers from 0 up, not all 0")
    return weights


def _check_given(weights: Mapping[str, float] | None, cutoff: int | None) -> None:  # noqa: ARG001
    if weights is not None:
        check_efficiency(weights)


def _weighted(
    judged: JudgedContexts, cutoff: float | None, weights: Mapping[str, float]
) -> FloatArray:
    undefined = np.full_like(judged.tokens, np.nan)
    parts = {
        "density": density(judged),
        "coverage": coverage(judged),
        "redundancy": 1.0 - redundancy(judged),
        "budget": undefined if cutoff is None else budget_use(judged, cutoff),
    }
    rows = np.stack([parts[name] for name in weights])
    counted = np.where(np.isnan(rows), 0.0, np.array([*weights.values()])[:, None])
    sums = counted.sum(axis=0)
    mean = (np.nan_to_num(rows) * counted).sum(axis=0) / np.where(sums > 0, sums, np.nan)
    mean = np.where(judged.tokens > 0, mean, 0.0)
    return 100.0 * np.where(np.isnan(judged.relevant_tokens), np.nan, mean)


def span_density(
    texts: Sequence[str],
    spans: Sequence[Sequence[tuple[int, int]]],
    *,
    tokenizer: Tokenizer = default_tokenizer,
) -> float:
    """Return tokens inside the relevant spans / all tokens of one query's passages.

    ``spans[i]`` lists (start, end) characters of ``texts[i]``; overlapping spans count once. NaN
    where the passages hold no tokens.

    >>> span_density(["Lima is in Peru.", "More text here"], [[(0, 4), (11, 15)], []])
    0.2857142857142857

    Raises:
        MetricError: a span outside its text, or not one list of spans a text.
    """
    if len(texts) != len(spans):
        raise MetricError(f"spans of {len(spans)} passages for {len(texts)} passages")
    relevant = 0
    for text, marked in zip(texts, spans, strict=True):
        done = 0
        for start, end in sorted(marked):
            if not 0 <= start <= end <= len(text):
                raise MetricError(f"the span ({start}, {end}) leaves a text of {len(text)}")
            relevant += len(tokenizer(text[max(start, done) : max(end, done)]))
            done = max(done, end)
    total = sum(len(tokenizer(text)) for text in texts)
    return relevant / total if total else float("nan")


def _ratio(part: FloatArray, whole: FloatArray, *, of_nothing: float) -> FloatArray:
    ratio = part / np.where(whole > 0, whole, 1.0)
    return np.where((whole > 0) | np.isnan(part), ratio, of_nothing)


METRICS: Mapping[str, MetricFamily] = {
    "density": MetricFamily(
        density, "none", "share of the context's tokens that stand in relevant passages", "text"
    ),
    "redundancy": MetricFamily(
        redundancy,
        "none",
        "share of the context's 3-grams that stood in it before",
        "text",
        lower_is_better=True,
    ),
    "coverage": MetricFamily(
        coverage, "none", "share of the query's terms that the context holds", "text"
    ),
    "budget_use": MetricFamily(
        budget_use, "required", "1 up to a budget of k tokens, k / tokens above", "text"
    ),
    "context_efficiency": MetricFamily(
        context_efficiency,
        "optional",
        "density, coverage, redundancy and the use of a budget of k tokens in one number",
        "text",
        highest=100.0,
        takes="efficiency",
        check=_check_given,
    ),
}
