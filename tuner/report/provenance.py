"""Where the figures come from: data, system, versions, and the command that repeats the study."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tuner.core.run_files import CONFIG_FILE
from tuner.core.shown import counted
from tuner.core.study_facts import asked_told, spent_told
from tuner.report.parts import Block, Command, Section, Table, Text
from tuner.report.review import Review


def section(review: Review) -> Section:
    """List all that a result depends on."""
    blocks: list[Block] = [_study(review)]
    if (review.run_dir / CONFIG_FILE).is_file():
        text = "The same configuration again, with the same seed: the same trials, unless a clock"
        blocks.append(Text(f"{text} decides (a measured latency, a trial that took too long):"))
        path = shlex.quote(str(review.run_dir / CONFIG_FILE))
        blocks.append(Command(f"tuner run {path}"))
    if review.header.config:
        blocks.append(_settings(review.header.config))
    blocks += _agreement(review.header.dataset.get("labels"))
    blocks += _mapping("Fingerprints", "subject", review.header.fingerprints)
    blocks += _mapping("Versions", "package", review.header.versions)
    lead = "What was run, on what, and how to run it again."
    return Section("provenance", "Provenance", lead, tuple(blocks))


def _study(review: Review) -> Table:
    header, data = review.header, review.header.dataset
    made = datetime.fromtimestamp(header.created_at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    rows = [("study", header.name), ("id", header.study_id), ("begun", made)]
    if data:
        split = (
            f"{counted(data.get('tune_queries', 0), 'query', 'queries')} to tune on, "
            f"{data.get('holdout_queries', 0):,} held out"
        )
        rows += [("data set", f"{data.get('name')} ({data.get('path')})"), ("queries", split)]
    if "labels" in data:
        rows.append(("labels", data["labels"]["told"]))
    rows += [
        ("seed", str(header.seed)),
        ("arms", ", ".join(f"{arm.name} ({arm.kind}, {arm.budget:,})" for arm in header.arms)),
        ("objective", _written(header.objective)),
        ("read from", review.source),
    ]
    rows += [(label, words) for label, words in spent_told(review.summary)]
    if calls := asked_told(review.header, review.summary):
        rows.append(("queries asked", calls))
    return Table("Study", ("what", "value"), tuple(rows))


def _agreement(labels: Mapping[str, Any] | None) -> list[Block]:
    """Return how often each of people's grades met each of the judge's."""
    if not labels or not labels["table"]:
        return []
    counts = {(one, other): count for one, other, count in labels["table"]}
    grades = sorted({grade for pair in counts for grade in pair})
    rows = tuple(
        (str(one), *(f"{counts.get((one, other), 0):,}" for other in grades)) for one in grades
    )
    columns = ("people's grade", *(f"judge's {grade}" for grade in grades))
    return [Table("Passages by people's grade and the judge's", columns, rows)]


def _settings(config: Mapping[str, Any]) -> Table:
    rows = tuple((name, _written(value)) for name, value in config.items())
    return Table("Configuration, with every default", ("section", "value"), rows)


def _mapping(caption: str, column: str, values: Mapping[str, Any]) -> list[Block]:
    rows = tuple((name, str(value)) for name, value in values.items())
    return [Table(caption, (column, "value"), rows)] if rows else []


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
