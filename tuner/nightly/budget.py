"""What a night may spend, and what it need not search again: budgets, clock, earlier nights."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from tuner.config import Config
from tuner.config.model import BackendSection
from tuner.core.errors import TunerError
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.shown import counted
from tuner.core.steps import Say, unsaid
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Params
from tuner.nightly.data import params_key
from tuner.nightly.records import Night, Records
from tuner.run.assembly import Assembly
from tuner.run.warm_start import SAME, STARTING_POINTS, Earlier, gather
from tuner.verdict.looks import SHARE_THAT_COUNTS, query_digest

# So many trials tell a search where to look; the model of a Gaussian process costs their cube.
MOST_EARLIER_TRIALS = 300


def with_budget(config: Config) -> Config:
    """Return the configuration with the night's trials shared among its backends.

    Each gets the share that its own ``trials`` are of all; one that gets none is left out.
    """
    trials = config.nightly.budget.trials
    if not trials:
        return config
    parts = shares([backend.trials for backend in config.backends], trials)
    backends: list[BackendSection] = [
        backend.model_copy(update={"trials": part})
        for backend, part in zip(config.backends, parts, strict=True)
        if part
    ]
    return config.model_copy(update={"backends": backends})


def shares(weights: list[int], total: int) -> list[int]:
    """Divide a whole number in proportion to weights, by largest remainders, first ones first.

    >>> shares([60, 40, 40], 12)
    [5, 4, 3]
    """
    exact = [total * weight / sum(weights) for weight in weights]
    parts = [int(share) for share in exact]
    order = sorted(range(len(weights)), key=lambda place: parts[place] - exact[place])
    for place in order[: total - sum(parts)]:
        parts[place] += 1
    return parts


def clock(config: Config) -> Callable[[], bool]:
    """Return what says that the time is up, from now on; at once where nothing is to be tuned."""
    budget = config.nightly.budget
    if budget.trials == 0:
        return lambda: True
    if budget.minutes is None:
        return lambda: False
    end = time.monotonic() + 60.0 * float(budget.minutes)
    return lambda: time.monotonic() >= end


def warmed(assembly: Assembly, records: Records, *, say: Say) -> Earlier:
    """Return what the search starts from: the trials of the latest nights on the same data.

    Where there are none, since the data changed, the best of the latest nights before are asked
    again. What was configured as a warm start comes first.
    """
    earlier = gather(assembly, say=say)
    found: list[str] = []
    trials, nights_before = 0, 0
    starts: dict[str, Params] = {}
    reason = ""
    is_apart = partial(_is_apart, assembly, records)
    for night in reversed(records.nights):
        run_dir = str(records.runs_dir / night.run_dir)
        is_there = Path(run_dir, JOURNAL_FILE).is_file()
        is_same = _is_on_the_same(assembly, night)
        has_enough = bool(found) or len(starts) >= STARTING_POINTS
        if run_dir in found or not is_there or (has_enough and not is_same):
            continue
        try:
            one = gather(_from(assembly, [run_dir]), say=unsaid, is_apart=is_apart)
        except TunerError as error:  # of something else, or a damaged journal
            reason = reason or str(error)
            continue
        if one.trials:
            found.append(run_dir)
            trials += len(one.trials)
        elif one.starts:
            nights_before += 1
            starts |= {params_key(params): params for params in one.starts}
        if trials >= MOST_EARLIER_TRIALS:
            break
    if found:
        nights = counted(len(found), "earlier night")
        say(f"warm start: {trials} trials of {nights} on the same data")
        return gather(_from(assembly, [*assembly.config.warm_start, *found]), say=unsaid)
    again = tuple(starts.values())[:STARTING_POINTS]
    if again:
        best = "best configuration is" if len(again) == 1 else f"{len(again)} best are"
        say(
            f"warm start: the data changed, so of {counted(nights_before, 'earlier night')} the "
            f"{best} asked again, and nothing else is taken over"
        )
    elif reason:
        say(f"warm start: nothing is taken over from earlier nights: {reason}")
    return replace(earlier, starts=(*earlier.starts, *again))


def _is_on_the_same(assembly: Assembly, night: Night) -> bool:
    then, now = night.data["fingerprints"], assembly.fingerprints()
    return all(then.get(name) == now.get(name) for name in SAME)


def _is_apart(assembly: Assembly, records: Records, header: StudyHeader) -> bool:
    """Say whether a night was tuned on other queries than those held out now, but for a few."""
    night = next((one for one in records.nights if one.study_id == header.study_id), None)
    scores = [score for score in records.scores if night is not None and score.night == night.night]
    part = records.parts.get(scores[-1].part or "") if scores else None
    if part is None:
        return False
    held_out = {query_digest(query.text) for query in assembly.holdout_queries}
    return len(held_out.intersection(part.digests)) < SHARE_THAT_COUNTS * len(held_out)


def _from(assembly: Assembly, sources: list[str]) -> Assembly:
    config = assembly.config.model_copy(update={"warm_start": sources})
    return replace(assembly, config=config)
