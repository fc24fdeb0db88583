"""Run tests in a copy of the tree, and say whether they notice a mutant."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import forking
import psutil
import reporting
from mutations import Mutant

# A mutant's tests may take this many times what they take without it, and some seconds more: the
# machine may have become busier since.
TIMES = 4.0
MORE_S = 20.0
# The time for tests that were not timed yet. It is held against their own time afterwards.
FIRST_S = 240.0
TEST_S = 150.0  # for a single test
# Test files that cost more come last in their ring.
DEAR_S = 10.0
UNKNOWN_S = 1.0
LARGEST_BYTES = 6 * 2**30
# Samples that some tests look for beside the checkout, and are skipped without.
BESIDE = "shared"
# What test files cost is kept from run to run: it changes no result but the order and the time.
COSTS = Path(gettempdir()) / "mutants-costs.json"


@dataclass(frozen=True)
class Ended:
    """How a run of tests ended."""

    passed: int
    failed: str  # the first test that failed, "" for none
    words: str  # the end of what it said
    seconds: float
    is_over: bool  # it ran to its end, and was not stopped for time or memory
    costs: dict[str, float]  # of each file


@dataclass(frozen=True)
class Verdict:
    """What the tests say of a mutant."""

    result: str  # killed, survived or undecided
    by: str = ""
    ring: int = 0
    files: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class _Part:
    """What some of the tests say of a mutant."""

    result: str
    by: str = ""
    passed: int = 0


@dataclass(frozen=True)
class Copy:
    """A copy of the tree, in which single mutants are written and taken out again."""

    root: Path
    runs: subprocess.Popen[bytes]  # what starts a run of tests, see forking.py
    red: set[str] = field(default_factory=set)  # test files that are not green without a mutant
    usual_s: dict[tuple[str, ...], float] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)  # of test files, see _cost

    @classmethod
    @contextlib.contextmanager
    def of(cls, tree: Path, package: str) -> Iterator[Copy]:
        """Copy a tree for as long as it is needed."""
        with TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
            root = Path(folder) / "tree"
            left_out = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__")
            shutil.copytree(tree, root, ignore=left_out, symlinks=True)
            if (tree.parent / BESIDE).exists():
                (root.parent / BESIDE).symlink_to((tree.parent / BESIDE).resolve())
            # The tests of a mutant import nothing of ours but this.
            (root.parent / "plugin").mkdir()
            shutil.copy(reporting.__file__, root.parent / "plugin")
            with _runs(root, package) as runs:
                made = cls(root, runs)
                with contextlib.suppress(OSError, ValueError):
                    made.costs.update(json.loads(COSTS.read_text("utf-8")))
                try:
                    yield made
                finally:
                    COSTS.write_text(json.dumps(made.costs), "utf-8")

    @contextlib.contextmanager
    def with_mutant(self, mutant: Mutant) -> Iterator[None]:
        """Write a mutant, and take it out again."""
        path = self.root / mutant.path
        source = path.read_text("utf-8")
        try:
            self._write(path, mutant.of(source))
            yield
        finally:
            self._write(path, source)

    def _write(self, path: Path, source: str) -> None:
        # Compiled code is told to be old by second and size, which may be equal here.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        path.write_text(source, "utf-8")

    def judge(self, mutant: Mutant, rings: Sequence[Sequence[str]], *, most_s: float) -> Verdict:
        """Run the rings of tests on a mutant until one kills it, or so much work is done."""
        start = time.monotonic()
        left = [
            (ring, test)
            for ring, tests in enumerate(rings, start=1)
            for test in sorted(tests, key=lambda test: self.costs.get(test, 0.0) > DEAR_S)
        ]
        files, passed, spent_s, size = 0, 0, 0.0, 1
        while left and spent_s < most_s:
            # The nearest file first and alone: most mutants live no longer.
            some, ahead_s = left[:1], spent_s + self.costs.get(left[0][1], UNKNOWN_S)
            for one in left[1:size]:
                ahead_s += self.costs.get(one[1], UNKNOWN_S)
                if ahead_s > most_s:
                    break
                some.append(one)
            left = left[len(some) :]
            size = min(2 * size, 8)
            part = self._judge(mutant, [test for _, test in some if test not in self.red])
            files += len(some)
            passed += part.passed
            spent_s += sum(self.costs.get(test, 0.0) for _, test in some)
            if part.result != "survived":
                seconds = time.monotonic() - start
                return Verdict(part.result, part.by, some[0][0], files, seconds)
        seconds = time.monotonic() - start
        if not passed:
            return Verdict("undecided", "no test that runs", 0, files, seconds)
        return Verdict("survived", f"{len(left)} files left" * bool(left), 0, files, seconds)

    def _judge(self, mutant: Mutant, tests: list[str]) -> _Part:
        while tests:
            usual_s = self.usual_s.get(tuple(tests))
            limit_s = FIRST_S if usual_s is None else TIMES * usual_s + MORE_S
            with self.with_mutant(mutant):
                ended = self.run(tests, limit_s=limit_s)
            if ended.is_over and not ended.failed:
                self.costs.update(ended.costs)
                return _Part("survived", "", ended.passed)
            # A kill counts only if the same is green without the mutant right now, and in time.
            if ended.is_over and "::" in ended.failed:
                now = self.run([ended.failed], limit_s=limit_s)
            else:
                now = self.run(tests, limit_s=limit_s)
                if now.is_over and not now.failed:
                    self.usual_s[tuple(tests)] = now.seconds
                    if not ended.is_over and limit_s < TIMES * now.seconds:
                        if usual_s is None:
                            continue  # once more, with the right limit
                        return _Part("undecided", "late, and nearly so without the mutant")
            if not now.is_over:
                return _Part("undecided", "late with and without the mutant")
            if not now.failed:
                if "Timeout (>" in ended.words and TIMES * now.seconds > TEST_S:
                    return _Part("undecided", "late, and nearly so without the mutant")
                return _Part("killed", ended.failed if ended.is_over else "time-out")
            # Red with and without: of no use.
            print(f"  red without a mutant: {now.failed}: {now.words[-200:]}", flush=True)
            red = [test for test in tests if now.failed.startswith(test)]
            if not red:
                return _Part("undecided", f"red without the mutant too: {now.failed}")
            self.red.update(red)
            tests = [test for test in tests if test not in red]
        return _Part("survived")

    def run(self, tests: Sequence[str], *, limit_s: float) -> Ended:
        """Run tests up to the first that fails."""
        report, said = self.root.parent / "report.jsonl", self.root.parent / "said.txt"
        report.write_text("")
        options = [
            *("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "reporting"),
            f"--timeout={TEST_S:.0f}",
            # Libraries are loaded before pytest is, and some have a plugin for it.
            *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
        ]
        start = time.monotonic()
        order = {"said": str(said), "arguments": [*options, *tests]}
        code = self._code(order, start + limit_s)
        seconds = time.monotonic() - start
        lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
        failed = next((line for line in lines if line["outcome"] == "failed"), None)
        name, words = (failed["test"], failed["end"]) if failed else ("", "")
        if failed is None and code not in (None, 0, 5):
            # Not a test but pytest itself ended badly, for instance in a conftest.
            name, words = f"pytest (exit code {code})", said.read_text("utf-8")[-300:]
        return Ended(
            passed=sum(line["outcome"] == "passed" for line in lines),
            failed=name,
            words=words,
            seconds=seconds,
            is_over=code is not None,
            costs=_costs(lines),
        )

    def _code(self, order: dict[str, Any], end: float) -> int | None:
        """Have a run made; give its exit code, or None if it took too long or too much memory."""
        assert self.runs.stdin
        assert self.runs.stdout
        self.runs.stdin.write(json.dumps(order).encode() + b"\n")
        number = int(self.runs.stdout.readline())
        is_over = False
        try:
            while not is_over and time.monotonic() < end and _bytes(number) < LARGEST_BYTES:
                is_over = bool(select.select([self.runs.stdout], [], [], 1.0)[0])
        finally:
            if not is_over:
                for one in _family(number):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        one.kill()
        code = int(self.runs.stdout.readline())
        return code if is_over else None


@contextlib.contextmanager
def _runs(root: Path, package: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
        "PYTHONPATH": os.pathsep.join((str(root), str(root.parent / "plugin"))),
        reporting.FILE: str(root.parent / "report.jsonl"),
    }
    look = [sys.executable, "-c", f"import {package}; print({package}.__file__)"]
    found = subprocess.check_output(look, cwd=root, env=environment, text=True).strip()
    if not found.startswith(str(root)):
        raise RuntimeError(f"tests would import {found} instead of the copy below {root}")
    command = [sys.executable, forking.__file__, *forking.libraries(root, package)]
    runs = subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,  # so that nothing is read ahead of what is waited for
    )
    with runs:  # which closes its input, and so ends it
        yield runs


def _costs(lines: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Sum the seconds of each file: of the processor, or a quarter of those it took if more.

    A busy machine does not change the former, which counts no work of servers that tests start.
    """
    work_s: dict[str, float] = {}
    wall_s: dict[str, float] = {}
    for line in lines:
        file = line["test"].partition("::")[0]
        work_s[file] = work_s.get(file, 0.0) + line["work_s"]
        wall_s[file] = wall_s.get(file, 0.0) + line["seconds"]
    return {file: max(work_s[file], wall_s[file] / 4) for file in work_s}


def _family(number: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        first = psutil.Process(number)
        return [first, *first.children(recursive=True)]
    return []


def _bytes(number: int) -> int:
    total = 0
    for one in _family(number):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            total += one.memory_info().rss
    return total
