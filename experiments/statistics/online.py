"""Do the online tests keep their promises, however often one looks?

    python experiments/statistics/online.py [--repetitions 2000] [--json FILE] [--only PART …]

Made-up users of whom the truth is known: what one does is drawn anew in every repetition, arms are
assigned at random, and the functions of `tuner.stats` that `tuner abtest analyze` calls answer.
Where nothing differs, or a loss is exactly as large as a guard-rail allows, at most alpha = 5 % may
be found, at one planned look by the plain test and at any of 20 looks by the always-valid one.
Parts: peeking, small, long, growing, guardrails, power, methods, quantiles, cuped, ratio_mismatch,
assignment, decisions.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy import stats

from tuner.abtest.analysis import analyze
from tuner.abtest.assignment import Assignment, Range, check_sample_ratio, hash64
from tuner.abtest.comparison import adjust_cuped, compare_arms
from tuner.abtest.decision import decide
from tuner.abtest.experiment import ExperimentConfig
from tuner.abtest.guardrail import arm_non_inferiority
from tuner.abtest.quantile import (
    Measured,
    compare_quantiles,
    draw_quantiles,
    quantile_non_inferiority,
)
from tuner.abtest.size import unit_spread, units_any_look, units_one_look
from tuner.abtest.table import Table
from tuner.abtest.units import linearised
from tuner.core.errors import InputError

ALPHA = 0.05
LOOKS = 20

# One user's value; the true mean is the second entry.
VALUES = {
    "normal": (lambda random, n: random.normal(1.0, 1.0, n), 1.0),
    "5 % yes": (lambda random, n: (random.random(n) < 0.05).astype(float), 0.05),
    "log-normal, skew 6": (lambda random, n: random.lognormal(0.0, 1.0, n), np.exp(0.5)),
    "90 % zero, else log-normal": (
        lambda random, n: np.where(random.random(n) < 0.1, random.lognormal(0.0, 1.0, n), 0.0),
        0.1 * np.exp(0.5),
    ),
}


def error(rate, repetitions):
    """Return twice the standard error of a simulated rate."""
    return 2.0 * (rate * (1.0 - rate) / repetitions) ** 0.5


def shown(rate, repetitions):
    return f"{100 * rate:.1f} ± {100 * error(rate, repetitions):.1f} %"


def people(random, n, slow=1.0):
    """Return each user's accepted answers, questions and slow times: rows of one user are alike."""
    questions = 1 + random.poisson(3.0, n)
    rate = random.beta(2.0, 2.0, n)
    accepted = random.binomial(questions, rate)
    base = random.lognormal(0.0, 0.5, n) * slow
    units = np.repeat(np.arange(n), questions)
    latency = 100.0 * base[units] * random.lognormal(0.0, 0.5, units.size)
    return accepted, questions, Measured(latency, units)


def at_looks(n, looks=LOOKS):
    return [round(n * look / looks) for look in range(1, looks + 1)]


def peeking(repetitions, seed, n=2000, looks=LOOKS, planned=None):
    """False positives of 20 looks at two equal arms of n users."""
    planned = planned or n
    rows = []
    for name in [*VALUES, "ratio"]:
        random = np.random.default_rng([seed, n, len(rows)])
        once = peeked = always = 0
        for _ in range(repetitions):
            if name == "ratio":
                arms = [people(random, n)[:2] for _ in range(2)]
            else:
                arms = [VALUES[name][0](random, n) for _ in range(2)]
            fixed, sequential = [], []
            for size in at_looks(n, looks):
                if name == "ratio":
                    left, right = (linearised(top[:size], low[:size]) for top, low in arms)
                else:
                    left, right = (arm[:size] for arm in arms)
                found = compare_arms(left, right, planned_units=2 * planned)
                fixed.append(found.p_value is not None and found.p_value <= ALPHA)
                sequential.append(found.p_value is not None and found.always_valid_p <= ALPHA)
            once += fixed[-1]
            peeked += any(fixed)
            always += any(sequential)
        rows.append(
            {
                "users": n,
                "values": name,
                "once": once / repetitions,
                "peeked": peeked / repetitions,
                "always valid": always / repetitions,
                "repetitions": repetitions,
            }
        )
    return rows


def small(repetitions, seed):
    """The same with 200 users in each arm, the first look at 10 of each."""
    return peeking(repetitions, seed, n=200)


def long(repetitions, seed):
    """The same with 100 looks, up to ten times the planned 400 users in each arm."""
    return peeking(repetitions, seed, n=4000, looks=100, planned=400)


def growing(repetitions, seed, n=500):
    """The same where users come back: at a look each counts with what it did so far."""
    rows = []
    for name in ("ratio", "sum"):
        random = np.random.default_rng([seed, 9, len(rows)])
        once = peeked = always = 0
        for _ in range(repetitions):
            arms = [visits(random, n) for _ in range(2)]
            fixed, sequential = [], []
            for look in range(1, LOOKS + 1):
                left, right = (so_far(*arm, look / LOOKS, name) for arm in arms)
                found = compare_arms(left, right, planned_units=2 * n)
                fixed.append(found.p_value is not None and found.p_value <= ALPHA)
                sequential.append(found.p_value is not None and found.always_valid_p <= ALPHA)
            once += fixed[-1]
            peeked += any(fixed)
            always += any(sequential)
        rows.append(
            {
                "users": n,
                "values": name,
                "once": once / repetitions,
                "peeked": peeked / repetitions,
                "always valid": always / repetitions,
                "repetitions": repetitions,
            }
        )
    return rows


def visits(random, n):
    """Return the user, the time in 0 to 1 and the success of each question; users come by .5."""
    questions = 1 + random.poisson(5.0, n)
    users = np.repeat(np.arange(n), questions)
    start = random.random(n)[users] / 2.0
    times = start + random.random(users.size) * (1.0 - start)
    return users, times, random.random(users.size) < random.beta(2.0, 2.0, n)[users]


def so_far(users, times, is_accepted, now, name):
    there = times <= now
    questions = np.bincount(users[there], minlength=1)
    accepted = np.bincount(users[there], weights=is_accepted[there], minlength=1)
    seen = questions > 0
    if name == "sum" or not seen.any():
        return accepted[seen]
    return linearised(accepted[seen], questions[seen])


def guardrails(repetitions, seed, n=2000):
    """How often a loss of exactly the margin, 10 % of the control, is let pass."""
    rows = []
    for name, (draw, mean) in VALUES.items():
        random = np.random.default_rng([seed, 1, len(rows)])
        once = peeked = always = 0
        for _ in range(repetitions):
            # Where lower is better, the treatment's mean is 1.1 times the control's.
            left, right = draw(random, n) + 0.1 * mean, draw(random, n)
            fixed, sequential = [], []
            for size in at_looks(n):
                if right[:size].mean() <= 0.0:
                    fixed.append(False)  # no share of 0 can be lost: nothing is tested
                    continue
                found = arm_non_inferiority(
                    left[:size],
                    right[:size],
                    margin=0.1,
                    is_relative=True,
                    higher_is_better=False,
                    planned_units=2 * n,
                )
                fixed.append(found.p_value is not None and found.p_value <= ALPHA)
                sequential.append(found.p_value is not None and found.always_valid_p <= ALPHA)
            once += fixed[-1]
            peeked += any(fixed)
            always += any(sequential)
        rows.append(
            {
                "values": name,
                "once": once / repetitions,
                "peeked": peeked / repetitions,
                "always valid": always / repetitions,
                "repetitions": repetitions,
            }
        )
    return rows


def power(repetitions, seed):
    """Whether the planned sizes find the effect in 80 %, and when always-valid tests stop."""
    rows = []
    for effect in (0.1, 0.2):
        spread = unit_spread(1.0, 0.5, 0.5)
        one = units_one_look(effect, spread) // 2
        many = units_any_look(effect, spread, planned_units=2 * one) // 2
        random = np.random.default_rng([seed, 2, len(rows)])
        once, stopped = 0, []
        for _ in range(repetitions):
            left, right = random.normal(effect, 1.0, many), random.normal(0.0, 1.0, many)
            found = compare_arms(left[:one], right[:one], planned_units=2 * one)
            once += found.p_value <= ALPHA and found.difference > 0
            for size in at_looks(many):
                found = compare_arms(left[:size], right[:size], planned_units=2 * one)
                if found.always_valid_p <= ALPHA and found.difference > 0:
                    stopped.append(size)
                    break
        rows.append(
            {
                "effect (sd)": effect,
                "users, one look": one,
                "power": once / repetitions,
                "users, any look": many,
                "power, any look": len(stopped) / repetitions,
                "median users when it stopped": float(np.median(stopped)),
                "repetitions": repetitions,
            }
        )
    return rows


def methods(repetitions, seed):
    """The right test beside the usual wrong one, where nothing differs."""
    random = np.random.default_rng([seed, 3])
    welch = pooled = 0
    for _ in range(repetitions):
        left, right = random.normal(0.0, 3.0, 200), random.normal(0.0, 1.0, 1800)
        welch += compare_arms(left, right, planned_units=2000).p_value <= ALPHA
        pooled += stats.ttest_ind(left, right).pvalue <= ALPHA
    delta = by_row = 0
    for _ in range(repetitions):
        arms = [people(random, 1000)[:2] for _ in range(2)]
        values = [linearised(top, low) for top, low in arms]
        delta += compare_arms(*values, planned_units=2000).p_value <= ALPHA
        yes = [float(top.sum()) for top, _ in arms]
        of = [float(low.sum()) for _, low in arms]
        table = [[yes[0], of[0] - yes[0]], [yes[1], of[1] - yes[1]]]
        by_row += stats.chi2_contingency(table, correction=False).pvalue <= ALPHA
    names = (
        ("10 % against 90 %, variance 9 to 1", "Welch", welch, "pooled variance", pooled),
        ("accepted answers a question", "delta method", delta, "each row a unit", by_row),
    )
    return [
        {
            "case": case,
            "right": right,
            "found": found / repetitions,
            "wrong": wrong,
            "wrongly found": other / repetitions,
            "repetitions": repetitions,
        }
        for case, right, found, wrong, other in names
    ]


def quantiles(repetitions, seed, n=1000, resamples=299):
    """p95 of latency: equal arms, and a loss of exactly the margin; 10 looks."""
    repetitions = max(repetitions // 5, 1)
    random = np.random.default_rng([seed, 4])
    counts = dict.fromkeys(("one look", "by row", "any look", "margin", "margin, any look"), 0)
    for repetition in range(repetitions):
        left, right = people(random, n)[2], people(random, n)[2]
        slow = Measured(left.values * 1.1, left.units)
        hits = []
        for size in (n * look // 10 for look in range(1, 11)):
            arms = [
                Measured(arm.values[arm.units < size], arm.units[arm.units < size])
                for arm in (left, right, slow)
            ]
            draws = draw_quantiles(
                arms[0], arms[1], quantile=0.95, seed=repetition, resamples=resamples
            )
            same = compare_quantiles(draws, planned_units=2 * n)
            worse = draw_quantiles(
                arms[2], arms[1], quantile=0.95, seed=repetition, resamples=resamples
            )
            kept = quantile_non_inferiority(
                worse,
                margin=0.1,
                is_relative=True,
                higher_is_better=False,
                planned_units=2 * n,
            )
            hits.append(
                [
                    p <= ALPHA
                    for p in (same.p_value, same.always_valid_p, kept.p_value, kept.always_valid_p)
                ]
            )
        rows = [Measured(arm.values, np.arange(arm.values.size)) for arm in (left, right)]
        by_row = compare_quantiles(
            draw_quantiles(*rows, quantile=0.95, seed=repetition, resamples=resamples),
            planned_units=2 * n,
        )
        counts["one look"] += hits[-1][0]
        counts["by row"] += by_row.p_value <= ALPHA
        counts["any look"] += any(one[1] for one in hits)
        counts["margin"] += hits[-1][2]
        counts["margin, any look"] += any(one[3] for one in hits)
    return [
        {"what": name, "found": count / repetitions, "repetitions": repetitions}
        for name, count in counts.items()
    ]


def cuped(repetitions, seed, n=1000):
    """False positives and variance with a covariate of a given correlation."""
    rows = []
    for correlation in (0.0, 0.5, 0.8):
        random = np.random.default_rng([seed, 5, len(rows)])
        found, reductions, refused = 0, [], 0
        for _ in range(repetitions):
            before = random.normal(0.0, 1.0, 2 * n)
            noise = random.normal(0.0, 1.0, 2 * n)
            value = correlation * before + np.sqrt(1.0 - correlation**2) * noise
            try:
                adjusted = adjust_cuped(value[:n], value[n:], before[:n], before[n:])
            except InputError:
                refused += 1
                continue
            reductions.append(adjusted.variance_reduction)
            found += (
                compare_arms(adjusted.treatment, adjusted.control, planned_units=2 * n).p_value
                <= ALPHA
            )
        rows.append(
            {
                "correlation": correlation,
                "variance less": float(np.mean(reductions)),
                "found": found / repetitions,
                "refused": refused / repetitions,
                "repetitions": repetitions,
            }
        )
    return rows


def ratio_mismatch(repetitions, seed, n=10_000):
    """How often the sample-ratio check stops, for true shares of the first arm."""
    rows = []
    for share in (0.5, 0.505, 0.51, 0.52, 0.53):
        random = np.random.default_rng([seed, 6, len(rows)])
        times = 5 * repetitions
        stopped = 0
        for count in random.binomial(n, share, times).tolist():
            counts = {"a": count, "b": n - count}
            stopped += check_sample_ratio(counts, {"a": 0.5, "b": 0.5}).is_mismatch
        rows.append(
            {"users": n, "true share": share, "stopped": stopped / times, "repetitions": times}
        )
    return rows


def assignment(repetitions, seed):
    """Uniformity, tiny splits and independence, over ids as systems make them."""
    count = 200 * repetitions
    random = np.random.default_rng([seed, 7])
    ids = {
        "1, 2, 3 …": [str(number) for number in range(count)],
        "user-000001@example.com …": [f"user-{number:06d}@example.com" for number in range(count)],
        "random UUIDs": [random.bytes(16).hex() for _ in range(count)],
    }
    rows = []
    shares = {"control": 0.99, "treatment": 0.005, "other": 0.005}
    first, second = Assignment.of("first", shares), Assignment.of("second", {"a": 0.5, "b": 0.5})
    twin = Assignment.of("third", {"a": 0.5, "b": 0.5})
    halves = [
        Assignment.of(f"layered-{half}", {"a": 0.5, "b": 0.5}, range=part)
        for half, part in enumerate((Range("layer", 0.0, 0.5), Range("layer", 0.5, 1.0)))
    ]
    for name, units in ids.items():
        places = np.array([hash64("first", unit) for unit in units], dtype=np.uint64)
        bins = np.bincount((places >> np.uint64(54)).astype(int), minlength=1024)
        arms = [first.arm(unit) for unit in units]
        pairs = np.zeros((2, 2), dtype=int)
        for unit in units:
            pairs["ab".index(second.arm(unit)), "ab".index(twin.arm(unit))] += 1
        both = sum(
            halves[0].arm(unit) is not None and halves[1].arm(unit) is not None
            for unit in units[: count // 4]
        )
        observed = {arm: arms.count(arm) for arm in shares}
        rows.append(
            {
                "ids": name,
                "units": count,
                "uniform, p": float(stats.chisquare(bins).pvalue),
                "share for .005": observed["treatment"] / count,
                "split, p": check_sample_ratio(observed, shares).p_value,
                "independent of another experiment, p": float(
                    stats.chi2_contingency(pairs, correction=False).pvalue
                ),
                "units in two parts of a layer": both,
            }
        )
    return rows


def decisions(repetitions, seed, n=1000):
    """What `tuner abtest analyze` recommends at any of 20 looks."""
    config = ExperimentConfig.model_validate(
        {
            "name": "simulated",
            "arms": {"control": {}, "treatment": {}},
            "metrics": {
                "accepted": {"ratio": {"of": "accepted", "per": "questions"}, "better": "higher"},
                "cost": {"mean": "cost", "better": "lower"},
            },
            "primary": {"metric": "accepted", "min_effect": "5%"},
            "guardrails": {"cost": {"max_increase": "10%"}},
            "minimum_sample_size": n // 4,
        }
    )
    repetitions = max(repetitions // 4, 1)
    rows = []
    for gain, loss, name in (
        (0.0, 0.0, "nothing differs"),
        (0.15, 0.0, "15 % better"),
        (0.15, 0.1, "15 % better, cost up by the allowed 10 %"),
        (-0.15, 0.0, "15 % worse"),
    ):
        random = np.random.default_rng([seed, 8, len(rows)])
        ends = []
        for _ in range(repetitions):
            columns = [_users(random, n, gain, loss), _users(random, n, 0.0, 0.0)]
            outcome = "keep collecting"
            for size in at_looks(n):
                outcome = decide(analyze(config, _table(columns, size))).outcome
                if outcome != "keep collecting":
                    break
            ends.append(outcome)
        rows.append(
            {
                "truth": name,
                **{
                    outcome: ends.count(outcome) / repetitions
                    for outcome in ("ship", "do not ship", "keep collecting", "stop")
                },
                "repetitions": repetitions,
            }
        )
    return rows


def _users(random, n, gain, loss):
    questions = 1 + random.poisson(3.0, n)
    rate = random.beta(3.0, 3.0, n) * (1.0 + gain)
    accepted = random.binomial(questions, np.minimum(rate, 1.0))
    return {
        "accepted": accepted.astype(float),
        "questions": questions.astype(float),
        "cost": random.lognormal(0.0, 0.6, n) * (1.0 + loss),
    }


def _table(columns, size):
    numbers = {name: np.concatenate([arm[name][:size] for arm in columns]) for name in columns[0]}
    users = [f"{arm}{number}" for arm in "tc" for number in range(size)]
    arms = ["treatment"] * size + ["control"] * size
    return Table(
        Path("simulated"), {"user": users, "arm": arms}, numbers, list(range(2 * size)), True
    )


PARTS = {
    part.__name__: part
    for part in (
        peeking,
        small,
        long,
        growing,
        guardrails,
        power,
        methods,
        quantiles,
        cuped,
        ratio_mismatch,
        assignment,
        decisions,
    )
}
RATES = {
    "once", "peeked", "always valid", "power", "power, any look", "found", "wrongly found",
    "refused", "stopped", "ship", "do not ship", "keep collecting", "stop",
}  # fmt: skip


def print_table(rows):
    names = [name for name in rows[0] if name != "repetitions"]
    print(f"| {' | '.join(names)} |")
    print(f"| --- |{' ---: |' * (len(names) - 1)}")
    for row in rows:
        cells = []
        for name in names:
            value = row[name]
            if name in RATES:
                cells.append(shown(value, row["repetitions"]))
            elif isinstance(value, float):
                cells.append(f"{value:.4g}")
            else:
                cells.append(f"{value:,}" if isinstance(value, int) else str(value))
        print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = {}
    for name in arguments.only:
        started = time.monotonic()
        found[name] = PARTS[name](arguments.repetitions, arguments.seed)
        print(f"\n## {name}: {PARTS[name].__doc__}\n")
        print_table(found[name])
        print(f"\n{time.monotonic() - started:.0f} s", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
