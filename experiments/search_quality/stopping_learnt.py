"""When to stop a search: rules whose numbers are chosen, or learnt, on other data sets.

    python experiments/search_quality/stopping_learnt.py OUT.jsonl

`OUT.jsonl` holds the searches that `stopping.py run` recorded. Two classifiers learn, from twenty
figures of a search as far as it has come, whether the trials that are left gain more than
`gain_below`; it stops where the chance of that is below a threshold. Beside them the three numbers
of the product's rule are chosen. All is learnt and chosen on the other data sets, so that at most
5 % of their searches stop too early (`held out`). `seen` chooses on all searches, for so many that
stop too early: what is had by who knows the answer.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stopping import TRIALS, read

from tuner.core.space import SearchSpace

LOOKS = np.arange(60, TRIALS, 4)
LEARNERS = {
    "logistic regression": lambda: make_pipeline(
        StandardScaler(), LogisticRegression(C=0.1, max_iter=2000)
    ),
    "boosted trees": lambda: HistGradientBoostingClassifier(
        max_depth=3, max_iter=80, learning_rate=0.08, min_samples_leaf=40
    ),
}
TOO_EARLY = (0.03, 0.05, 0.1, 0.15, 0.2)
MOST = 0.05
# The product's rule: how much what is left counts for, and after what without a gain it may stop.
CAUTIONS, SHARES, LASTS = (1, 3, 5, 10, 20, 40), (0.0, 1 / 3, 1 / 2), (0, 30, 45, 60, 75)


def points(record):
    """Return a search's points in the unit cube; 0.5 where a parameter is inactive."""
    space = SearchSpace.from_mapping(record["space"])
    return np.array(
        [
            [
                parameter.position(trial["params"][name]) if name in trial["params"] else 0.5
                for name, parameter in space.parameters.items()
            ]
            for trial in record["trials"][:TRIALS]
        ]
    )


def figures(values, places, gain):
    """Return what is known of a search after so many trials, one row a look."""
    best = np.maximum.accumulate(values)
    found = []
    for n in LOOKS:
        ranked = np.unique(values[:n])[::-1]
        highest = best[n - 1]
        gained = [highest - best[max(n - back, 1) - 1] for back in (20, 40, 60, n // 2)]
        since = [n - 1 - int(np.argmax(values[:n] >= highest - least)) for least in (gain, 0.0)]
        apart = np.abs(places[n - 30 : n] - places[np.argmax(values[:n])]).mean(axis=1)
        behind = highest - values[n - 30 : n]
        top = np.argsort(-values[:n])[:10]
        improved = np.diff(best[:n]) > 0
        found.append(
            [
                n,
                *(math.log((ranked[:k] - ranked[k]).mean() / gain + 1e-3) for k in (3, 10)),
                *(math.log(one / gain + 0.01) for one in gained),
                *since,
                *(one / n for one in since),
                apart.mean(),
                np.quantile(apart, 0.25),
                *(math.log(one / gain + 0.01) for one in np.quantile(behind, (0.2, 0.5))),
                (top > 0.6 * n).mean(),
                places[top].std(axis=0).mean(),
                improved.sum(),
                improved[-40:].sum(),
                places.shape[1],
            ]
        )
    return np.array(found)


def by_chance(chances):
    """Return the stops of a search for each threshold, where its chances at each look are these."""
    thresholds = np.concatenate([[0.0], np.geomspace(1e-6, 0.5, 200)])
    return np.array([first(LOOKS, chances < threshold) for threshold in thresholds])


def by_rule(values, gain):
    """Return the stops of a search for each choice of the numbers of the product's rule."""
    numbers = np.arange(30, TRIALS)
    best = np.concatenate([[-np.inf], np.maximum.accumulate(values)])
    excess = np.full(len(numbers), np.inf)
    for place, n in enumerate(numbers):
        ranked = np.unique(values[:n])[::-1]
        if len(ranked) > 10:
            excess[place] = (ranked[:10] - ranked[10]).mean()
    stops = []
    for caution, share, last in itertools.product(CAUTIONS, SHARES, LASTS):
        likely = excess * np.log1p(caution * (TRIALS - numbers) / numbers)
        before = np.minimum(np.ceil(numbers * (1 - share)).astype(int), numbers - last)
        gained = np.where(before > 0, best[numbers] - best[np.maximum(before, 0)], np.inf)
        stops.append(first(numbers, (likely < gain) & (gained < gain)))
    return np.array(stops)


def first(numbers, may_stop):
    """Return the first of these numbers of trials at which a search may stop."""
    return numbers[np.argmax(may_stop)] if may_stop.any() else TRIALS


def show(records, gain):
    """Print what each rule saves where its numbers are chosen on other data sets, and on all."""
    values = [np.array([t["objective"] for t in one["trials"]])[:TRIALS] for one in records]
    best = [np.maximum.accumulate(one) for one in values]
    groups = np.array([one["surface"].split()[0] for one in records])
    rows = [figures(v, points(one), gain) for v, one in zip(values, records, strict=True)]
    has_gain = [one[-1] - one[LOOKS - 1] > gain for one in best]
    stops = {"the product's rule": np.array([by_rule(one, gain) for one in values])}
    for name, make in LEARNERS.items():
        stops[name] = np.empty((len(records), len(by_chance(np.ones(len(LOOKS))))), dtype=int)
        for group in np.unique(groups):
            others = np.flatnonzero(groups != group)
            learner = make()
            learner.fit(
                np.vstack([rows[i] for i in others]), np.concatenate([has_gain[i] for i in others])
            )
            for i in np.flatnonzero(groups == group):
                stops[name][i] = by_chance(learner.predict_proba(rows[i])[:, 1])
    for name, found in stops.items():
        lost = np.array([b[-1] - b[at - 1] for b, at in zip(best, found, strict=True)])
        early, saved = lost > gain, 1 - found / TRIALS
        for most in TOO_EARLY:
            choice = chosen(early, saved, most)
            print(f"{gain},{name},seen,{early[:, choice].mean():.3f},{saved[:, choice].mean():.3f}")
        pairs = []
        for group in np.unique(groups):
            here = groups == group
            choice = chosen(early[~here], saved[~here], MOST)
            pairs += zip(early[here, choice], saved[here, choice], strict=True)
        of_all = np.mean(pairs, axis=0)
        print(f"{gain},{name},held out,{of_all[0]:.3f},{of_all[1]:.3f}", flush=True)


def chosen(early, saved, most):
    """Return the choice that saves most where at most so many stop too early; the least early."""
    may = early.mean(axis=0) <= max(most, early.mean(axis=0).min())
    return int(np.argmax(np.where(may, saved.mean(axis=0), -1.0)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("searches", type=Path)
    parser.add_argument("--only", default="tpe")
    parser.add_argument("--gains", nargs="+", type=float, default=[0.002, 0.005, 0.01])
    given = parser.parse_args()
    records = [one for one in read(given.searches) if one["search"] == given.only]
    print("gain_below,rule,chosen_on,too_early,saved")
    for gain in given.gains:
        show(records, gain)


if __name__ == "__main__":
    main()
