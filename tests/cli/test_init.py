"""tuner init at the command line: asked in a terminal, by options elsewhere, and what it keeps."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import CommandLine

HANGS_S = 900.0


class Terminal:
    """A command in a pseudo-terminal: what it says is read, and what is asked is answered."""

    def __init__(self, line: CommandLine, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        self.said, self.heard = "", 0
        self.process = subprocess.Popen(
            line.command(*arguments),
            cwd=line.folder,
            env={**line.environment, "COLUMNS": "200", "TERM": "dumb"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            close_fds=True,
        )
        os.close(slave)

    def read_until(self, text: str) -> None:
        """Read until a text is said after what was read before."""
        end = time.monotonic() + HANGS_S
        while (found := self.said.find(text, self.heard)) < 0:
            assert self._read(end), f"never said {text!r}:\n{self.said}"
        self.heard = found + len(text)

    def answer(self, text: str) -> None:
        os.write(self.master, f"{text}\n".encode())

    def ended(self) -> int:
        """Read to the end, and return the exit code."""
        end = time.monotonic() + HANGS_S
        while self._read(end):
            pass
        os.close(self.master)
        return self.process.wait(timeout=HANGS_S)

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], max(0.0, end - time.monotonic()))
        try:
            found = os.read(self.master, 65536) if ready else b""
        except OSError:  # the other end is closed
            return False
        self.said += found.decode(errors="replace")
        return bool(found)


def config_of(folder: Path, name: str = "tuner.yaml") -> dict:
    return yaml.safe_load((folder / name).read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_terminal_is_asked_with_defaults_and_again_after_a_wrong_answer(tuner):
    terminal = Terminal(tuner, "init")
    terminal.read_until("[data]")
    terminal.answer("dta")
    terminal.read_until("did you mean 'data'?")
    terminal.read_until("[data]")
    terminal.answer("")
    terminal.read_until("[hybrid]")
    terminal.answer("word_overlap:WordOverlop")
    terminal.read_until("did you mean 'WordOverlap'?")
    terminal.read_until("[hybrid]")
    terminal.answer("word_overlap:WordOverlap")
    assert terminal.ended() == 0, terminal.said
    assert "tuner run tuner.yaml" in terminal.said
    config = config_of(tuner.folder)
    assert config["dataset"]["path"] == "data"
    assert config["retriever"] == {"kind": "word_overlap:WordOverlap"}
    assert set(config["space"]) == {"title_weight", "top_k", "mode"}
    assert config["baseline"] == {"title_weight": 1.0, "top_k": 10, "mode": "plain"}


@pytest.mark.slow
def test_a_terminal_is_asked_before_a_file_is_written_over(tuner):
    (tuner.folder / "tuner.yaml").write_text("mine: true\n", encoding="utf-8")
    terminal = Terminal(tuner, "init", "--dataset", "data", "--retriever", "hybrid")
    terminal.read_until("[y/N]")
    terminal.answer("")
    assert terminal.ended() == 2
    assert config_of(tuner.folder) == {"mine": True}
    terminal = Terminal(tuner, "init", "--dataset", "data", "--retriever", "hybrid")
    terminal.read_until("[y/N]")
    terminal.answer("y")
    assert terminal.ended() == 0, terminal.said
    assert config_of(tuner.folder)["retriever"] == {"kind": "hybrid"}


def test_ctrl_c_at_a_question_writes_nothing(tuner):
    terminal = Terminal(tuner, "init")
    terminal.read_until("[data]")
    os.write(terminal.master, b"\x04")  # the end of input, as Ctrl-D
    assert terminal.ended() == 130
    assert not (tuner.folder / "tuner.yaml").exists()


def test_yes_asks_nothing_in_a_terminal(tuner):
    terminal = Terminal(tuner, "init", "--yes")
    assert terminal.ended() == 0, terminal.said
    assert "[" not in terminal.said.partition("data set")[0]
    assert config_of(tuner.folder)["retriever"] == {"kind": "hybrid"}


def test_without_a_terminal_what_cannot_be_guessed_names_its_option(tuner_here):
    (tuner_here.folder / "data").rename(tuner_here.folder / ".data")
    done = tuner_here("init", code=2)
    assert "--dataset" in done.stderr
    done = tuner_here("init", "--dataset", ".data", "--retriever", "cat", code=2)
    assert "--baseline" in done.stderr
    assert not (tuner_here.folder / "tuner.yaml").exists()


def test_a_file_that_is_there_is_kept(tuner_here):
    before = (tuner_here.folder / "config.yaml").read_bytes()
    done = tuner_here("init", "config.yaml", "--dataset", "data", code=2)
    assert "--force" in done.stderr
    assert (tuner_here.folder / "config.yaml").read_bytes() == before
    tuner_here("init", "config.yaml", "--dataset", "data", "--force")
    assert (tuner_here.folder / "config.yaml").read_bytes() != before
    assert "is a folder" in tuner_here("init", "data", code=2).stderr


def test_a_folder_for_the_file_is_made_and_the_next_commands_name_it(tuner_here):
    done = tuner_here("init", "configs/mine.yaml", "--dataset", "data")
    assert "tuner run configs/mine.yaml" in done.stdout
    tuner_here("check", "configs/mine.yaml")


def test_what_can_be_searched_too_is_a_comment_that_can_be_taken_off(tuner_here):
    tuner_here("init", "--dataset", "data")
    path = tuner_here.folder / "tuner.yaml"
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("  # ") and ": {type:" in line]
    assert len(lines) > 10
    for name in ("seeds", "hop_decay", "bm25_b"):
        (line,) = (line for line in lines if line.startswith(f"  # {name}:"))
        text = text.replace(line, line.replace("# ", "", 1))
    path.write_text(text, encoding="utf-8")
    done = tuner_here("check", "tuner.yaml")
    assert "bm25_b" in config_of(tuner_here.folder)["space"]
    assert "ok" in done.stdout


def test_a_store_of_mlflow_with_a_password_is_not_written(tuner_here, monkeypatch):
    secret = "postgresql://me:s3cret-word@db/mlflow"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", secret)
    done = tuner_here("init", "--dataset", "data")
    text = (tuner_here.folder / "tuner.yaml").read_text(encoding="utf-8")
    assert "s3cret-word" not in text + done.stdout + done.stderr
    assert '--set tracking.uri="$MLFLOW_TRACKING_URI"' in text
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tuner_here.folder}/other.db")
    tuner_here("init", "--dataset", "data", "--force")
    assert config_of(tuner_here.folder)["tracking"]["uri"].endswith("/other.db")


@pytest.mark.parametrize("name", ["nowhere", "no such program", "word_overlap.py", "data", "'"])
def test_what_is_no_system_is_told_in_a_line(name, tuner_here):
    done = tuner_here("init", "--dataset", "data", "--retriever", name, code=2)
    assert name.strip("'") in done.stderr
    assert not (tuner_here.folder / "tuner.yaml").exists()
