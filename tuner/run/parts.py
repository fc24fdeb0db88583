"""All queries decide: the search is repeated without each part, and its winner is tested on it.

The study itself searches on all queries and chooses what is deployed. Beside it, below ``parts/``
in its run directory, stands one study for each part: the same search, but on the other parts alone,
neither by values nor by where it went. Its winner meets the baseline on the part that it has not
seen. Each is a journal of its own, so that a run goes on in the midst of any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core import calls
from tuner.core.corpus import Query
from tuner.core.errors import TunerError
from tuner.core.journal import read_journal, read_per_query
from tuner.core.rankings import FloatArray
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.shown import counted
from tuner.core.steps import Say
from tuner.core.trial import Params, Trial
from tuner.datasets.together import together
from tuner.evaluation.objective import composite_values
from tuner.retrieval.base import Measures
from tuner.retrieval.free import NOTHING_FREE
from tuner.run.as_study import make_header, make_spec
from tuner.run.assembly import Assembly
from tuner.run.earlier import Earlier, read_earlier
from tuner.run.judge import measured_both, utilities
from tuner.run.trials import trial_evaluator
from tuner.stats import widened_by, widened_by_both_ways
from tuner.stats.pairs import ROUNDING
from tuner.study.failures import Failures
from tuner.study.limit import Limit
from tuner.study.loop import State, run_study
from tuner.study.results import BASELINE_ARM
from tuner.study.study import Study
from tuner.verdict.as_one import caveat_of, gains_as_one
from tuner.verdict.measured import Measured
from tuner.verdict.verdict import Widened
from tuner.verdict.winner import choose_winner, winner_rule

PARTS_DIR = "parts"

# Asks the system something with parameters that it has answered.
Probe = Callable[[Assembly, Params], object]


@dataclass(frozen=True, eq=False)
class PartStudy:
    """The search without one part: its queries and journal, and the part that it has not seen."""

    number: int
    assembly: Assembly
    run_dir: Path

    @property
    def journal(self) -> Path:
        """Return where its trials stand."""
        return self.run_dir / JOURNAL_FILE

    @property
    def queries(self) -> tuple[Query, ...]:
        """Return those of the part."""
        return self.assembly.holdout_queries


def part_studies(assembly: Assembly, run_dir: Path) -> list[PartStudy]:
    """Return one for each part of the queries, in order."""
    return [
        PartStudy(number, assembly.without_part(number - 1), run_dir / PARTS_DIR / str(number))
        for number in range(1, len(assembly.parts) + 1)
    ]


def search_parts(
    assembly: Assembly,
    run_dir: Path,
    *,
    say: Say,
    limit_of: Callable[[Study], Limit],
    probe: Probe,
    retry_failed: bool = False,
) -> tuple[State, str]:
    """Search without each part, or go on where that was interrupted; return how it ended, and why.

    ``limit_of`` gives what ends such a search early, ``probe`` asks the system something. With
    ``retry_failed`` the trials that failed are evaluated again. Where a search fails, none after it
    is begun: without it there is no verdict, and nothing is to be paid for.
    """
    studies = part_studies(assembly, run_dir)
    # Of earlier studies, which have seen every part, there are none: all of it are known points.
    starts = read_earlier(run_dir).starts
    for one in studies:
        of_all = f"part {one.number} of {len(studies)}"
        queries = counted(len(one.assembly.tune_queries), "query", "queries")
        study = _opened(one, starts)
        try:
            again = len(study.retry_failed()) if retry_failed else 0
            if again:
                say(f"{of_all}: {counted(again, 'failed trial')} will be evaluated again")
            elif not study.is_done:
                say(f"{of_all}: the search once more, on the {queries} of the others")
            is_measured = isinstance(assembly.retriever, Measures)
            state = run_study(
                study,
                one.assembly.plan.execution,
                trial_evaluator(one.assembly, NOTHING_FREE, purpose=calls.PARTS),
                limit=limit_of(study),
                probe=None if is_measured else partial(probe, one.assembly),
            )
            if state == "interrupted":
                return state, study.stopped_by or f"in the search without {of_all}"
            if state == "failed":
                break
        finally:
            study.close()
    return "finished", ""


def _opened(one: PartStudy, starts: Sequence[Params]) -> Study:
    """Begin the search without a part, or go on with it.

    It asks the known points first, as the study does, and knows nothing of earlier studies: these
    have seen the part as well.
    """
    spec = make_spec(one.assembly, Earlier(starts=tuple(starts)))
    header = make_header(one.assembly)
    one.run_dir.mkdir(parents=True, exist_ok=True)
    # A run that was killed within the first line has not begun.
    if one.journal.is_file() and b"\n" in one.journal.read_bytes():
        return Study.resume(header, spec, one.journal)
    return Study.create(header, spec, one.journal)


@dataclass(frozen=True)
class PartChoice:
    """What was chosen without a part, and its mean gain over the baseline on it, in the composite.

    ``trial`` is the number in that part's journal; None where the baseline stayed.
    """

    part: int
    queries: int
    params: Params
    trial: int | None
    gain: float | None


@dataclass(frozen=True, eq=False)
class PartsFound:
    """What the parts say together.

    Attributes:
        queries: of all parts, one after the other.
        both: what was chosen without each query, and the baseline, on these queries.
        choices: of each part.
        as_deployed: the share of queries on which what was chosen without them has the composite of
            what is deployed: how stable the choice was.
        widened: by how much the dependence of the parts widens the intervals.
        failures: of the trials of all searches without a part.
    """

    queries: tuple[Query, ...]
    both: tuple[Measured, Measured]
    choices: tuple[PartChoice, ...]
    as_deployed: float
    widened: Widened
    failures: Failures

    def figures(self) -> dict[str, Any]:
        """Return what there is to tell of them, ready for JSON."""
        return {
            "parts": len(self.choices),
            "as_deployed": self.as_deployed,
            "stayed": sum(choice.trial is None for choice in self.choices),
            "widened": self.widened.composite,
        }


def ask_parts(
    assembly: Assembly,
    run_dir: Path,
    winner: Trial,
    baseline: Trial,
    trials: Sequence[Trial],
    values: Mapping[int, FloatArray],
    *,
    say: Say,
) -> PartsFound:
    """Let each part's winner meet the baseline on it.

    ``trials`` are the study's, of all queries, and ``values`` their ``utilities``: they tell how
    much the parts depend on each other.

    Raises:
        TunerError: a search without a part failed, or the values by query are not there.
    """
    chosen: list[tuple[PartStudy, Trial | None]] = []
    searched: list[Trial] = []
    for one in part_studies(assembly, run_dir):
        content = read_journal(one.journal)
        own = list(content.trials.values())
        if (failures := Failures.of(own)).is_too_many:
            raise TunerError(f"the search without part {one.number} failed: {failures.most}")
        searched += own
        found = choose_winner(own, utilities(one.assembly, one.journal, own, say=say))
        stays = found is None or found.arm == BASELINE_ARM or not found.is_feasible
        chosen.append((one, None if stays else found))
    met, choices = [], []
    for one, trial in chosen:
        params = baseline.params if trial is None else trial.params
        pair = measured_both(assembly, params, baseline.params, one.queries)
        gain = pair[0].composite - pair[1].composite
        known = gain[~np.isnan(gain)]
        met.append(pair)
        choices.append(
            PartChoice(
                one.number,
                len(one.queries),
                params,
                None if trial is None else trial.number,
                float(known.mean()) if known.size else None,
            )
        )
    queries = tuple(query for one, _ in chosen for query in one.queries)
    first = _joined(winner.params, [pair[0] for pair in met])
    deployed = _in_order(assembly, queries, _composite(assembly, run_dir, winner))
    is_same = np.abs(first.composite - deployed) <= ROUNDING
    return PartsFound(
        queries,
        (first, _joined(baseline.params, [pair[1] for pair in met])),
        tuple(choices),
        float(is_same[~np.isnan(deployed)].mean()),
        _widened(
            assembly,
            run_dir,
            baseline,
            trials,
            values,
            has_second_way=first.objective is not None,
        ),
        Failures.of(searched),
    )


def _joined(params: Params, measured: Sequence[Measured]) -> Measured:
    """Put together what was measured on one part after the other."""
    metrics = {
        name: np.concatenate([one.metrics[name] for one in measured])
        for name in measured[0].metrics
        if all(name in one.metrics for one in measured)
    }
    objectives = [one.objective for one in measured if one.objective is not None]
    is_priced = len(objectives) == len(measured)
    return Measured(
        params,
        np.concatenate([one.composite for one in measured]),
        metrics,
        np.concatenate(objectives) if is_priced else None,
        {name: float(np.nanmean(metrics[name])) for name in measured[0].costs} if is_priced else {},
    )


def _composite(assembly: Assembly, run_dir: Path, trial: Trial) -> FloatArray:
    """Return a trial's composite on each query, as the study has kept it."""
    per_query = read_per_query(run_dir / JOURNAL_FILE, trial.evaluated_as)
    weights = assembly.plan.objective.weights
    if any(name not in per_query for name in weights):
        raise TunerError(f"trial {trial.number} kept no values by query")
    return composite_values(per_query, weights)


def _in_order(assembly: Assembly, queries: Sequence[Query], values: FloatArray) -> FloatArray:
    """Bring values of all tune queries into the order of the parts."""
    place = {query.id: row for row, query in enumerate(assembly.tune_queries)}
    return values[[place[query.id] for query in queries]]


def _widened(
    assembly: Assembly,
    run_dir: Path,
    baseline: Trial,
    trials: Sequence[Trial],
    values: Mapping[int, FloatArray],
    *,
    has_second_way: bool,
) -> Widened:
    """Return by how much intervals are widened, by what the study has measured.

    By the parts' dependence; and, where the price is known by query, since being cheaper and as
    good is a second way to be deployed.
    """
    if baseline.number not in values or np.isnan(values[baseline.number]).all():
        raise TunerError("the baseline kept no values by query")
    # One that has no value on any query is nobody's choice, and would leave no query to all others.
    has_values = {number for number, one in values.items() if not np.isnan(one).all()}
    known = sorted((one for one in trials if one.number in has_values), key=lambda one: one.number)
    part_of = {query.id: part for part, ids in enumerate(assembly.parts) for query in ids}
    parts = np.array([part_of[query.id] for query in assembly.tune_queries])
    gains = np.stack([values[one.number] - values[baseline.number] for one in known])
    composites = gains
    if any(assembly.plan.objective.price.values()):
        base = _composite(assembly, run_dir, baseline)
        composites = np.stack([_composite(assembly, run_dir, one) for one in known]) - base
    if caveat_of(alike := together(assembly.tune_queries), ""):
        gains, composites = gains_as_one(gains, alike), gains_as_one(composites, alike)
        parts = parts[np.unique(alike, return_index=True)[1]]
    section = assembly.config.verdict
    given: dict[str, Any] = {
        "choose": winner_rule(known),
        "seed": assembly.config.study.seed,
        "confidence": 1.0 - float(section.alpha),
    }
    if has_second_way:
        margin = float(section.min_effect)
        joint = widened_by_both_ways(gains, composites, parts, margin=margin, **given)
        return Widened(joint, joint)
    return Widened(widened_by(gains, parts, tested=[composites], **given)[-1])
