"""Which configurations are asked for answers: the baseline, the winner, and some well spread."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.backends.random import Random
from tuner.config.params import is_json
from tuner.core.errors import InputError, did_you_mean
from tuner.core.journal import JournalContent
from tuner.core.rankings import FloatArray
from tuner.core.shown import number_ranges
from tuner.core.trial import Trial, TrialState, best_trial
from tuner.run.assembly import Assembly
from tuner.run.folder import last_summary
from tuner.run.judge import Choice
from tuner.study.results import BASELINE_ARM

BASELINE, WINNER = "baseline", "winner"


@dataclass(frozen=True)
class Configuration:
    """One configuration; ``trial`` is the number of its trial, None where it has none."""

    name: str
    choice: Choice
    trial: int | None = None

    def to_record(self) -> dict[str, Any]:
        """Return it as a JSON-ready mapping."""
        shown = self.choice if isinstance(self.choice, dict) else {"policy": "by query type"}
        return {"name": self.name, "trial": self.trial, "params": dict(shown)}


def of_study(assembly: Assembly, content: JournalContent, count: int) -> list[Configuration]:
    """Return the baseline, the winner, and trials that are spread over what was measured.

    After the first two each is the trial that is furthest from those before it, by the ranks of its
    metrics among the trials; equal ones are taken once.

    Raises:
        InputError: fewer than two trials have a result.
    """
    scored = [one for one in content.trials.values() if one.is_scored and not one.race]
    known = _named(content, scored)
    names = {trial.number: name for name, trial in known.items()}
    if len(scored) < 2:
        raise InputError(f"{len(scored)} trials of this study have a result; at least 2 are needed")
    chosen = spread(scored, list(known.values()), count)
    return [
        Configuration(
            names.get(trial.number, f"trial {trial.number}"),
            assembly.choice(trial.params),
            trial.number,
        )
        for trial in chosen
    ]


def of_config(assembly: Assembly, count: int) -> list[Configuration]:
    """Return the baseline, where there is one, and points that are spread evenly over the space.

    Raises:
        InputError: these are fewer than two.
    """
    found = []
    if assembly.baseline is not None:
        choice = assembly.policy or assembly.params(assembly.baseline)
        found.append(Configuration(BASELINE, choice))
    space, seed = assembly.plan.space, assembly.config.study.seed
    points = Random(budget=count).suggest(space, [], count=count, seed=seed)
    seen = [one.choice for one in found]
    for point in points:
        params = assembly.params(point)
        if params not in seen and len(found) < count:
            seen.append(params)
            found.append(Configuration(f"point {len(found)}", params))
    if len(found) < 2:
        raise InputError("the space has one point only; there is nothing to correlate over")
    return found


def named_in_study(
    assembly: Assembly, content: JournalContent, names: Sequence[str | int]
) -> list[Configuration]:
    """Return the configurations that a file names: trials by number, ``baseline``, ``winner``.

    Raises:
        InputError: one of them is no such thing.
    """
    scored = [trial for trial in content.trials.values() if trial.is_scored]
    known = _named(content, scored)
    found = []
    for name in names:
        trial = known.get(name) if isinstance(name, str) else content.trials.get(name)
        if trial is None and isinstance(name, str):
            hint = did_you_mean(name, known)
            raise InputError(f"unknown configuration {name!r}{hint}; others are named by `trial`")
        if trial is None:
            raise InputError(
                f"the study has no trial {name}; its trials are {number_ranges(content.trials)}"
            )
        if trial.state is TrialState.FAILED or not trial.is_told:
            raise InputError(f"trial {name} of the study has no result, so there is no ranking")
        label = name if isinstance(name, str) else f"trial {name}"
        found.append(Configuration(label, assembly.choice(trial.params), trial.number))
    return found


def named_in_config(assembly: Assembly, names: Sequence[str | int]) -> list[Configuration]:
    """Return the configurations that a file names where there is no study: parameters as JSON.

    Raises:
        InputError: one of them is no set of parameters.
    """
    found = []
    for name in names:
        if name == BASELINE and assembly.baseline is not None:
            found.append(
                Configuration(BASELINE, assembly.policy or assembly.params(assembly.baseline))
            )
        elif isinstance(name, str) and is_json(name):
            found.append(Configuration(name, assembly.choice(_params(name))))
        else:
            raise InputError(
                f"configuration {name!r}: without a study write the parameters themselves, such as "
                '{"top_k": 10}, or "baseline"; with one, give its run directory in place of CONFIG'
            )
    return found


def spread(trials: Sequence[Trial], first: Sequence[Trial], count: int) -> list[Trial]:
    """Return ``first`` and then the trial furthest from those chosen, until there are ``count``.

    Distances are those of the metrics' ranks among the trials, from 0 to 1 for each metric, so
    that one outlier does not decide. Of equals the earliest is chosen; none at distance 0 is.
    """
    places = {trial.number: place for place, trial in enumerate(trials)}
    names = sorted(set.intersection(*({*trial.metrics} for trial in trials)))
    values = np.array([[float(trial.metrics[name]) for name in names] for trial in trials])
    values = values[:, ~np.isnan(values).any(axis=0)]
    ranks = _ranks(values)
    chosen: list[int] = []
    for trial in first:
        place = places[trial.number]
        if place not in chosen and len(chosen) < count:
            chosen.append(place)
    if not chosen:
        chosen.append(0)
    while len(chosen) < min(count, len(trials)):
        away = np.abs(ranks[:, None, :] - ranks[None, chosen, :]).sum(axis=2).min(axis=1)
        furthest = int(away.argmax())
        if not away[furthest] > 0.0:
            break
        chosen.append(furthest)
    return [trials[place] for place in chosen]


def _ranks(values: FloatArray) -> FloatArray:
    from scipy import stats

    if not values.shape[1]:
        return np.zeros((len(values), 1))
    ranks = stats.rankdata(values, axis=0)
    return np.asarray((ranks - 1.0) / max(len(values) - 1, 1))


def _named(content: JournalContent, scored: Sequence[Trial]) -> Mapping[str, Trial]:
    """Return the baseline and the winner; of a study that has not ended the best trial so far."""
    found = {}
    baseline = next((trial for trial in scored if trial.arm == BASELINE_ARM), None)
    if baseline is not None:
        found[BASELINE] = baseline
    summary = last_summary(content)
    winner = None
    if summary is not None and summary.chosen is not None:
        winner = content.trials.get(summary.chosen.trial)
    winner = winner or best_trial(list(scored))
    if winner is not None and winner.number not in {trial.number for trial in found.values()}:
        found[WINNER] = winner
    return found


def _params(written: str) -> dict[str, Any]:
    try:
        params = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InputError(f"configuration {written!r} is not valid JSON: {error}") from error
    if not isinstance(params, dict):
        raise InputError(f"configuration {written!r} is no JSON object of parameters")
    return params
