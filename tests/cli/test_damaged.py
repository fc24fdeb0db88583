"""Files of a run that were damaged: named, gone on without where that is possible, no traceback."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

PLAIN, WARM, SLOW = "runs/plain", "runs/warm", "runs/slow"
POLICY = f"{PLAIN}/policy.yaml"
NIGHT = ("nightly", "config.yaml", "--set", "study.runs_dir=nights", "--date", "2026-11-30")
PAIR = ("compare", "config.yaml", "--b", PLAIN)


def noise(content: bytes) -> bytes:
    return random.Random(1).randbytes(300)


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def empty(content: bytes) -> bytes:
    return b""


def deep(content: bytes) -> bytes:
    """Put a line of 100,000 brackets before the others."""
    return b"[" * 100_000 + b"]" * 100_000 + b"\n" + content


def other(content: bytes) -> bytes:
    return b'[1, "x", null]\n'


def record_with(change: Callable[[dict], None], kind: str = "") -> Callable[[bytes], bytes]:
    """Change the last line that is of a kind."""

    def damage(content: bytes) -> bytes:
        lines = content.decode().splitlines()
        place = max(n for n, line in enumerate(lines) if kind in line)
        record = json.loads(lines[place])
        change(record)
        return "".join(f"{line}\n" for line in [*lines[:place], json.dumps(record)]).encode()

    return damage


def without(*keys: str) -> Callable[[dict], None]:
    def change(record: dict) -> None:
        for key in keys[:-1]:
            record = record[key]
        del record[keys[-1]]

    return change


def with_(value: object, *keys: str) -> Callable[[dict], None]:
    def change(record: dict) -> None:
        for key in keys[:-1]:
            record = record[key]
        record[keys[-1]] = value

    return change


ENDS = '"kind":"summary"'
# The file, what happens to it, the command that reads it, how that ends: done without the file, or
# bad input.
CASES = [
    *((f"{PLAIN}/trials/0.npz", way, command, code)
      for way in (noise, cut, empty)
      for command, code in ((("policy", PLAIN), 0), (("resume", PLAIN), 0))),
    (f"{PLAIN}/trials/2.npz", noise, ("policy", PLAIN), 2),  # the winner's
    *((f"{PLAIN}/journal.jsonl", way, command, 2)
      for way in (noise, other, empty)
      for command in (("policy", PLAIN), ("resume", PLAIN), ("report", PLAIN), ("sync", PLAIN),
                      ("export", PLAIN, "--optuna", "sqlite:///o.db"), ("drift", "runs"))),
    (f"{PLAIN}/journal.jsonl", deep, ("policy", PLAIN), 2),
    *((f"{PLAIN}/journal.jsonl", record_with(change, ENDS), command, 2)
      for change in (without("state"), without("winner", "arm"), with_("x", "verdict"),
                     with_([[]], "arms"), with_(None, "best", "tune_objective"))
      for command in (("policy", PLAIN), ("report", PLAIN), ("drift", "runs", "--of", "winner"))),
    *(("runs/holdouts.jsonl", way, PAIR, 0) for way in (noise, deep, other)),
    *(("runs/holdouts.jsonl", record_with(change), PAIR, 0)
      for change in (with_("x", "time"), with_(7, "queries"), without("queries"))),
    *(("nights/nights.jsonl", way, ("history", "nights"), 0) for way in (deep,)),
    *(("nights/nights.jsonl", way, ("history", "nights"), 2) for way in (noise, other, empty)),
    *(("nights/nights.jsonl", record_with(change, kind), ("history", "nights"), 0)
      for kind, change in (
          ('"event": "ended"', with_("x", "summary")),
          ('"event": "ended"', with_({"outcome": 7}, "summary")),
          ('"event": "ended"', with_([1], "summary", "verdict")),
          ('"event": "begun"', with_("x", "champion")),
          ('"event": "begun"', with_(10**400, "at")),
          ('"event": "scored"', with_("x", "by_query")),
      )),
    ("nights/nights.jsonl", deep, NIGHT, 0),
    *(("nights/nights.jsonl", record_with(change, kind), NIGHT, 0)
      for kind, change in (
          ('"event": "begun"', with_("x", "data", "fingerprints")),
          ('"event": "queries"', with_([], "types")),
          ('"event": "queries"', with_([1, "x"], "types")),
      )),
    *((f"{PLAIN}/best.yaml", way, PAIR, 2) for way in (noise, other, empty)),
    *((f"{PLAIN}/config.yaml", way, ("resume", PLAIN), 2) for way in (noise, other, empty)),
    *((POLICY, way, ("evaluate", "config.yaml", "--params", POLICY), 2)
      for way in (noise, other, empty)),
    *((f"{PLAIN}/per_query.jsonl", way, ("report", PLAIN), 2) for way in (noise, deep, other)),
    *((f"{WARM}/earlier.jsonl", way, ("resume", WARM), 2)
      for way in (noise, deep, other, record_with(with_("x", "params")),
                  record_with(with_("high", "objective")), record_with(without("trial")))),
]  # fmt: skip


def name(value: object) -> str:
    if callable(value):
        return getattr(value, "__name__", "")
    return value[0] if isinstance(value, tuple) else str(value)


@pytest.fixture
def damaged(finished, tmp_path, run_here, monkeypatch):
    """Return how to damage a file and run a command."""
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    monkeypatch.setenv("TUNER_CACHE_DIR", str(folder / "cache"))

    def run(file: str, damage: Callable[[bytes], bytes], *command: str):
        path = folder / file
        path.write_bytes(damage(path.read_bytes()))
        return run_here(folder, *command)

    return run


@pytest.mark.parametrize(("file", "damage", "command", "code"), CASES, ids=name)
def test_a_damaged_file_is_named(damaged, file, damage, command, code):
    done = damaged(file, damage, *command)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert Path(file).name in said


def test_a_trial_whose_values_are_of_another_study_counts_by_its_means(damaged, finished):
    def shorter(content: bytes) -> bytes:
        with (finished / "other.npz").open("wb") as stream:
            np.savez(stream, **{"recall@5": np.zeros(3), "mrr@10": np.zeros(3)})
        return (finished / "other.npz").read_bytes()

    done = damaged(f"{PLAIN}/trials/2.npz", shorter, "resume", PLAIN)
    assert done.returncode == 0
    assert "trials/2.npz: this file of values by query" in done.stderr
    assert "trial 2 counts by its means" in done.stderr


def test_answers_that_are_damaged_are_asked_again(damaged, finished):
    (file, *_) = sorted((finished / SLOW / "answers").glob("*.jsonl"))
    place = f"{SLOW}/answers/{file.name}"
    # A run that ended is judged anew, and so reads its answers, where its configuration changed.
    damaged(f"{SLOW}/config.yaml", lambda text: text.replace(b"alpha: 0.05", b"alpha: 0.04"))
    for damage in (noise, deep, other, record_with(with_("x", "ids"))):
        done = damaged(place, damage, "resume", SLOW, "--json")
        assert done.returncode == 0
        assert json.loads(done.stdout)["verdict"] is not None


def test_the_summary_that_was_damaged_is_written_anew_as_the_message_says(damaged):
    gone = record_with(without("winner", "arm"), ENDS)
    done = damaged(f"{PLAIN}/journal.jsonl", gone, "policy", PLAIN)
    assert "the study's summary is damaged (winner.arm is missing)" in done.stderr
    assert f"write it anew: tuner resume {PLAIN}" in done.stderr
    assert damaged(f"{PLAIN}/journal.jsonl", bytes, "resume", PLAIN).returncode == 0
    assert damaged(f"{PLAIN}/journal.jsonl", bytes, "policy", PLAIN).returncode == 0
