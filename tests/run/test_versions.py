"""The commit of a checkout: found where there is one, and never a reason to fail."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tuner.run.versions import git_commit


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_folder_of_a_checkout_has_its_commit(tmp_path, monkeypatch):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    git(tmp_path, "init", "-q")
    (tmp_path / "inner").mkdir()
    assert git_commit(tmp_path) is None  # nothing is committed yet
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    commit = git_commit(tmp_path / "inner")
    monkeypatch.delenv("GIT_DIR")
    assert commit == git(tmp_path, "rev-parse", "HEAD")
    assert len(commit) == 40


def test_without_git_or_a_checkout_there_is_none(tmp_path, monkeypatch):
    assert git_commit(tmp_path) is None
    assert git_commit(tmp_path / "missing") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit(tmp_path) is None
