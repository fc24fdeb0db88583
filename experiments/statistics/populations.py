"""Populations of queries with known truth, made of the built-in engine's real per-query values.

The values of a population are a matrix, one row a configuration, one column a query. A simulated
study draws its queries from the columns with replacement, so that values stay what they are in
practice: discrete, in [0, 1], easy or hard by query, tied between configurations that find the same
documents, and correlated from one configuration to the next. The truth is then the mean of a row.

Four ways to draw:
- ``real``: the columns as they are; configurations differ as they really do.
- ``equalised``: every configuration has exactly the baseline's mean. A better one gets, on a share
  of the queries, the lowest value that any configuration has there; a worse one the highest. Who is
  replaced first is one number per query, common to all, so that the correlations stay. Gains of a
  good configuration are then offset by rare large losses: differences are skewed under the null.
- ``shuffled``: within each query the configurations' values change places at random. All have the
  same distribution and none resembles another more: the most luck that a search can have.
- ``alike``: the shuffled values, but all configurations share those of one of them, each with a
  tenth of the queries of its own. What sets the one apart from the baseline sets all of them apart,
  so that resampling the queries chooses the same one nearly every time: the least to correct for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before numpy is loaded

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "search_quality"))

import numpy as np  # noqa: E402
from search_quality import DEFAULT, METRICS, OBJECTIVE, SPACE, TEXT_ONLY  # noqa: E402

from tuner.backends.random import Random  # noqa: E402
from tuner.core.rankings import FloatArray  # noqa: E402
from tuner.core.trial import Params, Trial, TrialState  # noqa: E402
from tuner.datasets import open_dataset  # noqa: E402
from tuner.evaluation.evaluator import Evaluator  # noqa: E402
from tuner.evaluation.objective import composite_values  # noqa: E402
from tuner.evaluation.system_metrics import CONTEXT_TOKENS  # noqa: E402
from tuner.retrieval.hybrid import Hybrid  # noqa: E402
from tuner.run.systems import cache_dir  # noqa: E402
from tuner.study.results import BASELINE_ARM  # noqa: E402

ATLAS = "builtin:atlas"
BASELINE = 0  # row of the default configuration
OWN = 0.1  # share of the queries on which those that are alike are not

Draw = Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True, eq=False)
class Population:
    """What every configuration gets for every query.

    Attributes:
        name: of the data set.
        params: of each row; the first is the default configuration.
        values: composite of row and query, shape (configurations, queries).
        tokens: mean context tokens, shape (configurations,).
        tokens_by_query: context tokens of row and query, shape (configurations, queries).
    """

    name: str
    params: tuple[Params, ...]
    values: FloatArray
    tokens: FloatArray
    tokens_by_query: FloatArray


def measure_population(path: str, *, configurations: int, seed: int) -> Population:
    """Ask the built-in engine every query of a data set under random configurations.

    Row 0 is the default, row 1 text alone, the others are uniform on the tuned space.
    """
    dataset = open_dataset(path)
    retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
    retriever.prepare(dataset.queries)
    evaluate = Evaluator.build(retriever, list(dataset.queries), dataset.qrels, METRICS)
    others = Random(budget=configurations).suggest(SPACE, [], count=configurations - 2, seed=seed)
    params = (DEFAULT, TEXT_ONLY, *others)
    outcomes = [evaluate(one) for one in params]
    values = np.stack([composite_values(one.per_query, OBJECTIVE.weights) for one in outcomes])
    is_defined = ~np.isnan(values).any(axis=0)
    return Population(
        dataset.name,
        params,
        values[:, is_defined],
        np.array([one.metrics[CONTEXT_TOKENS] for one in outcomes]),
        np.stack([one.per_query[CONTEXT_TOKENS] for one in outcomes])[:, is_defined],
    )


def real(population: Population) -> Draw:
    """Return a way to draw queries as they are; the truth is ``values.mean(axis=1)``."""
    values = population.values

    def draw(random: np.random.Generator, queries: int) -> FloatArray:
        return values[:, random.integers(0, values.shape[1], size=queries)]

    return draw


def equalised(population: Population) -> Draw:
    """Return a way to draw queries on which all configurations have the baseline's true mean.

    A mean m above the baseline's b mixes with the lowest values, of mean l: (1 - p) m + p l = b, so
    p = (m - b) / (m - l); below it with the highest.
    """
    values = population.values
    mean, target = values.mean(axis=1), values[BASELINE].mean()
    lowest, highest = values.min(axis=0), values.max(axis=0)
    other = np.where(mean > target, lowest.mean(), highest.mean())
    share = (mean - target) / np.where(mean == target, 1.0, mean - other)
    is_above = (mean > target)[:, None]

    def draw(random: np.random.Generator, queries: int) -> FloatArray:
        columns = random.integers(0, values.shape[1], size=queries)
        is_replaced = random.random(queries) < share[:, None]
        replacement = np.where(is_above, lowest[columns], highest[columns])
        return np.where(is_replaced, replacement, values[:, columns])

    return draw


def shuffled(population: Population) -> Draw:
    """Return a way to draw queries on which the configurations' values have changed places."""
    draw_real = real(population)

    def draw(random: np.random.Generator, queries: int) -> FloatArray:
        return random.permuted(draw_real(random, queries), axis=0)

    return draw


def alike(population: Population) -> Draw:
    """Return a way to draw queries on which all but the baseline have nearly the same values."""
    draw_shuffled = shuffled(population)

    def draw(random: np.random.Generator, queries: int) -> FloatArray:
        values = draw_shuffled(random, queries)
        is_own = random.random(values.shape) < OWN
        is_own[[BASELINE, BASELINE + 1]] = True
        return np.where(is_own, values, values[BASELINE + 1])

    return draw


def equal_tokens(population: Population) -> Draw:
    """Return a way to draw context tokens of which all configurations have the same true mean.

    Within each query they change places, apart from the composite, so that the objective with a
    price is equal too wherever the composite is.
    """
    tokens = population.tokens_by_query

    def draw(random: np.random.Generator, queries: int) -> FloatArray:
        columns = random.integers(0, tokens.shape[1], size=queries)
        return random.permuted(tokens[:, columns], axis=0)

    return draw


def as_trials(values: FloatArray, tokens: FloatArray) -> list[Trial]:
    """Return the trials of a study that measured ``values``, shape (configurations, queries)."""
    return [
        Trial(
            number=row,
            arm=BASELINE_ARM if row == BASELINE else "random",
            params={"row": row},
            state=TrialState.FINISHED,
            objective=mean,
            metrics={CONTEXT_TOKENS: token},
        )
        for row, (mean, token) in enumerate(
            zip(values.mean(axis=1).tolist(), tokens.tolist(), strict=True)
        )
    ]
