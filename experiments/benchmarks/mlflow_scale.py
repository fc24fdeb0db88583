"""How MLflow fares with a study of thousands of trials: writing, searching, and its pages.

    pip install '.[browser]' && python experiments/benchmarks/mlflow_scale.py [--json]

Two stores (sqlite), each with one study written by the project's own tracker: the parent, three
arms, and 50 or 5,000 trials with 4 params, 12 metrics and the usual tags. Each is served by a real
`mlflow server` with one worker, and asked over HTTP, and looked at in chromium, by turns. Figures are
medians; the ratios say what a hundred times the trials cost. With `--no-browser` the pages are left
out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_LOGGING_LEVEL"] = "WARNING"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "screenshots"))

from pages import NAME_LINKS, chromium, mlflow_server, reads, wait_for

from tuner.core.study_record import ArmRecord, Standing, StudyHeader, StudySummary
from tuner.core.trial import Trial, TrialState, best_trial
from tuner.tracking.mlflow.tracker import Mlflow

BEGAN_AT = 1_790_000_000.0
ARMS = ("grid", "gp", "tpe")
EXPERIMENT = "scale"
FIRST_PAGE = 100  # as many as the pages ask for at once
METRICS = ("recall@10", "recall@5", "mrr@10", "ndcg@10", "context_tokens", "graph_used")


def make_trials(count: int) -> list[Trial]:
    draw = random.Random(7)
    trials = []
    for number in range(count):
        weight, hops = draw.random(), draw.randint(1, 5)
        temperature = 10 ** draw.uniform(-2, 0)
        score = 0.8 - (weight - 0.6) ** 2 - 0.01 * (hops - 3) ** 2 - 0.05 * temperature
        asked_at = BEGAN_AT + 2.0 * number
        trials.append(
            Trial(
                number,
                arm=ARMS[number % len(ARMS)],
                state=TrialState.FINISHED,
                params={
                    "graph_weight": weight,
                    "max_hops": hops,
                    "top_k": draw.randint(3, 30),
                    "temperature": temperature,
                },
                objective=score,
                metrics={name: score / (place + 1) for place, name in enumerate(METRICS)},
                seconds={"total": 1.5, "retrieve": 1.0, "measure": 0.2, "graph": 0.5},
                asked_at=asked_at,
                told_at=asked_at + 1.5,
            )
        )
    return trials


def write(store: Path, run_dir: Path, count: int) -> tuple[str, float]:
    """Write a study as `tuner sync` does; return its id and the milliseconds that a trial took."""
    from mlflow import MlflowClient

    trials = make_trials(count)
    header = StudyHeader(
        study_id=f"scale-{count}",
        name="scale",
        created_at=BEGAN_AT,
        seed=7,
        arms=tuple(ArmRecord(arm, arm, math.ceil(count / len(ARMS))) for arm in ARMS),
        space={
            "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
            "max_hops": {"type": "integer", "low": 1, "high": 5},
            "top_k": {"type": "integer", "low": 3, "high": 30},
            "temperature": {"type": "real", "low": 0.01, "high": 1.0, "scale": "log"},
        },
        objective={"maximize": {"recall@10": 1.0}},
    )

    def standing(arm: str | None = None) -> Standing:
        best = best_trial([trial for trial in trials if arm in (None, trial.arm)])
        assert best is not None
        assert best.objective is not None
        return Standing(best.arm, best.number, best.params, best.objective, best.metrics)

    arms = tuple(map(standing, ARMS))
    summary = StudySummary("finished", standing(), None, arms, count, 0, 0, seconds=2.0 * count)
    tracker = Mlflow(f"sqlite:///{store}", EXPERIMENT)
    MlflowClient(f"sqlite:///{store}").search_experiments()  # makes the tables
    began = time.perf_counter()
    status = tracker.sync(header, trials, summary, run_dir)
    took_ms = 1000 * (time.perf_counter() - began) / count
    if status.written != count or not status.is_complete:
        raise SystemExit(f"the view is not whole: {status}")
    return header.study_id, took_ms


def questions(address: str, study_id: str) -> dict[str, Callable[[], Any]]:
    """Return what a person or a script asks the server, by what it is."""
    from mlflow import MlflowClient

    client = MlflowClient(address)
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    of_study = f"tags.`tuner.study_id` = '{study_id}'"

    def found(where: str, count: int = FIRST_PAGE, order: str | None = None) -> list[Any]:
        return list(
            client.search_runs([experiment], where, max_results=count, order_by=order and [order])
        )

    (parent,) = found(f"{of_study} and tags.`tuner.role` = 'study'")
    parent_id = parent.info.run_id

    def all_of_the_study() -> int:
        count, token = 0, None
        while True:
            page = client.search_runs([experiment], of_study, max_results=1000, page_token=token)
            count, token = count + len(page), page.token
            if not token:
                return count

    def parent_page() -> None:
        client.get_run(parent_id)
        found(f"tags.`mlflow.parentRunId` = '{parent_id}'")

    return {
        "every run of the study, by its tag": all_of_the_study,
        "first page of runs": lambda: found(""),
        "filter by metric and param": lambda: found(
            "metrics.objective > 0.7 and params.max_hops = '2'"
        ),
        "best trial by metric": lambda: found(
            f"{of_study} and tags.`tuner.role` = 'trial'", 1, "metrics.objective DESC"
        ),
        "the study's run and its arms": parent_page,
    }


def looks(window: Any, address: str, experiment: str, run_id: str) -> dict[str, Callable[[], Any]]:
    """Return the pages that are opened, each until what it is for can be seen."""
    place = f"{address}/#/experiments/{experiment}/runs"
    kind = "workflowType=machine_learning"

    def opened(where: str, what: str, is_there: Callable[[], Any]) -> Callable[[], None]:
        def look() -> None:
            window.get(where)
            wait_for(window, what, is_there)

        return look

    return {
        "page: the experiment shows rows": opened(
            f"{place}?{kind}", "rows", lambda: window.find_elements("css selector", NAME_LINKS)
        ),
        "page: the view of studies shows the study": opened(
            f"{place}?viewStateShareKey=tuner-studies&{kind}",
            "the study",
            lambda: reads(window, NAME_LINKS, "scale 20"),
        ),
        "page: trials, best first": opened(
            f"{place}?{kind}&searchFilter=tags.%60tuner.role%60%20%3D%20'trial'"
            "&orderByKey=metrics.%60objective%60&orderByAsc=false",
            "trials",
            lambda: reads(window, NAME_LINKS, "#"),
        ),
        "page: the study's run shows its metrics": opened(
            f"{place}/{run_id}?{kind}", "metrics", lambda: reads(window, "body", "best_objective")
        ),
    }


def timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def measure(sizes: tuple[int, int], repetitions: int, *, with_browser: bool) -> dict[str, Any]:
    seconds: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        stores, studies = {}, {}
        for size in sizes:
            folder = Path(name) / str(size)
            (folder / "run").mkdir(parents=True)
            stores[size] = folder / "mlflow.db"
            studies[size], took_ms = write(stores[size], folder / "run", size)
            seconds.setdefault("writing a trial", {})[size] = took_ms / 1000
        small, large = sizes
        with mlflow_server(stores[small]) as one, mlflow_server(stores[large]) as other:
            addresses = {small: one, large: other}
            asked = {size: questions(addresses[size], studies[size]) for size in sizes}
            _take_turns(asked, repetitions, seconds)
            if with_browser:
                with chromium() as window:
                    pages = {
                        size: looks(window, addresses[size], *_places(addresses[size]))
                        for size in sizes
                    }
                    _take_turns(
                        pages, max(3, repetitions // 2), seconds, before=lambda: _forget(window)
                    )
    return {
        what: {
            "ms": {str(size): 1000 * found[size] for size in sizes},
            "ratio": found[sizes[1]] / found[sizes[0]],
        }
        for what, found in seconds.items()
    }


def _take_turns(
    calls: dict[int, dict[str, Callable[[], Any]]],
    repetitions: int,
    seconds: dict[str, dict[int, float]],
    *,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Time every call of both sizes by turns; a first round warms up and is not counted."""
    for what in next(iter(calls.values())):
        rounds: dict[int, list[float]] = {size: [] for size in calls}
        for number in range(repetitions + 1):
            for size in calls:
                before()
                took = timed(calls[size][what])
                if number:
                    rounds[size].append(took)
        seconds[what] = {size: statistics.median(found) for size, found in rounds.items()}


def _places(address: str) -> tuple[str, str]:
    from mlflow import MlflowClient

    client = MlflowClient(address)
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    (parent,) = client.search_runs([experiment], "tags.`tuner.role` = 'study'")
    return experiment, parent.info.run_id


def _forget(window: Any) -> None:
    """Leave the page, so that the next one is loaded anew."""
    window.get("about:blank")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=5000, help="of the large study")
    parser.add_argument("--small", type=int, default=50, help="trials of the small one")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--no-browser", action="store_true", help="leave the pages out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    sizes = (arguments.small, arguments.trials)
    load_before = os.getloadavg()[0]
    found = measure(sizes, arguments.repetitions, with_browser=not arguments.no_browser)
    load = (load_before, os.getloadavg()[0])
    if arguments.json:
        print(
            json.dumps(
                {"python": platform.python_version(), "load": load, "found": found}, indent=2
            )
        )
        return
    print(f"load {load[0]:.1f} before, {load[1]:.1f} after; milliseconds")
    print(f"{'':<44}{sizes[0]:>9,}{sizes[1]:>9,}{'ratio':>8}")
    for what, figures in found.items():
        small, large = figures["ms"].values()
        print(f"{what:<44}{small:>9.1f}{large:>9.1f}{figures['ratio']:>8.2f}")


if __name__ == "__main__":
    main()
