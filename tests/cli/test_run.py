"""The main job from the command line: what it prints, writes, and answers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time

import pytest
import yaml

from tuner.core.journal import read_journal
from tuner.run.folder import last_summary, timed_summary


def test_what_has_no_difficulty_is_counted_under_a_name(tuner):
    assert re.search(r"difficulties +\(none\): \d", tuner("check", "config.yaml").stdout)


def test_run_prints_the_table_and_writes_everything(tuner):
    done = tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    for word in ("tune", "holdout", "baseline", "grid", "random", "best", "finished after"):
        assert word in done.stdout
    assert str(run_dir.relative_to(tuner.folder)) in done.stdout
    best = yaml.safe_load((run_dir / "best.yaml").read_text())
    assert set(best["params"]) <= {"title_weight", "top_k", "mode"}
    assert best["holdout"]["objective"] is not None
    content = read_journal(run_dir / "journal.jsonl")
    assert [trial.arm for trial in content.trials.values()].count("random") == 6
    assert content.trials[0].arm == "baseline"
    summary = last_summary(content)
    called = "best, winner" if summary.best == summary.winner else "winner"
    assert f"\n{called} ({summary.winner.arm})" in done.stdout
    assert all(trial.is_told for trial in content.trials.values())
    assert (run_dir / "trials" / "0.npz").exists()


def test_json_is_one_object_with_the_figures_that_the_journal_holds(tuner_here):
    done = tuner_here("run", "config.yaml", "--json")
    record = json.loads(done.stdout)
    content = read_journal(tuner_here.folder / record["run_dir"] / "journal.jsonl")
    best = record["best"]
    trial = content.trials[best["trial"]]
    assert best["tune_objective"] == trial.objective
    assert best["params"] == trial.params
    feasible = [t.objective for t in content.trials.values() if t.is_feasible]
    assert trial.objective == max(feasible)
    assert set(record["arms"]) == {"grid", "random"}
    assert record["baseline"]["params"]["top_k"] == 10
    assert record["state"] == "finished"


def test_it_is_said_what_was_waited_for_and_where_the_time_went(tuner_here):
    done = tuner_here("run", "config.yaml")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("finished after")]
    assert re.fullmatch(
        r"finished after \S+ s: (start|reading|search|verdict|report|the rest).*", line
    )
    (run_dir,) = tuner_here.runs()
    content = read_journal(run_dir / "journal.jsonl")
    assert content.notes[-1]["kind"] == "times"
    summary = timed_summary(content)
    parts = summary.seconds_by_phase
    named = ("start", "reading", "index", "preparation", "search", "verdict", "report")
    assert tuple(parts) == named
    assert sum(parts.values()) <= summary.seconds == summary.seconds_in_all
    assert last_summary(content).seconds_by_phase == {
        name: seconds for name, seconds in parts.items() if name != "report"
    }
    again = tuner_here("resume", str(run_dir), "--json")
    record = json.loads(again.stdout)
    assert record["seconds_in_all"] == pytest.approx(record["seconds"] + summary.seconds)
    assert "with the sessions before" in tuner_here("resume", str(run_dir)).stdout


def test_only_the_winner_and_the_baseline_meet_the_holdout(tuner_here):
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    shown = [record["winner"]["params"], record["baseline"]["params"]]
    assert record["winner"]["holdout_objective"] is not None
    assert record["baseline"]["holdout_objective"] is not None
    for standing in (record["best"], *record["arms"].values()):
        assert (standing["holdout_objective"] is not None) == (standing["params"] in shown)
        assert bool(standing["holdout_metrics"]) == (standing["params"] in shown)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_study(tuner):
    tuner.edit("{kind: random, trials: 6}", "{kind: tpe, trials: 12, initial: 3}")
    many = [f"--set=execution.{setting}" for setting in ("kind=processes", "workers=4")]
    first = json.loads(tuner("run", "config.yaml", "--json").stdout)
    second = json.loads(tuner("run", "config.yaml", "--json", *many).stdout)
    assert first["run_dir"] != second["run_dir"]
    for name in ("best", "winner", "arms"):
        assert first[name] == second[name]
    for name in ("outcome", "sentence"):
        assert first["verdict"][name] == second["verdict"][name]
    told = [
        {
            trial.number: (trial.params, trial.metrics)
            for trial in read_journal(path).trials.values()
        }
        for path in (tuner.folder / run["run_dir"] / "journal.jsonl" for run in (first, second))
    ]
    assert told[0] == told[1]


def test_what_a_clock_decides_is_said(tuner_here):
    said = "the same seed may end otherwise another time, since a clock decides:"
    done = tuner_here("check", "config.yaml", "--json")
    assert json.loads(done.stdout)["reproducible"] == "from seed 3"
    assert said not in tuner_here("run", "config.yaml").stderr
    limits = [
        "--set=metrics=[latency_p95_ms]",  # only shown
        "--set=objective.constraints={latency_p95_ms: {max: 1000}}",
        "--set=verdict.guardrails.recall@5.max_decrease=1",
        "--set=verdict.guardrails.latency_mean_ms.max_increase=9",
    ]
    keys = "objective.constraints (latency_p95_ms), verdict.guardrails (latency_mean_ms)"
    done = tuner_here("check", "config.yaml", "--json", *limits)
    assert json.loads(done.stdout)["reproducible"] == f"{said} {keys}"
    assert f"{said} {keys}\n" in tuner_here("run", "config.yaml", *limits).stderr
    done = tuner_here("check", "config.yaml", "--json", limits[0])
    assert json.loads(done.stdout)["reproducible"] == "from seed 3"


def test_evaluate_agrees_with_the_run(tuner_here):
    best = json.loads(tuner_here("run", "config.yaml", "--json").stdout)["winner"]
    for part in ("tune", "holdout"):
        done = tuner_here(
            "evaluate", "config.yaml", "--params", json.dumps(best["params"]),
            "--queries", part, "--json",
        )  # fmt: skip
        metrics = json.loads(done.stdout)["metrics"]
        assert metrics["objective"] == pytest.approx(best[f"{part}_objective"])


def test_evaluate_takes_best_yaml_and_writes_every_query(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    done = tuner_here(
        "evaluate", "config.yaml", "--params", str(run_dir / "best.yaml"), "--per-query", "out.csv",
        "--queries", "all",
    )  # fmt: skip
    assert "on 20 queries" in done.stdout
    lines = (tuner_here.folder / "out.csv").read_text().splitlines()
    assert len(lines) == 21
    assert lines[0].startswith("query_id,query_type,difficulty,recall@5")


def test_quiet_prints_no_progress(tuner_here):
    assert tuner_here("run", "config.yaml", "--quiet").stderr == ""


def test_name_and_set_change_the_study(tuner_here):
    tuner_here("run", "config.yaml", "--name", "other", "--set", "backends.1.trials=3", "--quiet")
    (run_dir,) = tuner_here.runs()
    assert run_dir.name.startswith("other-")
    resolved = yaml.safe_load((run_dir / "config.yaml").read_text())
    assert resolved["backends"][1]["trials"] == 3
    assert resolved["dataset"]["path"] == str(tuner_here.folder / "data")


def test_check_tells_what_would_run_and_writes_no_run(tuner_here):
    done = tuner_here("check", "config.yaml")
    assert done.stdout.rstrip().endswith("ok")
    assert "tune_queries: 10" in done.stdout
    assert not (tuner_here.folder / "runs").exists()
    facts = json.loads(tuner_here("check", "config.yaml", "--json").stdout)
    assert facts["trials"] == {"grid": 6, "random": 6}


def test_failing_trials_cost_themselves_only(tuner_here):
    tuner_here.edit(
        "  top_k: {", "  mode: {type: categorical, choices: [plain, crash]}\n  top_k: {"
    )
    record = json.loads(tuner_here("run", "config.yaml", "--json", code=None).stdout)
    assert record["failed_trials"] > 0
    assert record["finished_trials"] > 0
    assert record["best"]["params"].get("mode") == "plain"
    content = read_journal(tuner_here.folder / record["run_dir"] / "journal.jsonl")
    errors = {trial.error for trial in content.trials.values() if trial.error}
    assert errors == {"RuntimeError: the index is on fire"}


def test_a_study_whose_every_trial_fails_stops_and_says_why(tuner_here):
    tuner_here.edit("  top_k: {", "  mode: {type: categorical, choices: [crash]}\n  top_k: {")
    tuner_here.edit("baseline: {title_weight: 1.0, top_k: 10}", "baseline: {mode: crash}")
    tuner_here.edit("random, trials: 6", "random, trials: 60")
    done = tuner_here("run", "config.yaml", code=1)
    assert "the first 10 evaluations all failed" in done.stderr
    assert "the index is on fire" in done.stderr
    (run_dir,) = tuner_here.runs()
    assert len(read_journal(run_dir / "journal.jsonl").trials) < 20


def wait_for_trials(journal, count: int, process) -> None:
    """Wait until the journal holds so many told trials, however slow the machine is."""
    while process.poll() is None:
        if journal() is not None and journal().read_text().count('"event":"told"') >= count:
            return
        time.sleep(0.02)


@pytest.mark.parametrize(
    "name",
    [
        "SIGINT",
        pytest.param("SIGTERM", marks=pytest.mark.slow),
        pytest.param("SIGKILL", marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_is_resumed_without_loss_or_repeats(tuner, name):
    tuner.edit("  top_k: {", "  mode: {type: categorical, choices: [slow]}\n  top_k: {")
    tuner.edit("random, trials: 6", "random, trials: 40")
    process = subprocess.Popen(
        tuner.command("run", "config.yaml"),
        cwd=tuner.folder,
        env=tuner.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def journal():
        runs = tuner.runs()
        path = runs[0] / "journal.jsonl" if runs else None
        return path if path is not None and path.exists() else None

    wait_for_trials(journal, 5, process)
    process.send_signal(getattr(signal, name))
    output, errors = process.communicate(timeout=900)
    (run_dir,) = tuner.runs()
    told = {n: t for n, t in read_journal(run_dir / "journal.jsonl").trials.items() if t.is_told}
    assert 5 <= len(told) < 47
    if name != "SIGKILL":
        assert process.returncode == 130
        assert f"tuner resume runs/{run_dir.name}" in output
        assert "Traceback" not in errors

    done = tuner("resume", str(run_dir.relative_to(tuner.folder)), "--json")
    record = json.loads(done.stdout)
    assert record["state"] == "finished"
    after = read_journal(run_dir / "journal.jsonl").trials
    assert {number: after[number] for number in told} == told
    assert sum(trial.arm == "random" for trial in after.values()) == 40
    lines = (run_dir / "journal.jsonl").read_text().splitlines()
    numbers = [json.loads(x)["trial"] for x in lines if json.loads(x)["event"] == "told"]
    assert sorted(numbers) == list(range(len(after)))


def test_resume_refuses_other_data_and_names_the_difference(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    corpus = tuner_here.folder / "data" / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("is old", "is rather old"))
    done = tuner_here("resume", str(run_dir), code=2)
    assert "dataset" in done.stderr
    assert "retriever" in done.stderr


def test_resume_of_a_finished_study_evaluates_nothing(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    before = read_journal(run_dir / "journal.jsonl").trials
    done = tuner_here("resume", str(run_dir))
    assert read_journal(run_dir / "journal.jsonl").trials == before
    assert "looked at" not in done.stdout  # it is the same one again


def test_without_a_holdout_the_table_has_no_such_column(tuner_here):
    done = tuner_here("run", "config.yaml", "--set", "dataset.split.holdout=0")
    assert "holdout" not in done.stdout.splitlines()[0]
    done = tuner_here(
        "evaluate", "config.yaml", "--set", "dataset.split.holdout=0", "--queries", "holdout",
        code=2,
    )  # fmt: skip
    assert "no query is held out; write --queries all" in done.stderr


def test_a_run_keeps_no_address_of_a_web_hook(tuner_here):
    hook = "https://hooks.example.org/services/tiger"
    tuner_here.edit("tracking:", f"nightly: {{notify: {{webhook: '{hook}'}}}}\ntracking:")
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    for path in run_dir.rglob("*"):
        assert not path.is_file() or b"services/tiger" not in path.read_bytes(), path
    tuner_here("resume", str(run_dir))
