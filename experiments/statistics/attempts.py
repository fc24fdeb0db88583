"""Attempts to have something deployed that is no better. All configurations are equally good here.

    python experiments/statistics/attempts.py [--repetitions 2000] [--to FILE] [--only NAME …]

Each study draws what 20 configurations get for n queries, and does what `tuner run` does: the queries
are split (`split_queries`), one half chooses (`choose_winner`), the other decides (`decide`); or both
do, in two parts. Made-up differences are added to a baseline that is .5 everywhere:

- ``none``: differences are normal and independent, to compare with.
- ``ties``: a configuration differs on every twentieth query, by .4 up or down.
- ``rare losses``: it gains 1/98, more or less, on every query but one of 50, which loses .5: all there is.
- ``few clusters``: eight documents; what a configuration gains on one is the same for its queries.
- ``dependent``: every query is there three times in other words, and gains are alike (.9).
- ``duplicated``: every query is there three times in the same words, under other ids.
- ``long tails``: differences are t-distributed with 2.5 degrees of freedom, cut at .5.
- ``two ways``: tokens differ by chance, composites hardly, so that a price is a second chance.
- ``judge``: 60 of people's queries beside 240 of a judge's, who adds .1 to all that one configuration
  returns; ``judge, rarely``: .5 on every twentieth query; ``judge alone``: nobody graded beside it.

Groups and texts are told (``counted as one``) or not (``as independent``). With ``--to FILE`` each
row is kept there as a line of JSON, and is not computed again.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from false_positives import error
from populations import BASELINE, as_trials
from scipy import special

from tuner.core.corpus import Query
from tuner.datasets import cut_queries
from tuner.datasets.together import together
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.stats import degrees_of_freedom, widened_by, widened_by_both_ways
from tuner.verdict.as_one import gains_as_one, totals
from tuner.verdict.by_judge import ByJudge
from tuner.verdict.measured import Measured
from tuner.verdict.verdict import INDEPENDENT, MIN_EFFECT, Widened, decide
from tuner.verdict.winner import winner_rule

CONFIGURATIONS = 20
RESAMPLES = 299
COPIES = 3
CLUSTERS = 8
PEOPLE = 0.2  # the share of people's queries among those held out with a judge


@dataclass(frozen=True, eq=False)
class Made:
    """The queries of one study; values and tokens have the shape (configurations, queries)."""

    values: np.ndarray
    queries: list[Query]
    tokens: np.ndarray | None = None
    judged: np.ndarray | None = None
    is_people: np.ndarray | None = field(default=None)


def made(differences, groups=None, texts=None, **more):
    """Return the study in which configurations differ from the baseline by so much."""
    values = np.vstack([np.full((1, differences.shape[1]), 0.5), 0.5 + differences])
    queries = [
        Query(
            f"q{number:04}",
            f"question {number if texts is None else texts[number]}",
            group="" if groups is None else f"g{groups[number]}",
        )
        for number in range(differences.shape[1])
    ]
    return Made(values, queries, **more)


def none(random, n, _):
    return made(0.2 * random.standard_normal((CONFIGURATIONS, n)))


def ties(random, n, _):
    signs = random.choice([-0.4, 0.4], size=(CONFIGURATIONS, n))
    return made(signs * (random.random((CONFIGURATIONS, n)) < 0.05))


def rare_losses(random, n, _):
    is_lost = random.random((CONFIGURATIONS, n)) < 0.02
    gain = 0.5 * 0.02 / 0.98 + 0.02 * random.standard_normal(is_lost.shape)
    return made(np.where(is_lost, -0.5, gain))


def few_clusters(random, n, is_told):
    cluster = np.arange(n) % CLUSTERS
    gain = 0.1 * random.standard_normal((CONFIGURATIONS, CLUSTERS))[:, cluster]
    noise = 0.1 * random.standard_normal((CONFIGURATIONS, n))
    return made(gain + noise, groups=cluster if is_told else None)


def dependent(random, n, is_told):
    original = np.arange(n) % (n // COPIES)
    gain = 0.2 * random.standard_normal((CONFIGURATIONS, n // COPIES))[:, original]
    noise = 0.2 * random.standard_normal((CONFIGURATIONS, n)) / 3.0
    return made(gain + noise, groups=original if is_told else None)


def duplicated(random, n, is_told):
    original = np.arange(n) % (n // COPIES)
    gain = 0.2 * random.standard_normal((CONFIGURATIONS, n // COPIES))[:, original]
    return made(gain, texts=original if is_told else None)


def long_tails(random, n, _):
    return made(np.clip(0.05 * random.standard_t(2.5, (CONFIGURATIONS, n)), -0.5, 0.5))


def two_ways(random, n, _):
    signs = random.choice([-0.02, 0.02], size=(CONFIGURATIONS, n))
    tokens = 1000.0 + 500.0 * random.standard_normal((CONFIGURATIONS + 1, n))
    return made(signs, tokens=tokens)


def judge(random, n, _, lean=0.1, every=1, has_people=True):
    made_up = made(0.2 * random.standard_normal((CONFIGURATIONS, n)))
    judged = made_up.values + 0.1 * random.standard_normal(made_up.values.shape)
    judged[1] += lean * (random.random(n) < 1.0 / every)
    is_people = random.permutation(n) < PEOPLE * n / 2.0 if has_people else None
    return Made(made_up.values, made_up.queries, judged=judged, is_people=is_people)


def judge_rarely(random, n, _):
    return judge(random, n, _, lean=0.5, every=20)


def judge_alone(random, n, _):
    return judge(random, n, _, has_people=False)


Make = Callable[[np.random.Generator, int, bool], Made]
# What makes the studies, with how many queries, and whether dependence can be told.
ATTEMPTS: dict[str, tuple[Make, tuple[int, ...], bool]] = {
    "none": (none, (60, 200), False),
    "ties": (ties, (100, 200, 400), False),
    "rare losses": (rare_losses, (60, 100, 200, 400), False),
    "few clusters": (few_clusters, (96, 192), True),
    "dependent": (dependent, (90, 180), True),
    "duplicated": (duplicated, (90, 180), True),
    "long tails": (long_tails, (60, 200), False),
    "two ways": (two_ways, (100, 200, 400), False),
    "judge": (judge, (600,), False),
    "judge, rarely": (judge_rarely, (600,), False),
    "judge alone": (judge_alone, (600,), False),
}
PRICE = 0.1


def objective(study):
    """Return the values less the price of the tokens."""
    if study.tokens is None:
        return study.values
    return study.values - PRICE * study.tokens / 1000.0


def deployed(study, seed):
    """Return whether halves deploy, and two parts; a judge's labels go with halves alone."""
    ids = {query.id: number for number, query in enumerate(study.queries)}
    parts = cut_queries(study.queries, 2, stratify_by=(), seed=seed)
    part_of = np.zeros(len(ids), dtype=int)
    part_of[[ids[id_] for id_ in parts[1]]] = 1
    if study.judged is not None:
        return {"halves": by_judge(study)}
    utility = objective(study)
    choose = winner_rule(as_trials(utility, np.arange(len(utility), dtype=float)))
    # Part 0 is what a holdout of a half is.
    sets = np.stack([part_of == 1, part_of == 0, np.ones(len(ids))]).astype(float)
    first, second, final = choose(utility, sets).tolist()
    columns = np.flatnonzero(part_of == 0)
    found = {
        "halves": first != BASELINE and says(study, np.full(columns.size, first), columns),
        "2 parts": False,
    }
    rows, everything = np.where(part_of == 0, first, second), np.arange(len(ids))
    if final != BASELINE and says(study, rows, everything):
        found["2 parts"] = says(study, rows, everything, widening(study, part_of, choose, seed))
    return found


def says(study, rows, columns, widened=INDEPENDENT):
    """Return whether ``columns``, each met by a row, deploy."""
    utility = objective(study)

    def measured(which):
        costs = (
            {} if study.tokens is None else {CONTEXT_TOKENS: study.tokens[which, columns].mean()}
        )
        return Measured(
            {"rows": sorted(set(which.tolist()))},
            study.values[which, columns],
            objective=None if study.tokens is None else utility[which, columns],
            costs=costs,
        )

    base = np.full(columns.size, BASELINE)
    alike = together([study.queries[column] for column in columns])
    gains = [one[rows, columns] - one[base, columns] for one in (study.values, utility)]
    # What is clearly not to be deployed need not be asked what else there is to say of it.
    if not any(is_near(gain, alike, widened.composite) for gain in gains):
        return False
    both = measured(rows), measured(base)
    return decide(*both, together=alike, widened=widened, draws=0).outcome == "deploy"


def is_near(gain, alike, widened):
    """Return whether a mean gain is nearly above what an interval allows for."""
    found = totals([gain], alike)[0][0]
    half = special.stdtrit(degrees_of_freedom(found), 0.975) * found.std(ddof=1)
    return found.mean() > 0.98 * widened * half / found.size**0.5


def widening(study, part_of, choose, seed):
    """Return by how much the parts' dependence widens the intervals, as a run does."""
    alike = together(study.queries)
    utility = objective(study)
    gains = gains_as_one(utility - utility[BASELINE], alike)
    cut = part_of[np.unique(alike, return_index=True)[1]]
    given = {"choose": choose, "seed": seed, "resamples": RESAMPLES}
    if study.tokens is None:
        return Widened(*widened_by(gains, cut, **given))
    tested = gains_as_one(study.values - study.values[BASELINE], alike)
    joint = widened_by_both_ways(gains, tested, cut, margin=MIN_EFFECT, **given)
    return Widened(joint, joint)


def by_judge(study):
    """Return whether the one that the judge favours is deployed: it wins, whatever it is worth.

    People's queries are held out first, and the judge's choose.
    """
    n = len(study.queries)
    is_held = np.arange(n) < n // 2
    if study.is_people is not None:
        order = np.argsort(~study.is_people, kind="stable")
        is_held = np.zeros(n, dtype=bool)
        is_held[order[: n // 2]] = True
    trials = as_trials(study.judged, np.arange(len(study.judged), dtype=float))
    row = int(winner_rule(trials)(study.judged, (~is_held).astype(float)[None])[0])
    if row == BASELINE:
        return False

    def measured(which):
        judged = study.judged[which, is_held]
        if study.is_people is None:
            return Measured({"row": which}, judged)
        is_people = study.is_people[is_held]
        own = np.where(is_people, study.values[which, is_held], judged)
        return Measured({"row": which}, own, judge=ByJudge(is_people, judged))

    return decide(measured(row), measured(BASELINE), largest=1.0, draws=0).outcome == "deploy"


def rows_of(arguments, known):
    """Yield each row: the attempt, how it is told, and how often each design deploys."""
    for name, (make, sizes, can_be_told) in ATTEMPTS.items():
        if name not in arguments.only:
            continue
        for is_told in (False, True) if can_be_told else (False,):
            for queries in sizes:
                about = {"attempt": name, "told": is_told, "queries": queries}
                key = json.dumps([about, arguments.repetitions, arguments.seed])
                if key not in known:
                    random = np.random.default_rng([arguments.seed, queries])
                    counts = Counter()
                    for repetition in range(arguments.repetitions):
                        counts.update(deployed(make(random, queries, is_told), repetition))
                    shares = {one: n / arguments.repetitions for one, n in counts.items()}
                    known[key] = {**about, **shares}
                    if arguments.to is not None:
                        with arguments.to.open("a") as file:
                            file.write(json.dumps([key, known[key]]) + "\n")
                yield known[key]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--only", nargs="+", choices=tuple(ATTEMPTS), default=tuple(ATTEMPTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--to", type=Path, help="keep each row there, and compute no kept one again"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    known = {}
    if arguments.to is not None and arguments.to.is_file():
        known = dict(json.loads(line) for line in arguments.to.read_text().splitlines())
    print("| attempt | dependence | queries | studies | halves | 2 parts |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    rows = []
    for row in rows_of(arguments, known):
        can_be_told = ATTEMPTS[row["attempt"]][2]
        how = ("counted as one" if row["told"] else "as independent") if can_be_told else "–"
        cells = [
            f"{100 * row[one]:.1f} ± {100 * error(row[one], arguments.repetitions):.1f} %"
            if one in row
            else "–"
            for one in ("halves", "2 parts")
        ]
        about = f"{row['attempt']} | {how} | {row['queries']} | {arguments.repetitions}"
        print(f"| {about} | {' | '.join(cells)} |", flush=True)
        rows.append(row)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
