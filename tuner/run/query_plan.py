"""How many queries show which difference between two configurations, and what so many show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.errors import InputError
from tuner.core.journal import JournalContent, read_journal, read_per_query
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial
from tuner.evaluation.objective import composite_values
from tuner.run.folder import journal_in, last_summary
from tuner.run.side_by_side import SideBySide, read_side_by_side
from tuner.stats import minimum_detectable_effect, sample_size_paired
from tuner.study.results import BASELINE_ARM
from tuner.verdict.more_queries import needed, shown_by, to_label
from tuner.verdict.ruling import CaveatKind
from tuner.verdict.verdict import ALPHA, MIN_EFFECT

# Differences that people ask about, and effects where nothing is known of the spread: Cohen (1988)
# calls .2 small, .5 medium and .8 large.
DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.1)
EFFECT_SIZES = (0.1, 0.2, 0.3, 0.5, 0.8)
QUERIES = (30, 50, 100, 200, 500, 1_000)
# A smaller effect takes more than a hundred million queries.
SMALLEST_EFFECT = 1e-3


@dataclass(frozen=True)
class Spread:
    """By how much the differences between two configurations vary from query to query.

    Attributes:
        standard_deviation: of the differences.
        source: where that is from, in words.
        queries: on how many queries it was seen; None for a guess.
        held_out_share: the share of all queries that is held out; None where that is moot.
        run_shift: by how much the system differed from itself when it was asked again.
        widened: how many times as wide intervals are as those of independent queries: where all
            queries decide, part by part, since the parts depend on each other.
        alpha: what the study decides by.
        min_effect: the smallest gain that would matter to it.
    """

    standard_deviation: float
    source: str
    queries: int | None = None
    held_out_share: float | None = None
    run_shift: float = 0.0
    widened: float = 1.0
    alpha: float = ALPHA
    min_effect: float = MIN_EFFECT


@dataclass(frozen=True)
class Needed:
    """How many queries show a difference; None: no number does, the system moves too much."""

    difference: float | None
    effect_size: float
    queries: int | None
    to_label: int | None


@dataclass(frozen=True)
class Detectable:
    """The smallest difference that so many queries show."""

    queries: int
    effect_size: float
    difference: float | None


@dataclass(frozen=True)
class QueryPlan:
    """Both, at one alpha and power; differences are None where no spread is known."""

    alpha: float
    power: float
    spread: Spread | None
    needed: tuple[Needed, ...]
    detectable: tuple[Detectable, ...]

    def to_record(self) -> dict[str, Any]:
        """Return the plan as a JSON-ready mapping."""
        return asdict(self)


def plan_queries(
    spread: Spread | None,
    *,
    effects: Sequence[float] = (),
    queries: Sequence[int] = (),
    alpha: float,
    power: float,
) -> QueryPlan:
    """Plan by the exact power of the paired t-test, as ``tuner.stats.power`` has it.

    ``effects`` are differences in the composite, or d_z where no spread is known; ``queries`` the
    numbers of which to tell what they show. Without them the usual ones are taken.

    A spread of .1, as an example: .02 is d_z = .2, which 199 queries show with 80 % power.

    >>> plan = plan_queries(Spread(0.1, "a guess"), effects=[0.02], alpha=0.05, power=0.8)
    >>> plan.needed[0].queries
    199

    Raises:
        InputError: no number can be planned by one of these.
    """
    if not power > alpha:
        raise InputError(f"power={power:g} must be above alpha={alpha:g}: chance alone gives that")
    if spread is None:
        sizes = effects or EFFECT_SIZES
        _check(sizes)
        return QueryPlan(
            alpha,
            power,
            None,
            tuple(
                Needed(None, size, sample_size_paired(size, alpha=alpha, power=power), None)
                for size in sizes
            ),
            tuple(
                Detectable(n, minimum_detectable_effect(n, alpha=alpha, power=power), None)
                for n in queries or QUERIES
            ),
        )
    deviation, shift = spread.standard_deviation, spread.run_shift
    # An interval that is so many times as wide needs the queries of so much larger a spread.
    counted = deviation * spread.widened
    if deviation <= 0.0:
        raise InputError(f"the spread is {deviation:g}: without any, two queries show everything")
    differences = effects or sorted({*DIFFERENCES, spread.min_effect})
    _check([difference / deviation for difference in differences])
    numbers = queries or sorted({*QUERIES, *([spread.queries] if spread.queries else [])})
    found = []
    for difference in differences:
        total = needed(difference, counted, alpha=alpha, run_shift=shift, power=power)
        label = None if total is None else to_label(total, spread.held_out_share)
        found.append(Needed(difference, difference / deviation, total, label))
    shown = []
    for number in numbers:
        least = shown_by(number, counted, alpha=alpha, run_shift=shift, power=power)
        shown.append(Detectable(number, least / deviation, least))
    return QueryPlan(alpha, power, spread, tuple(found), tuple(shown))


def spread_from(run_dir: Path | None, sd: float | None, holdout: float | None) -> Spread | None:
    """Return the spread of an earlier study, or a guess; None where nothing is known.

    Raises:
        InputError: both are given, or a held-out share without either.
    """
    if run_dir is not None and sd is not None:
        raise InputError("give RUN_DIR or --sd, not both: the run's own spread is measured")
    if run_dir is not None:
        found = spread_of_run(run_dir)
        return found if holdout is None else replace(found, held_out_share=holdout)
    if sd is not None:
        return Spread(sd, "a guess", held_out_share=holdout)
    if holdout is not None:
        raise InputError("--holdout needs a spread: give RUN_DIR or --sd")
    return None


def spread_of_run(run_dir: Path) -> Spread:
    """Return by how much the queries of a study vary between its winner and its baseline.

    Where the baseline won: the median of what its trials vary by, each against the baseline.

    Raises:
        InputError: no run directory, or one that kept no values by query.
    """
    content = read_journal(journal_in(run_dir))
    header = content.header
    rows = read_side_by_side(run_dir)
    changes = np.array([row.change for row in rows if row.change is not None])
    if changes.size > 1 and changes.std() > 0.0:
        source = (
            f"winner against baseline on {changes.size} {_kind(rows, content)} of {header.name}"
        )
        return _spread(content, float(changes.std(ddof=1)), source, changes.size)
    deviations, queries = _trial_spreads(run_dir, header, list(content.trials.values()))
    if not deviations:
        raise InputError(
            f"{str(run_dir)!r} holds no differences by query between a configuration and its "
            "baseline; give their standard deviation with --sd, such as 0.15"
        )
    source = f"{len(deviations)} trials against the baseline on {queries} tune queries, the median"
    return _spread(content, float(np.median(deviations)), f"{source}, of {header.name}", queries)


def _kind(rows: Sequence[SideBySide], content: JournalContent) -> str:
    """Say which queries these are; where they decide part by part, all of them."""
    if _parts(content) is not None:
        return "queries"
    return "held-out queries" if rows[0].part == "holdout" else "tune queries"


def _parts(content: JournalContent) -> Mapping[str, Any] | None:
    """Return what the verdict tells of its parts; None where there were none."""
    summary = last_summary(content)
    verdict = (summary.verdict if summary is not None else None) or {}
    return next(
        (one["figures"] for one in verdict.get("caveats", ()) if one["kind"] == CaveatKind.PARTS),
        None,
    )


def _spread(content: JournalContent, deviation: float, source: str, queries: int) -> Spread:
    data, summary = content.header.dataset, last_summary(content)
    section = content.header.config.get("verdict") or {}
    held_out, total = data.get("holdout_queries", 0), data.get("queries", 0)
    verdict = (summary.verdict if summary is not None else None) or {}
    return Spread(
        deviation,
        source,
        queries,
        held_out / total if held_out and total else None,
        float(verdict.get("run_shift") or 0.0),
        float((_parts(content) or {}).get("widened", 1.0)),
        float(section.get("alpha", ALPHA)),
        float(section.get("min_effect", MIN_EFFECT)),
    )


def _trial_spreads(
    run_dir: Path, header: StudyHeader, trials: Sequence[Trial]
) -> tuple[list[float], int]:
    """Return what each trial's differences to the baseline vary by, and on how many queries."""
    weights = header.objective.get("maximize") or {}
    values = {}
    for trial in trials:
        per_query = read_per_query(run_dir / JOURNAL_FILE, trial.number) if trial.is_scored else {}
        if weights and all(name in per_query for name in weights):
            values[trial.number] = composite_values(per_query, weights)
    base = next((t.number for t in trials if t.arm == BASELINE_ARM and t.number in values), None)
    if base is None:
        return [], 0
    found = []
    for number, composite in values.items():
        difference = composite - values[base]
        defined = difference[~np.isnan(difference)]
        if number != base and defined.size > 1 and defined.std() > 0.0:
            found.append(float(defined.std(ddof=1)))
    return found, int((~np.isnan(values[base])).sum())


def _check(effect_sizes: Sequence[float]) -> None:
    for size in effect_sizes:
        if size < SMALLEST_EFFECT:
            raise InputError(
                f"a d_z of {size:.3g} is under {SMALLEST_EFFECT:g}: that takes millions of queries "
                "and more; ask for a difference that would matter"
            )
