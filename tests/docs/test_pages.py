"""README.md and docs/ are true: examples run; commands, options, keys and links exist.

What a page's author writes before a fence, as an HTML comment on a line of its own:

- `<!-- not run: reason -->`: the block cannot be run here; its commands and options must exist.
- `<!-- needs: haystack -->`: the block is run where Python has that module.
- `<!-- exit code: 20 -->`: what each command of the block ends with, where that is not 0.
- `<!-- same output -->`: what stands below each `$ command` is what it prints; `…` is anything.
  `<!-- same output: within 0.01 -->`: figures with decimals may differ by as much: where two
  passages are nearly equal, the rounding of a processor decides which comes first.
- `<!-- file: data/corpus.jsonl -->`: the block is the content of that file.

Pages whose commands are run take seconds each, so those tests are slow ones.
"""

from __future__ import annotations

import ast
import doctest
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tuner.abtest.experiment import ExperimentConfig, load_experiment
from tuner.cli import main
from tuner.cli import tuner as command_line
from tuner.config import load_config
from tuner.config.checking import checked
from tuner.config.model import Config
from tuner.config.source import Source, read_source
from tuner.run.planning import make_plan

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
LANGUAGES = {"console", "python", "yaml", "json", "text", ""}
FENCE = re.compile(r"^( *)(`{3,})([\w-]*)[^\n`]*\n(.*?)^\1\2 *$", flags=re.DOTALL | re.MULTILINE)
NOTE = re.compile(r"<!-- (not run|needs|exit code|same output|file)(?:: (.*?))? -->")
FILE_NAME = re.compile(r"# ([\w./-]+\.(?:py|yaml))\b")

# A configuration that any section of another fits into.
WHOLE: dict[str, Any] = {
    "dataset": {"path": "builtin:atlas"},
    "space": {"top_k": {"type": "integer", "low": 3, "high": 20}},
}
MOST_TRIALS = 3


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and what its author noted before it."""

    language: str
    text: str
    line: int
    notes: dict[str, str]

    @property
    def is_run(self) -> bool:
        needed = self.notes.get("needs", "").split()
        return "not run" not in self.notes and all(find_spec(name) for name in needed)

    @property
    def file(self) -> str | None:
        """Return the name of the file that the block is the content of."""
        named = FILE_NAME.match(self.text)
        return self.notes.get("file") or (named[1] if named else None)

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Return each command with the lines that stand below it as its output."""
        text = re.sub(r" *\\\n *", " ", self.text)
        lines = [line for line in text.splitlines() if line.strip()]
        has_output = any(line.startswith("$ ") for line in lines)
        if not has_output:
            return [(line, "") for line in lines if not line.startswith("#")]
        found: list[tuple[str, str]] = []
        for line in text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif found:
                command, output = found[-1]
                found[-1] = (command, f"{output}{line}\n")
        return found


def blocks_of(text: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(text):
        above = text[: match.start()].rstrip("\n").splitlines()
        notes: dict[str, str] = {}
        for line in reversed(above[-4:]):
            note = NOTE.fullmatch(line.strip())
            if note is None:
                break
            notes[note[1]] = note[2] or ""
        indent = len(match[1])
        body = "".join(line[indent:] for line in match[4].splitlines(keepends=True))
        found.append(Block(match[3], body, text[: match.start()].count("\n") + 1, notes))
    return found


def without_blocks(text: str) -> str:
    """Return a page's prose, on the same lines."""
    return FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)


def page_of(path: Path, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(path, id=str(path.relative_to(ROOT)), marks=marks)


def has_commands(path: Path) -> bool:
    blocks = blocks_of(path.read_text(encoding="utf-8"))
    return any(block.language == "console" and block.is_run for block in blocks)


each_page = pytest.mark.parametrize("path", [page_of(path) for path in PAGES])


# ---- the examples run


@pytest.mark.parametrize(
    "path", [page_of(path, *[pytest.mark.slow] * has_commands(path)) for path in PAGES]
)
@pytest.mark.filterwarnings("ignore")  # MLflow's and others', as a process of its own would
@pytest.mark.usefixtures("written_by_a_thread")
def test_the_examples_run(path: Path, stage: Callable[[str], Path]) -> None:
    blocks = blocks_of(path.read_text(encoding="utf-8"))
    text = "\n".join(block.text for block in blocks if block.is_run)
    folder = stage(text)
    is_tracked = re.search(r"tuner (ui|sync|nightly|promote|history)|mlflow\.|--experiment", text)
    for block in blocks:
        if block.file is not None:
            target = folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks:
        where = f"{path.relative_to(ROOT)}:{block.line}"
        match block.language:
            case "console":
                _run_console(block, folder, where, is_tracked=is_tracked is not None)
            case "python":
                _run_python(block, names, where)
            case "yaml":
                _load_yaml(block, folder, where)
            case "json":
                json.loads(block.text)


def _run_console(block: Block, folder: Path, where: str, *, is_tracked: bool) -> None:
    for command, output in block.commands:
        for problem in _unknown(command):
            pytest.fail(f"{where}: {command}: {problem}")
        command = re.sub(r"pip install [^&#]*(#.*|&& *)?|pytest\b.*|mkdocs\b.*", "", command)
        if not block.is_run or not command.strip():
            continue
        code, said = _done(_small(command, is_tracked=is_tracked), folder)
        assert code == int(block.notes.get("exit code", "0")), f"{where}: {command}\n{said}"
        if "same output" in block.notes:
            printed = "\n".join(line.rstrip() for line in said.splitlines())
            within = float((block.notes["same output"] or "within 0").removeprefix("within "))
            assert _is_like(output, printed, within), f"{where}: {command}\n{said}"


def _is_like(output: str, printed: str, within: float) -> bool:
    like = ".*?".join(re.escape(part.strip()) for part in output.split("…"))
    if not within:
        return re.search(like, printed, re.DOTALL) is not None
    decimals = re.compile(r"[+-]?\d+\.\d+")
    places = [float(found) for found in decimals.findall(output)]
    like = re.sub(r"(?:\\[+-]|\+)?\d+\\\.\d+", lambda _: f"({decimals.pattern})", like)
    found = re.search(like, printed, re.DOTALL)
    return found is not None and all(
        abs(float(one) - other) <= within for one, other in zip(found.groups(), places, strict=True)
    )


def test_figures_may_differ_by_what_a_page_allows_and_by_no_more() -> None:
    page = "tau +0.171 (95 % interval -0.120 to 1.5)\n…\nof 203 queries"
    said = "a line\ntau +0.174 (95 % interval -0.121 to 1.5)\nmore\nof 203 queries\nend"
    assert _is_like(page, said, 0.01)
    assert not _is_like(page, said, 0.002)
    assert not _is_like(page, said, 0.0)
    assert not _is_like(page, said.replace("203", "204"), 0.01)
    assert _is_like(said, said, 0.0)


def _done(command: str, folder: Path) -> tuple[int, str]:
    """Run a command in a folder; return its exit code and what it said.

    What is a `tuner` command, and nothing for a shell, runs in this process: a new one would take
    seconds to import what is imported here.
    """
    words = shlex.split(command, comments=True)
    is_plain = words[:1] == ["tuner"] and not re.search(r"[|&;<>`$*~]", command)
    if not is_plain:
        done = subprocess.run(
            ["bash", "-c", f'tuner() {{ "{sys.executable}" -m tuner "$@"; }}\n{command}'],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit) as left:
        main(words[1:])
    return int(left.value.code or 0), said.getvalue()


def _small(command: str, *, is_tracked: bool) -> str:
    """Let a search that a page starts have a few trials, and MLflow only where the page uses it."""
    named = re.search(r"\btuner (?:run|nightly) +([\w./-]+\.yaml)", command)
    if named is None or "--set backends" in command:
        return command
    config = yaml.safe_load(Path(named[1]).read_text(encoding="utf-8"))
    arms = config.get("backends") or [{"kind": kind} for kind in ("gp", "tpe")]
    few = [{**arm, "trials": min(arm.get("trials", 40), MOST_TRIALS)} for arm in arms]
    settings = f" --set 'backends={json.dumps(few)}'"
    if not is_tracked and "tracking" not in command:
        settings += " --set tracking=null"
    if "nightly" in named[0]:
        settings += f" --set budget.trials={MOST_TRIALS}"
    return command.replace(named[0], named[0] + settings)


def _run_python(block: Block, names: dict[str, Any], where: str) -> None:
    if ">>>" in block.text:
        found = doctest.DocTestParser().get_doctest(block.text, names, where, where, block.line)
        report: list[str] = []
        doctest.DocTestRunner(verbose=False).run(found, out=report.append, clear_globs=False)
        assert not report, "".join(report)
        names.update(found.globs)
        return
    ast.parse(block.text, where)
    if block.is_run and block.file is None:
        exec(compile("\n" * block.line + block.text, where, "exec"), names)


def _load_yaml(block: Block, folder: Path, where: str) -> None:
    """Load a whole configuration; let a fragment, or one that is not run, be a part of one."""
    name = block.file or "fragment.yaml"
    path = folder / name
    path.write_text(block.text, encoding="utf-8")
    data = yaml.safe_load(block.text)
    assert isinstance(data, dict), where
    keys = set(data)
    if keys <= set(ExperimentConfig.model_fields) and not keys <= set(Config.model_fields):
        if block.file is not None and block.is_run:
            load_experiment(path)
        return
    if not keys <= set(Config.model_fields):
        is_other = block.file is not None and not keys & set(Config.model_fields)
        if block.is_run and not is_other:
            pytest.fail(f"{where}: unknown keys {sorted(keys - set(Config.model_fields))}")
        return
    if block.file is not None and block.is_run:
        config, source = load_config(path)
        make_plan(config, source)
        return
    source = read_source(path)
    checked(Source(where, {**WHOLE, **source.data}, source.lines), Config)


# ---- commands and options exist, in blocks and in prose


def _unknown(command: str) -> Iterator[str]:
    """Yield what a line of commands names that does not exist."""
    for part in re.split(r"&&|\|\|?|;", command.partition(" #")[0]):
        words = re.sub(r"^\s*(?:\w+=\S+ +)*(?:python3? -m +)?", "", part).split()
        if words[:2] == ["pip", "install"]:
            for extras in re.findall(r"\[([\w,-]+)\]", part):
                for extra in extras.split(","):
                    if extra.replace("-", "_") not in EXTRAS:
                        yield f"there is no extra {extra!r}"
        elif words[:1] == ["tuner"]:
            yield from _unknown_words(words[1:])


def _unknown_words(words: list[str]) -> Iterator[str]:
    found: click.Command = command_line
    context = click.Context(found)
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        inner = found.get_command(context, name)
        if inner is None:
            yield f"there is no command {name!r}"
            return
        found = inner
    known = {option for parameter in found.params for option in parameter.opts}
    known |= {option for parameter in found.params for option in parameter.secondary_opts}
    for word in words:
        option = word.partition("=")[0].rstrip("`,.;")
        if re.match(r"--?[a-z]", option) and option not in known | {"--help", "-h", "--version"}:
            yield f"{found.name} has no option {option!r}"


@each_page
def test_commands_in_the_text_exist(path: Path) -> None:
    prose = without_blocks(path.read_text(encoding="utf-8"))
    for span in re.findall(r"`((?:python -m )?tuner [a-z][^`]*)`", prose):
        assert not list(_unknown(" ".join(span.split()))), span


# ---- the form of a page


@each_page
def test_blocks_have_a_language_that_is_known_and_a_reason_where_they_are_not_run(
    path: Path,
) -> None:
    text = path.read_text(encoding="utf-8")
    for block in blocks_of(text):
        assert block.language in LANGUAGES, f"line {block.line}: {block.language}"
        is_told = block.notes.get("not run") or block.notes.get("needs")
        assert block.is_run or is_told, f"line {block.line}: why is it not run?"
    for line in re.findall(r"^.*<!--.*$", without_blocks(text), flags=re.MULTILINE):
        assert NOTE.fullmatch(line.strip()) or "generated" in line, line


@each_page
def test_numbers_are_written_one_way(path: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", without_blocks(path.read_text(encoding="utf-8")))
    found = re.findall(r"(?<![\w.…)\]/])[+-]?\.\d+", prose)
    assert not found, f"write 0.061, not .061: {found}"


# ---- links


def _slugs(text: str) -> set[str]:
    """Return the anchors that both a code host and MkDocs give to the headings of a page."""
    found = set()
    for heading in re.findall(r"^#+ +(.*?) *#*$", without_blocks(text), flags=re.MULTILINE):
        words = re.sub(r"[^\w\s-]", "", re.sub(r"[`*]", "", heading)).strip().lower()
        host, mkdocs = words.replace(" ", "-"), re.sub(r"[-\s]+", "-", words)
        if host == mkdocs:
            found.add(host)
    return found


@each_page
def test_links_lead_somewhere(path: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "``", without_blocks(path.read_text(encoding="utf-8")))
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"https?://", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.is_file(), f"{link}: there is no such file"
        assert path.name == "README.md" or target.is_relative_to(ROOT / "docs"), (
            f"{link} leads out of docs/, where MkDocs cannot follow: write the path as code"
        )
        if anchor:
            assert anchor in _slugs(target.read_text(encoding="utf-8")), f"{link}: no such heading"


def test_the_site_lists_every_page_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- (?:[^:\n]+: )?([\w/-]+\.md)$", text, flags=re.MULTILINE)
    pages = [str(path.relative_to(ROOT / "docs")) for path in PAGES if path.parent != ROOT]
    assert sorted(listed) == sorted(pages)


@each_page
def test_files_that_are_named_exist(path: Path) -> None:
    prose = without_blocks(path.read_text(encoding="utf-8"))
    pattern = r"`((?:configs|docs|experiments|tuner|notebooks|tests)/[\w./-]+)`"
    for name in re.findall(pattern, prose):
        assert (ROOT / name).exists(), name
