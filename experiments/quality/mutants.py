"""Measure the tests: put small faults into the package, one at a time, and see which are noticed.

    python experiments/quality/mutants.py --count 60 --seed 1

Each fault (mutant) is written into a temporary copy of the tree, and the tests that belong to it
are run there. An interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from belonging import Tree
from mutations import Mutant, draw, is_valid, mutants_of_tree
from running import Copy, Verdict

HERE = Path(__file__).resolve().parent
RESULTS = ("killed", "survived", "undecided")
COLUMNS = (
    *("fingerprint", "result", "by", "ring", "files", "seconds"),
    *("path", "line", "function", "kind", "before", "after"),
)


@dataclass(frozen=True)
class Summary:
    """What came of a draw; a survivor that cannot be told from the original is equivalent."""

    rows: Sequence[dict[str, str]]
    equivalent: dict[str, str]

    def of(self, result: str) -> list[dict[str, str]]:
        """List the mutants with a result."""
        return [row for row in self.rows if self._result(row) == result]

    def _result(self, row: dict[str, str]) -> str:
        is_equivalent = row["result"] == "survived" and row["fingerprint"] in self.equivalent
        return "equivalent" if is_equivalent else row["result"]

    @property
    def score(self) -> float | None:
        """Give the share of the decided mutants that were killed."""
        killed, survived = len(self.of("killed")), len(self.of("survived"))
        return killed / (killed + survived) if killed + survived else None

    def lines(self) -> Iterator[str]:
        """Yield the summary for reading."""
        counts = ", ".join(f"{len(self.of(name))} {name}" for name in (*RESULTS, "equivalent"))
        near = sum(row["ring"] == "1" for row in self.of("killed"))
        score = "none" if self.score is None else f"{self.score:.1%}"
        yield f"{len(self.rows)} tried: {counts}"
        yield f"score: {score} killed of those decided ({near} by the first ring of tests)"
        for name in ("survived", "undecided", "equivalent"):
            for row in self.of(name):
                place = f"{row['path']}:{row['line']} {row['function']}"
                yield f"{name} {row['fingerprint']} {place}: {row['before']} -> {row['after']}"
                if why := self.equivalent.get(row["fingerprint"]) or row["by"]:
                    yield f"    {why}"


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read what was tried; of a mutant that was tried twice, the last time counts."""
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list({row["fingerprint"]: row for row in csv.DictReader(file)}.values())


def read_equivalent(path: Path) -> dict[str, str]:
    """Read the reasons by fingerprint: ``3f2a…  the reason``, a line each."""
    if not path.exists():
        return {}
    lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    pairs = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return dict(pairs)


def append(path: Path, mutant: Mutant, verdict: Verdict) -> None:
    """Add what came of a mutant, at once."""
    is_new = not path.exists()
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        every = {**vars(mutant), **vars(verdict), "seconds": f"{verdict.seconds:.1f}"}
        writer.writerow({name: every[name] for name in COLUMNS})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60, help="how many mutants (60)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="of a processor's time, for one mutant's tests (40)",
    )
    parser.add_argument("--again", choices=RESULTS, help="try those with this result once more")
    parser.add_argument("--only-summary", action="store_true", help="try none")
    parser.add_argument("--root", type=Path, default=HERE.parents[1], help="the tree (this one)")
    parser.add_argument("--package", default="tuner", help="the package in it (tuner)")
    parser.add_argument("--out", type=Path, help="the CSV file (seed-1.csv, beside this script)")
    given = parser.parse_args(arguments)
    root = given.root.resolve()
    out = given.out or HERE / f"seed-{given.seed}.csv"

    if not given.only_summary:
        tree = Tree(root, given.package)
        drawn = draw(mutants_of_tree(root, given.package), seed=given.seed)
        tried = {row["fingerprint"]: row["result"] for row in read_rows(out)}
        if given.again:
            known = read_equivalent(HERE / "equivalent.txt") if given.again == "survived" else {}
            found = {name for name, result in tried.items() if result == given.again}
            todo = [one for one in drawn if one.fingerprint in found - set(known)]
        else:
            left = given.count - len(tried)
            todo = [one for one in drawn if one.fingerprint not in tried][: max(left, 0)]
        with Copy.of(root, given.package) as copy:
            for mutant in todo:
                if not is_valid(mutant, (copy.root / mutant.path).read_text("utf-8")):
                    verdict = Verdict("undecided", "does not compile")
                else:
                    rings = (tree.first_ring(mutant.path), tree.second_ring(mutant.path))
                    verdict = copy.judge(mutant, rings, most_s=given.seconds)
                append(out, mutant, verdict)
                place = f"{mutant.path}:{mutant.line}"
                print(
                    f"{verdict.result} {place} ({verdict.seconds:.0f} s) {verdict.by}", flush=True
                )

    summary = Summary(read_rows(out), read_equivalent(HERE / "equivalent.txt"))
    print(*summary.lines(), sep="\n")
    return 0


if __name__ == "__main__":
    # Whoever ends this ends the tests it started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
