"""What a run must not hide: broken constraints, parameters that are not tuned, exhausted arms."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from tuner.core.journal import read_journal
from tuner.report.writing import write_report
from tuner.run.folder import last_summary, read_run
from tuner.tracking.mlflow.note import study_note
from tuner.tracking.mlflow.records import finished_study


def test_a_study_without_a_feasible_configuration_says_so(tuner_here):
    tuner_here.edit("price:", "constraints: {context_tokens: {max: 1}}\n  price:")
    done = tuner_here("run", "config.yaml")
    assert "no configuration met the constraints" in done.stdout
    assert "Keep the baseline: no configuration met" in done.stdout
    (run_dir,) = tuner_here.runs()
    assert yaml.safe_load((run_dir / "best.yaml").read_text())["is_feasible"] is False
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["best"]["violation"] > 0


def test_parameters_that_are_not_tuned_are_the_baselines_in_every_trial(tuner_here):
    tuner_here.edit("  top_k: {type: integer, low: 1, high: 12}\n", "")
    tuner_here.edit("top_k: 10}", "top_k: 2}")
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    for standing in (record["best"], record["baseline"], *record["arms"].values()):
        assert standing["tune_metrics"]["context_tokens"] == pytest.approx(16.0)  # 2 passages of 8
    best = yaml.safe_load((tuner_here.folder / record["run_dir"] / "best.yaml").read_text())
    assert best["params"]["top_k"] == 2


def test_an_arm_that_ran_out_of_points_is_named(tuner_here):
    tuner_here.edit("high: 12}", "high: 2}")
    tuner_here.edit(
        "title_weight: {type: real, low: 0.0, high: 4.0}",
        "mode: {type: categorical, choices: [plain]}",
    )
    tuner_here.edit("title_weight: 1.0, top_k: 10", "mode: plain, top_k: 2")
    done = tuner_here("run", "config.yaml")
    assert "grid           2 of 6 trials: it has no further point to try" in done.stdout


def test_why_trials_failed_is_printed(tuner_here):
    tuner_here.edit(
        "  top_k: {", "  mode: {type: categorical, choices: [plain, crash]}\n  top_k: {"
    )
    done = tuner_here("run", "config.yaml", code=None)
    assert "last failure   RuntimeError: the index is on fire" in done.stdout


def test_without_tracking_nobody_is_sent_to_the_ui(tuner_here):
    assert "tuner ui" not in tuner_here("run", "config.yaml").stdout


@pytest.mark.slow
def test_progress_stays_on_standard_error_with_json(tuner_here):
    done = tuner_here("run", "config.yaml", "--json")
    json.loads(done.stdout)
    assert "random" in done.stderr
    assert tuner_here("run", "config.yaml", "--json", "--quiet").stderr == ""


def test_a_space_without_any_point_is_known_before_the_run(tuner_here):
    tuner_here.edit("objective:", "space_constraints: ['top_k < 0']\nobjective:")
    done = tuner_here("check", "config.yaml", code=2)
    assert "config.yaml:7: space_constraints" in done.stderr


def test_a_cost_is_not_maximised(tuner_here):
    tuner_here.edit("recall@5: 0.5, ", "context_tokens: 0.5, ")
    assert "better when it is lower" in tuner_here("check", "config.yaml", code=2).stderr


@pytest.mark.parametrize(
    ("old", "new", "code", "expected"),
    [
        ('"word_overlap:WordOverlap"', '"json:loads"', 2, "has no `build`"),
        (
            '"word_overlap:WordOverlap"',
            '"word_overlap:Broken"',
            1,
            "could not start: OSError: no server",
        ),
    ],
)
def test_a_retriever_that_cannot_start_is_one_line(tuner_here, old, new, code, expected):
    with (tuner_here.folder / "word_overlap.py").open("a") as module:
        module.write(
            "\nclass Broken:\n    @classmethod\n    def build(cls, corpus, *, cache_dir):\n"
            "        raise OSError('no server')\n"
        )
    tuner_here.edit(old, new)
    assert expected in tuner_here("run", "config.yaml", code=code).stderr
    assert not (tuner_here.folder / "runs").exists()


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_failure(tuner_here):
    command = " ".join([sys.executable, "-m", "tuner", "check", "config.yaml", "|", "head", "-1"])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=tuner_here.folder,
        env=tuner_here.environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("dataset")


@pytest.mark.slow
def test_a_full_disk_is_one_line(tuner_here):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            tuner_here.command("check", "config.yaml"),
            cwd=tuner_here.folder,
            env=tuner_here.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=900,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_system_that_finds_nothing_stops_the_study_at_once(tuner_here):
    path = tuner_here.folder / "word_overlap.py"
    path.write_text(path.read_text().replace("[id_ for", '["chunk-" + id_ for'))
    done = tuner_here("run", "config.yaml", code=1)
    words = " ".join(done.stderr.split())
    assert "no relevant document for any of the 10 queries, so there is nothing to tune" in words
    assert "it returned 'chunk-" in words
    assert "judged are '" in words
    (run_dir,) = tuner_here.runs()
    told = [line for line in (run_dir / "journal.jsonl").read_text().splitlines() if "told" in line]
    assert len(told) == 1
    assert "failed after" in done.stdout
    assert "use it" not in done.stdout
    assert "Keep the baseline" not in done.stdout


def test_a_weak_start_is_no_reason_to_stop(tuner_here):
    # The first trials find nothing, but they return documents of the data set.
    path = tuner_here.folder / "word_overlap.py"
    text = path.read_text().replace(
        '"title_weight", "real", 1.0, 0.0', '"title_weight", "real", 1.0, -4.0'
    )
    path.write_text(text)
    tuner_here.edit("low: 0.0, high: 4.0", "low: -4.0, high: 4.0")
    tuner_here.edit("title_weight: 1.0, top_k: 10", "title_weight: -4.0, top_k: 1")
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["state"] == "finished"
    assert record["baseline"]["tune_metrics"]["recall@5"] == 0.0
    assert record["best"]["tune_metrics"]["recall@5"] > 0.0


def test_a_budget_that_leaves_nothing_is_named(tuner_here):
    tuner_here.edit("  price:", "  budget_tokens: 1\n  price:")
    done = tuner_here("run", "config.yaml", code=1)
    assert "is a budget of 1 tokens (objective.budget_tokens) too small?" in " ".join(
        done.stderr.split()
    )


def test_a_baseline_that_fails_is_said_to_take_the_verdict_away(tuner_here):
    tuner_here.edit("  top_k: {", "  mode: {type: categorical, choices: [plain]}\n  top_k: {")
    tuner_here.edit("top_k: 10}", "top_k: 10, mode: crash}")
    done = tuner_here("run", "config.yaml")
    assert "the baseline could not be evaluated (RuntimeError: the index is on fire)" in done.stdout
    assert "winner         runs" in done.stdout
    assert "use it" not in done.stdout


def test_a_parameter_that_changes_nothing_is_named(tuner_here):
    path = tuner_here.folder / "word_overlap.py"
    knob = 'Knob("decoration", "real", 0.5, 0.0, 1.0),\n        '
    path.write_text(path.read_text().replace('Knob("top_k"', f'{knob}Knob("top_k"'))
    tuner_here.edit("  top_k: {", "  decoration: {type: real, low: 0.0, high: 1.0}\n  top_k: {")
    tuner_here.edit("top_k: 10}", "top_k: 10, decoration: 0.5}")
    done = tuner_here("run", "config.yaml")
    assert "note           decoration changes no ranking" in done.stdout
    assert "top_k changes no ranking" not in done.stdout
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    named = [remark.split()[0] for remark in record["remarks"]]
    assert "decoration" in named
    assert "top_k" not in named


def test_a_graph_that_is_mostly_silent_is_said(tuner_here):
    path = tuner_here.folder / "word_overlap.py"
    told = "context_tokens=tokens, graph_used=np.array([q.id.endswith('river') for q in queries]))"
    path.write_text(path.read_text().replace("context_tokens=tokens)", told))
    done = tuner_here("run", "config.yaml")
    assert "the graph contributed to 50 % of the queries at most" in done.stdout


def test_a_system_that_answers_differently_every_time_is_said(tuner_here):
    path = tuner_here.folder / "word_overlap.py"
    begun = "self.calls = 0\n        self.corpus, self.fingerprint ="
    # Every other time, questions about markets lose their best answer.
    moving = (
        "self.calls += 1\n"
        "        lost = [self.calls % 2 and 'market' in query.text for query in queries]\n"
        "        answers = [a[1:] if is_lost else a for a, is_lost in zip(answers, lost)]\n"
        "        tokens ="
    )
    text = path.read_text().replace("self.corpus, self.fingerprint =", begun)
    path.write_text(text.replace("tokens =", moving, 1))
    verdict = json.loads(tuner_here("run", "config.yaml", "--json").stdout)["verdict"]
    assert verdict["run_shift"] > 0
    assert "Asked twice, the same configuration differed from itself" in verdict["sentence"]


def test_a_system_that_answers_alike_is_not_suspected(tuner_here):
    record = json.loads(tuner_here("run", "config.yaml", "--json").stdout)
    assert record["verdict"]["run_shift"] == 0.0


SHALLOW = """
import time
from pathlib import Path

def search(query, top_k):
    time.sleep(SLOW_S)
    if top_k > int(Path("deepest.txt").read_text()):
        raise RuntimeError(f"top_k {top_k} is too deep")
    words = query.rstrip("?").split()
    part, city = words[4], words[6]
    return [f"{city}-{'river' if part == 'market' else 'market'}", f"{city}-{part}"][:top_k]
"""


def shallow(tuner_here, deepest: int, slow_s: float = 0.0) -> None:
    """Let the grid try top_k from 1 to 12 with a system that takes none above ``deepest``."""
    (tuner_here.folder / "deepest.txt").write_text(str(deepest), encoding="utf-8")
    code = SHALLOW.replace("SLOW_S", str(slow_s))
    (tuner_here.folder / "shallow.py").write_text(code, encoding="utf-8")
    tuner_here.edit('"word_overlap:WordOverlap"', 'function, function: "shallow:search"')
    tuner_here.edit("  title_weight: {type: real, low: 0.0, high: 4.0}\n", "")
    tuner_here.edit("{title_weight: 1.0, top_k: 10}", "{top_k: 1}")
    tuner_here.edit("grid, trials: 6", "grid, trials: 12")
    tuner_here.edit("  - {kind: random, trials: 6}\n", "")


def summary_and_views(run_dir):
    content, _ = read_run(run_dir)
    summary = last_summary(content)
    page = write_report(run_dir, with_plots=False).read_text(encoding="utf-8")
    run = finished_study(content.header, summary, 0)
    return summary, page, study_note(content.header, summary, files=(), links={}), run


def test_a_study_of_which_most_trials_failed_gives_no_advice(tuner_here):
    shallow(tuner_here, deepest=4)
    done = tuner_here("run", "config.yaml", code=1)
    sentence = "Failed: 8 of 13 trials could not be evaluated, most often by: "
    reason = f"{sentence}query 'q0-river': RuntimeError: top_k 5 is too deep"
    # The reasons differ by the number only: they are one cause, of which one is shown.
    (said,) = [line for line in done.stdout.splitlines() if line.startswith(sentence)]
    assert "is too deep" in said
    assert "eploy" not in done.stdout
    assert "best.yaml" not in done.stdout
    assert "8 failed (62 %)" in done.stdout
    (run_dir,) = tuner_here.runs()
    assert (
        f"try again      tuner resume {run_dir.relative_to(tuner_here.folder)} --retry-failed"
        in (done.stdout)
    )
    assert not (run_dir / "best.yaml").exists()
    assert not (tuner_here.folder / "runs" / "holdouts.jsonl").exists()  # nothing was decided
    summary, page, note, run = summary_and_views(run_dir)
    assert (summary.state, summary.verdict, summary.winner) == ("failed", None, None)
    assert (summary.failed_trials, summary.told_trials) == (8, 13)
    assert summary.reason == said
    for shown in (page, note):
        assert "8 of 13 trials could not be evaluated" in shown
        assert "Deploy" not in shown
        assert "--retry-failed" in shown
    assert run.tags["tuner.verdict"].startswith(sentence)
    assert run.metrics["failed_share"] == pytest.approx(8 / 13)
    assert run.status == "FAILED"
    assert reason.partition("query")[0] in said


def test_failures_below_the_limit_stand_in_the_verdict(tuner_here):
    shallow(tuner_here, deepest=10)
    done = tuner_here("run", "config.yaml")
    share = "2 of 13 trials, 15 %, failed, most often by: "
    assert share in done.stdout
    assert "2 failed (15 %)" in done.stdout
    assert "Error: query" not in done.stdout  # in words, without the name of a class
    (run_dir,) = tuner_here.runs()
    shown = f"tuner resume {run_dir.relative_to(tuner_here.folder)} --retry-failed"
    assert f"try again      {shown}" in done.stdout
    summary, page, note, run = summary_and_views(run_dir)
    assert share in summary.verdict["sentence"]
    assert share in yaml.safe_load((run_dir / "best.yaml").read_text())["verdict"]
    for shown in (page, note):
        assert share in shown
        assert "2 failed (15 %)" in shown
        assert "--retry-failed" in shown
    assert share in run.tags["tuner.verdict"]
    assert run.metrics["failed_share"] == pytest.approx(2 / 13)


@pytest.mark.slow
def test_failed_trials_are_evaluated_again_and_their_new_results_count(tuner_here):
    shallow(tuner_here, deepest=4)
    tuner_here("run", "config.yaml", code=1)
    (run_dir,) = tuner_here.runs()
    again = tuner_here("resume", str(run_dir), code=1)  # nothing is left to ask
    assert "8 of 13 trials could not be evaluated" in again.stdout
    before = (run_dir / "journal.jsonl").read_bytes()
    (tuner_here.folder / "deepest.txt").write_text("7", encoding="utf-8")
    done = tuner_here("resume", str(run_dir), "--retry-failed")
    assert "8 failed trials will be evaluated again" in done.stderr
    assert "5 of 13 trials, 38 %, failed" in done.stdout
    assert (run_dir / "best.yaml").exists()
    (tuner_here.folder / "deepest.txt").write_text("12", encoding="utf-8")
    record = json.loads(tuner_here("resume", str(run_dir), "--retry-failed", "--json").stdout)
    assert (record["state"], record["failed_trials"]) == ("finished", 0)
    done = tuner_here("resume", str(run_dir), "--retry-failed")
    assert "no trial failed, so there is none to evaluate again" in done.stderr
    assert "--retry-failed" not in done.stdout
    assert "failed" not in record["verdict"]["sentence"]
    journal = (run_dir / "journal.jsonl").read_bytes()
    assert journal.startswith(before)  # it only grows
    content = read_journal(run_dir / "journal.jsonl")
    assert len(content.trials) == 13
    assert all(trial.is_scored for trial in content.trials.values())
    summary, page, note, run = summary_and_views(run_dir)
    assert summary.told_trials == 13
    assert run.metrics["failed_share"] == 0.0
    for shown in (page, note):
        assert "is too deep" not in shown


def test_queries_besides_the_trials_are_counted_by_what_for(tuner_here, quick):
    done = tuner_here("run", "config.yaml")
    (run_dir,) = tuner_here.runs()
    asked, page, note, run = summary_and_views(run_dir)
    counts = asked.queries_asked
    own = {event.evaluated_as for event in read_journal(run_dir / "journal.jsonl").trials.values()}
    assert counts["trials"] == 10 * len(own)
    for purpose in ("dead_knobs", "holdout", "asked_twice"):
        assert counts[purpose] > 0
    total = sum(counts.values()) - counts["trials"]
    line = f"{counts['trials']} queries asked in trials, {total} besides: "
    assert line in done.stdout
    assert f"{counts['dead_knobs']} to look for parameters without effect" in done.stdout
    for shown in (page, note):
        assert line in shown
    assert run.metrics["queries_asked.dead_knobs"] == counts["dead_knobs"]


def test_looking_for_dead_parameters_can_be_turned_off(tuner_here):
    tuner_here.edit("execution:", "inspection: off\nexecution:")
    done = tuner_here("run", "config.yaml")
    assert "parameters without effect" not in done.stdout
    tuner_here.edit("inspection: off", "inspection: often")
    refused = tuner_here("run", "config.yaml", code=2)
    assert "inspection" in refused.stderr
    assert "'auto', 'on' or 'off'" in refused.stderr


@pytest.mark.slow
def test_it_is_left_out_by_default_where_a_query_is_slow(tuner_here):
    shallow(tuner_here, deepest=12, slow_s=0.055)
    tuner_here.edit("grid, trials: 12", "grid, trials: 2")
    done = tuner_here("run", "config.yaml")
    assert "parameters without effect were not looked for: that asks up to" in done.stdout
    assert "To look all the same, write inspection: on" in done.stdout
    (run_dir,) = tuner_here.runs()
    assert "dead_knobs" not in summary_and_views(run_dir)[0].queries_asked
    tuner_here.edit("execution:", "inspection: on\nexecution:")
    done = tuner_here("run", "config.yaml")
    assert "were not looked for" not in done.stdout
