"""The workflows of the repository: keys that exist, actions that are pinned, few permissions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".github" / "workflows"
PATHS = sorted(FOLDER.glob("*.yml"))
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

# Of GitHub's keys those that are used here: a new one is looked up before it is added.
TOP = {"name", "on", "permissions", "concurrency", "jobs"}
EVENTS = {"push": {"branches", "tags"}, "pull_request": set(), "workflow_call": set()}
JOB = {"needs", "strategy", "runs-on", "timeout-minutes", "environment", "permissions", "steps"}
STEP = {"name", "uses", "with", "run"}
INPUTS = {
    "actions/checkout": {"persist-credentials"},
    "actions/setup-python": {"python-version"},
    "actions/upload-artifact": {"name", "path", "if-no-files-found"},
    "actions/download-artifact": {"name", "path"},
    "pypa/gh-action-pypi-publish": set(),
}


def read(path: Path) -> dict[str, Any]:
    workflow: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    workflow["on"] = workflow.pop(True)  # YAML 1.1 takes `on` for a truth value
    return workflow


def steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", ())


each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)


def test_there_are_both() -> None:
    assert [path.name for path in PATHS] == ["ci.yml", "release.yml"]


@each
def test_every_key_is_one_that_github_knows(path: Path) -> None:
    workflow = read(path)
    assert set(workflow) <= TOP
    for event, filters in workflow["on"].items():
        assert set(filters or ()) <= EVENTS[event]
    for name, job in workflow["jobs"].items():
        if "uses" in job:  # another workflow
            assert set(job) <= {"uses", "needs"}
            assert (ROOT / job["uses"]).is_file()
            assert "workflow_call" in read(ROOT / job["uses"])["on"]
            continue
        assert set(job) <= JOB, name
        assert job["runs-on"] == "ubuntu-24.04"
        assert job["timeout-minutes"] <= 90
        for step in job["steps"]:
            assert set(step) <= STEP
            assert ("uses" in step) != ("run" in step)
        needed = job.get("needs", [])
        assert {needed} if isinstance(needed, str) else set(needed) <= set(workflow["jobs"])


@each
def test_actions_are_pinned_to_a_commit_with_their_version_beside_it(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if (used := re.search(r"uses: (.*)", line)) and not used[1].startswith("./"):
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} +# v\d+\.\d+\.\d+", used[1]), line
    for step in steps(read(path)):
        if "uses" in step:
            assert set(step.get("with", ())) <= INPUTS[step["uses"].partition("@")[0]]


def test_a_commit_is_the_same_wherever_an_action_is_used() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in PATHS)
    used = set(re.findall(r"uses: (\w\S+)@(\w+)", text))
    assert len(used) == len({name for name, _ in used})


@each
def test_permissions_are_as_few_as_can_be(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    more = {
        name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job
    }
    assert more == ({"publish": {"id-token": "write"}} if path.name == "release.yml" else {})
    text = path.read_text(encoding="utf-8")
    assert "secrets." not in text
    assert "pull_request_target" not in text
    # What an event holds may be written by anybody: no text of it is put into a script.
    for step in steps(workflow):
        assert "${{" not in step.get("run", "")
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"] == {"persist-credentials": False}


@each
def test_commands_exist(path: Path) -> None:
    for step in steps(read(path)):
        for line in step.get("run", "").splitlines():
            command = line.split()[0]
            if command.startswith("."):
                assert os.access(ROOT / command, os.X_OK)
            elif not command.startswith(("installed/bin/", "version=", "[")):
                assert shutil.which(command), command


def test_ci_runs_what_is_run_at_home_on_every_version_of_python() -> None:
    (job,) = read(FOLDER / "ci.yml")["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert job["strategy"]["matrix"]["python"] == named


def test_a_release_is_published_only_after_all_checks_by_what_was_built() -> None:
    jobs = read(FOLDER / "release.yml")["jobs"]
    assert jobs["check"]["uses"].endswith("ci.yml")
    assert (jobs["build"]["needs"], jobs["publish"]["needs"]) == ("check", "build")
    assert jobs["publish"]["environment"] == "release"
    *_, up = jobs["build"]["steps"]
    down, _ = jobs["publish"]["steps"]
    assert {key: up["with"][key] for key in ("name", "path")} == down["with"]


def tagged(folder: Path, tag: str) -> subprocess.CompletedProcess[str]:
    """Run the step of a release that looks at its tag."""
    found = read(FOLDER / "release.yml")["jobs"]["build"]["steps"]
    (step,) = [step for step in found if "tomllib" in step.get("run", "")]
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, "PATH": search, "GITHUB_REF_NAME": tag},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("tag", "code"), [(f"v{VERSION}", 0), (VERSION, 1), ("v99.0.0", 1), (f"v{VERSION}rc1", 1)]
)
def test_a_tag_must_name_the_version(tag: str, code: int) -> None:
    assert tagged(ROOT, tag).returncode == code


def test_a_version_without_a_part_in_the_changelog_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "9.9.9"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("## 0.1.0\n", encoding="utf-8")
    done = tagged(tmp_path, "v9.9.9")
    assert (done.returncode, "CHANGELOG.md has no part" in done.stdout) == (1, True)
