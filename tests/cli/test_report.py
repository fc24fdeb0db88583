"""tuner report: from a run directory, from MLflow, several studies beside each other."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tuner.tracking.history import read_history


@pytest.fixture
def tuner(tuner_here):
    return tuner_here


@pytest.fixture
def tracked(tuner, fresh_store, written_by_a_thread):
    """Return the command line, whose studies go to a database of its folder, and its address."""
    shutil.copy(fresh_store, tuner.folder / "mlflow.db")
    # Within one process MLflow takes the same relative address for the same database.
    uri = f"sqlite:///{tuner.folder}/mlflow.db"
    tuner.edit("tracking: null", f"tracking: {{uri: '{uri}', experiment: small}}")
    return tuner, uri


def figures(folder):
    return sorted(path.name for path in folder.glob("*.csv"))


def without_time(page):
    assert page.count(b"<dt>took</dt>") == 1
    return re.sub(rb"<dt>took</dt><dd>.*?</dd>", b"", page)


def test_a_run_ends_with_its_report_and_the_command_makes_it_anew(tuner):
    done = tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    named = re.search(r"^report +(.*)$", done.stdout, flags=re.MULTILINE)
    assert named
    report = tuner.folder / named[1]
    assert report == run_dir / "report.html"
    before = report.read_bytes()
    assert not (run_dir / "plots").exists()  # pictures are for MLflow's list of files
    rows = [json.loads(line) for line in (run_dir / "per_query.jsonl").read_text().splitlines()]
    assert {row["part"] for row in rows} == {"holdout"}
    assert len(rows) == 10
    shutil.rmtree(tuner.folder / "data")  # neither data nor system are needed
    report.unlink()
    (tuner.folder / "word_overlap.py").unlink()
    done = tuner("report", str(run_dir.relative_to(tuner.folder)))
    assert done.stdout.strip() == named[1]
    # The page of the run's end does not know yet how long that end took.
    assert without_time(report.read_bytes()) == without_time(before)
    assert (run_dir / "plots" / "convergence.png").is_file()
    assert {"convergence.csv", "queries.csv", "surface.csv"} <= set(figures(run_dir / "figures"))


def test_studies_are_shown_beside_each_other(tuner):
    tuner("run", "config.yaml", "-q", "--name", "first")
    tuner("run", "config.yaml", "-q", "--name", "second", "--set", "study.seed=4")
    tuner.edit("ndcg@10: 0.2", "ndcg@10: 0.4")
    tuner("run", "config.yaml", "-q", "--name", "third")
    first, second, third = tuner.runs()
    arguments = [str(first), "--compare", str(second), str(third), "--output", "all.html"]
    done = tuner("report", *arguments)
    assert done.stdout.strip() == "all.html"
    text = (tuner.folder / "all.html").read_text(encoding="utf-8")
    assert "Studies side by side" in text
    for run_dir in (first, second, third):
        assert text.count(run_dir.name) >= 2  # in the table and in the curves
    assert f"{second.name} differs from {first.name} in split of the queries" in text
    assert f"{third.name} differs from {first.name} in objective:" in text
    assert "compared.csv" in figures(tuner.folder / "all-figures")
    # Without --compare they have a page of their own.
    done = tuner("report", *map(str, (first, second, third)))
    assert done.stdout.strip() == "studies.html"
    text = (tuner.folder / "studies.html").read_text(encoding="utf-8")
    assert "Champions over time" in text
    assert "seed 3" in text
    assert "seed 4" in text
    assert "Holm" in text


@pytest.mark.slow
def test_a_study_in_mlflow_needs_no_run_directory(tracked, as_process):
    here_tuner, _ = tracked
    record = json.loads(here_tuner("run", "config.yaml", "--json").stdout)
    # In a process of its own, where the database of this folder is the one that is meant.
    tuner = as_process(here_tuner.folder)
    run_dir, run_id = tuner.folder / record["run_dir"], record["mlflow_run_id"]
    here = (run_dir / "report.html").read_text(encoding="utf-8")
    assert (run_dir / "plots" / "slices.png").is_file()
    shutil.rmtree(run_dir)
    done = tuner("report", run_id)
    assert done.stdout.strip() == f"report-{run_id}.html"
    there = (tuner.folder / f"report-{run_id}.html").read_text(encoding="utf-8")
    assert f"MLflow run {run_id}" in there
    sentence = re.search(r'<p class="sentence">(.*?)</p>', here)
    assert sentence
    assert sentence[0] in there
    for part in ("✓ relevant", "Gained: the", "Winner less baseline, by metric"):
        assert (part in here) == (part in there), part
    missing = "0" * 32
    done = tuner("report", missing, code=2)
    assert f"there is no run {missing} in sqlite:///mlflow.db" in done.stderr
    done = tuner("report", missing, "--uri", "sqlite:///other.db", code=2)
    assert "'sqlite:///other.db': there is no file" in done.stderr
    assert not (tuner.folder / "other.db").exists()


def test_the_run_of_a_trial_leads_to_its_study(tracked):
    tuner, uri = tracked
    record = json.loads(tuner("run", "config.yaml", "--json").stdout)
    run_dir = tuner.folder / record["run_dir"]
    tags = {"tuner.role": "trial"}
    trials = read_history(uri, "small", tags=tags)
    done = tuner("report", trials[0].run_id, "--uri", uri, "--output", "page.html")
    assert done.stderr == ""  # no progress of downloads
    there = (tuner.folder / "page.html").read_text(encoding="utf-8")
    sentence = re.search(r'<p class="sentence">(.*?)</p>', there)
    assert sentence
    assert sentence[0] in (run_dir / "report.html").read_text(encoding="utf-8")


def test_the_latest_run_is_the_one_of_last(tuner):
    for name in ("zebra", "ant"):
        tuner("run", "config.yaml", "-q", "--name", name)
    (latest,) = [path for path in tuner.runs() if path.name.startswith("ant")]
    assert f"the latest is 'runs/{latest.name}'" in tuner("report", "nowhere", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere"], "error: 'nowhere' is not a run directory (it holds no journal.jsonl)"),
        (["data"], "error: 'data' is not a run directory (it holds no journal.jsonl)"),
        (["a", "b"], "error: 'a' is not a run directory (it holds no journal.jsonl)"),
        (["data", "--output", "."], "Error: Invalid value for '--output'"),
        ([], "Error: Missing argument 'RUN_DIR|RUN_ID|RUNS_DIR...'"),
    ],
)
def test_bad_input_is_named(tuner, arguments, line):
    assert line in tuner("report", *arguments, code=2).stderr


def test_a_report_that_cannot_be_made_costs_no_study(tuner):
    # A folder stands where the page is to go: it cannot be replaced by a file.
    tuner.edit("study: {name: small", "study: {runs_dir: runs, name: small")
    retriever = (tuner.folder / "word_overlap.py").read_text()
    blocker = (
        "import pathlib\n"
        "for run in pathlib.Path('runs').glob('small-*'):\n"
        "    (run / 'report.html').mkdir(exist_ok=True)\n"
    )
    body = retriever.replace(
        "    def retrieve(self, queries, params):\n",
        "    def retrieve(self, queries, params):\n"
        + "".join(f"        {x}\n" for x in blocker.splitlines()),
    )
    (tuner.folder / "word_overlap.py").write_text(body)
    done = tuner("run", "config.yaml")
    assert "no report (" in done.stderr + done.stdout
    assert "make it with: tuner report" in done.stderr + done.stdout
    (run_dir,) = tuner.runs()
    assert (run_dir / "best.yaml").is_file()
    assert "finished after" in done.stdout
