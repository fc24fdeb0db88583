"""Which metric predicts the answers: correlations, the gain of positions, fitted weights."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import yaml

from tuner.core.rankings import BoolArray, FloatArray
from tuner.core.shown import as_percent
from tuner.stats import PairedComparison
from tuner.stats.composite import Halves, compare_taus, fit_weights, query_taus
from tuner.stats.rank_correlation import (
    ExplainedGain,
    RankCorrelation,
    correlate_ranks,
    explained_gain,
    tau_b,
)

# With fewer, even a perfect order of the configurations could be chance: 2 / 4! = .083.
FEWEST_CONFIGURATIONS = 5
# In each half, to fit weights on and to test them.
FEWEST_QUERIES = 10
# Weights below it are left out of what is printed.
SMALLEST_WEIGHT = 0.005


@dataclass(frozen=True)
class PositionGain:
    """What the same metric gains when it weighs by position.

    ``within`` compares both by tau-b within queries; ``explained`` by the variance that they
    explain.
    """

    weighted: str
    unweighted: str
    within: PairedComparison
    explained: ExplainedGain


@dataclass(frozen=True)
class FittedComposite:
    """Weights that were fitted on one half of the queries and tested on the other.

    Attributes:
        weights: by metric, above 0, their sum is 1.
        fitted_on, tested_on: how many queries.
        taus: on the tested half, the mean tau-b within queries of the fitted weights, of equal
            ones, and of today's objective.
        between: on the tested half, tau-b over configurations of means, likewise.
        against_equal, against_today: fitted less the other, by tau-b within queries of the tested
            half. Today's are the weights of ``objective.maximize``, before any price.
    """

    weights: Mapping[str, float]
    fitted_on: int
    tested_on: int
    taus: Mapping[str, float | None]
    between: Mapping[str, float | None]
    against_equal: PairedComparison
    against_today: PairedComparison | None

    @property
    def yaml(self) -> str:
        """Return the weights as a configuration holds them."""
        section = {"objective": {"maximize": dict(self.weights)}}
        return yaml.safe_dump(section, sort_keys=False, allow_unicode=True)


@dataclass(frozen=True)
class Correlated:
    """How metrics go with the quality of answers.

    Attributes:
        metrics: by name, the highest correlation within queries first.
        gains: of weighing by position.
        composite: None where there is none, and ``no_composite`` then says why.
        configurations: their names, and ``means`` their mean quality.
        queries: how many were answered for every configuration.
        incomplete: queries that lack an answer for some.
        remarks: what weakens these figures, in sentences.
    """

    metrics: Mapping[str, RankCorrelation]
    gains: tuple[PositionGain, ...]
    composite: FittedComposite | None
    no_composite: str
    configurations: tuple[str, ...]
    means: tuple[float, ...]
    queries: int
    incomplete: int
    remarks: tuple[str, ...]

    def to_record(self) -> dict[str, Any]:
        """Return it as a JSON-ready mapping."""
        composite = None
        if self.composite is not None:
            composite = {**asdict(self.composite), "yaml": self.composite.yaml}
        return {
            "queries": self.queries,
            "incomplete_queries": self.incomplete,
            "configurations": [
                {"name": name, "mean_quality": mean}
                for name, mean in zip(self.configurations, self.means, strict=True)
            ],
            "metrics": {name: asdict(found) for name, found in self.metrics.items()},
            "position_weighting": [asdict(gain) for gain in self.gains],
            "composite": composite,
            "no_composite": self.no_composite or None,
            "remarks": list(self.remarks),
        }


def correlate(
    values: Mapping[str, FloatArray],
    quality: FloatArray,
    *,
    configurations: Sequence[str],
    clusters: Sequence[Hashable],
    pairs: Sequence[tuple[str, str]],
    candidates: Sequence[str],
    today: Mapping[str, float],
    seed: int,
) -> Correlated:
    """Compare metrics with the quality of answers, all of shape (configurations, queries).

    ``pairs`` are metrics by position with the same without, ``candidates`` those that a composite
    may be made of, and ``today`` the weights of the objective. Queries of one of ``clusters`` are
    drawn together.
    """
    found = {
        name: correlate_ranks(metric, quality, seed=seed, clusters=clusters)
        for name, metric in values.items()
    }
    order = sorted(found, key=lambda name: -_or_least(found[name].within))
    gains = tuple(
        PositionGain(
            one,
            other,
            compare_taus(values[one], values[other], quality, clusters, seed=seed),
            explained_gain(values[one], values[other], quality, seed=seed, clusters=clusters),
        )
        for one, other in pairs
    )
    composite, no_composite = _composite(
        values, quality, clusters=clusters, candidates=candidates, today=today, seed=seed
    )
    is_whole = ~np.isnan(quality).any(axis=0)
    means = quality[:, is_whole].mean(axis=1) if is_whole.any() else np.full(len(quality), np.nan)
    return Correlated(
        metrics={name: found[name] for name in order},
        gains=gains,
        composite=composite,
        no_composite=no_composite,
        configurations=tuple(configurations),
        means=tuple(map(float, means)),
        queries=int(is_whole.sum()),
        incomplete=int((~is_whole).sum()),
        remarks=tuple(_remarks(quality[:, is_whole], len(configurations))),
    )


def _composite(
    values: Mapping[str, FloatArray],
    quality: FloatArray,
    *,
    clusters: Sequence[Hashable],
    candidates: Sequence[str],
    today: Mapping[str, float],
    seed: int,
) -> tuple[FittedComposite | None, str]:
    """Return the fitted composite, or None and why there is none."""
    if len(candidates) < 2:
        return None, "a composite needs at least two metrics from 0 to 1"
    metrics = np.stack([values[name] for name in candidates])
    is_whole: BoolArray = ~np.isnan((metrics + quality).sum(axis=(0, 1)))
    labels = [label for label, whole in zip(clusters, is_whole, strict=True) if whole]
    metrics, quality = metrics[:, :, is_whole], quality[:, is_whole]
    to_fit = Halves.drawn(labels, seed=seed).is_to_fit
    if min(int(to_fit.sum()), int((~to_fit).sum())) < FEWEST_QUERIES:
        return None, (
            f"{len(labels)} queries are too few to fit weights on one half and test them on the "
            f"other: each needs at least {FEWEST_QUERIES}"
        )
    weights = fit_weights(metrics[:, :, to_fit], quality[:, to_fit])
    if weights is None:
        return None, "no metric goes with the answers on the half that weights are fitted on"
    weights = _rounded(weights)
    own = {
        name: float(weight) for name, weight in zip(candidates, weights, strict=True) if weight > 0
    }
    others = {"fitted": np.tensordot(weights, metrics, 1), "equal": metrics.mean(axis=0)}
    if today and all(name in values for name in today):
        total = math.fsum(today.values())
        parts = [weight * values[name][:, is_whole] for name, weight in today.items()]
        others["today"] = np.sum(parts, axis=0) / total
    held = ~to_fit
    left = [label for label, is_held in zip(labels, held, strict=True) if is_held]

    def compared(other: str) -> PairedComparison:
        both = others["fitted"][:, held], others[other][:, held]
        return compare_taus(*both, quality[:, held], left, seed=seed)

    return FittedComposite(
        weights=own,
        fitted_on=int(to_fit.sum()),
        tested_on=int(held.sum()),
        taus={
            name: _mean(query_taus(one[:, held], quality[:, held])) for name, one in others.items()
        },
        between={
            name: _mean(tau_b(one[:, held].mean(axis=1), quality[:, held].mean(axis=1))[None])
            for name, one in others.items()
        },
        against_equal=compared("equal"),
        against_today=compared("today") if "today" in others else None,
    ), ""


def _rounded(weights: FloatArray) -> FloatArray:
    """Return weights of two digits whose sum is 1, those of almost nothing left out.

    >>> _rounded(np.array([0.3333, 0.6637, 0.003])).tolist()
    [0.33, 0.67, 0.0]
    """
    hundredths = np.floor(100.0 * weights)
    lacking = 100 - int(hundredths.sum())
    for place in np.argsort(hundredths - 100.0 * weights, kind="stable")[:lacking]:
        hundredths[place] += 1.0
    return np.asarray(hundredths / 100.0)


def _remarks(quality: FloatArray, configurations: int) -> list[str]:
    remarks = []
    if configurations < FEWEST_CONFIGURATIONS:
        chance = 2.0 / math.factorial(configurations)
        remarks.append(
            f"{configurations} configurations are too few for a correlation between them: two "
            f"orders of so many agree perfectly, or are opposite, by chance in "
            f"{as_percent(chance)} of all cases; take {FEWEST_CONFIGURATIONS} or more"
        )
    told_apart, pairs = _told_apart(quality)
    if pairs and told_apart < pairs / 2:
        remarks.append(
            f"the answers tell only {told_apart} of {pairs} pairs of configurations apart: what is "
            "between configurations is mostly chance, what is within queries is not"
        )
    return remarks


def _told_apart(quality: FloatArray) -> tuple[int, int]:
    """Return for how many pairs of configurations the mean quality differs, and of how many."""
    queries = quality.shape[1]
    if queries < 2:
        return 0, 0
    left, right = np.triu_indices(len(quality), 1)
    change = quality[left] - quality[right]
    error = change.std(axis=1, ddof=1) / math.sqrt(queries)
    is_apart: BoolArray = np.abs(change.mean(axis=1)) > 1.96 * error
    return int(is_apart.sum()), len(left)


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def _or_least(value: float | None) -> float:
    return -2.0 if value is None else value
