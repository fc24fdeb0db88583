"""Experiments on live traffic from the command line: plan, assign, analyze."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tuner.abtest.experiment import load_experiment
from tuner.abtest.size import rounded
from tuner.abtest.table import read_table
from tuner.cli import main
from tuner.core.errors import InputError

CONFIG = """\
name: wider-graph
arms:
  control: {graph_weight: 0.3}
  treatment: {graph_weight: 0.6}
metrics:
  accepted:
    ratio: {of: accepted}
    better: higher
    before: accepted_before
  latency_p95_ms: {quantile: {of: latency_ms, at: 0.95}, better: lower}
  questions: {sum: asked, better: higher}
  stars: {mean: stars, better: higher}
primary: {metric: accepted, min_effect: 5%}
guardrails:
  latency_p95_ms: {max_increase: 20%}
minimum_sample_size: 400
"""

COLUMNS = ("user", "arm", "date", "asked", "accepted", "latency_ms", "accepted_before", "stars")


def rows(users: int, *, gain: float = 0.0, slow: float = 0.0, seed: int = 0, lost: float = 0.0):
    """Rows of users whose arms are those of the configuration; nobody gave stars."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(users):
        is_treated = number % 2 == 1
        if is_treated and random.random() < lost:
            continue
        rate = random.beta(6, 4)
        before = round(random.binomial(20, rate) / 20, 2)
        day = date(2026, 10, 1) + timedelta(days=int(number * 21 / users))
        for _ in range(1 + random.poisson(2)):
            accepted = int(random.random() < rate * (1 + gain * is_treated))
            latency = round(100 * random.lognormal(0, 0.4) * (1 + slow * is_treated), 1)
            arm = "treatment" if is_treated else "control"
            found.append([f"u{number}", arm, day, 1, accepted, latency, before, ""])
    return found


def write_csv(path: Path, content, columns=COLUMNS):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *content])


class AbTest:
    """Runs ``tuner abtest`` in this process, as main() would end it."""

    def __init__(self, folder: Path, capsys) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, command, *arguments, config="config.yaml", code=0):
        with pytest.raises(SystemExit) as ended:
            main(["abtest", command, config, *arguments])
        printed = self._capsys.readouterr()
        assert ended.value.code == code, printed.err
        return SimpleNamespace(stdout=printed.out, stderr=printed.err)

    def edit(self, old, new):
        path = self.folder / "config.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def abtest(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # main() adds the working directory
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    return AbTest(tmp_path, capsys)


def analyzed(abtest, content, *options, code=0):
    write_csv(abtest.folder / "results.csv", content)
    return abtest("analyze", "results.csv", *options, code=code)


def test_better_and_not_slower_is_shipped(abtest):
    done = analyzed(abtest, rows(1200, gain=0.25), "--html", "page.html", "--json")
    record = json.loads(done.stdout)
    assert record["recommendation"]["outcome"] == "ship"
    assert record["recommendation"]["sentence"].startswith("Ship treatment: accepted +")
    assert record["units"] == {"control": 600, "treatment": 600}
    metrics = record["treatments"]["treatment"]["metrics"]
    assert metrics["accepted"]["variance_reduction"] > 0.05
    assert metrics["latency_p95_ms"]["guardrail"]["is_kept"] is True
    assert metrics["questions"]["adjusted_p"] == metrics["questions"]["always_valid_p"]
    page = (abtest.folder / "page.html").read_text(encoding="utf-8")
    assert record["recommendation"]["sentence"].replace(">", "&gt;") in page
    assert "http" not in page  # nothing comes from elsewhere
    # Users are not assigned as the configuration says here, and are told.
    assert "in another arm than `tuner abtest assign` gives them" in done.stderr


def test_a_metric_that_was_not_tested_says_so(abtest):
    done = analyzed(abtest, rows(1200, gain=0.25), "--json")
    stars = json.loads(done.stdout)["treatments"]["treatment"]["metrics"]["stars"]
    assert stars["is_tested"] is False
    assert stars["p_value"] is None
    assert stars["always_valid_p"] is None
    assert stars["adjusted_p"] is None
    shown = analyzed(abtest, rows(1200, gain=0.25)).stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("stars")]
    assert line.count("not tested") == 3
    assert "no unit of the treatment has a value" in line


def test_no_guard_rail_no_shipping(abtest):
    record = json.loads(analyzed(abtest, rows(1200, gain=0.25, slow=0.6), "--json").stdout)
    assert record["recommendation"]["outcome"] == "do not ship"
    assert "the guard-rail latency_p95_ms is broken" in record["recommendation"]["sentence"]


def test_minimum_sample_is_enforced(abtest):
    record = json.loads(analyzed(abtest, rows(500, gain=0.5), "--json").stdout)
    assert record["treatments"]["treatment"]["metrics"]["accepted"]["always_valid_p"] < 0.05
    decision = record["recommendation"]
    assert decision["outcome"] == "keep collecting"
    assert decision["more_units"] == 300  # 2 * 400 planned, 500 there
    assert "nothing is decided before the 400 that were planned" in decision["sentence"]


def test_undecided_says_how_many_more(abtest):
    abtest.edit("min_effect: 5%", "min_effect: 1%")
    record = json.loads(analyzed(abtest, rows(900, gain=0.03), "--json").stdout)
    decision = record["recommendation"]
    assert decision["outcome"] == "keep collecting"
    assert decision["more_units"] > 0
    assert f"about {rounded(decision['more_units']):,} more units" in decision["sentence"]


def test_worse_is_not_shipped(abtest):
    record = json.loads(analyzed(abtest, rows(1200, gain=-0.3), "--json").stdout)
    assert "is worse" in record["recommendation"]["sentence"]


def test_users_that_got_lost_stop_the_analysis(abtest):
    done = analyzed(abtest, rows(4000, gain=0.5, lost=0.15), code=21)
    assert "Stop: the arms do not have their shares of the units" in done.stdout
    assert "accepted" not in done.stdout
    record = json.loads(analyzed(abtest, rows(4000, gain=0.5, lost=0.15), "--json", code=21).stdout)
    assert record["sample_ratio"]["is_mismatch"] is True
    assert record["treatments"] == {}
    assert record["decisions"] == []


def test_every_format_gives_the_same_answer(abtest):
    content = rows(300, gain=0.2)
    expected = json.loads(analyzed(abtest, content, "--json").stdout)
    names = [name for name in COLUMNS if name != "stars"]
    records = [dict(zip(COLUMNS, map(str, row), strict=True)) for row in content]
    for record in records:
        for name in ("asked", "accepted"):
            record[name] = int(record[name])
        for name in ("latency_ms", "accepted_before"):
            record[name] = float(record[name])
        record["stars"] = None
    with (abtest.folder / "results.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table(
        {name: [record[name] for record in records] for name in names}
        | {"stars": pyarrow.nulls(len(records), pyarrow.float64())}
    )
    parquet.write_table(table, abtest.folder / "results.parquet")
    for name in ("results.jsonl", "results.parquet"):
        assert json.loads(abtest("analyze", name, "--json").stdout) == expected


def test_broken_results_are_reported_whole_with_their_lines(abtest):
    content = rows(20)
    write_csv(abtest.folder / "results.csv", content)
    lines = (abtest.folder / "results.csv").read_text(encoding="utf-8").splitlines()
    lines[1] = "u0,control,2026-10-01,1,maybe,100,0.5,"
    lines[2] = ",control,2026-10-01,1,1,100,0.5,"
    lines[3] = "u0,control,2026-10-01,1,1,inf,0.5,"
    lines[4] = "u0,control,2026-10-01,1,1"
    (abtest.folder / "results.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = abtest("analyze", "results.csv", code=2)
    for part in (
        "results.csv:2: 'accepted' must be a number, got 'maybe'",
        "results.csv:3: 'user' is empty",
        "results.csv:4: 'latency_ms' must be a number, got 'inf'",
        "results.csv:5: 5 fields, but the header has 8",
    ):
        assert part in done.stderr


def test_units_in_two_arms_and_unknown_arms_are_reported(abtest):
    content = rows(20)
    content.append(["u0", "treatment", "", 1, 1, 100, content[0][6], ""])
    content.append(["u99", "treatmnt", "", 1, 1, 100, 0.5, ""])
    done = analyzed(abtest, content, code=2)
    last = len(content) + 1
    assert f"results.csv:{last - 1}: user 'u0' is in arm 'treatment' here and in" in done.stderr
    assert f"results.csv:{last}: unknown arm 'treatmnt'; did you mean 'treatment'?" in done.stderr


def test_values_from_before_that_change_are_not_from_before(abtest):
    content = rows(20)
    content.append([*content[0][:6], content[0][6] + 0.5, ""])
    done = analyzed(abtest, content, code=2)
    assert f"results.csv:{len(content) + 1}: 'accepted_before' is" in done.stderr
    assert "one value a unit from before the experiment" in done.stderr


def test_missing_columns_are_named(abtest):
    columns = ["accepte" if name == "accepted" else name for name in COLUMNS]
    write_csv(abtest.folder / "results.csv", rows(20), columns)
    done = abtest("analyze", "results.csv", code=2)
    assert "no column 'accepted'; did you mean 'accepte'?" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "No such file"),
        ("results.xlsx", b"x", "must end in .csv, .tsv, .jsonl or .parquet"),
        ("empty.csv", b"", "holds no rows"),
        ("header.csv", ",".join(COLUMNS).encode(), "holds no rows"),
        ("bad.jsonl", b"{\n[1]\n", "bad.jsonl:1: not valid JSON"),
        ("broken.parquet", b"PAR1nothing", "not a whole Parquet file"),
        ("latin.csv", ",".join(COLUMNS).encode() + b"\n\xff,control\n", "latin.csv:2"),
    ],
)
def test_files_that_are_none(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=re.escape(message)):
        read_table(tmp_path / name, ("user", "arm"), ("accepted",))


def test_the_page_escapes_what_it_shows(abtest):
    abtest.edit("{graph_weight: 0.6}", '{prompt: "<script>alert(1)</script>"}')
    analyzed(abtest, rows(100), "--html", "page.html")
    page = (abtest.folder / "page.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_run_in_mlflow_holds_figures_sentence_and_page(abtest, fresh_store):
    from mlflow import MlflowClient

    uri = f"sqlite:///{shutil.copy(fresh_store, abtest.folder / 'm.db')}"
    done = analyzed(abtest, rows(1200, gain=0.25), "--mlflow", uri, "--json")
    record = json.loads(done.stdout)
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("graphrag-abtest")
    (run,) = client.search_runs([experiment.experiment_id])
    metrics, tags, params = run.data.metrics, run.data.tags, run.data.params
    files = [file.path for file in client.list_artifacts(run.info.run_id)]
    assert run.info.status == "FINISHED"
    assert metrics["units.control"] == 600
    found = record["treatments"]["treatment"]["metrics"]["accepted"]
    assert metrics["treatment.accepted.difference"] == pytest.approx(found["difference"])
    assert "treatment.stars.p" not in metrics
    assert tags["tuner.abtest.recommendation"] == record["recommendation"]["sentence"]
    assert params["treatment.graph_weight"] == "0.6"
    assert files == ["abtest.html", "abtest.json"]


def test_a_store_that_cannot_be_is_refused_before_anything_else(abtest):
    done = analyzed(abtest, rows(20), "--mlflow", "nowhere", code=2)
    assert "nowhere" in done.stderr


@pytest.mark.slow
def test_a_store_that_fails_does_not_take_the_analysis_with_it(tuner):
    (tuner.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    (tuner.folder / "taken.db").write_text("no database at all" * 100, encoding="utf-8")
    write_csv(tuner.folder / "results.csv", rows(20))
    options = ("--mlflow", "sqlite:///taken.db")
    done = tuner("abtest", "analyze", "config.yaml", "results.csv", *options, code=1)
    assert "Keep collecting" in done.stdout
    assert "taken.db" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_page_needs_a_folder(abtest):
    done = analyzed(abtest, rows(20), "--html", "no/such/page.html", code=2)
    assert "there is no folder 'no/such'" in done.stderr
    done = analyzed(abtest, rows(20), "--html", ".", code=2)
    assert "--html .: this is a folder; name a file" in done.stderr


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("semicolons.csv", lambda text: text.replace(",", ";").encode()),
        ("tabs.tsv", lambda text: text.replace(",", "\t").encode()),
        ("windows.csv", lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()),
        ("words.csv", lambda text: text.replace(",1,0,", ",yes,False,").encode()),
    ],
)
def test_spreadsheets_and_databases_write_the_same_table_in_their_own_ways(abtest, name, write):
    expected = analyzed(abtest, rows(100), "--json").stdout
    text = (abtest.folder / "results.csv").read_text(encoding="utf-8")
    (abtest.folder / name).write_bytes(write(text))
    assert abtest("analyze", name, "--json").stdout == expected


@pytest.mark.parametrize(
    ("place", "cell", "message"),
    [
        (4, "1e308", "'accepted' must be a number up to 1e+100, got '1e308'"),
        (4, "0,5", "'accepted' must be a number, got '0,5'; write 0.5"),
        (5, "-3", "'latency_ms' is a time, which cannot be negative, got '-3'"),
        (5, "-inf", "'latency_ms' must be a number, got '-inf'"),
    ],
)
def test_figures_that_cannot_be_are_named_with_their_line(abtest, place, cell, message):
    content = rows(20)
    content[2][place] = cell
    done = analyzed(abtest, content, code=2)
    assert f"results.csv:4: {message}" in done.stderr


def test_decimals_of_a_parquet_file_are_numbers(abtest):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    content = rows(100)
    expected = json.loads(analyzed(abtest, content, "--json").stdout)
    columns = dict(zip(COLUMNS, map(list, zip(*content, strict=True)), strict=True))
    columns["stars"] = [None] * len(content)
    columns["latency_ms"] = [Decimal(str(one)) for one in columns["latency_ms"]]
    columns["accepted"] = [bool(one) for one in columns["accepted"]]
    parquet.write_table(pyarrow.table(columns), abtest.folder / "results.parquet")
    assert json.loads(abtest("analyze", "results.parquet", "--json").stdout) == expected


def test_several_treatments_are_each_held_against_the_control(abtest):
    abtest.edit("  treatment: {graph_weight: 0.6}", "  treatment: {graph_weight: 0.6}\n  other: {}")
    content = rows(1600, gain=0.3)
    third = [[f"o{row[0]}", "other", *row[2:]] for row in rows(1600, seed=1) if row[1] == "control"]
    record = json.loads(analyzed(abtest, content + third, "--json").stdout)
    assert record["alpha_each_treatment"] == 0.025
    assert [one["treatment"] for one in record["decisions"]] == ["treatment", "other"]
    assert record["recommendation"]["treatment"] == "treatment"
    shown = analyzed(abtest, content + third).stdout
    assert "other against control" in shown


def test_assign_gives_the_arms_of_the_library(abtest):
    users = ["ann", "bob", "用户", 'a "b", c'] + [f"u{number}" for number in range(200)]
    (abtest.folder / "ids.txt").write_text("\n".join(users) + "\n", encoding="utf-8")
    done = abtest("assign", "ids.txt")
    read = list(csv.reader(done.stdout.splitlines()))
    assert read[0] == ["id", "arm"]
    assignment = load_experiment(abtest.folder / "config.yaml")[0].assignment()
    assert read[1:] == [[user, assignment.arm(user)] for user in users]
    assert read[1:3] == [["ann", "control"], ["bob", "treatment"]]
    assert abtest("assign", "ids.txt").stdout == done.stdout


def test_assign_reads_standard_input(tuner):
    (tuner.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    done = subprocess.run(
        tuner.command("abtest", "assign", "config.yaml"),
        input=b"ann\n\nbob\n",
        cwd=tuner.folder,
        env=tuner.environment,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"id,arm\nann,control\nbob,treatment\n"


def test_ids_go_out_as_utf_8_whatever_the_terminal_says(tuner):
    (tuner.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    done = subprocess.run(
        tuner.command("abtest", "assign", "config.yaml"),
        input="\ufeff用户\r\n".encode(),
        cwd=tuner.folder,
        env={**tuner.environment, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() in ("id,arm\n用户,control\n", "id,arm\n用户,treatment\n")


def test_assign_leaves_units_out_where_the_split_does(abtest):
    with (abtest.folder / "config.yaml").open("a", encoding="utf-8") as file:
        file.write("split: {control: 0.05, treatment: 0.05}\n")
    (abtest.folder / "ids.txt").write_text("\n".join(map(str, range(500))), encoding="utf-8")
    arms = [line.split(",")[1] for line in abtest("assign", "ids.txt").stdout.splitlines()[1:]]
    assert 400 < arms.count("") < 490


def test_experiments_that_could_share_users_of_a_layer_are_refused(abtest):
    for name, start, end in (("low", 0, 0.5), ("high", 0.5, 1), ("wide", 0.4, 1)):
        layer = f"layer: {{name: retrieval, start: {start}, end: {end}}}\n"
        text = CONFIG.replace("wider-graph", name) + layer
        (abtest.folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    (abtest.folder / "ids.txt").write_text("\n".join(map(str, range(300))), encoding="utf-8")
    low = abtest("assign", "ids.txt", "--beside", "high.yaml", config="low.yaml").stdout
    high = abtest("assign", "ids.txt", config="high.yaml").stdout
    for one, other in zip(low.splitlines()[1:], high.splitlines()[1:], strict=True):
        assert one.endswith(",") != other.endswith(",")
    done = abtest("assign", "ids.txt", "--beside", "wide.yaml", config="low.yaml", code=2)
    assert "0.4 to 1 of wide.yaml and 0 to 0.5 of low.yaml overlap" in done.stderr


def test_plan_tells_users_and_days(abtest):
    write_csv(abtest.folder / "before.csv", rows(2100))
    done = abtest("plan", "before.csv", "--json")
    record = json.loads(done.stdout)
    primary, guardrail = record["metrics"]
    assert (primary["metric"], guardrail["metric"]) == ("accepted", "latency_p95_ms")
    assert 0 < primary["one_look"] < primary["any_look"]
    assert 0.0 < primary["variance_reduction"] < 1.0
    assert record["baseline"]["units"] == 2100
    # 100 new users a day: days = units in all / 100, and whole weeks of them.
    assert record["days"] == pytest.approx(record["total_units"] / 100, abs=1.5)
    assert record["weeks"] == -(-record["days"] // 7)
    assert record["total_units"] == 2 * record["sample_size_per_arm"]
    shown = abtest("plan", "before.csv").stdout
    assert f"Plan {record['sample_size_per_arm']:,} units in the smallest arm (any look, " in shown


def test_a_planned_look_needs_fewer_users(abtest):
    write_csv(abtest.folder / "before.csv", rows(1000))
    many = json.loads(abtest("plan", "before.csv", "--json").stdout)["sample_size_per_arm"]
    fixed = abtest("plan", "before.csv", "--json", "--set", "decide=fixed_horizon")
    record = json.loads(fixed.stdout)
    assert record["sample_size_per_arm"] < many
    assert f"write minimum_sample_size: {record['sample_size_per_arm']}, now 400" in fixed.stderr


def test_a_baseline_needs_neither_secondary_columns_nor_values_from_before(abtest):
    few = [[*row[:1], row[2], *row[4:6]] for row in rows(1000)]
    write_csv(abtest.folder / "few.csv", few, ("user", "date", "accepted", "latency_ms"))
    done = abtest("plan", "few.csv", "--json")
    assert json.loads(done.stdout)["metrics"][0]["variance_reduction"] is None
    assert "no values in 'accepted_before': planned without CUPED" in done.stderr


def test_dates_that_are_none_are_named_with_their_lines(abtest):
    content = rows(5)
    content[1][2] = "yesterday"
    write_csv(abtest.folder / "before.csv", content)
    done = abtest("plan", "before.csv", code=2)
    assert "before.csv:3: date: 'yesterday' is not a date; write 2024-03-01" in done.stderr


def test_days_of_a_baseline_are_those_of_utc(abtest):
    content = rows(1000)
    for row in content:
        row[2] = f"{row[2]}T23:30:00-02:00"  # the next day in UTC
    write_csv(abtest.folder / "before.csv", content)
    baseline = json.loads(abtest("plan", "before.csv", "--json").stdout)["baseline"]
    assert (baseline["first_day"], baseline["last_day"]) == ("2026-10-02", "2026-10-22")


def test_nothing_is_planned_by_a_metric_without_a_spread(abtest):
    content = [[*row[:4], 1, *row[5:]] for row in rows(100)]
    write_csv(abtest.folder / "before.csv", content)
    done = abtest("plan", "before.csv", code=2)
    assert "accepted is 1 for every unit in the baseline" in done.stderr


def test_a_plan_never_asks_for_less_than_the_minimum_sample(abtest):
    write_csv(abtest.folder / "before.csv", rows(1000))
    least = ("--set", "minimum_sample_size=50000")
    record = json.loads(abtest("plan", "before.csv", "--json", *least).stdout)
    assert record["metrics"][0]["any_look"] < 50_000
    assert record["sample_size_per_arm"] == 50_000


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("min_effect: 5%", "min_effect: five", ["config.yaml:13: primary.min_effect: should be a"]),
        ("metric: accepted", "metric: acepted", ["did you mean 'accepted'?"]),
        ("  latency_p95_ms: {max", "  latency: {max", ["config.yaml:15: guardrails.latency"]),
        ("max_increase", "max_decrease", ["lower is better here, so write max_increase"]),
        ("minimum_sample_size", "minimum_sample", ["did you mean 'minimum_sample_size'?"]),
        ("ratio: {of: accepted}", "ratio: {of: accepted}\n    mean: x", ["exactly one of mean"]),
        ("before: accepted_before", "before: accepted", ["a column from before the experiment"]),
        ("  control:", "  today:", ["one arm must be called 'control'"]),
        ("name: wider-graph", "name: x\narm: user", ["arm: the column 'user' is named twice"]),
        ("name: wider-graph", "name: x\ndate: arm", ["date: the column 'arm' is named twice"]),
        ("{sum: asked,", "{sum: user,", ["holds units or arms, not numbers"]),
        ("name: wider-graph", "split: {control: 0.9, treatmen: 0.2}\nname: x",
         ["split.treatmen: no such arm; did you mean 'treatment'?", "'treatment' has no share"]),
        ("name: wider-graph", "split: {control: 0.9, treatment: 0.2}\nname: x", ["sum to 1.1"]),
        ("name: wider-graph", "layer: {name: a, start: 0.5, end: 0.2}\nname: x", ["is empty"]),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_told_with_file_line_and_key(tmp_path, old, new, messages):
    path = tmp_path / "config.yaml"
    assert old in CONFIG
    path.write_text(CONFIG.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_experiment(path)
    for message in [*messages, "config.yaml:"]:
        assert message in str(caught.value)


def test_bad_input_ends_without_a_traceback(abtest):
    abtest.edit("min_effect: 5%", "min_effect: five")
    done = abtest("assign", "config.yaml", code=2)
    assert "error: config.yaml:13: primary.min_effect: should be a number" in done.stderr


def test_the_configuration_that_ships_is_right():
    path = Path(__file__).resolve().parents[2] / "configs" / "abtest" / "experiment.yaml"
    config, _ = load_experiment(path)
    assert config.assignment().arm("ann") == "control"
    assert "configs/abtest/experiment.yaml" in path.read_text(encoding="utf-8")
