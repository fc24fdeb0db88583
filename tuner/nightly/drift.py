"""Does the champion's daily score slip? What every night measured, held against the weeks before.

Only nights of the same champion are compared: a better or worse one is no drift.
"""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

from tuner.core.journal import per_query_if_whole
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.trial import Trial
from tuner.drift.detection import Measure, find_drift
from tuner.drift.findings import DriftReport
from tuner.drift.observations import Observation, Windows
from tuner.nightly.data import part_of
from tuner.nightly.records import Records, Score
from tuner.nightly.spending import remember_part
from tuner.run.assembly import Assembly

SCORE = "score"


def record_score(
    records: Records,
    assembly: Assembly,
    baseline: Trial,
    run_dir: Path,
    *,
    champion: str,
    night: date,
) -> Score | None:
    """Write down what the champion scored tonight on the tune queries; None where it failed."""
    if baseline.objective is None:
        return None
    part_name: str | None = None
    values: tuple[float | None, ...] = ()
    objective = assembly.plan.objective
    per_query = per_query_if_whole(run_dir / JOURNAL_FILE, baseline.evaluated_as)
    if per_query and all(name in per_query for name in objective.weights):
        by_query = objective.by_query(per_query, baseline.metrics)
        values = tuple(None if math.isnan(x) else round(float(x), 9) for x in by_query)
        part_name, part = part_of(assembly.tune_queries)
        remember_part(records, part_name, part)
    score = Score(night, champion, float(baseline.objective), part_name, values)
    write_score(records, score)
    return score


def write_score(records: Records, score: Score) -> None:
    """Write a score down."""
    records.write(
        "scored",
        night=score.night.isoformat(),
        champion=score.champion,
        mean=score.mean,
        part=score.part,
        by_query=list(score.by_query),
    )


def check_drift(records: Records, champion: str, night: date) -> DriftReport:
    """Look for drift in the champion's score up to a night: all queries, and by query type."""
    latest = {one.night: one for one in records.scores if one.champion == champion}
    observations = [
        seen
        for day, score in sorted(latest.items())
        if day <= night
        for seen in _observations(records, score)
    ]
    return find_drift(observations, [Measure(SCORE)], windows=Windows.until(night), mix_effect=None)


def _observations(records: Records, score: Score) -> list[Observation]:
    part = None if score.part is None else records.parts.get(score.part)
    if part is None or len(part.digests) != len(score.by_query):
        return [Observation(score.night, {SCORE: score.mean})]
    return [
        Observation(score.night, {SCORE: math.nan if value is None else value}, digest, kind)
        for digest, kind, value in zip(part.digests, part.types, score.by_query, strict=True)
    ]
