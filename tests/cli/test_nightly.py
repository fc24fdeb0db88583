"""tuner nightly, history and promote: what they print, how they leave, and whom they tell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import tomllib
from configparser import ConfigParser
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from tuner.cli import tuner as command_line
from tuner.config import load_config
from tuner.drift.sources import observations_of
from tuner.nightly.records import dates_of_studies
from tuner.run.planning import make_plan

ROOT = Path(__file__).resolve().parents[2]
SCHEDULES = ROOT / "configs" / "nightly"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

CONFIG = """\
study: {name: small, seed: 3}
dataset: {path: "builtin:atlas"}
space:
  graph_weight: {type: real, low: 0.0, high: 1.0}
  max_hops: {type: integer, low: 1, high: 3}
objective:
  maximize: {ndcg@10: 1.0}
metrics: [ndcg@10]
# Far from what the space has to offer.
baseline: {graph_weight: 0.0, max_hops: 1, top_k: 10, temperature: 0.05}
backends:
  - {kind: random, trials: 3}
  - {kind: tpe, trials: 5}
execution: {kind: inline}
tracking: null
nightly: {promote: ask, keep: {studies: 1}}
"""


@pytest.fixture
def small(tuner_here, index_dir, monkeypatch):
    (tuner_here.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.setenv("TUNER_CACHE_DIR", str(index_dir))
    return tuner_here


def test_a_night_its_approval_and_the_history(small):
    done = small("nightly", "config.yaml", "--date", "2026-03-01", "--quiet", code=10)
    summary = json.loads(done.stdout)
    assert (summary["outcome"], summary["exit_code"]) == ("waiting for approval", 10)
    assert summary["night"] == "2026-03-01"
    assert Path(small.folder, summary["run_dir"], "journal.jsonl").is_file()
    again = small("nightly", "config.yaml", "--date", "2026-03-01")
    assert json.loads(again.stdout)["outcome"] == "nothing to do"

    assert json.loads(again.stdout)["sentence"].endswith("is done: waiting for approval.")
    assert "waiting for approval" in small("history", "config.yaml").stdout

    small("promote", "config.yaml", "--to", "2026-03-01", "--reason", "looks right")
    again = json.loads(small("nightly", "config.yaml", "--date", "2026-03-01").stdout)
    assert again["outcome"] == "nothing to do"
    assert "it waited for approval, and study " in again["sentence"]
    assert " was approved since (" in again["sentence"]
    second = small("nightly", "config.yaml", "--date", "2026-03-02", "-q", code=None)
    champion = json.loads(second.stdout)["champion"]
    assert champion["params"] == summary["challenger"]["params"]

    table = small("history", "config.yaml", "--plot", "nights.png").stdout
    assert "2026-03-01" in table
    assert "2026-03-02" in table
    (first_row,) = [line for line in table.splitlines() if line.startswith("2026-03-01")]
    assert "deploy" in first_row
    assert "approved since, by " in first_row
    assert "waiting for approval" not in first_row
    assert "looks right" in table
    assert (small.folder / "nights.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads(small("history", "runs", "--json").stdout)
    assert [row["night"] for row in record["nights"]] == ["2026-03-01", "2026-03-02"]
    assert record["nights"][0]["outcome"] == "waiting for approval"  # as the night left it
    assert record["nights"][0]["approved"] == record["champions"][0]["who"]
    assert record["champions"][0]["why"] == "looks right"
    assert small("report", "runs").stdout.strip() == "nights.html"
    page = (small.folder / "nights.html").read_text(encoding="utf-8")
    assert "Nights of small" in page
    for told in ("2 nights, 2 studies still kept", "approved since, by ", "looks right"):
        assert told in page
    assert (small.folder / "nights-figures" / "champions.csv").is_file()
    # keep: {studies: 1}: the first night's directory stays, as the champion is from there
    assert len(small.runs()) == 2
    third = small("nightly", "config.yaml", "--date", "2026-03-03", "-q", code=None)
    assert json.loads(third.stdout)["pruned"] == [Path(json.loads(second.stdout)["run_dir"]).name]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nightly", "config.yaml", "--date", "tomorrow"), "write it as 2026-11-30"),
        (("nightly", "config.yaml", "--set", "nightly.promote=maybe"), "nightly.promote"),
        (("nightly", "config.yaml", "--set", "nightly.notify={}"), "exactly one of command"),
        (("history", "runs"), "runs"),
        (("promote", "config.yaml", "--to", "7"), "no registry"),
        (("promote", "config.yaml", "--to", "challenger"), "no night has found a challenger"),
        (("promote", "config.yaml", "--to", "2026-03-01"), "no night of that date"),
        (("promote", "config.yaml", "--to", "best"), "write a version's number"),
    ],
)
def test_bad_input_is_told_in_a_line(small, arguments, said):
    done = small(*arguments, code=2)
    assert said in done.stderr


def test_a_night_that_cannot_begin_says_so_in_json_too(small):
    small.edit("builtin:atlas", "nowhere")
    done = small("nightly", "config.yaml", "--date", "2026-03-01", code=2)
    summary = json.loads(done.stdout)
    assert (summary["outcome"], summary["exit_code"]) == ("failed", 2)
    assert "nowhere" in summary["sentence"]


@pytest.mark.slow
def test_a_command_is_told_and_one_that_fails_changes_nothing(small):
    small.edit("promote: ask", "promote: ask, notify: {command: [sh, -c, 'cat > told.json']}")
    done = small("nightly", "config.yaml", "--date", "2026-03-01", "-q", code=None)
    assert json.loads((small.folder / "told.json").read_text()) == json.loads(done.stdout)
    small.edit("'cat > told.json'", "'echo no mail today >&2; exit 5'")
    broken = small("nightly", "config.yaml", "--date", "2026-03-02", "-q", code=None)
    assert broken.returncode == json.loads(broken.stdout)["exit_code"] != 5
    why = "sh left with exit code 5: no mail today"
    assert f"nobody was told: {why}" in broken.stderr
    summary = json.loads(broken.stdout)
    assert (summary["told"], summary["why_not_told"]) == (False, why)
    history = small("history", "runs").stdout
    assert f"2026-03-02 nobody was told: {why}" in history
    (record,) = [json.loads(small("history", "runs", "--json").stdout)]
    told = [(row["told"], row["why_not_told"]) for row in record["nights"]]
    assert told == [(True, None), (False, why)]


ALONE = """\
study: {name: alone, seed: 3}
retriever: {kind: function, function: "measured_alone:score"}
space: {x: {type: real, low: 0.0, high: 1.0}}
objective: {maximize: {objective: 1.0}}
baseline: {x: 0.0}
backends: [{kind: random, trials: 3}]
execution: {kind: inline}
tracking: null
nightly: {notify: {command: [sh, -c, 'cat >> told.json']}}
"""


@pytest.fixture
def alone(tuner_here, monkeypatch):
    """Let the nights be of a function of x that fails at the champion's place."""
    (tuner_here.folder / "config.yaml").write_text(ALONE, encoding="utf-8")
    text = "def score(params):\n    return 1 / params['x']\n"
    (tuner_here.folder / "measured_alone.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tuner_here.folder))
    return tuner_here


def test_a_failed_night_says_why_everywhere_and_is_told_once(alone):
    night = ("nightly", "config.yaml", "--date", "2026-03-01", "-q")
    tries = [alone(*night, code=1) for _ in range(3)]
    reason = "the champion could not be evaluated: ZeroDivisionError: "
    for done in tries:
        summary = json.loads(done.stdout)
        assert (summary["outcome"], summary["told"]) == ("failed", True)
        assert summary["error"].startswith(reason)
        assert summary["sentence"].startswith(f"The night failed: {reason}")
        assert f"error: The night failed: {reason}" in done.stderr
    assert f"2026-03-01 failed: {reason}" in alone("history", "runs").stdout
    told = (alone.folder / "told.json").read_text()
    assert json.loads(told) == json.loads(tries[0].stdout)  # one notice, not three

    # The end of a night that had failed is news.
    alone.edit("{x: 0.0}", "{x: 0.5}")
    done = alone(*night)
    assert json.loads(done.stdout)["error"] is None
    assert (alone.folder / "told.json").read_text() == told + json.dumps(
        json.loads(done.stdout), indent=2, ensure_ascii=False
    )
    assert "failed" not in alone("history", "runs").stdout


def test_an_outage_interrupts_a_night_is_told_once_and_the_next_call_goes_on(alone):
    """The system answers three times, is away for two calls, and comes back."""
    code = """\
from pathlib import Path
asked, here = Path("asked"), Path("here")
def score(params):
    asked.write_text((asked.read_text() if asked.exists() else "") + ".")
    if len(asked.read_text()) > 3 and not here.exists():
        raise ConnectionRefusedError("nobody listens")
    return 1 - params["x"] ** 2
"""
    (alone.folder / "measured_alone.py").write_text(code, encoding="utf-8")
    alone.edit("trials: 3", "trials: 9")
    night = ("nightly", "config.yaml", "--date", "2026-03-01", "-q")
    tries = [alone(*night, code=130) for _ in range(2)]
    for done in tries:
        summary = json.loads(done.stdout)
        assert (summary["outcome"], summary["told"]) == ("interrupted", True)
        assert "does not answer: ConnectionRefusedError: nobody listens" in summary["error"]
        assert summary["error"] in done.stderr
        assert "The next call on its date goes on with it." in summary["sentence"]
    assert summary["trials"]["failed"] == 0
    told = (alone.folder / "told.json").read_text()
    assert json.loads(told) == json.loads(tries[0].stdout)  # one notice, not two
    assert "2026-03-01 interrupted: the system does not" in alone("history", "runs").stdout
    (alone.folder / "here").touch()
    done = json.loads(alone(*night).stdout)
    assert (done["outcome"], done["is_resumed"], done["error"]) == ("kept", True, None)
    assert (done["trials"]["evaluated"], done["trials"]["failed"]) == (10, 0)
    assert len(alone.runs()) == 1
    assert "interrupted" not in alone("history", "runs").stdout


def test_a_night_that_an_error_ended_is_in_the_history_and_told_once(alone):
    alone.edit("measured_alone:score", "measured_alone:scores")
    for _ in range(2):
        done = alone("nightly", "config.yaml", "--date", "2026-03-01", code=2)
        summary = json.loads(done.stdout)
        assert summary["error"] in done.stderr
        assert summary["told"] is True
    assert json.loads((alone.folder / "told.json").read_text())["error"] == summary["error"]
    (row,) = json.loads(alone("history", "runs", "--json").stdout)["nights"]
    assert (row["outcome"], row["error"]) == ("failed", summary["error"])
    assert "has no 'scores'" in row["error"]


class Hook(BaseHTTPRequestHandler):
    """Takes what is posted to it, and answers as the server says."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append((self.path, json.loads(body)))
        self.send_response(self.server.answer)
        self.send_header("Content-Length", "1000")  # which never come: nobody reads them
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hook():
    server = HTTPServer(("127.0.0.1", 0), Hook)
    server.posted, server.answer = [], 200
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_a_web_hook_is_told_and_its_address_is_shown_nowhere(small, hook, monkeypatch):
    small.edit("promote: ask", 'promote: ask, notify: {webhook: "${HOOK}"}')
    monkeypatch.setenv("HOOK", f"http://127.0.0.1:{hook.server_port}/T0/sEcr3t")
    done = small("nightly", "config.yaml", "--date", "2026-03-01", code=None)
    assert hook.posted == [("/T0/sEcr3t", json.loads(done.stdout))]
    hook.answer = 500
    refused = small("nightly", "config.yaml", "--date", "2026-03-02", code=None)
    assert "nobody was told: http://127.0.0.1 answered 500" in refused.stderr
    assert refused.returncode == json.loads(refused.stdout)["exit_code"]
    shown = done.stdout + done.stderr + refused.stdout + refused.stderr
    assert "sEcr3t" not in shown
    files = [path for path in (small.folder / "runs").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"sEcr3t" in path.read_bytes()]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "the environment variable HOOK is not set, or empty"),
        ("", "the environment variable HOOK is not set, or empty"),
        ("s3cret", "is no address that begins with http:// or https://"),
    ],
)
def test_a_web_hook_that_is_none_is_bad_input_before_anything_ran(alone, monkeypatch, value, said):
    alone.edit("command: [sh, -c, 'cat >> told.json']", 'webhook: "${HOOK}"')
    monkeypatch.delenv("HOOK", raising=False)
    if value is not None:
        monkeypatch.setenv("HOOK", value)
    done = alone("nightly", "config.yaml", "--date", "2026-03-01", code=2)
    assert f"config.yaml:9: nightly.notify.webhook: {said}" in done.stderr
    summary = json.loads(done.stdout)
    assert said in summary["error"]
    assert (summary["outcome"], summary["told"]) == ("failed", None)
    assert "s3cret" not in done.stdout + done.stderr
    assert not (alone.folder / "runs").exists()


def test_the_configuration_that_ships_is_right():
    config, source = load_config(SCHEDULES / "graphrag.yaml")
    assert make_plan(config, source).arms
    assert config.nightly.promote == "ask"


def test_github_keeps_the_state_of_every_night_and_lets_somebody_approve():
    workflow = yaml.safe_load((SCHEDULES / "github-actions.yml").read_text())
    assert workflow["permissions"] == {"contents": "read", "actions": "read"}
    night, promote = workflow["jobs"]["night"], workflow["jobs"]["promote"]
    steps = {name: job["steps"] for name, job in workflow["jobs"].items()}
    before = [
        next(step for step in one if "gh run" in step.get("run", "")) for one in steps.values()
    ]
    assert before[0]["run"] == before[1]["run"]
    assert before[0]["env"] == before[1]["env"]
    # What a night has judged counts in all later ones, whatever its exit code.
    *_, leaves, upload, report = night["steps"]
    for step in (leaves, upload):
        assert step["if"] == "always() && steps.before.outcome == 'success'"
    state = {
        "name": "nights-state",
        "path": "state.tar.gz",
        "retention-days": 90,
        "overwrite": True,
    }
    assert upload["with"] == promote["steps"][-1]["with"] == state
    assert workflow["env"]["STATE"] == "nights-state"
    assert "runs mlflow.db mlruns" in leaves["run"]
    assert "runs/*/report.html" in report["with"]["path"]
    assert promote["environment"] == "retrieval-champion"
    assert "tuner promote" in promote["steps"][-2]["run"]
    assert night["concurrency"] == promote["concurrency"]
    assert f"graphrag-tuner=={VERSION}" in night["steps"][2]["run"]


@pytest.mark.parametrize(
    ("left", "seen", "calls"), [([0], 0, 1), ([10], 0, 1), ([3], 0, 1), ([20], 20, 1),
    ([1], 1, 1), ([130, 10], 0, 2), ([130] * 9, 130, 4)],
)  # fmt: skip
def test_github_goes_on_with_a_night_that_an_outage_interrupted(tmp_path, left, seen, calls):
    workflow = yaml.safe_load((SCHEDULES / "github-actions.yml").read_text())
    (step,) = [s for s in workflow["jobs"]["night"]["steps"] if "tuner nightly" in s.get("run", "")]
    (tmp_path / "codes").write_text("".join(f"{code}\n" for code in left))
    fake(tmp_path, "sleep", "exit 0")
    script = "echo call >> calls; code=$(head -n 1 codes); sed -i 1d codes; echo {}; exit $code"
    environment = {**with_tuner(tmp_path, script), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]], env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == seen
    assert len((tmp_path / "calls").read_text().splitlines()) == calls
    assert (tmp_path / "summary").read_text() == "```json\n{}\n```\n"


def test_cron_keeps_the_last_nights_file_where_another_job_is_at_work(tmp_path):
    lines = (SCHEDULES / "crontab").read_text().splitlines()
    (line,) = [line for line in lines if not line.startswith("#")]
    page = (SCHEDULES.parents[1] / "docs" / "production" / "nightly.md").read_text(encoding="utf-8")
    assert f"```text\n{line}\n```" in page
    schedule, command = line[:9], line[9:].strip()
    assert schedule == "0 2 * * *"
    assert ".venv/bin/tuner nightly" in command  # cron has a short PATH
    assert "%" not in command  # which is the end of a line to cron
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    fake(tmp_path, "mail", "cat > mailed; echo $2 >> subjects")
    environment = {**os.environ, "PATH": os.pathsep.join([str(tmp_path), os.environ["PATH"]])}
    nights = [("first", 0), ("", 3), ("promoted", 10), ("", 3), ("drift", 20), ("", 2)]
    kept = []
    for said, code in nights:
        fake(tmp_path / ".venv" / "bin", "tuner", f"printf '{said}'; echo log >&2; exit {code}")
        in_test = command.replace("/srv/tuning", str(tmp_path))
        subprocess.run(["sh", "-c", in_test], env=environment, cwd="/", check=True)
        kept.append((tmp_path / "last-night.json").read_text())
    assert kept == ["first", "first", "promoted", "promoted", "drift", "drift"]
    codes = [line.rsplit(" ", 1)[1] for line in (tmp_path / "subjects").read_text().splitlines()]
    assert codes == ["10", "20", "2"]
    assert (tmp_path / "mailed").read_text() == "log\n" * 6  # bad input said nothing but that


def test_systemd_tries_again_what_that_may_cure_and_tells_of_the_rest(tmp_path):
    service = unit("graphrag-nightly.service")
    assert service["Service"]["SuccessExitStatus"].split() == ["3", "10"]
    assert service["Service"]["RestartPreventExitStatus"].split() == ["1", "2", "20"]
    assert service["Unit"]["OnFailure"] == "graphrag-nightly-failure.service"
    assert (SCHEDULES / service["Unit"]["OnFailure"]).is_file()
    assert service["Service"]["TimeoutStartSec"] == "3h"
    assert "MemoryMax" in service["Service"]
    # The tries end before the next night begins to count its own.
    tries = int(service["Unit"]["StartLimitBurst"])
    assert tries * int(service["Service"]["RestartSec"].removesuffix("min")) >= 4 * 60
    assert "OnCalendar" in unit("graphrag-nightly.timer")["Timer"]
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    names = [path.name for path in SCHEDULES.iterdir() if path.suffix in (".service", ".timer")]
    for name in names:
        text = (SCHEDULES / name).read_text().replace("/srv/tuning/.venv/bin/tuner", "/bin/true")
        (tmp_path / name).write_text(text.replace("User=tuning", "User=root"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in names)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert [line for line in done.stderr.splitlines() if str(tmp_path) in line] == []


def test_kubernetes_outlasts_an_outage_and_no_more():
    job = yaml.safe_load((SCHEDULES / "kubernetes-cronjob.yaml").read_text())
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    spec = job["spec"]["jobTemplate"]["spec"]
    pod = spec["template"]["spec"]
    # 10 s, doubled each time, at most 6 minutes.
    pauses_s = sum(min(10 * 2**count, 360) for count in range(spec["backoffLimit"]))
    assert 3 * 3600 < pauses_s < spec["activeDeadlineSeconds"] < 8 * 3600
    assert pod["restartPolicy"] == "Never"  # or there is no podFailurePolicy
    ignore, fail = spec["podFailurePolicy"]["rules"]
    assert (ignore["action"], fail["action"]) == ("Ignore", "FailJob")
    assert fail["onExitCodes"]["values"] == [1, 2, 20]
    (container,) = pod["containers"]
    assert fail["onExitCodes"]["containerName"] == container["name"]
    assert container["image"].endswith(f":{VERSION}")
    assert container["resources"]["limits"]["memory"]
    (volume,) = container["volumeMounts"]
    assert container["env"][0]["value"].startswith(volume["mountPath"])


def test_the_image_is_made_of_what_the_wheel_is_made_of():
    text = (ROOT / "Dockerfile").read_text()
    (job,) = yaml.safe_load_all((SCHEDULES / "kubernetes-cronjob.yaml").read_text())
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] in text
    assert f"USER {pod['securityContext']['runAsUser']}:" in text
    sources = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ")]
    copied = {name for names in sources for name in names}
    assert all((ROOT / name).exists() for name in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert copied >= {
        "pyproject.toml",
        project["project"]["readme"],
        *project["project"]["license-files"],
    }
    left = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in copied} <= set(left)


def test_the_image_runs_the_command_as_nobody_special_in_the_folder_that_lasts():
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    told = dict(line.split(" ", 1) for line in lines if re.match(r"[A-Z]+ ", line))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (entry,) = json.loads(told["ENTRYPOINT"])
    assert entry in project["scripts"]
    assert "CMD" not in told
    assert told["WORKDIR"] == told["VOLUME"]
    assert told["ENV"].startswith(f"TUNER_CACHE_DIR={told['WORKDIR']}/")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", told["USER"])
    version = re.match(r"python:(3\.\d+)-", told["FROM"])
    assert f"Python :: {version[1]}" in " ".join(project["classifiers"])
    # The example in the comment: what it mounts is that folder, and what it runs is a command.
    (example,) = [line for line in lines if "docker run" in line]
    assert f":{told['WORKDIR']} " in example
    assert re.search(r"graphrag-tuner:\S+ (\w+)", example)[1] in command_line.list_commands(None)


@pytest.mark.parametrize(
    ("left", "seen"), [(0, 0), (10, 0), (3, 0), (20, 20), (1, 1), (2, 2), (130, 130)]
)
def test_the_pod_fails_where_the_night_does_and_not_by_a_promotion(tmp_path, left, seen):
    pod = subprocess.run(pod_command(), env=with_tuner(tmp_path, f"exit {left}"), check=False)
    assert pod.returncode == seen


def test_the_end_of_a_pod_is_told_to_the_night(tmp_path):
    waits = "trap 'exit 130' TERM; echo here; while :; do sleep 0.01; done"
    environment = with_tuner(tmp_path, waits)
    with subprocess.Popen(pod_command(), env=environment, stdout=subprocess.PIPE) as pod:
        assert pod.stdout.readline() == b"here\n"
        pod.terminate()
        assert pod.wait(timeout=900) == 130


def pod_command():
    job = yaml.safe_load((SCHEDULES / "kubernetes-cronjob.yaml").read_text())
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return [*container["command"], *container["args"]]


def with_tuner(folder, script):
    """Return an environment in which `tuner` is a shell script."""
    fake(folder, "tuner", script)
    return {**os.environ, "PATH": os.pathsep.join([str(folder), os.environ["PATH"]])}


def test_drift_dates_nights_by_their_date_and_other_runs_by_the_clock(alone, monkeypatch):
    alone.edit("{x: 0.0}", "{x: 0.5}")
    for night in ("2026-02-27", "2026-03-01"):
        alone("nightly", "config.yaml", "--date", night, "-q", code=None)
    nights, today = {date(2026, 2, 27), date(2026, 3, 1)}, datetime.now(UTC).date()
    monkeypatch.chdir(alone.folder)
    for of in ("baseline", "winner"):
        assert {
            one.day for one in observations_of(["runs"], of=of, nights_of=dates_of_studies)
        } == nights
    (last,) = {
        one.day
        for one in observations_of(
            [str(alone.runs()[-1])], of="baseline", nights_of=dates_of_studies
        )
    }
    assert last == date(2026, 3, 1)
    alone("run", "config.yaml", "-q")
    days = {one.day for one in observations_of(["runs"], of="baseline", nights_of=dates_of_studies)}
    assert nights < days
    assert all(abs(day - today) <= timedelta(days=1) for day in days - nights)


def fake(folder, name, script):
    """Let a shell script stand for a program."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def unit(name):
    """Read a unit of systemd."""
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string((SCHEDULES / name).read_text())
    return parser
