"""Labels of a judge beside those of people: are the verdicts right, and what is the judge worth?

    python experiments/statistics/judge.py [--only coverage nulls …] [--json FILE] [DATASET …]

Real rankings of 100 configurations of the built-in engine are scored twice: by the data set's
grades, which stand for people's, and by those of a made-up judge of the pooled passages. So the
judge's errors reach the metrics as they do in practice. Queries are drawn with their values by both.

- coverage: does the 95 % interval of `calibrated_ratio` hold the true difference, and the true
  relative change? For pairs of configurations drawn at random.
- nulls: how often is one of 100 equal configurations deployed? (`populations.py` says how they are
  made equal; a query's values by the judge change places with those by people.) The judge's queries
  choose (`choose_winner`), people's and others of the judge's decide (`compare_with_judge`, `rule`).
- power: how often is a configuration deployed that is really better, by people's queries alone and
  with a judge's? Everything is drawn anew for each study: who is chosen, and how it is decided.

A judge of kappa k keeps a passage's grade with probability k, else it draws one from all grades:
by passage, or all of a query's passages at once. Others: `inverted` calls relevant just what is not,
`favours text` what text alone ranks first; `favours some` adds .2 to half of the configurations;
`rarely favours them` adds .5 on every fiftieth query and is right on all others.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from populations import ATLAS, BASELINE, as_trials
from scipy import stats
from search_quality import DEFAULT, OBJECTIVE, SPACE, TEXT_ONLY

from tuner.backends.random import Random
from tuner.datasets import open_dataset
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import composite_values
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.stats import Labels, Shares, calibrated_ratio, compare_paired, compare_with_judge
from tuner.stats.agreement import cohen_kappa
from tuner.verdict.outcome import Evidence, rule
from tuner.verdict.verdict import ALPHA, MIN_EFFECT
from tuner.verdict.winner import choose_winner

DEPTH = 10
BY_PASSAGE = (0.9, 0.7, 0.5, 0.0)
BY_QUERY = (0.7,)
DRAWN, OF_KAPPA = 16, 0.7
CORRECTING = 20
SIZES = ((30, 300), (60, 600), (100, 300))
BONUS, RARE_BONUS, RARE = 0.2, 0.5, 0.02
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Graded:
    """What 100 configurations get for every query, shape (configurations, queries).

    ``people`` are the values by the data set's grades, ``judges`` those by each judge's, with 0
    where the judge finds nothing relevant; ``kappas`` are over all pooled passages. ``drawn`` are
    those of further judges of kappa 0.7, shape (judges, configurations, queries).
    """

    name: str
    people: np.ndarray
    judges: dict[str, np.ndarray]
    kappas: dict[str, float | None]
    drawn: np.ndarray


def grade(path, *, configurations, seed):
    """Ask the built-in engine every query, and score its answers by every judge's grades."""
    dataset = open_dataset(path)
    retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
    retriever.prepare(dataset.queries)
    others = Random(budget=configurations).suggest(SPACE, [], count=configurations - 2, seed=seed)
    answers = [
        retriever.retrieve(dataset.queries, params).first(DEPTH)
        for params in (DEFAULT, TEXT_ONLY, *others)
    ]
    ids = [query.id for query in dataset.queries]
    pools = [
        sorted(set(dataset.qrels[id_]).union(*(answer.ids(row) for answer in answers)))
        for row, id_ in enumerate(ids)
    ]
    truth = [
        np.array([dataset.qrels[id_].get(document, 0.0) for document in pool])
        for id_, pool in zip(ids, pools, strict=True)
    ]
    every = np.concatenate(truth)

    def values(graded):
        qrels = {
            id_: dict(zip(pool, of.tolist(), strict=True))
            for id_, pool, of in zip(ids, pools, graded, strict=True)
        }
        scored = Evaluator.build(
            retriever, list(dataset.queries), qrels, tuple(OBJECTIVE.weights), scale=dataset.scale
        )
        measured = [scored.measure(answer).per_query for answer in answers]
        return np.stack([composite_values(one, OBJECTIVE.weights) for one in measured])

    people = values(truth)
    is_defined = ~np.isnan(people).any(axis=0)
    random = np.random.default_rng(seed)
    graded = {"perfect": truth}
    for kappa in BY_PASSAGE:
        graded[f"kappa {kappa:g}" if kappa else "random"] = [
            np.where(random.random(of.size) < kappa, of, random.choice(every, size=of.size))
            for of in truth
        ]
    for kappa in BY_QUERY:
        graded[f"kappa {kappa:g} by query"] = [
            of if random.random() < kappa else random.choice(every, size=of.size) for of in truth
        ]
    graded["inverted"] = [np.where(of > 0, 0.0, 1.0) for of in truth]
    graded["favours text"] = [
        np.array([float(document in answers[1].ids(row)[:3]) for document in pool])
        for row, pool in enumerate(pools)
    ]
    judges = {name: np.nan_to_num(values(of))[:, is_defined] for name, of in graded.items()}
    drawn = []
    for number in range(DRAWN):
        own = np.random.default_rng([seed, number])
        of_one = [
            np.where(own.random(of.size) < OF_KAPPA, of, own.choice(every, size=of.size))
            for of in truth
        ]
        drawn.append(np.nan_to_num(values(of_one))[:, is_defined])
    people = people[:, is_defined]
    is_favoured = (np.arange(configurations) % 2 == 1)[:, None]
    judges["favours some"] = people + BONUS * is_favoured
    is_rare = random.random(people.shape[1]) < RARE
    judges["rarely favours them"] = people + RARE_BONUS * (is_favoured & is_rare)
    kappas = {
        name: cohen_kappa(
            every.astype(int).tolist(), np.concatenate(of).astype(int).tolist(), weights="none"
        ).kappa
        for name, of in graded.items()
    }
    return Graded(dataset.name, people, judges, kappas, np.stack(drawn))


def coverage(population, *, pairs, repetitions, seed):
    """Print how often the interval holds the truth; return the rows."""
    rows = []
    print(
        "\n| judge | kappa | people's | judged | coverage | above | below | ratio | lambda | worth |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    count = population.people.shape[0]
    for name, judged in population.judges.items():
        for n, others in SIZES:
            random = np.random.default_rng([seed, n])
            found = []
            for _ in range(pairs):
                first, second = random.choice(count, size=2, replace=False)
                y, f = (values[first] - values[second] for values in (population.people, judged))
                base = (population.people[second], judged[second])
                if np.ptp(y) < ROUNDING:
                    continue
                drawn = random.integers(0, y.size, size=(repetitions, n))
                more = random.integers(0, y.size, size=(repetitions, others))
                # A sample without any difference is answered by people's queries alone.
                is_spread = np.ptp(y[drawn], axis=1) > ROUNDING
                drawn, more = drawn[is_spread], more[is_spread]
                mean, value = (
                    calibrated_ratio(*(Shares.of_mean(of) for of in (y[drawn], f[drawn], f[more]))),
                    float(y.mean()),
                )
                ratio = calibrated_ratio(
                    Shares.of_ratio(y[drawn], base[0][drawn]),
                    Shares.of_ratio(f[drawn], base[1][drawn]),
                    Shares.of_ratio(f[more], base[1][more]),
                )
                misses = _misses(mean, value)
                held = 1.0 - sum(_misses(ratio, value / float(base[0].mean())))
                worth = n * np.median((mean.people_error / mean.error) ** 2)
                found.append([1.0 - sum(misses), *misses, held, mean.weight.mean(), worth])
            figures = dict(
                zip(
                    ("coverage", "above", "below", "ratio", "lambda", "worth"),
                    np.mean(found, axis=0).tolist(),
                    strict=True,
                )
            )
            rows.append({"judge": name, "people": n, "judged": others, **figures})
            shares = " | ".join(
                f"{100 * figures[key]:.1f} %" for key in ("coverage", "above", "below", "ratio")
            )
            print(
                f"| {name} | {_kappa(population, name)} | {n} | {others} | {shares} "
                f"| {figures['lambda']:.2f} | {figures['worth']:.0f} |",
                flush=True,
            )
    return rows


def _misses(found, truth):
    half = stats.t.ppf(0.975, found.degrees) * found.error
    return float(np.mean(found.value - half > truth)), float(np.mean(found.value + half < truth))


def _kappa(population, name):
    kappa = population.kappas.get(name)
    return "–" if kappa is None else f"{kappa:.2f}"


def as_they_are(_, people, judged, columns):
    """Return both kinds of values of some queries, as they really are."""
    return people[:, columns], judged[:, columns]


def errors_by_query(random, people, drawn, columns):
    """Return both, where each query is judged by one of many judges: its errors are its own."""
    which = random.integers(0, len(drawn), size=columns.size)
    return people[:, columns], drawn[which, :, columns].T


def shuffled(random, people, judged, columns):
    """Return both with the configurations' places changed within each query."""
    order = random.permuted(np.tile(np.arange(len(people))[:, None], columns.size), axis=0)
    # What the judge adds to a configuration stays with its place: a favour is not shuffled away.
    error = (judged - people)[:, columns]
    values = np.take_along_axis(people[:, columns], order, axis=0)
    return values, values + (error if _is_by_place(error) else _taken(error, order))


def _taken(values, order):
    return np.take_along_axis(values, order, axis=0)


def _is_by_place(error):
    """Say whether even rows are judged as people would: then the odd ones are favoured."""
    return np.abs(error[::2]).max() < ROUNDING and np.abs(error[1::2]).max() > ROUNDING


def equalised(random, people, judged, columns):
    """Return both where each configuration has the baseline's true mean; see `populations.py`."""
    mean, target = people.mean(axis=1), people[BASELINE].mean()
    lowest, highest = people.argmin(axis=0), people.argmax(axis=0)
    every = np.arange(people.shape[1])
    other = np.where(mean > target, people[lowest, every].mean(), people[highest, every].mean())
    share = (mean - target) / np.where(mean == target, 1.0, mean - other)
    is_replaced = random.random(columns.size) < share[:, None]
    source = np.where((mean > target)[:, None], lowest[columns], highest[columns])
    rows = np.where(is_replaced, source, np.arange(len(people))[:, None])
    return people[rows, columns], judged[rows, columns]


def one_study(draw, population, judge, random, *, people, judged, correcting=0):
    """Return the outcome of a study with so many queries of both kinds, and who was chosen.

    Half of all are held out, people's queries first; without a judge half of people's. So many of
    people's queries as are ``correcting`` are not held out: the winner is then who has the highest
    estimate by both kinds of labels.
    """
    total = people + judged
    held = total // 2
    columns = random.integers(0, population.people.shape[1], size=total)
    by_people, by_judge = draw(
        random, population.people, population.people if judge is None else judge, columns
    )
    is_people = np.arange(total) < people  # a sample at random, since all are
    values = np.where(is_people, by_people, by_judge)
    if correcting:
        both = slice(people - correcting, people)
        alone, last = (
            slice(held + correcting, total),
            np.r_[: people - correcting, people : held + correcting],
        )
        gains, judges = by_people - by_people[BASELINE], by_judge - by_judge[BASELINE]
        shares = (gains[:, both], judges[:, both], judges[:, alone])
        estimates = calibrated_ratio(*(Shares.of_mean(of) for of in shares)).value
        winner = int(np.nan_to_num(estimates).argmax())
    else:
        tune, last = values[:, held:], slice(0, held)
        winner = choose_winner(as_trials(tune, np.zeros(len(tune))), dict(enumerate(tune))).number
    sides = values[winner, last], values[BASELINE, last]
    if judged:
        labels = Labels(is_people[last], by_judge[winner, last], by_judge[BASELINE, last])
        found = compare_with_judge(*sides, labels, confidence=1.0 - ALPHA)
    else:
        found = compare_paired(*sides, seed=0, confidence=1.0 - ALPHA, permutations=0, resamples=0)
    if winner == BASELINE:
        return "keep the baseline", winner
    ruling = rule(Evidence(found, asked=found.n), alpha=ALPHA, min_effect=MIN_EFFECT)
    return ruling.outcome, winner


def studies(draw, population, judge, *, people, judged, repetitions, seed, correcting=0):
    """Return the shares of outcomes, and the mean true gain of who was chosen."""
    random = np.random.default_rng([seed, people, judged])
    counts, gain = Counter(), 0.0
    true = population.people.mean(axis=1)
    for _ in range(repetitions):
        outcome, winner = one_study(
            draw, population, judge, random, people=people, judged=judged, correcting=correcting
        )
        counts[outcome] += 1
        gain += float(true[winner] - true[BASELINE]) / repetitions
    return {name: count / repetitions for name, count in counts.items()}, gain


def nulls(population, *, repetitions, seed):
    """Print how often an equal configuration is deployed; return the rows."""
    rows = []
    print("\n| values | judge | kappa | people's | judged | deploy | keep | not enough |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for draw in (shuffled, equalised):
        for name, judge in population.judges.items():
            for people, judged in ((30, 300), (60, 600)):
                shares, _ = studies(
                    draw,
                    population,
                    judge,
                    people=people,
                    judged=judged,
                    repetitions=repetitions,
                    seed=seed,
                )
                rows.append({"values": draw.__name__, "judge": name, "people": people} | shares)
                told = (shares.get(key, 0.0) for key in ("deploy", "keep the baseline"))
                cells = " | ".join(f"{100 * share:.1f} %" for share in told)
                left = 100 * shares.get("not enough queries", 0.0)
                print(
                    f"| {draw.__name__} | {name} | {_kappa(population, name)} | {people} "
                    f"| {judged} | {cells} | {left:.1f} % |",
                    flush=True,
                )
    return rows


def power(population, *, repetitions, seed):
    """Print how often what is better is deployed, with a judge and without; return the rows."""
    rows = []
    print("\n| labels | kappa | people's | judged | deploy | true gain of the chosen |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    cases = [("people", None, n, 0) for n in (60, 100, 150, 200, 300)]
    cases += [(name, judge, 60, 600) for name, judge in population.judges.items()]
    cases += [("kappa 0.7, 600 in all", population.judges["kappa 0.7"], 60, 540)]
    for name, judge, people, judged in cases:
        shares, gain = studies(
            as_they_are,
            population,
            judge,
            people=people,
            judged=judged,
            repetitions=repetitions,
            seed=seed,
        )
        deploys = shares.get("deploy", 0.0)
        rows.append(
            {"labels": name, "people": people, "judged": judged, "deploy": deploys, "gain": gain}
        )
        print(
            f"| {name} | {_kappa(population, name)} | {people} | {judged} "
            f"| {100 * deploys:.1f} % | {gain:+.4f} |",
            flush=True,
        )
    return rows


def judges(population, *, repetitions, seed):
    """Print how often what is better is deployed by each of several judges; return the rows."""
    rows = []
    print("\n| judge | people's | judged | deploy | true gain of the chosen |")
    print("| --- | ---: | ---: | ---: | ---: |", flush=True)
    drawn = list(population.drawn)
    cases = [("people", as_they_are, None, (150, 0), 0)]
    cases += [
        (f"number {at}", as_they_are, one, (60, 600), 0) for at, one in enumerate(drawn, start=1)
    ]
    cases += [("errors by query", errors_by_query, population.drawn, (60, 600), 0)]
    cases += [
        (f"number {at}, choice corrected", as_they_are, one, (60, 600), CORRECTING)
        for at, one in enumerate(drawn[:4], start=1)
    ]
    for name, draw, judge, (people, judged), correcting in cases:
        shares, gain = studies(
            draw,
            population,
            judge,
            people=people,
            judged=judged,
            repetitions=repetitions,
            seed=seed,
            correcting=correcting,
        )
        deploys = shares.get("deploy", 0.0)
        rows.append(
            {"judge": name, "people": people, "judged": judged, "deploy": deploys, "gain": gain}
        )
        print(f"| {name} | {people} | {judged} | {100 * deploys:.1f} % | {gain:+.4f} |", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=[ATLAS])
    parser.add_argument("--only", nargs="+", default=["coverage", "nulls", "power"])
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    everything = {}
    for path in arguments.datasets:
        population = grade(path, configurations=arguments.configurations, seed=arguments.seed)
        print(f"\n## {population.name}")
        given = {"repetitions": arguments.repetitions, "seed": arguments.seed}
        found = everything.setdefault(population.name, {"kappas": population.kappas})
        if "coverage" in arguments.only:
            found["coverage"] = coverage(population, pairs=arguments.pairs, **given)
        if "nulls" in arguments.only:
            found["nulls"] = nulls(population, **given)
        if "power" in arguments.only:
            found["power"] = power(population, **given)
        if "judges" in arguments.only:
            found["judges"] = judges(population, **given)
        if arguments.json:
            arguments.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
