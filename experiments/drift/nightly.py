"""Make up nightly scores in which one type of query slips, to try `tuner drift` without any.

    python experiments/drift/nightly.py [FOLDER] [--fall 0.2] [--days 67] [--last 2024-03-10] [--seed 1]

Writes nightly.csv: 30 queries of one hop and 10 that need a bridge, each judged every night. In the
last 7 nights those that need a bridge score less by `--fall`; two nights are missing.
"""

from __future__ import annotations

import argparse
import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np

QUERIES = (("one hop", 30), ("bridge", 10))
MISSING = (20, 41)


def rows(random, *, days, last, fall):
    kinds = [kind for kind, count in QUERIES for _ in range(count)]
    levels = random.beta(8, 3, len(kinds))
    for night in range(days):
        if night in MISSING:
            continue
        day = last - timedelta(days=days - 1 - night)
        common = random.normal(0.0, 0.01)  # what all queries of a night share
        for number, kind in enumerate(kinds):
            lost = fall if kind == "bridge" and night >= days - 7 else 0.0
            score = levels[number] + common + random.normal(0.0, 0.03) - lost
            yield day, f"q{number:02d}", kind, f"{min(max(score, 0.0), 1.0):.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--fall", type=float, default=0.2)
    parser.add_argument("--days", type=int, default=67)
    parser.add_argument("--last", type=date.fromisoformat, default=date(2024, 3, 10))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(options.seed)
    with (options.folder / "nightly.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("date", "query_id", "query_type", "score"))
        writer.writerows(rows(random, days=options.days, last=options.last, fall=options.fall))


if __name__ == "__main__":
    main()
