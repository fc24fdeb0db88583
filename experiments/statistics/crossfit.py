"""Can all queries decide, each part by a winner that was chosen without it? The truth is known here.

    python experiments/statistics/crossfit.py [--only null priced power …] [--to FILE] [DATASET …]

The ways to use n labelled queries that are compared (*designs*):

- ``halves``: one half chooses (`choose_winner`), the other decides (`decide`): what a holdout does.
- ``K parts``: for each part the winner is chosen by the others and meets the baseline on it. All n
  differences decide. ``plain`` takes them as independent; ``widened`` widens the interval by what
  the parts' dependence makes of the procedure where nothing is better (`tuner.stats.widened_by`),
  and with a price by what the two ways to be deployed add (`widened_by_both_ways`).
- ``few best``: two parts without a third search. What is deployed is chosen, by all queries, of the
  five best of either part's search, and these alone tell by how much the parts depend on each other.

Tables, by ``--only``:

- ``null``: 100 configurations that are equally good, as in `false_positives.py`: how often is one
  deployed? And two that are made to defeat the plain test. `recentred`: values as they are, but every
  mean is moved to the baseline's. `opposite`: two configurations, one of which gains what the other
  loses, and that on average is nothing.
- ``priced``: the same with a price, which opens a second way to be deployed.
- ``power``: values as they are: how often is the winner deployed, how often is what all queries choose
  truly no better, and what does it truly gain on average where it is deployed?
- ``coverage``: does the interval hold what the parts' winners are truly worth?
- ``searches``: the search takes part. TPE (40 trials) over 400 recorded configurations: what it
  suggests is taken to the nearest that it has not had yet. A search sees only the queries of its
  part; ``leaky`` is one search that saw all of them, and only the choice is made part by part.
- ``splits``: 20 splits of a set as it is, grid (60) and TPE (40) on the engine itself.

With ``--to FILE`` each row is kept there as a line of JSON, and is not computed again.
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
from scipy import special
from search_quality import METRICS, OBJECTIVE

from tuner.backends.tpe import Tpe
from tuner.core.trial import Trial, TrialState
from tuner.datasets import open_dataset, split_queries
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import composite_values
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir
from tuner.stats import Choose, widened_by, widened_by_both_ways
from tuner.stats.paired import degrees_of_freedom
from tuner.verdict.measured import Measured
from tuner.verdict.outcome import FEWEST_THAT_DIFFER, RULE_OF_THREE
from tuner.verdict.verdict import INDEPENDENT, MIN_EFFECT, Widened, decide
from tuner.verdict.winner import winner_rule

QUERIES = (40, 60, 100, 200, 500)
POWER_QUERIES = (60, 100, 200)
PARTS = (2, 5)
DRAWS = {"equalised": equalised, "shuffled": shuffled, "alike": alike}
FEW_BEST = 5
RESAMPLES = 399
LEAST_FOR_RARE = RULE_OF_THREE * RARE_LOSS
RECORDED = 400
SEARCH_TRIALS = 40
TABLES = ("null", "priced", "power", "coverage", "searches", "splits")


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
        """Return the row that is chosen by each set of queries, shape (sets, queries).

        With a price tokens vary by query, and a search knows those of its own queries only: where
        it knew all, the fewest tokens of equals would be luck that its part is tested on.
        """
        sets = np.atleast_2d(is_seen).astype(bool)
        if not self.price:
            return self.choose(self.objective, sets.astype(float))
        rules = (rule_by(self.tokens[:, one].mean(axis=1)) for one in sets)
        rows = [
            rule(self.objective, one[None].astype(float))[0]
            for rule, one in zip(rules, sets, strict=True)
        ]
        return np.array(rows)


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


def widening(study, part_of, seed, resamples=RESAMPLES):
    """Return by how much intervals are widened, as `tuner.run.parts` does."""
    gains = study.objective - study.objective[BASELINE]
    given = {"choose": study.choose, "seed": seed, "resamples": resamples}
    if study.price:
        tested = study.values - study.values[BASELINE]
        joint = widened_by_both_ways(gains, tested, part_of, margin=MIN_EFFECT, **given)
        return Widened(joint, joint)
    return Widened(*widened_by(gains, part_of, **given))


def each_design(study, seed):
    """Return whether each design deploys, the rows that met each part's queries, and the finals."""
    queries = study.values.shape[1]
    columns = np.arange(queries)
    cuts = [parts_of(queries, parts) for parts in PARTS]
    sets = [columns < queries // 2, np.ones(queries, dtype=bool)]
    sets += [cut != part for cut in cuts for part in range(cut.max() + 1)]
    half, final, *others = study.winners(np.stack(sets)).tolist()
    found, met = {}, {}
    found["halves"] = half != BASELINE and says(study, half, columns[queries // 2 :])
    for parts, cut in zip(PARTS, cuts, strict=True):
        rows, others = np.array(others[:parts])[cut], others[parts:]
        met[parts] = rows
        plain = final != BASELINE and says(study, rows, columns)
        found[f"{parts} parts, plain"] = plain
        found[f"{parts} parts, widened"] = plain and says(
            study, rows, columns, widening(study, cut, seed)
        )
    if study.price:
        return found, met, {"halves": half, "parts": final}
    few, few_final = few_best(study, cuts[0])
    plain = few_final != BASELINE and says(study, met[2], columns)
    found["2 parts, few best"] = plain and says(
        study, met[2], columns, widening(few, cuts[0], seed)
    )
    return found, met, {"halves": half, "parts": final, "few best": few_final}


def few_best(study, cut):
    """Return a study of the baseline and the best of two searches, and what all queries choose."""
    kept = {BASELINE}
    for part in (0, 1):
        means = study.objective[:, cut != part].mean(axis=1)
        means[BASELINE] = -np.inf
        kept.update(np.argsort(-means, kind="stable")[:FEW_BEST].tolist())
    rows = sorted(kept)
    few, _ = only(study, rows[1:])
    return few, rows[int(few.winners(np.ones(cut.size))[0])]


def says(study, rows, columns, widened=INDEPENDENT):
    """Return whether ``columns``, met by the configurations in ``rows``, deploy.

    The rule of `decide` without what it says besides, which takes most of its time.
    """
    met = np.broadcast_to(rows, columns.shape)
    if not may_deploy(study, met, columns):
        return False
    difference = study.values[met, columns] - study.values[BASELINE, columns]
    if np.ptp(difference) < 1e-9:
        return decided(study, met, columns, widened).outcome == "deploy"
    mean, half = difference.mean(), widened.composite * half_width(difference)
    if mean > half and mean + half >= MIN_EFFECT:
        return True
    if not study.price or mean - half <= -MIN_EFFECT:
        return False
    gain = study.objective[met, columns] - study.objective[BASELINE, columns]
    is_better = gain.mean() > max(mean, widened.objective * half_width(gain))
    differ = int(np.count_nonzero(np.abs(difference) > 1e-12))
    may_lack = differ < FEWEST_THAT_DIFFER and difference.size * MIN_EFFECT < LEAST_FOR_RARE
    return bool(is_better and not may_lack)


def rule_by(tokens):
    """Return `choose_winner` for configurations with these mean tokens, as a function."""
    return winner_rule(as_trials(np.zeros((tokens.size, 1)), tokens))


def drawn_study(draw, random, queries, tokens, choose):
    """Return one simulated study without a price."""
    values = draw(random, queries)
    return Drawn(values, np.broadcast_to(tokens[: len(values), None], values.shape), choose)


def null_rows(population, arguments):
    """Return how often each design deploys where nothing is better."""
    for kind, make in {**DRAWS, "recentred": recentred, "opposite": opposite}.items():
        if kind not in arguments.values:
            continue
        draw, tokens = make(population), population.tokens
        choose = rule_by(tokens[:3] if kind == "opposite" else tokens)

        def one(random, repetition, queries, draw=draw, choose=choose):
            study = drawn_study(draw, random, queries, population.tokens, choose)
            return each_design(study, repetition)[0]

        for queries in arguments.queries:
            yield {"values": kind, "queries": queries}, arguments.repetitions, one


def priced_rows(population, arguments):
    """Return the same with a price; see `false_positives.py` for the configurations."""
    for kind, make in DRAWS.items():
        if kind not in arguments.values:
            continue
        draw, draw_tokens = make(population), equal_tokens(population)
        for label in ("equal", "worse", *(("rarely worse",) if kind == "equalised" else ())):

            def one(random, repetition, queries, draw=draw, tokens=draw_tokens, label=label):
                study = priced(draw(random, queries), tokens(random, queries), label, random)
                return each_design(study, repetition)[0]

            for queries in arguments.priced_queries:
                about = {"values": kind, "configurations": label, "queries": queries}
                yield about, arguments.repetitions, one


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
    """Return how often each design deploys values as they are, and what that is worth."""
    draw, choose = real(population), rule_by(population.tokens)
    gain = population.values.mean(axis=1) - population.values[BASELINE].mean()

    def one(random, repetition, queries):
        study = drawn_study(draw, random, queries, population.tokens, choose)
        found, _, finals = each_design(study, repetition)
        ways = {
            "halves": "halves",
            "2 parts, widened": "parts",
            "5 parts, widened": "parts",
            "2 parts, few best": "few best",
        }
        for name, final in ways.items():
            found[f"{name}, no better"] = found[name] and bool(gain[finals[final]] <= 0.0)
        found.update({f"{name} gain": float(gain[row]) for name, row in finals.items()})
        return found

    for queries in arguments.power_queries:
        about = {"data set": population.name, "queries": queries}
        yield about, arguments.repetitions, one


def coverage_rows(population, arguments):
    """Return how often an interval holds what the parts' winners are truly worth."""
    draw, choose = real(population), rule_by(population.tokens)
    gain = population.values.mean(axis=1) - population.values[BASELINE].mean()

    def one(random, repetition, queries):
        study = drawn_study(draw, random, queries, population.tokens, choose)
        found = {}
        for parts in PARTS:
            cut = parts_of(queries, parts)
            met = study.winners([cut != part for part in range(parts)])[cut]
            factor = widening(study, cut, repetition, resamples=299).composite
            difference = study.values[met, np.arange(queries)] - study.values[BASELINE]
            off, half = abs(difference.mean() - gain[met].mean()), half_width(difference)
            found[f"{parts} parts, plain covers"] = bool(off <= half)
            found[f"{parts} parts, widened covers"] = bool(off <= factor * half)
            found[f"{parts} parts, factor"] = factor
        return found

    for queries in arguments.power_queries:
        about = {"data set": population.name, "queries": queries}
        yield about, arguments.coverage_repetitions, one


def half_width(difference):
    """Return half the plain 95 % interval of a mean difference."""
    spread = difference.std(ddof=1)
    if spread == 0.0:
        return 1e-12
    degrees = degrees_of_freedom(difference)
    return special.stdtrit(degrees, 0.975) * spread / np.sqrt(difference.size)


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
    units = np.array([SPACE.encode(params) for params in population.params])
    for kind, make in {"equalised": equalised, "real": real}.items():
        draw = make(population)

        def one(random, repetition, queries, draw=draw):
            study = drawn_study(draw, random, queries, population.tokens, None)
            search = partial(searched, study.objective, units, population.params, seed=repetition)
            return one_search(study, search, queries, repetition, arguments)

        for queries in arguments.search_queries:
            about = {"values": kind, "queries": queries}
            yield about, arguments.search_repetitions, one


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
    """Return one row of a table: means over the repetitions."""
    means = {name: count / repetitions for name, count in counts.items()}
    return {**about, "studies": repetitions, **means}


ABOUT = ("values", "configurations", "data set", "queries", "studies")


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
        elif name.endswith("gain"):
            cells.append(f"{value:+.4f}")
        else:
            cells.append(f"{100 * value:.1f} ± {100 * error(value, row['studies']):.1f} %")
    print("| " + " | ".join(cells) + " |", flush=True)


def computed(cells, seed, known, keep):
    """Yield the row of each cell, the kept one where it is known."""
    for about, repetitions, one in cells:
        name = json.dumps([about, repetitions, seed])
        row = known.get(name)
        if row is None:
            random = np.random.default_rng([seed, about["queries"]])
            counts = Counter()
            for repetition in range(repetitions):
                counts.update(one(random, repetition, about["queries"]))
            row = row_of(counts, repetitions, **about)
            keep(name, row)
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=[ATLAS])
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--values", nargs="+", default=[*DRAWS, "recentred", "opposite"])
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--coverage-repetitions", type=int, default=500)
    parser.add_argument("--search-repetitions", type=int, default=400)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument("--queries", type=int, nargs="+", default=QUERIES)
    parser.add_argument("--priced-queries", type=int, nargs="+", default=QUERIES)
    parser.add_argument("--power-queries", type=int, nargs="+", default=POWER_QUERIES)
    parser.add_argument("--search-queries", type=int, nargs="+", default=(100,))
    parser.add_argument("--search-parts", type=int, nargs="+", default=PARTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--to", type=Path, help="keep each row there, and compute no kept one again"
    )
    arguments = parser.parse_args()
    tables = {
        "null": null_rows,
        "priced": priced_rows,
        "power": power_rows,
        "coverage": coverage_rows,
        "searches": search_rows,
    }
    everything = []
    for path in arguments.datasets:
        for name in arguments.only:
            print(f"\n## {path}: {name}", flush=True)
            if name == "splits":
                rows = split_rows(path, arguments)
            else:
                recorded = RECORDED if name == "searches" else arguments.configurations
                population = measure_population(path, configurations=recorded, seed=arguments.seed)
                known, keep = kept(arguments.to, name, population.name)
                cells = tables[name](population, arguments)
                rows = computed(cells, arguments.seed, known, keep)
            for number, row in enumerate(rows):
                show(row, is_first=number == 0)
                everything.append({"table": name, "path": path, **row})
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1))


def kept(path, table, dataset):
    """Return the rows of a table that are kept already, by their names, and how to keep another."""
    known = {}
    if path is not None and path.is_file():
        for line in path.read_text().splitlines():
            place, name, row = json.loads(line)
            if place == [table, dataset]:
                known[name] = row

    def keep(name, row):
        if path is not None:
            with path.open("a") as file:
                file.write(json.dumps([[table, dataset], name, row]) + "\n")

    return known, keep


if __name__ == "__main__":
    main()
