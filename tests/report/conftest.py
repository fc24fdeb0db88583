"""Studies in every state, written as a run leaves them, without running one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.core.found import FOUND, found_at
from tuner.core.journal import FORMAT
from tuner.core.run_files import TUNE_QUERIES_FILE
from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.core.trial import Race, Trial, TrialState
from tuner.evaluation.objective import Objective, composite_values
from tuner.report.writing import write_report
from tuner.run.shown_texts import PassageText, write_passages
from tuner.run.side_by_side import Passage, Side, SideBySide, by_query, write_side_by_side
from tuner.study.pareto import front_record
from tuner.study.results import HoldoutResult, summarise
from tuner.verdict.few_queries import decide_without_holdout
from tuner.verdict.goals import front_notes, goal_changes
from tuner.verdict.measured import Measured
from tuner.verdict.verdict import decide

SPACE = {
    "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
    "max_hops": {"type": "integer", "low": 1, "high": 4},
    "temperature": {"type": "real", "low": 0.01, "high": 1.0, "scale": "log"},
    "mode": {"type": "categorical", "choices": ["plain", "graph"]},
}
BASELINE = {"graph_weight": 0.2, "max_hops": 2, "temperature": 0.1, "mode": "plain"}
TYPES = ("bridge", "comparison")


@dataclass(frozen=True)
class StudyPlan:
    """What a study looks like; ``texts`` goes into every place that data can reach."""

    arms: tuple[tuple[str, int], ...] = (("grid", 12), ("tpe", 20))
    queries: int = 40
    space: dict[str, Any] = field(default_factory=lambda: SPACE)
    has_baseline: bool = True
    has_dataset: bool = True
    has_holdout: bool = True
    has_costs: bool = True
    state: str | None = "finished"
    failing: int = 0
    stopped: int = 0
    pareto: tuple[str, ...] = ()
    texts: str = ""
    keeps_values: bool = True
    seed: int = 1
    lift: float = 0.15


def draw(space: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for name, spec in space.items():
        if spec["type"] == "categorical":
            params[name] = spec["choices"][int(rng.integers(len(spec["choices"])))]
        elif spec["type"] == "integer":
            params[name] = int(rng.integers(spec["low"], spec["high"] + 1))
        elif spec.get("scale") == "log":
            params[name] = float(np.exp(rng.uniform(np.log(spec["low"]), np.log(spec["high"]))))
        else:
            params[name] = float(rng.uniform(spec["low"], spec["high"]))
    return params


def values_of(plan: StudyPlan, params: dict[str, Any], queries: int) -> dict[str, Any]:
    """Return each query's recall and nDCG: better for more graph, and noisy in the same way."""
    rng = np.random.default_rng(99)
    weight = params.get("graph_weight", 0.5)
    lift = plan.lift * weight if isinstance(weight, float) else 0.0
    recall = np.clip(rng.uniform(0.2, 0.8, queries) + lift * rng.uniform(0.5, 1.5, queries), 0, 1)
    ndcg = np.clip(recall - 0.1 * rng.uniform(0, 1, queries), 0, 1)
    tokens = 100.0 * params.get("max_hops", 2) + rng.integers(0, 50, queries)
    return {"recall@10": recall, "ndcg@10": ndcg, "context_tokens": tokens.astype(float)}


WEIGHTS = {"recall@10": 0.6, "ndcg@10": 0.4}


def tell(plan: StudyPlan, trial: Trial) -> tuple[Trial, dict[str, Any]]:
    values = values_of(plan, trial.params, plan.queries)
    metrics = {name: float(array.mean()) for name, array in values.items()}
    metrics["latency_p95_ms"] = 5.0 + metrics["context_tokens"] / 100
    if not plan.has_costs:
        metrics = {name: metrics[name] for name in WEIGHTS}
        values = {name: values[name] for name in WEIGHTS}
    objective = float(composite_values(values, WEIGHTS).mean())
    done = trial.told(
        state=TrialState.FINISHED,
        objective=objective,
        metrics=metrics,
        seconds={"total": 0.1},
        told_at=trial.asked_at + 1.0,
    )
    # What is relevant is second of ten passages of odd trials, ninth of even ones.
    hits = np.zeros((plan.queries, 10), dtype=bool)
    hits[:, 1 if trial.number % 2 else 8] = True
    values[FOUND] = found_at(hits)
    return done, values if plan.has_dataset and plan.keeps_values else {}


class Lines:
    """A journal without its guarantees: thousands of trials need no disk that has synced each."""

    def __init__(self, run_dir: Path, header: StudyHeader) -> None:
        (run_dir / "trials").mkdir(parents=True)
        self.run_dir = run_dir
        self.lines: list[dict[str, Any]] = []
        self.add("header", format=FORMAT, **header.to_record())
        self.add("note", kind="started", pid=1, host="here")

    def add(self, event: str, **detail: Any) -> None:
        self.lines.append({"event": event, **detail})

    def asked(self, trial: Trial) -> None:
        names = {"number": "trial", "arm": "arm", "params": "params", "asked_at": "asked_at"}
        self.add("asked", **{to: getattr(trial, name) for name, to in names.items()})

    def told(self, trial: Trial, values: dict[str, Any]) -> None:
        if values:
            np.savez(self.run_dir / "trials" / f"{trial.number}.npz", **values)
        self.add("told", **trial.to_record())

    def write(self) -> None:
        text = "".join(json.dumps(line) + "\n" for line in self.lines)
        (self.run_dir / "journal.jsonl").write_text(text, encoding="utf-8")


def write_study(run_dir: Path, plan: StudyPlan) -> Path:
    """Write a run directory as ``plan`` describes it, and return it."""
    rng = np.random.default_rng(plan.seed)
    holdout = plan.queries if plan.has_holdout and plan.has_dataset else 0
    header = StudyHeader(
        study_id="0123abcd",
        name=f"study{plan.texts}",
        created_at=1_800_000_000.0,
        seed=7,
        arms=tuple(ArmRecord(name, name, budget) for name, budget in plan.arms),
        space=plan.space,
        objective={
            "maximize": WEIGHTS,
            "price": {},
            "constraints": {},
            **({"pareto": list(plan.pareto)} if plan.pareto else {}),
        },
        baseline=BASELINE if plan.has_baseline else None,
        dataset={
            "name": f"data{plan.texts}",
            "path": "some/folder",
            "fingerprint": "f00d",
            "documents": 10,
            "queries": plan.queries + holdout,
            "tune_queries": plan.queries,
            "holdout_queries": holdout,
        }
        if plan.has_dataset
        else {},
        config={"racing": {"rungs": [0.5], "stop_below": -1.0}} if plan.stopped else {},
        fingerprints={"dataset": "f00d", "split": "5p11t", "objective": "0b1"},
        versions={"python": "3.11", "graphrag-tuner": "0.1.0"},
    )
    journal = Lines(run_dir, header)
    trials: list[Trial] = []
    asked = [("baseline", BASELINE)] if plan.has_baseline else []
    asked += [(name, draw(plan.space, rng)) for name, budget in plan.arms for _ in range(budget)]
    to_stop = {len(asked) - 1 - n for n in range(plan.stopped)}
    to_fail = {1 + n for n in range(plan.failing)}
    for number, (arm, params) in enumerate(asked):
        trial = Trial(number, arm, params, asked_at=1_800_000_000.0 + number)
        journal.asked(trial)
        values: dict[str, Any] = {}
        if number in to_fail:
            reason = f"the index is on fire{plan.texts}"
            trial = trial.told(state=TrialState.FAILED, error=reason, told_at=trial.asked_at)
        elif number in to_stop:
            told, _ = tell(plan, trial)
            at = told.objective or 0.0
            race = Race(queries=8, estimate=at - 0.2, low=at - 0.3, high=at - 0.1)
            trial = replace(told, state=TrialState.RACED_OUT, objective=None, race=race)
        elif plan.state is None and number == len(asked) - 1:
            trials.append(trial)  # was under way when the process was killed
            continue
        else:
            trial, values = tell(plan, trial)
        journal.told(trial, values)
        trials.append(trial)
    if plan.state is not None:
        _finish(run_dir, journal, header, trials, plan)
    journal.write()
    return run_dir


def _finish(
    run_dir: Path, journal: Lines, header: StudyHeader, trials: Sequence[Trial], plan: StudyPlan
) -> None:
    scored = [trial for trial in trials if trial.is_scored]
    ended = plan.state != "interrupted"
    winner = max(scored, key=lambda t: t.objective or 0.0) if scored and ended else None
    has_holdout = plan.has_holdout and plan.has_dataset

    def score(params: Any) -> HoldoutResult:
        values = values_of(plan, params, plan.queries)
        metrics = {name: float(array.mean()) for name, array in values.items()}
        return HoldoutResult(float(composite_values(values, WEIGHTS).mean()), metrics)

    summary = summarise(
        plan.state or "",
        header,
        trials,
        seconds=12.0,
        score_holdout=score if has_holdout and ended else None,
        winner=winner,
    )
    if plan.pareto and ended:
        goals = lambda metrics: (metrics["ndcg@10"], -metrics["context_tokens"])  # noqa: E731
        summary = replace(summary, front=front_record(trials, plan.pareto, goals))
        if winner is not None and summary.baseline is not None:
            objective = Objective(WEIGHTS, pareto=plan.pareto)
            rows = rows_of(plan, winner.params, trials[0].params, "holdout")
            changes = goal_changes(
                objective,
                summary.winner,
                summary.baseline,
                partial(by_query, rows),
                confidence=0.95,
                is_beside=False,
                seed=0,
            )
            notes = front_notes(summary, plan.pareto, trials)
            summary = replace(summary, goals=changes, front_notes=notes)
    if winner is not None:
        remark = f"mode changes no ranking around the chosen configuration{plan.texts}"
        summary = replace(summary, remarks=(remark,))
    if winner is not None and plan.has_baseline and plan.has_dataset:
        rows = rows_of(plan, winner.params, trials[0].params, "holdout" if has_holdout else "tune")
        write_side_by_side(run_dir, rows)
        others = rows_of(plan, winner.params, trials[0].params, "tune") if has_holdout else []
        write_side_by_side(run_dir, others, name=TUNE_QUERIES_FILE)
        write_passages(run_dir, texts_of(plan))
        pair = [values_of(plan, p, plan.queries) for p in (winner.params, trials[0].params)]
        measured = [
            Measured(p, composite_values(v, WEIGHTS), v)
            for p, v in zip((winner.params, trials[0].params), pair, strict=True)
        ]
        types = [row.query_type for row in rows]
        if has_holdout:
            verdict: Any = decide(*measured, query_types=types)
        else:
            each = [
                composite_values(values_of(plan, t.params, plan.queries), WEIGHTS) for t in scored
            ]
            gains = np.stack(each) - measured[1].composite
            verdict = decide_without_holdout(*measured, gains, scored, query_types=types)
        summary = replace(summary, verdict=verdict.to_record())
    journal.add("note", kind="summary", **summary.to_record())


def texts_of(plan: StudyPlan) -> list[PassageText]:
    texts = (f"Passage {n} says much.{plan.texts} " * 30 for n in range(10))
    return [
        PassageText(f"d{n}{plan.texts}", f"Title {n}{plan.texts}", text[:4000], len(text))
        for n, text in enumerate(texts)
    ]


def rows_of(plan: StudyPlan, winner: Any, baseline: Any, part: Any) -> list[SideBySide]:
    sides = [values_of(plan, params, plan.queries) for params in (winner, baseline)]
    rows = []
    for row in range(plan.queries):
        passages = tuple(
            Passage(
                f"d{n}{plan.texts}",
                f"Title {n}{plan.texts}",
                n == 1,
                1.0 - n / 10,
                {"graph": n / 10, "text": None if n == 3 else 0.5},
            )
            for n in range(10)
        )
        both = [
            Side(
                float(composite_values(values, WEIGHTS)[row]),
                {name: float(array[row]) for name, array in values.items()},
                passages if side == 0 else passages[::-1],
                {f"d1{plan.texts}": 2 if side == 0 else 9},
            )
            for side, values in enumerate(sides)
        ]
        rows.append(
            SideBySide(
                f"{'t' if part == 'tune' and plan.has_holdout else 'q'}{row}{plan.texts}",
                f"What is {row}?{plan.texts}",
                f"{TYPES[row % 2]}{plan.texts}",
                part,
                (f"d1{plan.texts}",),
                *both,
            )
        )
    return rows


class Html(HTMLParser):
    """A page taken apart: elements with their attributes, visible text, and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.raw = text
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.texts: list[str] = []
        self.headings: list[str] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "link", "img", "input"):
            self._open.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        opened, _ = self._open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"

    def handle_data(self, data: str) -> None:
        within = self._open[-1][0] if self._open else ""
        if within == "script":
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)
        elif within != "style":
            self.texts.append(data)
            if within == "h2":
                self.headings.append(data)

    @property
    def is_whole(self) -> bool:
        return not self._open

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))

    @property
    def figures(self) -> dict[str, Any]:
        return {
            str(attributes["id"]).removeprefix("data-"): json.loads(text)
            for attributes, text in self.scripts
            if attributes.get("type") == "application/json" and attributes.get("id") != "look"
        }


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Path]:
    """Write a study, and return its run directory."""
    made = []

    def make(**options: Any) -> Path:
        made.append(options)
        return write_study(tmp_path / f"run-{len(made)}", StudyPlan(**options))

    return make


@pytest.fixture
def report(study: Callable[..., Path]) -> Callable[..., Html]:
    """Write a study and its report, and return the page taken apart."""

    def make(**options: Any) -> Html:
        path = write_report(study(**options), with_plots=False)
        page = Html(path.read_text(encoding="utf-8"))
        assert page.is_whole
        return page

    return make
