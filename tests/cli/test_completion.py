"""The tab key in real shells: what is offered for a word that is being typed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Each prints what the shell would offer for the last word, a line each. In bash and zsh, what
# offers files only says so: there is no line to be edited.
SHELLS = {
    "bash": """
compopt() {{ echo "$2"; }}
eval "$(_TUNER_COMPLETE=bash_source tuner)"
complete -p tuner >/dev/null || exit 1
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_tuner_completion tuner
printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "zsh": """
compdef() {{ : }}
eval "$(_TUNER_COMPLETE=zsh_source tuner)"
compadd() {{ print -l -- $completions }}
_describe() {{ print -l -- ${{completions_with_descriptions%%:*}} }}
_path_files() {{ [[ $1 == -/ ]] && print dirnames || print default }}
words=({words}); CURRENT=$#words
_tuner_completion
""",
    "fish": """
_TUNER_COMPLETE=fish_source tuner | source
complete -C {line}
""",
}


@pytest.fixture(params=SHELLS)
def offered(request: pytest.FixtureRequest, tmp_path: Path):
    """Return what asks a shell, in a folder with a command called tuner on its path."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "bin" / "tuner"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tuner "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])

    def ask(*words: str) -> list[str]:
        every = ["tuner", *words]
        text = SHELLS[shell].format(
            words=" ".join(map(shlex.quote, every)), line=shlex.quote(" ".join(every))
        )
        plain = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}
        done = subprocess.run(
            [shell, *plain[shell], "-c", text],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return [line.partition("\t")[0].strip() for line in done.stdout.splitlines() if line]

    ask.shell = shell
    return ask


def test_commands_kinds_and_choices(offered):
    assert set(offered("kn")) == {"knobs"}
    assert {"haystack", "http", "hybrid"} == set(offered("knobs", "h"))
    assert set(offered("--log-level", "w")) == {"warning"}
    assert set(offered("evaluate", "config.yaml", "--queries", "h")) == {"holdout"}
    assert "--params" in offered("evaluate", "--pa")


def test_files_and_run_directories(offered, tmp_path):
    (tmp_path / "config.yaml").write_text("{}")
    for name in ("one-20261130-020000", "no-run"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "runs" / "one-20261130-020000" / "journal.jsonl").touch()
    found = offered("resume", "runs/o")
    assert any(one.rstrip("/") == "runs/one-20261130-020000" for one in found)
    found = offered("run", "con")
    assert ("config.yaml" in found) if offered.shell == "fish" else found[0] == "default"
    assert "baseline" in offered("evaluate", "config.yaml", "--params", "base")


def test_query_ids_of_the_configured_data(offered, tmp_path):
    (tmp_path / "data").mkdir()
    rows = [{"_id": "q-lima", "text": "a"}, {"_id": "q-oslo", "text": "b"}, {"_id": "q\nx"}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "data" / "queries.jsonl").write_text(lines)
    (tmp_path / "config.yaml").write_text("dataset: {path: data}\n")
    assert set(offered("ask", "config.yaml", "q")) == {"q-lima", "q-oslo"}
    (tmp_path / "config.yaml").write_text("dataset: [unfinished")
    assert not [one for one in offered("ask", "config.yaml", "q") if one.startswith("q")]
    (tmp_path / "config.yaml").write_text("dataset: {path: 'builtin:atlas'}\n")
    assert "q150" in offered("ask", "config.yaml", "q15")
