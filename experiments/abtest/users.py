"""Make up the users of configs/abtest/experiment.yaml, to try `tuner abtest` without any.

    python experiments/abtest/users.py [FOLDER] [--gain 0.06] [--slower 0.0] [--lost 0.0] [--seed 1]

Writes before.csv (20,000 users of four weeks) and results.csv (12,000 users, whose arms are those
that `tuner abtest assign` gives): a row for each question. `--lost` lets that share of the
treatment's users vanish, as a page that crashes does.
"""

from __future__ import annotations

import argparse
import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from tuner.abtest.experiment import load_experiment

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "abtest" / "experiment.yaml"
FIRST_DAY = date(2026, 10, 1)
COLUMNS = ("asked", "accepted", "latency_ms", "accepted_before")


def questions(random, *, gain=0.0, slower=0.0):
    """Return the rows of one user: questions are alike, and like those from before."""
    rate = random.beta(6, 4)
    before = random.binomial(20, rate) / 20
    base_ms = 180.0 * random.lognormal(0.0, 0.2) * (1.0 + slower)
    return [
        (
            1,
            int(random.random() < min(rate * (1.0 + gain), 1.0)),
            round(base_ms * random.lognormal(0.0, 0.5), 1),
            before,
        )
        for _ in range(1 + random.poisson(3))
    ]


def before(random, users):
    for number in range(users):
        first = int(28 * random.random() ** 1.6)
        for row in questions(random):
            day = FIRST_DAY + timedelta(days=min(27, first + int(random.exponential(4))))
            yield (f"before-{number:05d}", day.isoformat(), *row)


def results(random, users, *, gain, slower, lost):
    assignment = load_experiment(CONFIG)[0].assignment()
    for number in range(users):
        user = f"user-{number:05d}"
        arm = assignment.arm(user)
        is_treated = arm == "treatment"
        if is_treated and random.random() < lost:
            continue
        for row in questions(random, gain=gain * is_treated, slower=slower * is_treated):
            yield (user, arm, *row)


def write(path, header, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--gain", type=float, default=0.06)
    parser.add_argument("--slower", type=float, default=0.0)
    parser.add_argument("--lost", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    first, second = (np.random.default_rng([arguments.seed, part]) for part in (0, 1))
    write(arguments.folder / "before.csv", ("user", "date", *COLUMNS), before(first, 20_000))
    rows = results(
        second, 12_000, gain=arguments.gain, slower=arguments.slower, lost=arguments.lost
    )
    write(arguments.folder / "results.csv", ("user", "arm", *COLUMNS), rows)


if __name__ == "__main__":
    main()
