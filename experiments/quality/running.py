"""Run tests in a copy of the tree: how long they take as it is, and whether they see a fault."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import reporting
from mutations import Mutant

# A mutant's tests may take this many times what they take without it, and some seconds more: the
# machine may have become busier since.
TIMES = 4.0
MORE_S = 20.0
# Time for tests whose own time is not known yet.
FIRST_S = 400.0
LARGEST_BYTES = 6 * 2**30
# Samples that some tests look for beside the checkout, and are skipped without.
BESIDE = "shared"


@dataclass(frozen=True)
class Ended:
    """How a run of tests ended."""

    passed: int
    failed: str  # the first test that failed, "" for none
    words: str  # the end of what it said
    seconds: float
    is_over: bool  # it ran to its end, and was not stopped for time or memory
    seconds_of: dict[str, float]  # of each file


@dataclass(frozen=True)
class Verdict:
    """What the tests say of a mutant."""

    result: str  # killed, survived or undecided
    by: str
    ring: int
    files: int
    seconds: float


@dataclass(frozen=True)
class Copy:
    """A copy of the tree, in which single mutants are written and taken out again."""

    root: Path
    package: str
    # What is known of test files without a mutant: their seconds, None where they are not green.
    known: dict[str, float | None] = field(default_factory=dict)

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
            made = cls(root, package)
            made._check()
            yield made

    def _check(self) -> None:
        code = f"import {self.package}; print({self.package}.__file__)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.root,
            env=self._environment(""),
            capture_output=True,
            text=True,
            check=True,
        )
        if not done.stdout.startswith(str(self.root)):
            raise RuntimeError(f"not the copy is imported, but {done.stdout.strip()}")

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

    def run(self, tests: Sequence[str], *, limit_s: float, test_limit_s: float) -> Ended:
        """Run tests up to the first that fails."""
        report = self.root.parent / "report.jsonl"
        report.write_text("")
        command = [
            *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"),
            *("-p", "reporting", f"--timeout={test_limit_s:.0f}"),
            *(("-n", "0") if importlib.util.find_spec("xdist") else ()),
            *tests,
        ]
        start = time.monotonic()
        with open(self.root.parent / "said.txt", "w", encoding="utf-8") as said:
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=self._environment(str(report)),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            is_over = _wait(process, start + limit_s)
        seconds = time.monotonic() - start
        lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
        seconds_of: dict[str, float] = {}
        for line in lines:
            file = line["test"].partition("::")[0]
            seconds_of[file] = seconds_of.get(file, 0.0) + line["seconds"]
        failed = next((line for line in lines if line["outcome"] == "failed"), None)
        name, words = (failed["test"], failed["end"]) if failed else ("", "")
        if is_over and failed is None and process.returncode not in (0, 5):
            # Not a test but pytest itself ended badly, for instance in a conftest.
            words = (self.root.parent / "said.txt").read_text("utf-8")[-300:]
            name = f"pytest (exit code {process.returncode})"
        passed = sum(line["outcome"] == "passed" for line in lines)
        return Ended(passed, name, words, seconds, is_over, seconds_of)

    def _environment(self, report: str) -> dict[str, str]:
        places = (str(self.root), str(self.root.parent / "plugin"))
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        found = {reporting.FILE: report, "PYTHONPATH": os.pathsep.join(places), **threads}
        return {**os.environ, **found}

    def green(self, tests: Sequence[str], *, most_s: float) -> list[str]:
        """Keep the tests that are green without a mutant, up to so many seconds of them."""
        kept: list[str] = []
        spent_s = 0.0
        for first in range(0, len(tests), 4):
            some = [test for test in tests[first : first + 4] if test not in self.known]
            self._learn(some)
            for test in tests[first : first + 4]:
                seconds = self.known[test]
                if seconds is None or (kept and spent_s + seconds > most_s):
                    continue
                kept.append(test)
                spent_s += seconds
            if spent_s > most_s:
                break
        return kept

    def _learn(self, tests: Sequence[str]) -> None:
        if not tests:
            return
        ended = self.run(tests, limit_s=FIRST_S, test_limit_s=FIRST_S)
        if ended.is_over and not ended.failed:
            start_s = (ended.seconds - sum(ended.seconds_of.values())) / len(tests)
            for test in tests:
                self.known[test] = ended.seconds_of.get(test, 0.0) + start_s
        elif len(tests) == 1:
            self.known[tests[0]] = None
            print(f"  not green without a mutant: {tests[0]}: {ended.words[-200:]}", flush=True)
        else:
            for test in tests:
                self._learn([test])

    def judge(self, mutant: Mutant, rings: Sequence[Sequence[str]], *, most_s: float) -> Verdict:
        """Run the rings of tests on a mutant until one kills it."""
        start = time.monotonic()
        count, passed = 0, 0

        def verdict(result: str, by: str, ring: int) -> Verdict:
            return Verdict(result, by, ring, count, time.monotonic() - start)

        for ring, tests in enumerate(rings, start=1):
            kept = self.green(tests, most_s=most_s)
            count += len(kept)
            while kept:
                usual_s = sum(self.known[test] or 0.0 for test in kept)
                limit_s = TIMES * usual_s + MORE_S
                longest_s = max(self.known[test] or 0.0 for test in kept)
                test_limit_s = TIMES * longest_s + MORE_S
                with self.with_mutant(mutant):
                    ended = self.run(kept, limit_s=limit_s, test_limit_s=test_limit_s)
                if ended.is_over and not ended.failed:
                    passed += ended.passed
                    break
                is_late = not ended.is_over or "Timeout (>" in ended.words
                # A kill counts only if the same passes without the mutant right now.
                again = [ended.failed] if "::" in ended.failed else kept
                now = self.run(again, limit_s=limit_s, test_limit_s=test_limit_s)
                if now.is_over and not now.failed:
                    if is_late and now.seconds > limit_s / 2:
                        return verdict("undecided", "time-out on a busy machine", ring)
                    return verdict("killed", "time-out" if is_late else ended.failed, ring)
                if len(again) == len(kept) and not now.failed:
                    return verdict("undecided", "time-out on a busy machine", ring)
                # Red with and without: of no use for this mutant.
                kept = [test for test in kept if test != now.failed.partition("::")[0]]
                if "::" not in now.failed:
                    return verdict("undecided", f"without the mutant too: {now.failed}", ring)
        if not passed:
            return verdict("undecided", "no test was found, or each was skipped", len(rings))
        return verdict("survived", "", len(rings))


def _wait(process: subprocess.Popen[bytes], end: float) -> bool:
    """Wait for a run; stop it with all it started where it takes too long or too much memory."""
    while True:
        try:
            process.wait(timeout=1.0)
            return True
        except subprocess.TimeoutExpired:
            pass
        try:
            ours = [psutil.Process(process.pid)]
            ours += ours[0].children(recursive=True)
        except psutil.NoSuchProcess:
            continue
        is_large = _bytes(ours) > LARGEST_BYTES
        if time.monotonic() > end or is_large:
            for one in ours:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            process.wait()
            return False


def _bytes(processes: Sequence[psutil.Process]) -> int:
    total = 0
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            total += one.memory_info().rss
    return total
