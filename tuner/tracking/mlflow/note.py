"""The study in a page of Markdown: the description of its run in MLflow, for a first look."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tuner.core.calls import calls_sentence
from tuner.core.run_files import (
    BEST_FILE,
    FIGURES_DIR,
    JOURNAL_FILE,
    PLOTS_DIR,
    REPORT_FILE,
    TABLE_FILE,
)
from tuner.core.shown import shortened, shown
from tuner.core.steps import duration
from tuner.core.study_record import Standing, StudyHeader, StudySummary, is_clear
from tuner.tracking.mlflow.saved_views import WORKFLOW

# Some stores cut a tag at 5,000 characters, in the middle of a table.
_LONGEST = 4900
_LONGEST_CELL = 60
_ACTIVE = re.compile(r"([\\`*_{}\[\]#~])")
# A bar would end a table's cell; renderers differ in whether a backslash before it, or <, counts.
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}

# What an answer costs, beside what it is worth.
_COSTS = ("context_tokens", "latency_p95_ms")

_ADVICE = {
    "deploy": "Put the winner into service: its parameters are in `best.yaml`.",
    "keep the baseline": "Leave the service as it is. `best.yaml` holds the winner all the same.",
    "not enough queries": "Label more queries, or leave the service as it is: these cannot tell "
    "the two apart.",
}
_WHAT_FILES_HOLD = {
    REPORT_FILE: "the whole story on one page: intervals, convergence, what matters, failures",
    TABLE_FILE: "each query with both answers, as a table",
    PLOTS_DIR: "the figures",
    FIGURES_DIR: "the numbers of each figure",
    BEST_FILE: "the winner, ready for `tuner compare` and for a service",
    JOURNAL_FILE: "every trial",
}


def study_note(
    header: StudyHeader,
    summary: StudySummary,
    *,
    files: Collection[str] = (),
    links: Mapping[str, str] = MappingProxyType({}),
    run_dir: Path | None = None,
) -> str:
    """Return the description of a study that has ended, at most 4,900 characters of Markdown.

    What stands first matters most: the verdict, the winner beside the baseline, where it wins, the
    arms, remarks, and what to do next. ``files`` are the names of its artifacts, ``links`` places
    in MLflow by what they show.
    """
    head = [f"**{_plain(_opening(summary), longest=1500)}**", _counts(header, summary)]
    parts = [
        _goals(summary),
        _against_baseline(header, summary),
        _parameters(summary),
        _by_type(summary),
        _arms(header, summary),
        _remarks(summary),
    ]
    end = _next(header, summary, files, links, run_dir)
    text = "\n\n".join(head)
    for part in parts:
        # Whole parts only: half a table is none.
        if part and len(text) + len(part) + len(end) + 4 <= _LONGEST:
            text += f"\n\n{part}"
    return f"{text[: _LONGEST - len(end) - 2]}\n\n{end}"


def experiment_note(
    header: StudyHeader, summary: StudySummary, experiment_id: str, run_id: str
) -> str:
    """Return the description of an experiment: its latest study, and how to get to all."""
    runs = f"#/experiments/{experiment_id}/runs"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(header.created_at))
    return "\n\n".join(
        (
            f"Latest study: [{_plain(header.name)} of {when}]({runs}/{run_id}?{WORKFLOW})",
            f"**{_plain(_opening(summary), longest=1500)}**",
            f"[All studies]({runs}?viewStateShareKey=tuner-studies&{WORKFLOW}), each with its "
            "arms and trials below it. MLflow first opens pages for language models, which are "
            "empty here: choose *Model training* at the top left. *Views* above the runs offers "
            "studies, trials and arms with the columns that matter.",
            "`best_…` is the trial with the highest objective, `winner_…` what `best.yaml` holds.",
        )
    )


def arm_note(header: StudyHeader, summary: StudySummary, arm: str) -> str:
    """Return a sentence on how an arm did, in Markdown; empty where it found nothing."""
    best = next((one for one in summary.arms if one.arm == arm), None)
    if best is None:
        return ""
    scores = f"{best.tune_objective:.4f} on the tune queries"
    if best.holdout_objective is not None:
        scores += f", {best.holdout_objective:.4f} on the held-out ones"
    is_winner = summary.winner is not None and summary.winner.trial == best.trial
    return (
        f"Best of **{_plain(arm)}** in {_plain(header.name)}: trial #{best.trial}, {scores}"
        f"{' – the winner of the study' if is_winner else ''}.\n\n"
        + ", ".join(f"{_code(name)} {_value(value)}" for name, value in best.params.items())
    )


def _opening(summary: StudySummary) -> str:
    if summary.state == "failed":
        return summary.reason or "The study failed: too many of its trials did."
    if summary.verdict is not None:
        return str(summary.verdict["sentence"])
    if summary.state == "interrupted":
        why = f", as {summary.reason}" if summary.reason else ""
        return f"Interrupted{why}: there is no verdict yet."
    if summary.chosen is None:
        return "No trial succeeded."
    if summary.chosen.violation > 0:
        return "No configuration met the constraints; the best is the one closest to them."
    if summary.baseline is None:
        return "No verdict: there is no baseline to compare with."
    return "No verdict."


def _counts(header: StudyHeader, summary: StudySummary) -> str:
    trials = f"{summary.finished_trials} trials"
    for count, what in (
        (summary.failed_trials, f"failed ({summary.failed_share:.0%})"),
        (summary.shared_trials, "shared with an equal one"),
        (summary.raced_out_trials, "stopped early"),
    ):
        trials += f", {count} {what}" if count else ""
    data = header.dataset
    earlier = f" ({summary.with_earlier_sessions})" if summary.with_earlier_sessions else ""
    took = f"{duration(summary.seconds)}{earlier}"
    if not data:
        return f"{trials}, in {took}."
    return (
        f"{trials}, in {took}, on {_plain(data.get('name', 'the data'))}: "
        f"{data.get('tune_queries', 0):,} queries to tune on, "
        f"{data.get('holdout_queries', 0):,} held out."
    )


def _against_baseline(header: StudyHeader, summary: StudySummary) -> str:
    best, baseline = summary.chosen, summary.baseline
    if best is None:
        return ""
    rows = []
    for label, now, then in _figures(header, best, baseline):
        change = None if now is None or then is None else now - then
        digits = 1 if now is not None and abs(now) >= 100 else 4
        shown = "–" if change is None else f"{change:+,.{digits}f}"
        rows.append([label, *([_score(then)] if baseline else []), f"**{_score(now)}**", shown])
    if baseline is None:
        return _table(["measured", _named(summary, best)], [row[:2] for row in rows])
    return _table(["measured", "baseline", _named(summary, best), "change"], rows)


def _figures(
    header: StudyHeader, best: Standing, baseline: Standing | None
) -> Iterable[tuple[str, float | None, float | None]]:
    """Yield each figure's label and its values for the best and for the baseline."""
    sides = [best, baseline or best]
    costs: Sequence[str] = _COSTS
    for part, is_held_out in (("held out", True), ("tune", False)):
        objectives = [one.holdout_objective if is_held_out else one.tune_objective for one in sides]
        if objectives[0] is None:
            continue
        yield f"objective, {part}", objectives[0], objectives[1]
        metrics = [one.holdout_metrics if is_held_out else one.tune_metrics for one in sides]
        for name in (*header.objective.get("maximize", ()), *costs):
            if name in metrics[0]:
                yield f"{_plain(name)}, {part}", metrics[0][name], metrics[1].get(name)
        costs = ()  # once is enough


def _goals(summary: StudySummary) -> str:
    """List what became of each goal, where several were sought, and why the winner won."""
    texts = (*(str(one["sentence"]) for one in summary.goals), *summary.front_notes)
    return "\n".join(f"- {_plain(text)}" for text in texts)


def _parameters(summary: StudySummary) -> str:
    best, baseline = summary.chosen, summary.baseline
    if best is None:
        return ""
    if baseline is None:
        rows = [[_code(name), _value(value)] for name, value in best.params.items()]
        return _table(["parameter", summary.called], rows)
    rows = []
    for name in dict.fromkeys([*best.params, *baseline.params]):
        then = _value(baseline.params[name]) if name in baseline.params else "–"
        # What is not tuned is as in the baseline.
        now = _value(best.params[name]) if name in best.params else then
        rows.append([_code(name), then, now if now == then else f"**{now}**"])
    return _table(["parameter", "baseline", summary.called], rows)


def _by_type(summary: StudySummary) -> str:
    rows = []
    for group in (summary.verdict or {}).get("by_type") or ():
        found: Mapping[str, Any] = group["comparison"]
        if found["mean_difference"] is None:
            continue
        change = f"{found['mean_difference']:+.3f}"
        rows.append(
            [
                _plain(group["group"]),
                f"{found['n']}{' (too few to tell)' if group['adjusted_p'] is None else ''}",
                f"**{change}**" if is_clear(group["adjusted_p"]) else change,
                str(found["wins"]),
                str(found["losses"]),
            ]
        )
    if not rows:
        return ""
    table = _table(["query type", "queries", "change (bold: clear)", "better", "worse"], rows)
    if "corrected" in (summary.verdict or {}):
        return f"On the queries that chose the winner, which flatters it:\n\n{table}"
    return table


def _arms(header: StudyHeader, summary: StudySummary) -> str:
    by_name = {standing.arm: standing for standing in summary.arms}
    rows = []
    for arm in header.arms:
        best = by_name.get(arm.name)
        score = "–" if best is None else _score(best.tune_objective)
        trial = "–" if best is None else f"#{best.trial}"
        rows.append([_plain(arm.name), _plain(arm.kind), str(arm.budget), score, trial])
    return (
        _table(["arm", "search", "budget", "best objective, tune", "trial"], rows) if rows else ""
    )


def _remarks(summary: StudySummary) -> str:
    calls = calls_sentence(summary.queries_asked)
    lines = [*summary.remarks, *([calls] if calls else [])]
    return "\n".join(f"- {_plain(line)}" for line in lines)


def _next(
    header: StudyHeader,
    summary: StudySummary,
    files: Collection[str],
    links: Mapping[str, str],
    run_dir: Path | None,
) -> str:
    place = "RUN_DIR" if run_dir is None else shlex.quote(str(run_dir))
    lines = []
    if summary.state == "interrupted":
        lines.append(f"Go on with `tuner resume {place}`.")
    elif summary.state == "failed":
        lines.append(f"Once that is solved: `tuner resume {place} --retry-failed`.")
    elif summary.verdict is not None:
        lines.append(_ADVICE.get(str(summary.verdict["outcome"]), ""))
    if summary.state == "finished" and header.config and summary.is_worth_retrying:
        again = f"`tuner resume {place} --retry-failed`"
        lines.append(f"To evaluate the failed trials again: {again}.")
    if links:
        shown = ", ".join(f"[{what}]({where})" for what, where in links.items())
        lines.append(f"In MLflow: {shown}.")
    lines += [
        f"`{name}` (artifact): {what}." for name, what in _WHAT_FILES_HOLD.items() if name in files
    ]
    lines.append(f"On the machine that ran it: `tuner report {place}`.")
    return "**What next**\n\n" + "\n".join(f"- {line}" for line in lines if line)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    marks = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))


def _named(summary: StudySummary, standing: Standing) -> str:
    return f"{summary.called} ({_plain(standing.arm)} #{standing.trial})"


def _score(value: float | None) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.1f}"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _plain(value)


def _code(text: Any) -> str:
    """Return a name in code's letters; backquotes and bars, which would end it, are replaced."""
    return f"`{_short(text).replace('`', ' ').replace('|', ' ').strip() or '–'}`"


def _plain(text: Any, *, longest: int = 600) -> str:
    """Return a text from elsewhere on one line, with nothing in it that Markdown acts on."""
    # The entities last, as one of them holds a "#".
    escaped = _ACTIVE.sub(r"\\\1", _short(text, longest=longest))
    return "".join(_ENTITIES.get(letter, letter) for letter in escaped)


def _short(text: Any, *, longest: int = _LONGEST_CELL) -> str:
    return shortened(" ".join(shown(text).split()), longest)
