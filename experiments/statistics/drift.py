"""How often does `tuner drift` cry wolf, and how soon does it see a decline? The truth is known here.

    python experiments/statistics/drift.py [--repetitions 2000] [--json FILE] [--png FILE] [--only PART]

- looks: one look at a series without any drift. "clear" is the tests alone (promised: at most 5 %,
  all tests of the look together), "alarm" also asks for the minimum effect of 5 %.
- year: a cron job that looks every day for a year without drift, and how many times an alarm begins.
- season: the same where every weekend is better than the days between, and how often a drop of 10 % in the
  last week is seen beside it.
- delay: a drop or a slow decline begins after 90 quiet days; days until the first alarm.

Days are alike (r = 0) or resemble the day before by an autocorrelation r. A day's score is .75 with a
standard deviation of 3 % from day to day, which is what 40 live queries a day give.
"""

from __future__ import annotations

import argparse
import json
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from tuner.drift.detection import Measure, find_drift
from tuner.drift.observations import Observation, Windows

START = date(2024, 1, 1)
LEVEL, NOISE = 0.75, 0.03
SCORE = (Measure("score"),)


def autoregressive(random, days, r):
    """Return a stationary series of unit variance, shape (days,)."""
    shocks = random.standard_normal(days)
    series = np.empty(days)
    series[0] = shocks[0]
    for day in range(1, days):
        series[day] = r * series[day - 1] + np.sqrt(1.0 - r**2) * shocks[day]
    return series


def seasonal(random, days, *, r=0.0, weekend=0.1, lost=0.0):
    """One score a day: .70 on weekdays, .70 + weekend else; the last 7 days lose a share of it."""
    number = np.arange(days)
    level = 0.70 + weekend * (number % 7 >= 5)
    level[-7:] *= 1.0 - lost
    values = level * (1.0 + NOISE * autoregressive(random, days, r))
    return [Observation(day_of(day), {"score": values[day]}) for day in range(days)]


def day_of(number):
    return START + timedelta(days=int(number))


def daily(random, days, *, r=0.0, missing=0.0):
    """One score a day."""
    values = LEVEL * (1.0 + NOISE * autoregressive(random, days, r))
    kept = random.random(days) >= missing
    kept[-1] = True
    return [
        Observation(day_of(number), {"score": value})
        for number, value in enumerate(values)
        if kept[number]
    ]


def nightly(random, days, *, r=0.0, queries=40, types=1):
    """The same queries every night: hard and easy ones, noise of each, and nights they share."""
    hardness = random.beta(6, 2, size=queries)
    night = 0.02 * autoregressive(random, days, r)
    noise = 0.05 * random.standard_normal((days, queries))
    values = np.clip(hardness + night[:, None] + noise, 0.0, 1.0)
    return [
        Observation(
            day_of(number),
            {"score": values[number, query]},
            f"q{query}",
            f"type {query % types}" if types > 1 else "",
        )
        for number in range(days)
        for query in range(queries)
    ]


def live(random, days, *, queries=40, types=3):
    """Other queries every day, fewer on weekends: scores of 0, .5 or 1, a mix of types, latency."""
    found = []
    for number in range(days):
        asked = random.poisson(queries if number % 7 < 5 else queries / 3) + 1
        shares = random.dirichlet(np.array([0.6, 0.3, 0.1][:types]) * 60)  # a mood of the day
        kinds = random.choice(types, size=asked, p=shares)
        scores = random.choice([0.0, 0.5, 1.0], size=asked, p=[0.15, 0.2, 0.65])
        latency = random.lognormal(4.0, 0.5, size=asked)
        graph = random.random(asked) < 0.9
        found += [
            Observation(
                day_of(number),
                {"score": score, "latency_ms": spent, "without_graph": float(not used)},
                query_type=f"type {kind}",
            )
            for score, kind, spent, used in zip(scores, kinds, latency, graph, strict=True)
        ]
    return found


LIVE = (
    Measure("score"),
    Measure("latency_ms", "higher", 95.0),
    Measure("without_graph", "higher"),
)

LOOKS = {
    "daily, 35 days, r = 0": (lambda g: daily(g, 35), 35, SCORE),
    "daily, 35 days, r = .3": (lambda g: daily(g, 35, r=0.3), 35, SCORE),
    "daily, 35 days, r = .6": (lambda g: daily(g, 35, r=0.6), 35, SCORE),
    "daily, 35 days, r = .8": (lambda g: daily(g, 35, r=0.8), 35, SCORE),
    "daily, 90 days, r = 0": (lambda g: daily(g, 90), 90, SCORE),
    "daily, 90 days, r = .3": (lambda g: daily(g, 90, r=0.3), 90, SCORE),
    "daily, 90 days, r = .6": (lambda g: daily(g, 90, r=0.6), 90, SCORE),
    "daily, 90 days, r = .8": (lambda g: daily(g, 90, r=0.8), 90, SCORE),
    "daily, 90 days, 1 in 3 missing, r = 0": (lambda g: daily(g, 90, missing=1 / 3), 90, SCORE),
    "daily, 90 days, 1 in 3 missing, r = .6": (
        lambda g: daily(g, 90, missing=1 / 3, r=0.6), 90, SCORE,
    ),
    "daily with weekends, 35 days, r = 0": (lambda g: seasonal(g, 35), 35, SCORE),
    "daily with weekends, 35 days, r = .6": (lambda g: seasonal(g, 35, r=0.6), 35, SCORE),
    "daily with weekends, 90 days, r = 0": (lambda g: seasonal(g, 90), 90, SCORE),
    "daily with weekends, 90 days, r = .6": (lambda g: seasonal(g, 90, r=0.6), 90, SCORE),
    "daily, 14 days, r = 0": (lambda g: daily(g, 14), 14, SCORE),
    "daily, 14 days, r = .6": (lambda g: daily(g, 14, r=0.6), 14, SCORE),
    "same 40 queries, 35 days, r = 0": (lambda g: nightly(g, 35), 35, SCORE),
    "same 40 queries, 35 days, r = .6": (lambda g: nightly(g, 35, r=0.6), 35, SCORE),
    "same 40 queries of 4 types, 35 days, r = 0": (lambda g: nightly(g, 35, types=4), 35, SCORE),
    "live queries of 3 types, 3 measures, 90 days": (lambda g: live(g, 90), 90, LIVE),
}  # fmt: skip

# Shares of the level that are lost at once, and in each week.
DECLINES = {
    "drop of 5 %": (0.05, 0.0),
    "drop of 7.5 %": (0.075, 0.0),
    "drop of 10 %": (0.10, 0.0),
    "drop of 20 %": (0.20, 0.0),
    "decline of 1 % a week": (0.0, 0.01),
    "decline of 2 % a week": (0.0, 0.02),
}


def look(observations, day, measures=SCORE):
    return find_drift(observations, measures, windows=Windows.until(day_of(day)))


def simulate_looks(repetitions, seed):
    rows = []
    print("| no drift | tests | clear | alarm |\n| --- | ---: | ---: | ---: |")
    for place, (name, (make, days, measures)) in enumerate(LOOKS.items()):
        random = np.random.default_rng([seed, place])
        clear, alarm, tests = 0, 0, 0
        for _ in range(repetitions):
            report = look(make(random), days - 1, measures)
            clear += any(finding.is_clear for finding in report.findings)
            alarm += report.status == "alarm"
            tests = max(tests, len(report.findings))
        row = {
            "case": name,
            "tests": tests,
            "clear": clear / repetitions,
            "alarm": alarm / repetitions,
        }
        rows.append(row)
        error = 2.0 * np.sqrt(row["clear"] * (1 - row["clear"]) / repetitions)
        print(
            f"| {name} | {tests} | {row['clear']:.1%} ± {error:.1%} | {row['alarm']:.1%} |",
            flush=True,
        )
    return rows


def simulate_years(repetitions, seed):
    rows = []
    print("\n| a year of daily looks without drift | days with an alarm | alarms that begin |")
    print("| --- | ---: | ---: |")
    for place, r in enumerate((0.0, 0.3, 0.6)):
        random = np.random.default_rng([seed, 100 + place])
        on_days, begun = [], []
        for _ in range(repetitions):
            series = daily(random, 90 + 365, r=r)
            alarms = [
                look(series[day - 89 : day + 1], day).status == "alarm" for day in range(90, 455)
            ]
            on_days.append(np.mean(alarms))
            begun.append(int(alarms[0]) + np.count_nonzero(np.diff(np.array(alarms, int)) == 1))
        row = {"r": r, "alarm days": float(np.mean(on_days)), "begun": float(np.mean(begun))}
        rows.append(row)
        print(f"| r = {r:g} | {row['alarm days']:.2%} | {row['begun']:.2f} |", flush=True)
    return rows


def simulate_seasons(repetitions, seed):
    rows = []
    print("\n| the last week loses 10 % | days | r | seen |\n| --- | ---: | ---: | ---: |")
    for place, (name, weekend) in enumerate(
        (("every day alike", 0.0), ("weekends .10 higher", 0.1))
    ):
        for days in (28, 35, 90):
            for r in (0.0, 0.3, 0.6):
                random = np.random.default_rng([seed, 300 + place, days, int(10 * r)])
                seen = 0
                for _ in range(repetitions):
                    series = seasonal(random, days, r=r, weekend=weekend, lost=0.1)
                    seen += look(series, days - 1).status == "alarm"
                row = {"case": name, "days": days, "r": r, "seen": seen / repetitions}
                rows.append(row)
                print(f"| {name} | {days} | {r:g} | {row['seen']:.1%} |", flush=True)
    return rows


def first_alarm(series, until):
    for day in range(90, 90 + until):
        report = look(series[day - 89 : day + 1], day)
        if report.status == "alarm":
            return day - 90 + 1, {finding.test for finding in report.alarms}
    return None, set()


def simulate_delay(repetitions, seed, until=60):
    rows = []
    print(
        "\n| from day 0 on | r | seen within 60 days | median delay, days | 90 % within | by the trend |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for place, (name, (at_once, weekly)) in enumerate(DECLINES.items()):
        for r in (0.0, 0.6):
            random = np.random.default_rng([seed, 200 + place, int(10 * r)])
            delays, by_trend = [], 0
            for _ in range(repetitions):
                quiet = daily(random, 90 + until, r=r)
                series = [
                    Observation(one.day, {"score": one.values["score"] * (1 - loss)})
                    for number, one in enumerate(quiet)
                    for loss in [at_once + weekly * (number - 89) / 7 if number >= 90 else 0.0]
                ]
                delay, tests = first_alarm(series, until)
                delays.append(until + 1 if delay is None else delay)
                by_trend += "trend" in tests and "window" not in tests
            found = np.array(delays)
            row = {
                "decline": name,
                "r": r,
                "seen": float(np.mean(found <= until)),
                "median": float(np.median(found)),
                "p90": float(np.quantile(found, 0.9)),
                "by trend": by_trend / repetitions,
                "delays": sorted(delays),
            }
            rows.append(row)
            shown = [
                f"{v:.0f}" if v <= until else f"over {until}" for v in (row["median"], row["p90"])
            ]
            print(
                f"| {name} | {r:g} | {row['seen']:.0%} | {shown[0]} | {shown[1]} "
                f"| {row['by trend']:.0%} |",
                flush=True,
            )
    return rows


def draw_figure(rows, path, until=60):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for place, r in enumerate((0.0, 0.6)):
        axes = figure.add_subplot(1, 2, place + 1)
        for row in rows:
            if row["r"] == r:
                delays = np.array(row["delays"])
                seen = [np.mean(delays <= day) for day in range(until + 1)]
                axes.plot(range(until + 1), seen, label=row["decline"])
        axes.set_title(f"autocorrelation {r:g}", loc="left")
        axes.set_xlabel("days since it began")
        axes.set_ylabel("share of series with an alarm")
        axes.grid(alpha=0.3)
        axes.set_ylim(0, 1)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--years", type=int, default=40)
    parser.add_argument("--delays", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=["looks", "years", "season", "delay"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--png", type=Path)
    arguments = parser.parse_args()
    found = {}
    if arguments.only in (None, "looks"):
        found["looks"] = simulate_looks(arguments.repetitions, arguments.seed)
    if arguments.only in (None, "years"):
        found["years"] = simulate_years(arguments.years, arguments.seed)
    if arguments.only in (None, "season"):
        found["season"] = simulate_seasons(arguments.repetitions, arguments.seed)
    if arguments.only in (None, "delay"):
        found["delay"] = simulate_delay(arguments.delays, arguments.seed)
        if arguments.png:
            draw_figure(found["delay"], arguments.png)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
