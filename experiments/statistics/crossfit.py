"""Can all queries decide, each part by a winner that was chosen without it? The truth is known here.

    python experiments/statistics/crossfit.py [--only null priced power searches splits] [DATASET …]

The ways to use n labelled queries that are compared (*designs*):

- ``halves``: one half chooses (`choose_winner`), the other decides (`decide`): what a holdout does.
- ``K parts``: for each part the winner is chosen by the others and meets the baseline on it. All n
  differences decide. ``plain`` takes them as independent; ``widened`` widens the interval by what
  the parts' dependence makes of the procedure where nothing is better (`tuner.stats.widened_by`).

Tables, by ``--only``:

- ``null``: 100 configurations that are equally good, as in `false_positives.py`: how often is one
  deployed? And two that are made to defeat the plain test. `recentred`: values as they are, but every
  mean is moved to the baseline's. `opposite`: two configurations, one of which gains what the other
  loses, and that on average is nothing.
- ``priced``: the same with a price, which opens a second way to be deployed.
- ``power``: values as they are: how often is the winner deployed, does the interval hold what the
  parts' winners are truly worth, and how often is what all queries choose truly no better?
- ``searches``: the search takes part. TPE (40 trials) over 400 recorded configurations: what it
  suggests is taken to the nearest that it has not had yet. A search sees only the queries of its
  part; ``leaky`` is one search that saw all of them, and only the choice is made part by part.
- ``splits``: 20 splits of a set as it is, grid (60) and TPE (40) on the engine itself.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from false_positives import PRICE_PER_1000, RARE_LOSS, error
from populations import (
    ATLAS,
    BASELINE,
    BASELINE_ARM,
    DEFAULT,
    SPACE,
    alike,
    as_trials,
    equal_tokens,
    equalised,
    measure_population,
    real,
    shuffled,
)
from real import Answers, found_by, utility
from scipy import stats
from search_quality import METRICS, OBJECTIVE

from tuner.backends.tpe import Tpe
from tuner.core.trial import Trial, TrialState
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import composite_values
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.stats import Choose, widened_by
from tuner.stats.paired import degrees_of_freedom
from tuner.verdict.verdict import INDEPENDENT, MIN_EFFECT, Measured, Widened, decide
from tuner.verdict.winner import winner_rule

QUERIES = (40, 60, 100, 200, 500)
POWER_QUERIES = (60, 100, 200)
PARTS = (2, 5)
DRAWS = {"equalised": equalised, "shuffled": shuffled, "alike": alike}
RESAMPLES = 999
RECORDED = 400
SEARCH_TRIALS = 40
TABLES = ("null", "priced", "power", "searches", "splits")


def opposite(population):
    """Return a way to draw two configurations of which one gains what the other loses.

    Row 1 differs from the baseline as the best of all does, but up or down by chance.
    """
    values = population.values
    best = int(values.mean(axis=1).argmax())
    difference = values[best] - values[BASELINE]

    def draw(random, queries):
        columns = random.integers(0, values.shape[1], size=queries)
        change = difference[columns] * random.choice([-1.0, 1.0], size=queries)
        base = values[BASELINE, columns]
        return np.stack([base, base + change, base - change])

    return draw


def recentred(population):
    """Return a way to draw values of which every configuration's mean is moved to the baseline's.

    All that sets configurations apart stays but how good they are: their directions, too.
    """
    values = population.values
    mean = values.mean(axis=1, keepdims=True)
    moved = values - mean + mean[BASELINE]

    def draw(random, queries):
        return moved[:, random.integers(0, values.shape[1], size=queries)]

    return draw


def parts_of(queries, parts):
    """Return the number of each query's part; queries are independent draws, so any cut will do."""
    return np.arange(queries) % parts


@dataclass(frozen=True, eq=False)
class Drawn:
    """The queries of one simulated study: values and tokens, shape (configurations, queries).

    ``choose`` is `choose_winner` as a function of values and of the queries that take part.
    """

    values: np.ndarray
    tokens: np.ndarray
    choose: Choose
    price: float = 0.0

    @property
    def objective(self):
        """Return the values less the price of the tokens."""
        return self.values - self.price * self.tokens / 1000.0

    def winners(self, is_seen):
        """Return the row that is chosen by each set of queries, shape (sets, queries)."""
        return self.choose(self.objective, np.atleast_2d(is_seen).astype(float))


def decided(study, rows, columns, widened=INDEPENDENT):
    """Return the verdict where each of ``columns`` is met by the configuration in ``rows``."""
    has_price = study.price > 0.0

    def measured(which):
        return Measured(
            {"rows": sorted(set(np.atleast_1d(which).tolist()))},
            study.values[which, columns],
            objective=study.objective[which, columns] if has_price else None,
            costs={CONTEXT_TOKENS: float(study.tokens[which, columns].mean())} if has_price else {},
        )

    base = np.full(len(columns), BASELINE)
    return decide(measured(rows), measured(base), widened=widened, draws=0)


def may_deploy(study, rows, columns):
    """Say without a test whether the verdict may be *deploy*: saves most of the time."""
    for values in (study.values, study.objective)[: 2 if study.price else 1]:
        difference = values[rows, columns] - values[BASELINE, columns]
        spread = difference.std(ddof=1) / np.sqrt(difference.size)
        if difference.mean() > 1.9 * spread:
            return True
    return False


def by_halves(study):
    """Return whether the winner of one half is deployed by the other, and its row."""
    queries = study.values.shape[1]
    is_tune = np.arange(queries) < queries // 2
    row = int(study.winners(is_tune)[0])
    columns = np.flatnonzero(~is_tune)
    rows = np.full(columns.size, row)
    if row == BASELINE or not may_deploy(study, rows, columns):
        return False, row
    return decided(study, rows, columns).outcome == "deploy", row


def by_parts(study, parts, seed, *, rows=None, final=None):
    """Return whether it is deployed, plain and widened, and each query's row.

    ``rows`` are those of searches of their own, else each part's winner is chosen among all rows.
    """
    queries = study.values.shape[1]
    part_of = parts_of(queries, parts)
    if rows is None:
        rows = study.winners([part_of != part for part in range(parts)])[part_of]
    if final is None:
        final = int(study.winners(np.ones(queries))[0])
    columns = np.arange(queries)
    if final == BASELINE or not may_deploy(study, rows, columns):
        return False, False, rows
    if decided(study, rows, columns).outcome != "deploy":
        return False, False, rows
    widened = widening(study, part_of, seed)
    return True, decided(study, rows, columns, widened).outcome == "deploy", rows


def widening(study, part_of, seed):
    """Return by how much the dependence of the parts widens the intervals."""
    objective, composite = widened_by(
        study.objective - study.objective[BASELINE],
        part_of,
        choose=study.choose,
        seed=seed,
        tested=[study.values - study.values[BASELINE]],
        resamples=RESAMPLES,
    )
    return Widened(composite, objective)


def rule_by(tokens):
    """Return `choose_winner` for configurations with these mean tokens, as a function."""
    return winner_rule(as_trials(np.zeros((tokens.size, 1)), tokens))


def drawn_study(draw, random, queries, tokens, choose):
    """Return one simulated study without a price."""
    values = draw(random, queries)
    return Drawn(values, np.broadcast_to(tokens[: len(values), None], values.shape), choose)


def null_rows(population, arguments):
    """Return how often each design deploys where nothing is better."""
    rows = []
    for kind, make in {**DRAWS, "recentred": recentred, "opposite": opposite}.items():
        draw, tokens = make(population), population.tokens
        choose = rule_by(tokens[:3] if kind == "opposite" else tokens)
        for queries in arguments.queries:
            random = np.random.default_rng([arguments.seed, queries])
            counts = Counter()
            for repetition in range(arguments.repetitions):
                study = drawn_study(draw, random, queries, tokens, choose)
                counts["halves"] += by_halves(study)[0]
                for parts in PARTS:
                    plain, widened, _ = by_parts(study, parts, repetition)
                    counts[f"{parts} parts, plain"] += plain
                    counts[f"{parts} parts, widened"] += widened
            rows.append(row_of(counts, arguments.repetitions, values=kind, queries=queries))
            show(rows[-1], len(rows) == 1)
    return rows


def priced_rows(population, arguments):
    """Return the same with a price; see `false_positives.py` for the configurations."""
    rows = []
    for kind, make in DRAWS.items():
        for label in ("equal", "worse", *(("rarely worse",) if kind == "equalised" else ())):
            draw, draw_tokens = make(population), equal_tokens(population)
            for queries in arguments.priced_queries:
                random = np.random.default_rng([arguments.seed, queries])
                counts = Counter()
                for repetition in range(arguments.repetitions):
                    values, tokens = draw(random, queries), draw_tokens(random, queries)
                    study = priced(values, tokens, label, random)
                    counts["halves"] += by_halves(study)[0]
                    for parts in PARTS:
                        plain, widened, _ = by_parts(study, parts, repetition)
                        counts[f"{parts} parts, plain"] += plain
                        counts[f"{parts} parts, widened"] += widened
                about = {"values": kind, "configurations": label, "queries": queries}
                rows.append(row_of(counts, arguments.repetitions, **about))
                show(rows[-1], len(rows) == 1)
    return rows


def priced(values, tokens, label, random):
    """Return a study with a price whose configurations must not be deployed."""
    if label != "equal":
        is_other = (np.arange(len(values)) != BASELINE)[:, None]
        if label == "worse":
            values = values - MIN_EFFECT * is_other
        else:
            is_lost = random.random(values.shape) < MIN_EFFECT / RARE_LOSS
            values = values[BASELINE] - RARE_LOSS * (is_lost & is_other)
        tokens = np.where(is_other, tokens / 2.0, tokens)
    return Drawn(values, tokens, rule_by(tokens.mean(axis=1)), PRICE_PER_1000)


def power_rows(population, arguments):
    """Return how often each design deploys values as they are, and whether intervals cover."""
    rows, draw, choose = [], real(population), rule_by(population.tokens)
    gain = population.values.mean(axis=1) - population.values[BASELINE].mean()
    for queries in arguments.power_queries:
        random = np.random.default_rng([arguments.seed, queries])
        counts = Counter()
        for repetition in range(arguments.repetitions):
            study = drawn_study(draw, random, queries, population.tokens, choose)
            is_deployed, row = by_halves(study)
            counts["halves"] += is_deployed
            counts["halves, no better"] += is_deployed and gain[row] <= 0.0
            final = int(study.winners(np.ones(queries))[0])
            for parts in PARTS:
                plain, widened, met = by_parts(study, parts, repetition, final=final)
                counts[f"{parts} parts, plain"] += plain
                counts[f"{parts} parts, widened"] += widened
                counts[f"{parts} parts, no better"] += widened and gain[final] <= 0.0
                if repetition < arguments.coverage_repetitions:
                    part_of = parts_of(queries, parts)
                    factor = widening(study, part_of, repetition).composite
                    difference = study.values[met, np.arange(queries)] - study.values[BASELINE]
                    off = abs(difference.mean() - gain[met].mean())
                    half = half_width(difference)
                    covering = min(arguments.coverage_repetitions, arguments.repetitions)
                    scale = arguments.repetitions / covering
                    counts[f"{parts} parts, plain covers"] += scale * (off <= half)
                    counts[f"{parts} parts, widened covers"] += scale * (off <= factor * half)
                    counts[f"{parts} parts, factor"] += scale * factor
        about = {"data set": population.name, "queries": queries}
        about["coverage studies"] = min(arguments.coverage_repetitions, arguments.repetitions)
        rows.append(row_of(counts, arguments.repetitions, **about))
        show(rows[-1], len(rows) == 1)
    return rows


def half_width(difference):
    """Return half the plain 95 % interval of a mean difference."""
    spread = difference.std(ddof=1)
    if spread == 0.0:
        return 1e-12
    degrees = degrees_of_freedom(difference)
    return stats.t.ppf(0.975, degrees) * spread / np.sqrt(difference.size)


def searched(objective, units, params, is_seen, seed):
    """Return the rows that TPE asks for, in order: each suggestion's nearest that is new."""
    backend, history, asked = Tpe(budget=SEARCH_TRIALS), [], []
    means = objective[:, is_seen].mean(axis=1)
    is_new = np.ones(len(units), dtype=bool)
    is_new[BASELINE] = False
    while len(asked) < SEARCH_TRIALS:
        (point,) = backend.suggest(SPACE, history, count=1, seed=seed)
        distance = ((units - SPACE.encode(point)) ** 2).sum(axis=1)
        row = int(np.where(is_new, distance, np.inf).argmin())
        is_new[row] = False
        asked.append(row)
        history.append(
            Trial(
                number=len(history),
                arm="tpe",
                params=params[row],
                state=TrialState.FINISHED,
                objective=float(means[row]),
            )
        )
    return asked


def only(study, rows):
    """Return a study of the baseline and these configurations."""
    kept = np.array([BASELINE, *rows])
    choose = rule_by(study.tokens[kept].mean(axis=1))
    return Drawn(study.values[kept], study.tokens[kept], choose, study.price), kept


def search_rows(population, arguments):
    """Return how often each design deploys where a search that learns takes part."""
    rows = []
    units = np.array([SPACE.encode(params) for params in population.params])
    for kind, make in {"equalised": equalised, "real": real}.items():
        draw = make(population)
        for queries in arguments.search_queries:
            random = np.random.default_rng([arguments.seed, queries])
            counts = Counter()
            for repetition in range(arguments.search_repetitions):
                study = drawn_study(draw, random, queries, population.tokens, None)
                search = partial(
                    searched, study.objective, units, population.params, seed=repetition
                )
                counts.update(one_search(study, search, queries, repetition, arguments))
            about = {"values": kind, "queries": queries}
            rows.append(row_of(counts, arguments.search_repetitions, **about))
            show(rows[-1], len(rows) == 1)
    return rows


def one_search(study, search, queries, repetition, arguments):
    """Return what each design makes of one set of queries, all with the same search."""
    counts = Counter()
    everything = np.ones(queries, dtype=bool)
    on_all, _ = only(study, search(is_seen=everything))
    final = int(on_all.winners(everything)[0])
    for parts in arguments.search_parts:
        part_of = parts_of(queries, parts)
        met = np.zeros(queries, dtype=int)
        for part in range(parts):
            is_seen = part_of != part
            own, rows = only(study, search(is_seen=is_seen))
            met[~is_seen] = rows[int(own.winners(is_seen)[0])]
            if parts == 2 and part == 0:
                columns = np.flatnonzero(~is_seen)
                is_worth = met[columns[0]] != BASELINE and may_deploy(study, met[columns], columns)
                counts["halves"] += (
                    is_worth and decided(study, met[columns], columns).outcome == "deploy"
                )
        columns = np.arange(queries)
        is_deployed = (
            final != BASELINE
            and may_deploy(study, met, columns)
            and decided(study, met, columns).outcome == "deploy"
        )
        counts[f"{parts} searches, plain"] += is_deployed
        if is_deployed:
            widened = widening(on_all, part_of, repetition)
            is_deployed = decided(study, met, columns, widened).outcome == "deploy"
        counts[f"{parts} searches, widened"] += is_deployed
        plain, widened, _ = by_parts(on_all, parts, repetition)
        counts[f"{parts} parts, leaky, plain"] += plain
        counts[f"{parts} parts, leaky, widened"] += widened
    return counts


def split_rows(path, arguments):
    """Return what other cuts of a set as it is would have said, searched on the engine itself."""
    dataset = open_dataset(path)
    retriever = Hybrid.build(dataset.corpus, cache_dir=cache_dir())
    retriever.prepare(dataset.queries)
    evaluate = Evaluator.build(retriever, list(dataset.queries), dataset.qrels, METRICS)
    answers, counts = Answers(evaluate, {}), Counter()
    for seed in range(arguments.splits):
        first, _ = split_queries(
            dataset.queries, holdout=0.5, stratify_by=["query_type", "difficulty"], seed=seed
        )
        part_of = np.array([int(query.id in set(first)) for query in dataset.queries])
        counts.update(one_split(answers, part_of, seed))
    return [row_of(counts, arguments.splits, **{"data set": dataset.name})]


def one_split(answers, part_of, seed):
    """Return whether each design deploys where the queries are cut this way."""
    everything = np.ones(part_of.size, dtype=bool)
    trials, final = found_by(answers, everything, seed)
    winners = [found_by(answers, part_of != part, seed)[1] for part in (0, 1)]
    base, counts = answers.of(DEFAULT), Counter()

    def measured(params, met, columns):
        return Measured(
            params,
            np.stack([composite_values(one, OBJECTIVE.weights) for one in met])[
                part_of[columns], columns
            ],
            objective=np.stack([utility(one) for one in met])[part_of[columns], columns],
            costs={CONTEXT_TOKENS: float(np.mean([one[CONTEXT_TOKENS].mean() for one in met]))},
        )

    def says(columns, widened=INDEPENDENT):
        met = [answers.of(winner.params) for winner in winners]
        pair = measured({"met": seed}, met, columns), measured(DEFAULT, [base, base], columns)
        return decide(*pair, widened=widened, draws=0).outcome == "deploy"

    halves = np.flatnonzero(part_of == 0)
    counts["halves"] += winners[0].arm != BASELINE_ARM and says(halves)
    columns, is_new = np.arange(part_of.size), final.arm != BASELINE_ARM
    counts["2 searches, plain"] += is_new and says(columns)
    values = np.stack([utility(answers.of(trial.params)) for trial in trials])
    tested = np.stack(
        [composite_values(answers.of(trial.params), OBJECTIVE.weights) for trial in trials]
    )
    objective, composite = widened_by(
        values - values[0],
        part_of,
        choose=winner_rule(trials),
        seed=seed,
        tested=[tested - tested[0]],
        resamples=RESAMPLES,
    )
    counts["2 searches, widened"] += is_new and says(columns, Widened(composite, objective))
    return counts


def row_of(counts, repetitions, **about):
    """Return one row of a table: shares of the repetitions."""
    shares = {name: count / repetitions for name, count in counts.items()}
    return {**about, "repetitions": repetitions, **shares}


ABOUT = ("values", "configurations", "data set", "queries", "coverage studies", "repetitions")


def show(row, is_first):
    """Print one row, below the head of its table."""
    if is_first:
        print("\n| " + " | ".join(row) + " |")
        print("| " + " | ".join("---" for _ in row) + " |")
    cells = []
    for name, value in row.items():
        if name in ABOUT:
            cells.append(str(value))
        elif name.endswith("factor"):
            cells.append(f"{value:.2f}")
        else:
            studies = row["coverage studies" if name.endswith("covers") else "repetitions"]
            cells.append(f"{100 * value:.1f} ± {100 * error(value, studies):.1f} %")
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=[ATLAS])
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--coverage-repetitions", type=int, default=500)
    parser.add_argument("--search-repetitions", type=int, default=400)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES)
    parser.add_argument("--priced-queries", type=int, nargs="+", default=(60, 200))
    parser.add_argument("--power-queries", type=int, nargs="+", default=POWER_QUERIES)
    parser.add_argument("--search-queries", type=int, nargs="+", default=(100,))
    parser.add_argument("--search-parts", type=int, nargs="+", default=PARTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    tables = {"null": null_rows, "priced": priced_rows, "power": power_rows}
    everything = []
    for path in arguments.datasets:
        lists = [name for name in arguments.only if name in tables]
        population = None
        if lists:
            population = measure_population(
                path, configurations=arguments.configurations, seed=arguments.seed
            )
        for name in arguments.only:
            print(f"\n## {path}: {name}", flush=True)
            if name in tables:
                rows = tables[name](population, arguments)
            elif name == "searches":
                recorded = measure_population(path, configurations=RECORDED, seed=arguments.seed)
                rows = search_rows(recorded, arguments)
            else:
                rows = split_rows(path, arguments)
                show(rows[0], is_first=True)
            everything += [{"table": name, "path": path, **row} for row in rows]
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
