"""Does quality slip? Every measure by two tests, by type of query, and the mix of types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from tuner.core.errors import InputError
from tuner.core.rankings import BoolArray, FloatArray, IntArray
from tuner.drift.findings import DriftReport, Finding, Status, Test
from tuner.drift.mix import MODERATE_PSI, MixChange, compare_mix
from tuner.drift.observations import Daily, Observation, Windows, by_day, by_query, count_types
from tuner.drift.watched import QUERY_MIX
from tuner.drift.windows import Change, Worse, compare_windows, compare_windows_paired, trend
from tuner.stats import correct_holm

MIN_DAYS = 14
MIN_REFERENCE_DAYS = 7
MIN_RECENT_DAYS = 3
# Over two weeks a trend says what the windows say, and autocorrelation cannot be told from it.
MIN_TREND_DAYS = 28


@dataclass(frozen=True)
class Measure:
    """One figure that is watched.

    Attributes:
        name: of the figure in the observations.
        worse: the direction that is an alarm.
        percentile: a day's figure is this percentile of its values, such as 95; None: their mean.
        min_effect: the smallest relative change that matters.
    """

    name: str
    worse: Worse = "lower"
    percentile: float | None = None
    min_effect: float = 0.05


@dataclass(frozen=True)
class _Tested:
    measure: str
    test: Test
    group: str
    min_effect: float
    change: Change | None = None
    mix: MixChange | None = None
    mix_part: float | None = None

    @property
    def p_value(self) -> float:
        found = self.change or self.mix
        return 1.0 if found is None else found.p_value

    @property
    def is_large(self) -> bool:
        if self.mix is not None:
            return self.mix.stability_index >= self.min_effect
        # From 0 any change is beyond every share of it.
        relative = None if self.change is None else self.change.relative
        return relative is None or abs(relative) >= self.min_effect


def find_drift(
    observations: Sequence[Observation],
    measures: Sequence[Measure],
    *,
    windows: Windows,
    alpha: float = 0.05,
    mix_effect: float | None = MODERATE_PSI,
) -> DriftReport:
    """Test every measure by window and by trend, the first one by query type, and the mix.

    Where the same queries were judged in both windows (at least half of what was judged in each),
    they are compared query by query, otherwise day by day. All p-values are corrected together
    (Holm 1979): without drift a look raises an alarm with a probability of at most ``alpha``. An
    alarm also needs the measure's minimum effect; ``mix_effect`` is that of the stability index,
    None leaves the mix out.

    Raises:
        InputError: no measure, or ``alpha`` outside 0 to 1.
    """
    if not measures and mix_effect is None:
        raise InputError("nothing is watched: name a measure")
    kinds = _kinds(observations, windows)
    found: list[_Tested | str] = []
    for measure in measures:
        found += _tests_of(observations, measure, windows, alpha)
    if len(kinds) > 1:
        if measures:
            part = _mix_part(observations, measures[0], kinds, windows)
            found = [
                replace(one, mix_part=part)
                if isinstance(one, _Tested)
                and (one.test, one.measure) == ("window", measures[0].name)
                else one
                for one in found
            ]
            found += _tests_by_type(observations, measures[0], kinds, windows, alpha)
        if mix_effect is not None:
            found.append(_test_of_mix(observations, kinds, windows, mix_effect))
    elif mix_effect is not None and not measures:
        found.append("fewer than two query types: there is no mix to compare")
    tested = [one for one in found if isinstance(one, _Tested)]
    untested = tuple(one for one in found if isinstance(one, str))
    adjusted = correct_holm([one.p_value for one in tested]).tolist()
    findings = [
        Finding(
            one.measure, one.test, one.group, one.change, one.mix, p, one.min_effect,
            p <= alpha, p <= alpha and one.is_large,
            one.mix_part,
        )
        for one, p in zip(tested, adjusted, strict=True)
    ]  # fmt: skip
    status: Status = "no alarm" if findings else "insufficient data"
    if any(finding.is_alarm for finding in findings):
        status = "alarm"
    ordered = sorted(findings, key=lambda finding: not finding.is_alarm)
    return DriftReport(status, tuple(ordered), untested, windows, alpha)


def _tests_of(
    observations: Sequence[Observation],
    measure: Measure,
    windows: Windows,
    alpha: float,
) -> Iterator[_Tested | str]:
    """Yield the tests of a measure, and a sentence for each that cannot be made."""
    daily = by_day(observations, measure.name, percentile=measure.percentile)
    reason = _too_little(daily, windows)
    if reason:
        yield f"{measure.name}: {reason}"
        return
    name, effect = measure.name, measure.min_effect
    change, paired = _window_change(observations, daily, measure, windows, alpha)
    yield _Tested(name, "window", "", effect, change)
    line = paired or daily.within(windows.trend)
    if line.days.size < MIN_TREND_DAYS:
        yield (
            f"{name}: {line.days.size} days with data are too few for a trend, which needs "
            f"{MIN_TREND_DAYS}"
        )
        return
    slope = trend(line.days, line.values, worse=measure.worse, confidence=1.0 - alpha)
    yield _Tested(name, "trend", "", effect, slope)


def _tests_by_type(
    observations: Sequence[Observation],
    measure: Measure,
    kinds: Sequence[str],
    windows: Windows,
    alpha: float,
) -> Iterator[_Tested | str]:
    for kind in kinds:
        ours = [one for one in observations if one.query_type == kind]
        daily = by_day(ours, measure.name, percentile=measure.percentile)
        reason = _too_little(daily, windows)
        if reason:
            yield f"{measure.name} of {kind}: {reason}"
            continue
        change, _ = _window_change(ours, daily, measure, windows, alpha)
        yield _Tested(measure.name, "window", kind, measure.min_effect, change)


def _mix_part(
    observations: Sequence[Observation],
    measure: Measure,
    kinds: Sequence[str],
    windows: Windows,
) -> float | None:
    """Return what the types' new shares would change, had each type its level of before."""
    if measure.percentile is not None:
        return None
    seen = [one for one in observations if one.query_type and measure.name in one.values]
    shares = [
        count_types(seen, window, kinds).sum(axis=0)
        for window in (windows.reference, windows.recent)
    ]
    if not all(counts.sum() for counts in shares):
        return None
    levels = []
    for kind in kinds:
        ours = [one for one in seen if one.query_type == kind]
        values = by_day(ours, measure.name).within(windows.reference).values
        levels.append(float(values.mean()) if values.size else np.nan)
    moved = shares[1] / shares[1].sum() - shares[0] / shares[0].sum()
    part = float(moved @ np.array(levels))
    return part if np.isfinite(part) else None


def _test_of_mix(
    observations: Sequence[Observation],
    kinds: Sequence[str],
    windows: Windows,
    effect: float,
) -> _Tested | str:
    before, after = (
        count_types(observations, window, kinds) for window in (windows.reference, windows.recent)
    )
    if len(before) + len(after) < MIN_DAYS or len(after) < MIN_RECENT_DAYS:
        return f"{QUERY_MIX}: {_needed(len(before), len(after))}"
    mix = compare_mix(kinds, before, after)
    return _Tested(QUERY_MIX, "mix", "", effect, mix=mix)


def _window_change(
    observations: Sequence[Observation],
    daily: Daily,
    measure: Measure,
    windows: Windows,
    alpha: float,
) -> tuple[Change, Daily | None]:
    """Compare the windows; also return the days of the trend, where queries are paired."""
    reference, recent = daily.within(windows.reference), daily.within(windows.recent)
    if measure.percentile is None:
        cells = by_query(observations, measure.name)
        query = cells.queries
        before, after = (
            _is_within(cells.days, window) for window in (windows.reference, windows.recent)
        )
        is_common = np.isin(query, np.intersect1d(query[before], query[after]))
        if _can_be_paired(cells.days, query, is_common, before, after):
            used = is_common & (before | after)
            change = compare_windows_paired(
                cells.days[used], query[used], cells.values[used], after[used],
                worse=measure.worse, confidence=1.0 - alpha,
            )  # fmt: skip
            line = is_common & _is_within(cells.days, windows.trend)
            return change, _level_days(cells.days[line], query[line], cells.values[line])
    change = compare_windows(
        reference.days, reference.values, recent.days, recent.values,
        worse=measure.worse, confidence=1.0 - alpha,
    )  # fmt: skip
    return change, None


def _can_be_paired(
    days: IntArray, query: IntArray, is_common: BoolArray, before: BoolArray, after: BoolArray
) -> bool:
    """Say whether enough was judged in both windows: of queries, of values, and of days."""
    if np.unique(query[is_common]).size < 2:
        return False
    enough = ((before, MIN_REFERENCE_DAYS), (after, MIN_RECENT_DAYS))
    return all(
        float(is_common[part].mean()) >= 0.5 and np.unique(days[is_common & part]).size >= least
        for part, least in enough
    )


def _level_days(days: IntArray, query: IntArray, values: FloatArray) -> Daily:
    """Return daily means that do not depend on which of the queries were asked on a day."""
    level = np.bincount(query, weights=values) / np.maximum(np.bincount(query), 1)
    dates, place = np.unique(days, return_inverse=True)
    means = np.bincount(place, weights=values - level[query]) / np.bincount(place)
    return Daily(dates, means + float(level[np.unique(query)].mean()))


def _kinds(observations: Sequence[Observation], windows: Windows) -> list[str]:
    first, last = windows.reference[0], windows.recent[1]
    return sorted({o.query_type for o in observations if o.query_type and first <= o.day <= last})


def _is_within(days: IntArray, window: tuple[date, date]) -> BoolArray:
    return np.asarray((days >= window[0].toordinal()) & (days <= window[1].toordinal()))


def _too_little(daily: Daily, windows: Windows) -> str:
    before, after = (daily.within(part).days.size for part in (windows.reference, windows.recent))
    is_enough = before >= MIN_REFERENCE_DAYS and after >= MIN_RECENT_DAYS
    return "" if is_enough and before + after >= MIN_DAYS else _needed(before, after)


def _needed(before: int, after: int) -> str:
    return (
        f"{after} recent and {before} reference days with data; needed are "
        f"{MIN_DAYS} in all, {MIN_RECENT_DAYS} of them recent and {MIN_REFERENCE_DAYS} before"
    )
