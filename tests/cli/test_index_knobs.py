"""Studies that tune a system's index, from the command line: costs, commands, failures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tuner.core.journal import read_journal

RETRIEVER = '''
"""Ranks by the words that a query shares with what was indexed of a passage."""
import json, os, time
from pathlib import Path
import numpy as np
from tuner.core.rankings import Rankings
from tuner.retrieval.base import Knob

class Parts:
    knobs = (Knob("top_k", "integer", 10, 1, 50),)
    fingerprint = "parts-1"

    def __init__(self, folder, field):
        self.folder, self.field = folder, field

    @classmethod
    def declare_knobs(cls, *, field="title", how="well"):
        return (
            Knob("field", "categorical", field, choices=("title", "text", "both"), stage="index"),
            Knob("how", "categorical", how, choices=("well", "raise", "wait", "gate"),
                 stage="index"),
        )

    @classmethod
    def build(cls, corpus, *, cache_dir, field="title", how="well"):
        with Path(os.environ["PARTS_LOG"]).open("a") as log:
            log.write(f"{field} {how} {os.getpid()}\\n")
        if how == "raise":
            raise ValueError("no such model")
        if how == "wait":
            time.sleep(1.5)
        while how == "gate" and not Path(os.environ["PARTS_LOG"] + ".gate").exists():
            time.sleep(0.05)
        texts = {"title": lambda d: d.title, "text": lambda d: d.text,
                 "both": lambda d: f"{d.title} {d.text}"}
        words = {d.id: texts[field](d).lower().split() for d in corpus.documents}
        cache_dir.mkdir(parents=True, exist_ok=True)
        (cache_dir / "words.json").write_text(json.dumps(words))
        return cls(cache_dir, field)

    @classmethod
    def identify_index(cls, settings, **options):
        return cls.fingerprint

    @property
    def index_cost(self):
        return {"tokens": 100, "money": 0.25}

    def prepare(self, queries):
        pass

    def retrieve(self, queries, params):
        words = json.loads((self.folder / "words.json").read_text())
        answers = []
        for query in queries:
            asked = set(query.text.lower().strip("?").split())
            scored = sorted((-len(asked & set(found)), id_) for id_, found in words.items())
            answers.append([id_ for _, id_ in scored[: params.get("top_k", 10)]])
        tokens = np.array([float(len(answer)) for answer in answers])
        return Rankings.from_ids([q.id for q in queries], answers, context_tokens=tokens)
'''

CONFIG = """\
study: {name: small, seed: 3}
dataset: {path: data, split: {holdout: 0.5, stratify_by: [query_type]}}
retriever: {kind: "parts:Parts"}
space:
  field: {type: categorical, choices: [title, both]}
  top_k: {type: integer, low: 1, high: 2}
objective: {maximize: {mrr@10: 1.0}}
baseline: {field: title, how: well, top_k: 2}
backends: [{kind: grid, trials: 4}]
execution: {kind: inline}
tracking: null
"""


ORDER = "order:InOrder"
INORDER = '''
class InOrder:
    """Asks for the choices of ``how`` in their order."""

    learns = False

    def __init__(self, budget):
        self.budget = budget

    def suggest(self, space, history, *, count, seed):
        known = [trial.params["how"] for trial in history]
        left = [how for how in space.parameters["how"].choices if how not in known]
        return [{"how": how} for how in left[:count]]
'''


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 900
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(autouse=True)
def parts(tuner, monkeypatch: pytest.MonkeyPatch) -> None:
    (tuner.folder / "parts.py").write_text(RETRIEVER, encoding="utf-8")
    (tuner.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    log = str(tuner.folder / "log")
    monkeypatch.setenv("PARTS_LOG", log)
    tuner.environment["PARTS_LOG"] = log


def builds(folder: Path) -> list[str]:
    return [line.rpartition(" ")[0] for line in (folder / "log").read_text().splitlines()]


def test_what_indexes_cost_stands_in_every_view(tuner_here):
    done = tuner_here("run", "config.yaml")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("2 indexes: ")]
    assert line.startswith("2 indexes: 2 built in ")
    assert line.endswith(" kB, 200 tokens, money 0.50")
    (run_dir,) = tuner_here.runs()
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert line.removeprefix("2 indexes: ") in page
    assert builds(tuner_here.folder) == ["title well", "both well"]
    trials = read_journal(run_dir / "journal.jsonl").trials.values()
    assert len({trial.index.name for trial in trials}) == 2
    again = json.loads(tuner_here("run", "config.yaml", "--json").stdout)["indexes"]
    assert (again["built"], again["found"], again["seconds"], again["tokens"]) == (0, 2, 0, None)


def test_another_index_can_be_evaluated_compared_and_loaded(tuner_here):
    told = tuner_here("evaluate", "config.yaml", "--params", '{"field": "both"}', "--json")
    assert json.loads(told.stdout)["params"]["field"] == "both"
    assert re.fullmatch(r"an index of 20 documents was built: .* s and .* kB\n", told.stderr)
    b = '{"field": "both", "top_k": 2}'
    duel = json.loads(tuner_here("compare", "config.yaml", "--b", b, "--json").stdout)
    # A title alone tells the city, not which of its two passages is asked for.
    assert (duel["a"]["field"], duel["b"]["field"]) == ("title", "both")
    load = ("--concurrency", "1", "--duration", "200ms", "--json")
    bench = tuner_here("bench", "config.yaml", "--params", b, *load)
    assert json.loads(bench.stdout)["params"]["field"] == "both"
    assert builds(tuner_here.folder) == ["title well", "both well"]


def test_a_policy_may_ask_a_different_index_for_each_type(tuner_here):
    rule = {
        "start": {"river": 0.0, "market": 0.0},
        "weights": {"river": {"river": 1.0}, "market": {"market": 1.0}},
    }
    default = {"field": "title", "how": "well", "top_k": 2}
    policy = {"default": default, "types": {"river": {**default, "field": "both"}}, "rule": rule}
    (tuner_here.folder / "policy.yaml").write_text(json.dumps(policy), encoding="utf-8")
    found = json.loads(
        tuner_here("evaluate", "config.yaml", "--params", "policy.yaml", "--json").stdout
    )
    assert found["metrics"]["mrr@10"] == 1.0
    tuner_here.edit("baseline: {field: title, how: well, top_k: 2}", "baseline: policy.yaml")
    facts = json.loads(tuner_here("check", "config.yaml", "--json").stdout)
    assert facts["indexes"].startswith("2 by the grid, at most 2 in all")
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert (record["state"], record["indexes"]["failed"]) == ("finished", 0)
    assert record["indexes"]["built"] + record["indexes"]["found"] == 2
    (run_dir,) = tuner_here.runs()
    first = read_journal(run_dir / "journal.jsonl").trials[0]
    assert len(first.index.parts) == 2
    assert builds(tuner_here.folder) == ["title well", "both well"]


def test_check_tells_the_parameters_of_the_index_and_how_many_may_be_built(tuner_here):
    facts = json.loads(tuner_here("check", "config.yaml", "--json").stdout)
    assert facts["parameters"]["field"] == "title by default, of the index"
    assert facts["parameters"]["how"] == "well by default, of the index, not tuned"
    assert facts["indexes"] == "2 by the grid, at most 2 in all (every point of the grid)"
    learning = "backends=[{kind: tpe, trials: 30}]"
    for more, most in (
        ((), "at most 2 in all (every setting there is)"),
        (("--set", "index.budget=1"), "at most 1 in all (index.budget: 1)"),
    ):
        told = tuner_here("check", "config.yaml", "--set", learning, *more, "--json")
        assert json.loads(told.stdout)["indexes"] == most
    assert builds(tuner_here.folder) == ["title well"]


def test_a_grid_is_as_coarse_as_the_budget_of_indexes_takes(tuner_here):
    tuner_here.edit("choices: [title, both]", "choices: [title, text, both]")
    budget = ("--set", "index.budget=2", "--set", "backends=[{kind: grid, trials: 6}]")
    facts = json.loads(tuner_here("check", "config.yaml", *budget, "--json").stdout)
    coarser = "2 by the grid (coarser for it: field has title and text of 3 levels)"
    assert facts["indexes"] == f"{coarser}, at most 2 in all (every point of the grid)"
    record = json.loads(tuner_here("run", "config.yaml", *budget, "--json").stdout)
    assert record["finished_trials"] == 5
    assert builds(tuner_here.folder) == ["title well", "text well"]
    named = "backends=[{kind: grid, trials: 6, levels: {field: [title, text, both]}}]"
    told = tuner_here("check", "config.yaml", *budget[:2], "--set", named, code=2)
    assert "backends.0.levels: the named levels need more than the 1 new index" in told.stderr
    (run_dir,) = tuner_here.runs()
    written = run_dir / "config.yaml"
    written.write_text(written.read_text().replace("budget: 2", "budget: 3"), encoding="utf-8")
    told = tuner_here("resume", str(run_dir), code=2)
    assert "index.budget was 2 and is 3 now" in told.stderr


def test_check_with_a_probe_tells_time_and_room_of_the_study(tuner_here):
    record = json.loads(tuner_here("check", "config.yaml", "--probe", "10", "--json").stdout)[
        "system"
    ]
    assert record["queries"] == 10
    # 5 trials one at a time, and one index beside the baseline's.
    assert record["index_starting_seconds"] > 0.0
    another = record["index_seconds"] + record["index_starting_seconds"]
    expected = 5 * record["evaluation_seconds"] + another
    assert record["study_seconds"] == pytest.approx(expected)
    assert record["study_index_mb"] == pytest.approx(2 * record["index_mb"])
    shown = tuner_here("check", "config.yaml", "--probe", "10").stdout
    assert "one evaluation of 10 queries took " in shown
    assert " kB, and a process for another one starts in " in shown
    assert "5 trials, 1 at a time and 2 indexes " in shown


def test_what_an_index_costs_can_be_priced_bounded_and_traded(tuner_here):
    settings = (
        "objective.price={index_mb: 0.1, index_seconds: 0.001}",
        "objective.constraints={index_mb: {max: 100}}", "metrics=[index_seconds]",
    )  # fmt: skip
    given = [part for setting in settings for part in ("--set", setting)]
    record = json.loads(tuner_here("run", "config.yaml", *given, "--json").stdout)
    best = record["best"]["tune_metrics"]
    price = 0.1 * best["index_mb"] + 0.001 * best["index_seconds"]
    assert record["best"]["tune_objective"] == pytest.approx(best["mrr@10"] - price)
    pareto = ("--set", "objective.pareto=[mrr@10, index_mb]")
    front = json.loads(tuner_here("run", "config.yaml", *pareto, "--json").stdout)["front"]
    assert {"mrr@10", "index_mb"} == set(front[0]["goals"])


def test_a_study_that_index_seconds_decide_says_that_it_cannot_be_repeated(tuner_here):
    priced = ("--set", "objective.price={index_seconds: 0.001}")
    facts = json.loads(tuner_here("check", "config.yaml", *priced, "--json").stdout)
    assert facts["reproducible"].endswith("since a clock decides: objective.price (index_seconds)")
    by_size = ("--set", "objective.price={index_mb: 0.001}")
    facts = json.loads(tuner_here("check", "config.yaml", *by_size, "--json").stdout)
    assert facts["reproducible"] == "from seed 3"


def test_what_an_index_costs_is_no_guardrail_and_nothing_of_a_system_without(tuner_here):
    rail = ("--set", "verdict.guardrails={index_mb: {max_increase: 0.1}}")
    done = tuner_here("check", "config.yaml", *rail, code=2)
    assert "bound it by objective.constraints" in done.stderr
    other = ("--set", 'retriever.kind="word_overlap:WordOverlap"', "--set", "metrics=[index_mb]")
    fitting = ("--set", "space={top_k: {type: integer, low: 1, high: 2}}", "--set", "baseline=null")
    done = tuner_here("check", "config.yaml", *other, *fitting, code=2)
    assert "metric 'index_mb': 'word_overlap:WordOverlap' has one index" in done.stderr


@pytest.mark.slow
def test_building_does_not_count_towards_the_limit_of_a_trial(tuner_here):
    slow = (
        "space={how: {type: categorical, choices: [well, wait]}}",
        "execution={kind: inline, trial_timeout_s: 1}", "backends=[{kind: grid, trials: 2}]",
    )  # fmt: skip
    given = [part for setting in slow for part in ("--set", setting)]
    record = json.loads(tuner_here("run", "config.yaml", *given, "--json").stdout)
    assert (record["failed_trials"], record["indexes"]["built"]) == (0, 2)
    assert record["seconds_by_phase"]["search"] >= record["index_wait_s"] >= 1.5


@pytest.mark.slow
def test_an_earlier_study_warms_up_one_whose_baseline_has_another_index(tuner_here):
    tuner_here("run", "config.yaml")
    (run_dir,) = tuner_here.runs()
    other = ("--set", f"start_from=[{run_dir}]", "--set", "baseline.field=both")
    told = tuner_here("run", "config.yaml", *other)
    assert "start_from: " in told.stderr
    assert builds(tuner_here.folder) == ["title well", "both well"]


def test_the_registered_model_has_the_index_of_the_winner_and_no_other(tuner_here, monkeypatch):
    from tuner.serving import _load_pyfunc

    tuner_here("run", "config.yaml")
    (run_dir,) = tuner_here.runs()
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tuner_here.folder / "elsewhere"))
    monkeypatch.syspath_prepend(str(tuner_here.folder))
    (tuner_here.folder / "log").write_text("")
    model = _load_pyfunc(str(run_dir))
    assert model.choice["field"] == "both"
    assert builds(tuner_here.folder) == ["both well"]
    (answer,) = model.predict(["how old is the market of Oslo?"])
    assert answer["ids"][0] == "Oslo-market"
    assert builds(tuner_here.folder) == ["both well"]


@pytest.mark.slow
def test_an_index_that_failed_is_not_built_again_unless_failed_trials_are_retried(tuner):
    """The run is killed while another index is built, which is then built from the start."""
    tuner.edit("field: {type: categorical, choices: [title, both]}",
               "how: {type: categorical, choices: [raise, gate]}")  # fmt: skip
    tuner.edit("  top_k: {type: integer, low: 1, high: 2}\n", "")
    tuner.edit("backends: [{kind: grid, trials: 4}]", f"backends: [{{kind: '{ORDER}', trials: 2}}]")
    (tuner.folder / "order.py").write_text(INORDER, encoding="utf-8")
    run = subprocess.Popen(tuner.command("run", "config.yaml"), cwd=tuner.folder,
                           env=tuner.environment, stderr=subprocess.DEVNULL)  # fmt: skip
    log = tuner.folder / "log"
    wait_for(lambda: log.is_file() and "title gate" in log.read_text())
    run.kill()
    run.wait()
    builder = int(log.read_text().split()[-1])
    wait_for(lambda: not is_alive(builder))
    (tuner.folder / "log.gate").write_text("")
    (run_dir,) = tuner.runs()
    tuner("resume", str(run_dir))
    before = ["title well", "title raise", "title gate", "title gate"]
    assert builds(tuner.folder) == before
    (failed,) = [t for t in read_journal(run_dir / "journal.jsonl").trials.values() if t.error]
    assert failed.error.startswith("the index with how=raise could not be built: ")
    tuner("resume", str(run_dir), "--retry-failed")
    assert builds(tuner.folder) == [*before, "title raise"]


@pytest.mark.slow
def test_winner_and_baseline_are_timed_by_turns_each_on_its_own_index(tuner_here):
    rail = ("--set", "verdict.guardrails={latency_p95_ms: {max_increase: 100}}")
    record = json.loads(tuner_here("run", "config.yaml", *rail, "--json").stdout)
    fields = [record[side]["params"]["field"] for side in ("baseline", "winner")]
    assert fields == ["title", "both"]
    (rail,) = record["verdict"]["guardrails"].values()
    assert record["queries_asked"]["latency"] > 0
    assert builds(tuner_here.folder) == ["title well", "both well"]


@pytest.mark.slow
def test_mlflow_shows_what_indexes_cost(tuner_here):
    import mlflow

    tuner_here.edit("tracking: null", "tracking: {uri: 'sqlite:///mlflow.db', experiment: small}")
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    client = mlflow.MlflowClient(f"sqlite:///{tuner_here.folder / 'mlflow.db'}")
    study = client.get_run(record["mlflow_run_id"])
    assert (study.data.metrics["indexes"], study.data.metrics["indexes_built"]) == (2, 2)
    assert "2 indexes: 2 built in " in study.data.tags["mlflow.note.content"]
    assert study.data.metrics["index_seconds"] == pytest.approx(record["indexes"]["seconds"])
    new = "tags.`tuner.role` = 'trial' and tags.`tuner.index_is_new` = 'true'"
    trials = client.search_runs([study.info.experiment_id], new)
    assert {run.data.params["field"] for run in trials} == {"title", "both"}
    assert len({run.data.tags["tuner.index"] for run in trials}) == 2


def test_query_types_may_be_best_served_by_different_indexes(tuner_here):
    """Of a city's two passages that of its market has the smaller id: its title alone finds it."""
    tuner_here("run", "config.yaml", "--set", "objective.price={index_mb: 20}")
    (run_dir,) = tuner_here.runs()
    found = json.loads(tuner_here("policy", str(run_dir), "--prior", "0", "--json").stdout)
    assert found["default"]["field"] == "both"
    fields = {one["query_type"]: one["params"]["field"] for one in found["types"]}
    assert fields == {"market": "title", "river": "both"}
    assert found["verdict"] is not None
    policy = str(run_dir / "policy.yaml")
    told = json.loads(tuner_here("evaluate", "config.yaml", "--params", policy, "--json").stdout)
    assert told["metrics"]["mrr@10"] == 1.0
    assert builds(tuner_here.folder) == ["title well", "both well"]
