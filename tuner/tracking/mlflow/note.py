"""The study in a page of Markdown: the description of its run in MLflow, for a first look."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
from tuner.core.study_facts import NextStep, StudyFacts, asked_told, spent_told, study_facts
from tuner.core.study_record import Standing, StudyHeader, StudySummary
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
    NextStep.DEPLOY: "Put the winner into service: its parameters are in `best.yaml`.",
    NextStep.KEEP: "Leave the service as it is. `best.yaml` holds the winner all the same.",
    NextStep.LABEL: "Label more queries, or leave the service as it is: these cannot tell "
    "the two apart.",
}
_WHAT_FILES_HOLD = {
    REPORT_FILE: "the whole story on one page: intervals, convergence, what matters, failures",
    TABLE_FILE: "each query with both answers, as a table; the tab *Traces* shows those that "
    "changed most, passage by passage",
    PLOTS_DIR: "the figures",
    FIGURES_DIR: "the numbers of each figure",
    BEST_FILE: "the winner, ready for `tuner compare` and for a service",
    JOURNAL_FILE: "every trial; `trials.json` is a table of them, best first",
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
    facts = study_facts(header, summary, costs=_COSTS)
    head = [_opening(facts), _counts(header, summary, facts)]
    parts = [
        _goals(summary),
        _against_baseline(summary, facts),
        _parameters(summary, facts),
        _by_type(facts),
        _arms(header, summary),
        _remarks(header, summary),
    ]
    end = _next(facts, files, links, run_dir)
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
            _opening(study_facts(header, summary)),
            f"[All studies]({runs}?viewStateShareKey=tuner-studies&{WORKFLOW}), each with its "
            "arms and trials below it. MLflow first opens pages for language models: *Traces* "
            "there shows the queries that changed most, baseline and winner side by side. For all "
            "else choose *Model training* at the top left. *Views* above the runs offers studies, "
            "trials and arms with the columns that matter.",
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


def _opening(facts: StudyFacts) -> str:
    return f"**{_plain(facts.headline, longest=1500)}**"


def _counts(header: StudyHeader, summary: StudySummary, facts: StudyFacts) -> str:
    trials, data = ", ".join(facts.trials), header.dataset
    earlier = f" ({summary.with_earlier_sessions})" if summary.with_earlier_sessions else ""
    took = f"{duration(summary.seconds)}{earlier}"
    indexes = f" {facts.indexes}." if facts.indexes else ""
    if not data:
        return f"{trials}, in {took}.{indexes}"
    return (
        f"{trials}, in {took}, on {_plain(data.get('name', 'the data'))}: "
        f"{data.get('tune_queries', 0):,} queries to tune on, "
        f"{data.get('holdout_queries', 0):,} held out.{indexes}{_labels(data)}"
    )


def _labels(data: Mapping[str, Any]) -> str:
    """Say whose grades the queries have, where a judge graded some."""
    return f" Labels: {_plain(data['labels']['told'])}." if "labels" in data else ""


def _against_baseline(summary: StudySummary, facts: StudyFacts) -> str:
    best, has_baseline = summary.chosen, summary.baseline is not None
    if best is None:
        return ""
    rows = []
    for figure in facts.figures:
        now, then = figure.chosen, figure.baseline
        label = f"{_plain(figure.name)}, {'held out' if figure.is_held_out else 'tune'}"
        change = "–" if then is None else f"{now - then:+,.{1 if abs(now) >= 100 else 4}f}"
        row = [label, _score(then), f"**{_score(now)}**", change]
        rows.append(row if has_baseline else [label, row[2]])
    named = _named(summary, best)
    return _table(["measured", *(["baseline", named, "change"] if has_baseline else [named])], rows)


def _goals(summary: StudySummary) -> str:
    """List what became of each goal, where several were sought, and why the winner won."""
    texts = (*(str(one["sentence"]) for one in summary.goals), *summary.front_notes)
    return "\n".join(f"- {_plain(text)}" for text in texts)


def _parameters(summary: StudySummary, facts: StudyFacts) -> str:
    if summary.baseline is None:
        rows = [[_code(one.name), _value(one.chosen)] for one in facts.changes]
        return _table(["parameter", summary.called], rows) if rows else ""
    rows = []
    for one in facts.changes:
        then, now = _value(one.baseline), _value(one.chosen)
        rows.append([_code(one.name), then, now if now == then else f"**{now}**"])
    return _table(["parameter", "baseline", summary.called], rows) if rows else ""


def _by_type(facts: StudyFacts) -> str:
    rows = [
        [
            _plain(one.name),
            f"{one.queries}{' (too few to tell)' if one.clear is None else ''}",
            f"**{one.difference:+.3f}**" if one.clear else f"{one.difference:+.3f}",
            str(one.better),
            str(one.worse),
        ]
        for one in facts.types
    ]
    if not rows:
        return ""
    table = _table(["query type", "queries", "change (bold: clear)", "better", "worse"], rows)
    if facts.types_are_flattered:
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


def _remarks(header: StudyHeader, summary: StudySummary) -> str:
    calls = asked_told(header, summary)
    spent = [f"{label}: {words}" for label, words in spent_told(summary)]
    ended = [f"ended by {summary.ended_by}"] if summary.ended_by else []
    lines = [*ended, *summary.remarks, *spent, *([calls] if calls else [])]
    return "\n".join(f"- {_plain(line)}" for line in lines)


def _next(
    facts: StudyFacts,
    files: Collection[str],
    links: Mapping[str, str],
    run_dir: Path | None,
) -> str:
    place = "RUN_DIR" if run_dir is None else shlex.quote(str(run_dir))
    lines = [
        {
            NextStep.RESUME: f"Go on with `tuner resume {place}`.",
            NextStep.RETRY: f"Once that is solved: `tuner resume {place} --retry-failed`.",
            **_ADVICE,
        }.get(facts.next_step, "")
    ]
    if facts.may_retry:
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
    if value is None:
        return "–"
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
