"""tuner drift from the command line: files, run directories, MLflow, exit codes, a picture."""

from __future__ import annotations

import json
import math
import runpy
import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from tuner.cli import main

LAST = date(2024, 3, 31)


@dataclass(frozen=True)
class Done:
    stdout: str
    stderr: str


@pytest.fixture
def drift(tmp_path, monkeypatch, capsys):
    """The command in this process: starting one anew takes seconds on a busy machine."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        with pytest.raises(SystemExit) as left:
            main(["drift", *arguments])
        done = Done(*capsys.readouterr())
        assert left.value.code == code, done
        return done

    return run


def csv_of(values, *, skip=()):
    """Scores by day, the last one on LAST."""
    random = np.random.default_rng(6)
    lines = ["date,score"]
    for place, value in enumerate(values):
        day = LAST - timedelta(days=len(values) - 1 - place)
        noise = 0.005 * random.normal()
        if place not in skip:
            lines.append(f"{day},{value + noise:.4f}")
    return "\n".join(lines) + "\n"


def test_a_csv_file_raises_an_alarm_with_a_sentence_a_picture_and_exit_code_20(drift, tmp_path):
    text = csv_of([0.8] * 53 + [0.7] * 7, skip={11, 12})
    (tmp_path / "daily.csv").write_text(text)
    done = drift("daily.csv", "--plot", "daily.png", code=20)
    sentence = done.stdout.splitlines()[0]
    assert sentence.startswith("Alarm: score fell by 12.")
    assert "in the 7 days to 2024-03-31 against the 28 before" in sentence
    assert "at most 5 % of cases, all 2 tests together" in done.stdout
    assert "days old, of 2024-03-31" in done.stderr
    assert (tmp_path / "daily.png").read_bytes().startswith(b"\x89PNG")

    record = json.loads(drift("daily.csv", "--json", "--metric", "score", code=20).stdout)
    assert record["status"] == "alarm"
    assert record["sentence"] == sentence
    assert record["windows"]["recent"] == ["2024-03-25", "2024-03-31"]
    window = record["findings"][0]
    assert window["change"]["interval"][1] < 0
    assert window["change"]["relative"] == pytest.approx(-0.125, abs=0.01)
    # The day before the drop, and a drop that does not matter.
    quiet = drift("daily.csv", "--as-of", "2024-03-24")
    assert quiet.stdout.startswith("No alarm: ")
    assert "days old" not in quiet.stderr
    assert drift("daily.csv", "--min-effect", "score=0.2").stdout.startswith("No alarm")


def test_13_days_are_insufficient(drift, tmp_path):
    (tmp_path / "daily.csv").write_text(csv_of([0.8] * 6 + [0.2] * 7))
    done = drift("daily.csv", "--as-of", "2024-03-31")
    assert done.stdout.startswith("Insufficient data: score")


def test_inputs_are_watched_from_a_log_of_queries(drift, tmp_path):
    random = np.random.default_rng(7)
    with (tmp_path / "queries.jsonl").open("w") as stream:
        for before in range(40):
            is_recent = before < 7
            for _ in range(50):
                record = {
                    "time": f"{LAST - timedelta(days=before)}T12:00:00Z",
                    "query_type": "hard"
                    if random.random() < (0.6 if is_recent else 0.2)
                    else "easy",
                    "graph_used": bool(random.random() < (0.6 if is_recent else 0.9)),
                    "retrieved": int(random.random() < (0.8 if is_recent else 0.98)) * 5,
                    "latency_ms": random.lognormal(3.5 if is_recent else 3.0, 0.3),
                }
                stream.write(json.dumps(record) + "\n")
    done = drift("queries.jsonl", "--json", code=20)
    alarms = {
        (one["measure"], one["test"])
        for one in json.loads(done.stdout)["findings"]
        if one["is_alarm"] and not one["group"]
    }
    assert alarms >= {
        ("without_graph", "window"), ("empty", "window"), ("latency_ms", "window"),
        ("query_type", "mix"),
    }  # fmt: skip
    mix = drift("queries.jsonl", "--metric", "query_type", code=20)
    assert mix.stdout.startswith("Alarm: the mix of query types moved by a stability index of 0.")


def test_daily_figures_are_as_good_as_queries(drift, tmp_path):
    random = np.random.default_rng(8)
    lines = ["day,graph_used,latency_p95_ms,note"]
    for before in range(60):
        share, latency = (0.80, 140.0) if before < 7 else (0.90, 100.0)
        noise = random.normal(size=2)
        day = LAST - timedelta(days=before)
        lines.append(f"{day},{share + 0.01 * noise[0]:.3f},{latency + 3 * noise[1]:.1f},fine")
    (tmp_path / "daily.csv").write_text("\n".join(lines))
    record = json.loads(drift("daily.csv", "--json", code=20).stdout)
    windows = {one["measure"]: one for one in record["findings"] if one["test"] == "window"}
    assert windows.keys() == {"without_graph", "latency_p95_ms"}
    # .1 without the graph became .2, 100 ms became 140.
    assert windows["without_graph"]["change"]["relative"] == pytest.approx(1.0, abs=0.1)
    assert windows["latency_p95_ms"]["change"]["relative"] == pytest.approx(0.4, abs=0.04)
    assert all(one["is_alarm"] for one in windows.values())
    kept = drift("daily.csv", "--min-effect", "0.5", "--metric", "latency_p95_ms")
    assert "Clear, but too small to matter: latency_p95_ms rose by 4" in kept.stdout


def at(run_dir: Path, copy: Path, before: int) -> None:
    """Copy a run as if it had begun so many days before LAST."""
    shutil.copytree(run_dir, copy)
    journal = copy / "journal.jsonl"
    first, rest = journal.read_text().split("\n", 1)
    begun = datetime.combine(LAST - timedelta(days=before), datetime.min.time(), tzinfo=UTC)
    header = {**json.loads(first), "created_at": begun.timestamp() + 3600.0}
    journal.write_text(json.dumps(header) + "\n" + rest)


@pytest.mark.slow
def test_run_directories_are_paired_query_by_query(tuner, drift):
    tuner("run", "config.yaml", "--quiet")
    # From one day on the index finds the rivers no more.
    code = (tuner.folder / "word_overlap.py").read_text()
    lines = "scored = [one for one in scored if 'river' not in one[1]]\n            answers.append("
    broken = code.replace("answers.append(", lines)
    assert broken != code
    (tuner.folder / "word_overlap.py").write_text(broken)
    tuner("run", "config.yaml", "--quiet")
    good, bad = tuner.runs()
    for before in range(30):
        at(bad if before < 7 else good, tuner.folder / "nightly" / f"run-{before}", before)
    done = drift("nightly", "--json", "--metric", "recall@5", code=20)
    (window, *_) = json.loads(done.stdout)["findings"]
    assert window["change"]["queries"] == 10  # half of 20 queries are tuned on
    assert window["change"]["difference"] == pytest.approx(-0.5)
    assert (window["change"]["days_before"], window["change"]["days_after"]) == (23, 7)

    text = drift("nightly", code=20).stdout
    assert text.startswith("Alarm: objective fell")
    winner = json.loads(drift("nightly", "--of", "winner", "--json", code=20).stdout)
    assert winner["findings"][0]["change"]["queries"] == 0  # held-out means, one a run
    single = drift(str(tuner.folder / "nightly" / "run-0"))
    assert single.stdout.startswith("Insufficient data")

    nameless = tuner.folder / "nightly" / "run-0" / "journal.jsonl"
    nameless.write_text(nameless.read_text().replace('"arm":"baseline"', '"arm":"other"'))
    none = drift(str(nameless.parent), code=2)
    assert "no run has a baseline; try --of winner" in none.stderr


def test_runs_of_an_mlflow_experiment(drift, tmp_path, fresh_store):
    from mlflow import MlflowClient

    store = shutil.copy(fresh_store, tmp_path / "mlflow.db")
    client = MlflowClient(tracking_uri=f"sqlite:///{store}")
    experiment = client.create_experiment("nightly")
    for before in range(40):
        start = datetime.combine(LAST - timedelta(days=before), datetime.min.time(), tzinfo=UTC)
        for team, value in (("ours", 0.6 if before < 7 else 0.8), ("theirs", 0.5)):
            run = client.create_run(
                experiment,
                start_time=int(start.timestamp() * 1000) + 1,
                tags={"team": team, "tuner.role": "study"},
            )
            score = value + 0.01 * math.sin(before)
            client.log_metric(run.info.run_id, "ndcg_at_10", score)
            client.set_terminated(run.info.run_id)
    options = ("--experiment", "nightly", "--metric", "ndcg@10")
    ours = drift(*options, "--tag", "team=ours", code=20)
    assert ours.stdout.startswith("Alarm: ndcg@10 fell by 2")
    assert drift(*options, "--tag", "team=theirs").stdout.startswith("No alarm")
    none = drift("--experiment", "nightly", code=2)
    assert "name a metric of experiment 'nightly' by --metric; it has ndcg_at_10" in none.stderr
    wrong = drift("--experiment", "nightly", "--metric", "ndcg@5", code=2)
    assert "did you mean 'ndcg_at_10'" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give files or run directories, or --experiment NAME"),
        (["daily.csv", "--metric", "scoer"], "no observation has the figure 'scoer'; did you mean"),
        (["daily.csv", "--min-effect", "much"], "--min-effect much: write a share such as 0.05"),
        (["daily.csv", "--min-effect", "latency_ms=0.2"], "latency_ms: this is not watched"),
        (["daily.csv", "--as-of", "today"], "--as-of: 'today' is not a date"),
        (["daily.csv", "--recent", "7", "--reference", "3"], "a reference that is no shorter"),
        (["daily.csv", "--plot", "daily.txt"], "write a file that ends in"),
        (["daily.csv", "--trend", "9999999"], "begin before the calendar does"),
        (["daily.csv", "--as-of", "0001-01-02"], "begin before the calendar does"),
        (["daily.csv", "--tag", "team=search"], "--tag chooses among the runs of --experiment"),
        (["late.csv"], "of 9999-12-31, a day that is still to come"),
        (["nowhere.csv"], "nowhere.csv: cannot be read"),
        (["."], "'.' is no run directory, and holds none"),
        (["other.csv"], "name a figure to watch by --metric: quality"),
        (["--experiment", "x", "--tag", "y", "--metric", "z"], "write KEY=VALUE"),
    ],
)
def test_bad_input_is_told_with_exit_code_2(drift, tmp_path, arguments, message):
    (tmp_path / "daily.csv").write_text(csv_of([0.8] * 40))
    (tmp_path / "other.csv").write_text("date,quality\n2024-03-31,0.5\n")
    (tmp_path / "late.csv").write_text(csv_of([0.8] * 40) + "9999-12-31,0.5\n")
    done = drift(*arguments, code=2)
    assert message in done.stderr


def test_the_picture_of_a_measure_shows_its_own_alarm_alone(drift, tmp_path):
    fallen, steady = csv_of([0.8] * 53 + [0.6] * 7), csv_of([0.8] * 60)
    lines = [f"{a},{b.split(',')[1]}" for a, b in zip(fallen.split(), steady.split(), strict=True)]
    text = "\n".join(["date,fallen,steady", *lines[1:]])
    (tmp_path / "daily.csv").write_text(text)
    both = ("--metric", "fallen", "--metric", "steady")
    with matplotlib.rc_context({"svg.fonttype": "none"}):  # words as words, not as their outlines
        drift("daily.csv", *both, "--plot", "daily.svg", code=20)
    picture = (tmp_path / "daily.svg").read_text()
    assert ">fallen: alarm<" in picture
    assert ">steady: no alarm<" in picture


@pytest.mark.parametrize(("fall", "code"), [("0.2", 20), ("0", 0)])
def test_the_made_up_nights_slip_as_they_say(drift, tmp_path, monkeypatch, fall, code):
    script = Path(__file__).resolve().parents[2] / "experiments" / "drift" / "nightly.py"
    monkeypatch.setattr("sys.argv", ["nightly.py", str(tmp_path), "--fall", fall])
    runpy.run_path(str(script), run_name="__main__")
    done = drift("nightly.csv", "--json", code=code)
    alarms = [one for one in json.loads(done.stdout)["findings"] if one["is_alarm"]]
    assert {one["group"] for one in alarms} == ({"", "bridge"} if code else set())
