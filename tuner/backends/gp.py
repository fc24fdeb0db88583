"""Gaussian process search, by scikit-optimize's regressor and its expected improvement.

The regressor and the acquisition are used without ``skopt.Optimizer``, which knows neither
conditions nor cheap constraints, repeats points of small spaces and searches with every ``tell``.
scikit-optimize minimises: here, and only here, lower is better.

The kernel's parameters are those of the greatest posterior, not of the greatest likelihood, which a
few observations leave nearly flat. The priors on length scales and noise are those of Hvarfner,
Hellsten and Nardi, "Vanilla Bayesian Optimization Performs Great in High Dimensions" (ICML 2024),
as in BoTorch; that on the amplitude is the one of Optuna's Gaussian process.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import fmin_l_bfgs_b
from skopt.acquisition import gaussian_ei
from skopt.learning import GaussianProcessRegressor
from skopt.learning.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

from tuner.backends.base import check_budget
from tuner.backends.front import FrontModel, dominators, goals_of
from tuner.backends.points import Point, middles_unseen, pick_unseen, point_of, scored_trials
from tuner.core.checks import check_number, check_whole
from tuner.core.rankings import FloatArray, IntArray
from tuner.core.space import Categorical, SearchSpace
from tuner.core.trial import Params, Trial

# The kernel's parameters are learnt from so many observations: the time grows with their cube, a
# hundred times over. The posterior, which is one factorisation, takes the larger number.
LEARNT_FROM = 100
REMEMBERED = 400
# One length scale a feature, up to here: beyond it, one for all is learnt better and faster.
MOST_LENGTH_SCALES = 64
# Candidates by random search, around the best points, and around the best candidate, in rounds.
SPREAD, NEAR_BEST, NEAR_CANDIDATE = 500, 250, 100
STEPS = (0.1, 0.03)
NOISE_FLOOR = 1e-6
# Losses above this quantile count as it: how bad the worst points are tells nothing of the best.
CLIPPED_ABOVE = 0.5
# Priors, for features from 0 to 1 and losses in standard deviations. The logarithm of a length
# scale is normal, with a mean that grows by log(features) / 2, as distances do; so is that of the
# noise's variance. The amplitude has a gamma distribution of this shape, and rate 1.
LENGTH_MEAN, LENGTH_SD = math.sqrt(2.0), math.sqrt(3.0)
NOISE_MEAN, NOISE_SD = -4.0, 1.0
AMPLITUDE_SHAPE = 2.0
FIT_STEPS = 50


@dataclass(frozen=True)
class Gp:
    """Fits a Gaussian process and suggests where the expected improvement is greatest.

    The first ``initial`` scored trials are an even grid from its middle on, and what that leaves of
    them is spread evenly. Objectives below the median are taken for the median. ``margin`` is by
    how much, in standard deviations of the objective, a point should improve on the best. Trials
    under way count as the mean, so that workers look at different places. Failed trials are not
    learnt from; those that break the objective's constraints count as the worst finished one; while
    all do, the smallest violation is sought instead. Where trials have several ``goals``, each has
    a model of its own, and the expected growth of their front's hypervolume is sought.
    """

    budget: int
    initial: int = field(default=12, kw_only=True)
    margin: float = field(default=0.01, kw_only=True)

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_whole("initial", self.initial, least=2)
        check_number("margin", self.margin, least=0.0)

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        """Return up to ``count`` new points; fewer only where the space runs out."""
        scored = scored_trials(history)
        has_choice = any(parameter.count != 1 for parameter in space.parameters.values())
        if len(scored) < self.initial or not has_choice:
            return middles_unseen(space, history, first=self.initial, count=count, seed=seed)
        rng = np.random.default_rng([seed, len(history)])
        # More threads make it slower, and much slower where workers are busy beside it.
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # On length scales at their bounds.
            model = _fitted(space, scored, self.margin)
            under_way = [trial.params for trial in history if not trial.is_told]

            def best(taken: set[Point], picks: list[Params]) -> Params | None:
                model.condition(under_way + picks)
                return _best_unseen(model, taken, rng)

            return pick_unseen(space, history, rng, best, count=count)


class _Model:
    """A Gaussian process over the points of a space, with losses in standard deviations."""

    def __init__(
        self,
        space: SearchSpace,
        observed: list[Params],
        losses: FloatArray,
        best: float,
        margin: float,
    ) -> None:
        self.space = space
        self.observed = observed
        self.features = _features(space, observed)
        self.losses = losses
        self.best = best
        self.margin = margin
        self.kernel = _kernel(self.features.shape[1])
        self.noise = NOISE_FLOOR
        self.posterior: _Posterior  # There once it is conditioned.

    @classmethod
    def fit(cls, space: SearchSpace, scored: list[Trial], margin: float) -> _Model:
        """Learn from trials as they are ranked."""
        losses = np.array([-float(trial.worth or 0.0) for trial in scored])
        is_feasible = np.array([trial.violation <= 0.0 for trial in scored])
        if is_feasible.any():
            losses[~is_feasible] = losses.max()
        else:
            losses = np.array([trial.violation for trial in scored])
        chosen = _remembered(losses, scored)
        losses, is_feasible = losses[chosen], is_feasible[chosen]
        losses = np.minimum(losses, np.quantile(losses, CLIPPED_ABOVE))
        losses = losses / (np.abs(losses).max() or 1.0)  # So that squares cannot overflow.
        spread = float(losses.std())
        losses = (losses - losses.mean()) / (spread if spread > 1e-12 else 1.0)
        best = float(losses[is_feasible].min() if is_feasible.any() else losses.min())
        return cls.learnt(space, [scored[i].params for i in chosen], losses, best, margin)

    @classmethod
    def learnt(
        cls,
        space: SearchSpace,
        observed: list[Params],
        losses: FloatArray,
        best: float,
        margin: float,
    ) -> _Model:
        """Learn the kernel's parameters from losses in standard deviations."""
        model = cls(space, observed, losses, best, margin)
        sample = _evenly_ranked(losses, LEARNT_FROM)
        learner = GaussianProcessRegressor(
            kernel=model.kernel + WhiteKernel(math.exp(NOISE_MEAN), (1e-5, 10.0)),
            noise="gaussian",
            optimizer=partial(_most_probable, model.features.shape[1]),
        )
        learner.fit(model.features[sample], losses[sample])
        model.kernel = learner.kernel_.k1  # The other term of the sum is the noise.
        model.noise = max(float(learner.noise_), NOISE_FLOOR)
        return model

    def condition(self, under_way: list[Params]) -> None:
        """Take in all observations, and points whose losses are not known yet, as the mean."""
        features = np.vstack([self.features, _features(self.space, under_way)])
        losses = np.concatenate([self.losses, np.zeros(len(under_way))])
        regressor = GaussianProcessRegressor(kernel=self.kernel, alpha=self.noise, optimizer=None)
        self.posterior = _Posterior(regressor.fit(features, losses))

    def improvement(self, points: list[Params]) -> FloatArray:
        """Return the expected improvement at each point, in standard deviations."""
        features = _features(self.space, points)
        values: FloatArray = gaussian_ei(features, self.posterior, y_opt=self.best, xi=self.margin)
        return values

    def predict(self, points: list[Params]) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the loss at each point."""
        return self.posterior.predict(_features(self.space, points), return_std=True)

    @property
    def best_observed(self) -> list[Params]:
        """Return the points near which a better one may lie."""
        return [self.observed[i] for i in np.argsort(self.losses, kind="stable")[:3]]


def _fitted(space: SearchSpace, scored: list[Trial], margin: float) -> _Model | FrontModel:
    """Return a model of the objective or, where several goals are told, one of their front."""
    goals = goals_of(scored)
    if goals is None:
        return _Model.fit(space, scored, margin)
    chosen = _remembered(dominators(goals), scored)
    observed, goals = [scored[i].params for i in chosen], goals[chosen]
    models = [_Model.learnt(space, observed, -goal, 0.0, margin) for goal in goals.T]
    return FrontModel(space, observed, goals, models, margin)


class _Posterior:
    """Predicts means and deviations from a regressor's factorisation.

    The regressor's own deviations go through the inverse matrix: a loop of 140 ms for 1,000 points
    and 300 observations, where this takes 20, and 0 (which stops the search) where many
    observations of a smooth objective make the matrix nearly singular.
    """

    def __init__(self, regressor: GaussianProcessRegressor) -> None:
        self.regressor = regressor

    def predict(
        self,
        features: FloatArray,
        return_std: Literal[True],  # noqa: ARG002 - the acquisition always asks for it
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the standard deviation at each row, as the acquisition asks."""
        kernel = self.regressor.kernel_
        across = kernel(features, self.regressor.X_train_)
        explained = solve_triangular(self.regressor.L_, across.T, lower=True, check_finite=False)
        prior = kernel.diag(features)
        variance = prior - (explained**2).sum(axis=0)
        floor = 1e-14 * prior  # Below it there is rounding only.
        return across @ self.regressor.alpha_, np.sqrt(np.maximum(variance, floor))


def _most_probable(
    features: int,
    likelihood: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    bounds: FloatArray,
) -> tuple[FloatArray, float]:
    """Return the kernel's parameters of the greatest posterior density, as the regressor asks.

    ``likelihood`` gives the negative log likelihood and its gradient. The parameters are logarithms
    of the amplitude, the length scales and the noise's variance, in this order.
    """

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = likelihood(parameters)
        if not math.isfinite(value):
            return 1e10, np.zeros_like(parameters)
        prior, slope = _negative_log_prior(parameters, features)
        return value + prior, gradient + slope

    limits = [(low, high) for low, high in bounds.tolist()]
    best, value, _ = fmin_l_bfgs_b(loss, start, bounds=limits, maxiter=FIT_STEPS)
    return best, float(value)


def _negative_log_prior(parameters: FloatArray, features: int) -> tuple[float, FloatArray]:
    amplitude, lengths, noise = parameters[0], parameters[1:-1], parameters[-1]
    away = (lengths - LENGTH_MEAN - math.log(features) / 2) / LENGTH_SD
    noisy = (noise - NOISE_MEAN) / NOISE_SD
    scale = math.exp(amplitude)
    value = scale - (AMPLITUDE_SHAPE - 1) * amplitude + (away @ away + noisy**2) / 2
    slope = [scale - (AMPLITUDE_SHAPE - 1), *(away / LENGTH_SD), noisy / NOISE_SD]
    return float(value), np.array(slope)


def _kernel(features: int) -> object:
    # As in skopt.Optimizer: an amplitude times a Matern kernel of smoothness 5/2.
    scales = np.ones(features if features <= MOST_LENGTH_SCALES else 1)
    amplitude = ConstantKernel(1.0, (0.01, 1000.0))
    return amplitude * Matern(length_scale=scales, length_scale_bounds=(0.01, 100.0), nu=2.5)


def _remembered(losses: FloatArray, scored: list[Trial]) -> list[int]:
    """Return which observations to keep: each point once, half the best and half the newest."""
    last = {point_of(trial.params): index for index, trial in enumerate(scored)}
    unique = sorted(last.values())
    if len(unique) <= REMEMBERED:
        return unique
    newest = unique[-REMEMBERED // 2 :]
    older = unique[: -REMEMBERED // 2]
    best = sorted(older, key=lambda index: (losses[index], index))[: REMEMBERED // 2]
    return sorted(best + newest)


def _evenly_ranked(losses: FloatArray, number: int) -> IntArray:
    """Return ``number`` positions, from the best to the worst at even distances of rank."""
    order = np.argsort(losses, kind="stable")
    if len(order) <= number:
        return np.arange(len(order))
    return np.sort(order[np.linspace(0, len(order) - 1, number).round().astype(np.int64)])


def _features(space: SearchSpace, points: list[Params]) -> FloatArray:
    """Return one row a point: positions of numbers, and 0/1 for each choice of a categorical.

    Parameters with one value are left out. An inactive number lies in the middle, an inactive
    categorical has no choice set.
    """
    columns: list[FloatArray] = []
    for name, parameter in space.parameters.items():
        if parameter.count == 1:
            continue
        if isinstance(parameter, Categorical):
            block = np.zeros((len(points), parameter.count))
            for row, params in enumerate(points):
                if name in params:
                    block[row, parameter.index(params[name])] = 1.0
            # Two choices need one column only, unless neither may be set.
            columns.append(block[:, 1:] if parameter.count == 2 and not parameter.when else block)
        else:
            places = [parameter.position(p[name]) if name in p else 0.5 for p in points]
            columns.append(np.array(places).reshape(-1, 1))
    return np.hstack(columns)


def _best_unseen(
    model: _Model | FrontModel, taken: set[Point], rng: np.random.Generator
) -> Params | None:
    space = model.space
    found = _Candidates(model, taken)
    found.add([space.decode(row) for row in rng.random((SPREAD, len(space.names)))])
    near = [space.encode(params) for params in model.best_observed]
    found.add(_around(space, near, NEAR_BEST, STEPS[0], rng))
    for step in STEPS:
        if found.best is not None:
            found.add(_around(space, [space.encode(found.best)], NEAR_CANDIDATE, step, rng))
    return found.best


def _around(
    space: SearchSpace,
    centres: list[FloatArray],
    number: int,
    step: float,
    rng: np.random.Generator,
) -> list[Params]:
    """Return points near the centres, with one coordinate in ten drawn anew."""
    rows = np.array(centres)[rng.integers(len(centres), size=number)]
    moved = np.clip(rows + rng.normal(0.0, step, rows.shape), 0.0, 1.0)
    anew = rng.random(rows.shape) < 0.1
    return [space.decode(row) for row in np.where(anew, rng.random(rows.shape), moved)]


class _Candidates:
    """The candidate with the greatest expected improvement, the first of equals."""

    def __init__(self, model: _Model | FrontModel, taken: set[Point]) -> None:
        self.model = model
        self.seen = set(taken)
        self.best: Params | None = None
        self.improvement = -np.inf

    def add(self, points: list[Params]) -> None:
        fresh = []
        for params in points:
            point = point_of(params)
            if point not in self.seen and self.model.space.satisfies(params):
                self.seen.add(point)
                fresh.append(params)
        if not fresh:
            return
        values = self.model.improvement(fresh)
        place = int(np.argmax(values))
        if values[place] > self.improvement:
            self.best, self.improvement = fresh[place], float(values[place])
