"""One way out for text: no command prints past it."""

from __future__ import annotations

import ast
import csv
import json
import re
from pathlib import Path

import pytest

from tuner import cli

PRINTERS = {"out.py", "console.py"}
FILES = sorted(
    path for path in Path(cli.__file__).parent.rglob("*.py") if path.name not in PRINTERS
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_printed_past_the_way_out(path):
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.Name)
    }
    assert not names & {"secho", "Console"}
    assert "click.echo" not in path.read_text(encoding="utf-8")


BRACKETS, ACTIVE = "[/local] [red]", "=1+1 \x1b[2J\x1b]0;mine\x07 \u202etxt.exe \x9b31m\rover"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def hostile(tuner_here, monkeypatch):
    """Return a command line in a folder where types, ids, texts and names are hostile."""
    data = tuner_here.folder / "data"
    queries = []
    for line in (data / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        query = json.loads(line)
        is_first = query["query_type"] == "market"
        query["query_type"] = BRACKETS if is_first else ACTIVE
        query["difficulty"] = "@hard" if is_first else "-easy"
        query["_id"] = f"=[/{query['_id']}]"
        query["text"] += f" {BRACKETS} {ACTIVE}"
        queries.append(json.dumps(query))
    (data / "queries.jsonl").write_text("\n".join(queries), encoding="utf-8")
    qrels = (data / "qrels" / "test.tsv").read_text(encoding="utf-8")
    (data / "qrels" / "test.tsv").write_text(re.sub(r"(?m)^(q\d\S*)", r"=[/\1]", qrels))
    taste = '  taste: {type: categorical, choices: ["[/a]", "=b\\e[1m"]}'
    tuner_here.edit("  top_k: {", f"{taste}\n  top_k: {{")
    tuner_here.edit("baseline: {", "baseline: {taste: '[/a]', ")
    module = tuner_here.folder / "word_overlap.py"
    knob = r'Knob("taste", "categorical", "[/a]", choices=("[/a]", "=b\x1b[1m")),'
    module.write_text(module.read_text().replace("knobs = (", f"knobs = (\n        {knob}"))
    return tuner_here


def cells(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [cell for row in csv.reader(file) for cell in row]


def is_run(cell: str) -> bool:
    """Say whether a spreadsheet would run a cell."""
    return cell[:1] in tuple("=+-@\t\r") and not re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", cell)


def test_hostile_texts_are_shown_by_every_command(hostile):
    def said(*arguments: str, code: int | None = 0) -> str:
        done = hostile(*arguments, code=code)
        text = done.stdout + done.stderr
        assert not FORBIDDEN.search(text), repr(FORBIDDEN.search(text))
        return text

    assert BRACKETS in said("check", "config.yaml")
    table = said("run", "config.yaml")
    assert "taste=[/a]" in table
    (run_dir,) = hostile.runs()
    run = str(run_dir)
    assert BRACKETS in said("evaluate", "config.yaml", "--by", "query_type", "--per-query", "o.csv")
    assert BRACKETS in said("compare", "config.yaml", "--b", run)
    assert "\\u001b[2J" in said("policy", run)
    assert "[/" in said("resume", run)
    said("report", run)
    said("export", run, "--optuna", "o\x1b[2J.log")
    assert "taste=[/a]" in said("bench", "config.yaml", "--duration", "20ms", "--concurrency", "1")
    assert "[/a]" in said("knobs", "word_overlap:WordOverlap")
    assert BRACKETS in said("dataset", "stats", "data")
    said("dataset", "check", "data", code=None)
    said("drift", "runs", code=None)
    said("knobs", "[/no]\x1b[2J", code=2)
    said("no\x1b[2Jcommand", code=2)
    said("run", "config.yaml", "--set", "a\x1b[2J=[/b]", code=2)
    said("run", "no\x1b[2J[/file].yaml", code=2)
    said("check", "config.yaml", "--json")
    json.loads(hostile("evaluate", "config.yaml", "--json").stdout)

    files = [hostile.folder / "o.csv", *(run_dir / "figures").glob("*.csv")]
    assert len(files) > 4
    for path in files:
        assert not [cell for cell in cells(path) if is_run(cell)]
    assert any(cell.startswith("'=[/") for cell in cells(hostile.folder / "o.csv"))


def test_hostile_names_of_runs_and_values_are_shown_by_score(tuner_here):
    folder = tuner_here.folder
    for name in ("[a].run", "=b\x1b[2J.run"):
        lines = (f"=q{n} Q0 d{n + r} {r} {9 - r} tag\n" for n in range(6) for r in range(1, 4))
        (folder / name).write_text("".join(lines))
    (folder / "qrels.txt").write_text("".join(f"=q{n} 0 d{n + 1} 1\n" for n in range(6)))
    done = tuner_here(
        "score", "--qrels", "qrels.txt", "--run", "[a].run", "--run", "=b\x1b[2J.run",
        "--compare", "--per-query", "o.csv", "--aggregates",
    )  # fmt: skip
    assert not FORBIDDEN.search(done.stdout + done.stderr)
    assert "[a]" in done.stdout
    assert "=b\\u001b[2J" in done.stdout
    assert not [cell for cell in cells(folder / "o.csv") if is_run(cell)]


def test_too_little_memory_is_told_in_a_line(tuner_here):
    module = tuner_here.folder / "word_overlap.py"
    text = module.read_text(encoding="utf-8")
    assert "        answers = []\n" in text
    module.write_text(text.replace("        answers = []\n", "        raise MemoryError\n", 1))
    done = tuner_here("evaluate", "config.yaml", code=1)
    assert done.stderr.splitlines()[-1] == "error: this machine's memory is too small for it"
