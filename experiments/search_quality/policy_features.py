"""What a weight for each query by its features is worth over the fixed winner, and where it is not.

    python experiments/search_quality/policy_features.py run OUT builtin:atlas path/to/set … [--splits 10]
    python experiments/search_quality/policy_features.py show OUT

With `:names` behind a path, triples are left out: the graph is made from titles and capitalised phrases.
For each set, the answers at 20 places of `max_hops` and `temperature` tell each query's objective at 41
values of `graph_weight` (top_k is 10). A split takes half of the queries to tune on: the winner is the
place and weight that are best there. The policy is learned there, as `tuner policy --by features` does,
with each place at its best weight as the further trials, and meets the winner on the other half: the
difference, and whether its 95 % t interval is above 0. Beside it the same with features that were dealt
out among the queries at random, so that they tell nothing, and with three more, which tell how far text
alone and the graph alone agree: the share of the first ten that both find, whether the first is the
same, and 1 / the rank that the graph gives to the text's first (0 where it is not among ten). `show`
gives the mean of the splits, and the least and the most. `OUT` is a folder; what is there is not
computed again.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.stats import t as student

from tuner.core.corpus import Corpus
from tuner.core.policy import Policy
from tuner.datasets import open_dataset
from tuner.datasets.together import together
from tuner.evaluation.by_features.learned import learn
from tuner.evaluation.by_features.menu import Menu
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import composite_values
from tuner.retrieval.computed import answer_at
from tuner.retrieval.features import seen_of
from tuner.retrieval.hybrid import Hybrid
from tuner.run.systems import cache_dir

WEIGHTS = np.linspace(0.0, 1.0, 41)
PLACES = [(hops, temperature) for hops in (1, 2, 3, 4, 5) for temperature in (0.01, 0.03, 0.1, 0.3)]
OBJECTIVE = {"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2}
FIELDS = (
    "set split features queries model gain_tune error_tune gain low high deploy lowest highest named"
).split()


def measured(path, folder):
    """Return the objective, shape (places, weights, queries), features, and clusters of a set."""
    name = path.rstrip("/").replace("builtin:", "").split("/")[-1].replace(":", "-")
    file = folder / f"{name}.npz"
    if not file.exists():
        dataset = open_dataset(path.removesuffix(":names"))
        corpus, queries = dataset.corpus, dataset.queries
        if path.endswith(":names"):
            corpus = Corpus(corpus.documents)
        engine = Hybrid.build(corpus, cache_dir=cache_dir()).telling_legs()
        engine.prepare(queries)
        evaluator = Evaluator.build(engine, queries, dataset.qrels, list(OBJECTIVE))
        free = engine.free_knobs({}, ["graph_weight", "max_hops", "temperature"])
        values = np.empty((len(PLACES), len(WEIGHTS), len(queries)))
        for row, (hops, temperature) in enumerate(PLACES):
            params = {
                "max_hops": hops,
                "temperature": temperature,
                "top_k": 10,
                "graph_weight": 0.5,
            }
            answer = engine.retrieve(queries, params)
            for column, weight in enumerate(WEIGHTS.tolist()):
                at_it = answer_at(free, answer, {**params, "graph_weight": weight})
                values[row, column] = composite_values(
                    evaluator.measure(at_it).per_query, OBJECTIVE
                )
        seen = seen_of(engine, queries, {})
        np.savez(
            file,
            values=values,
            clusters=together(queries),
            **{f"seen_{n}": v for n, v in seen.items()},
            **{f"legs_{n}": v for n, v in agreement_of_legs(engine, queries).items()},
        )
    found = np.load(file)
    seen, legs = (
        {key.removeprefix(kind): found[key] for key in found.files if key.startswith(kind)}
        for kind in ("seen_", "legs_")
    )
    return name, found["values"], seen, legs, found["clusters"]


def agreement_of_legs(engine, queries):
    """Return how far text alone and the graph alone agree on each query."""
    answers = [engine.retrieve(queries, {"graph_weight": w, "top_k": 10}) for w in (0.0, 1.0)]
    pairs = [[answer.ids(row) for answer in answers] for row in range(len(queries))]
    return {
        "both": np.array([len(set(text) & set(graph)) / 10 for text, graph in pairs]),
        "same_first": np.array([float(text[:1] == graph[:1]) for text, graph in pairs]),
        "first_by_graph": np.array(
            [
                1 / (1 + graph.index(text[0])) if text and text[0] in graph else 0.0
                for text, graph in pairs
            ]
        ),
    }


def compared(values, seen, clusters, tune, rest, seed):
    """Return a row: the policy that is learned on some queries, against the winner on the others."""
    means = np.nanmean(values[:, :, tune], axis=2)
    place, at = np.unravel_index(means.argmax(), means.shape)
    settings = [{"place": int(place), "graph_weight": float(weight)} for weight in WEIGHTS]
    others = [
        (
            {"place": row, "graph_weight": float(WEIGHTS[means[row].argmax()])},
            values[row, means[row].argmax(), tune],
        )
        for row in range(len(values))
        if row != place
    ]
    lines = {"graph_weight": (settings, values[place][:, tune])}
    menu = Menu.of(settings[at], values[place, at, tune], lines, others)
    learned = learn({n: v[tune] for n, v in seen.items()}, menu, clusters[tune], seed=seed)
    policy = Policy(menu.settings[0], learned.settings, learned.rule)
    given = policy.params_for([""] * len(rest), {n: v[rest] for n, v in seen.items()})
    columns = [int(np.abs(WEIGHTS - params["graph_weight"]).argmin()) for params in given]
    gains = values[[params["place"] for params in given], columns, rest] - values[place, at, rest]
    gain, low, high = interval(gains, clusters[rest])
    line = learned.rule.line
    used = sorted(float(params["graph_weight"]) for params in given)
    named = sorted(line.weights, key=lambda n: -abs(line.weights[n]))[:3] if line else []
    return {
        "queries": len(tune),
        "model": learned.model or "the winner",
        "gain_tune": round(learned.gain, 5),
        "error_tune": round(learned.error, 5),
        "gain": round(gain, 5),
        "low": round(low, 5),
        "high": round(high, 5),
        "deploy": int(low > 0),
        "lowest": round(used[0], 3),
        "highest": round(used[-1], 3),
        "named": " ".join(f"{n}:{line.weights[n]:+.2f}" for n in named),
    }


def interval(gains, clusters):
    """Return the mean and its 95 % t interval; queries that stay together count as one."""
    known = ~np.isnan(gains)
    gains, labels = gains[known], np.unique(clusters[known], return_inverse=True)[1]
    mean, count = float(gains.mean()), int(labels.max()) + 1
    sums = np.bincount(labels, gains - mean)
    error = np.sqrt((sums**2).sum() * count / (count - 1)) / len(gains)
    reach = float(student.ppf(0.975, count - 1) * error)
    return mean, mean - reach, mean + reach


def run(folder, paths, splits):
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "policy_features.csv"
    rows = list(csv.DictReader(out.open(encoding="utf-8"))) if out.exists() else []
    done = {(row["set"], row["split"], row["features"]) for row in rows}
    with out.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        if not rows:
            writer.writeheader()
        sets = [measured(path, folder) for path in paths]
        for split in range(splits):
            for name, values, seen, legs, clusters in sets:
                random = np.random.default_rng(split)
                half = set(random.permutation(np.unique(clusters))[::2].tolist())
                is_tune = np.array([label in half for label in clusters.tolist()])
                dealt = random.permutation(len(clusters))
                kinds = {
                    "as they are": seen,
                    "and of legs": {**seen, **legs},
                    "dealt out": {n: v[dealt] for n, v in seen.items()},
                }
                for how, features in kinds.items():
                    if (name, str(split), how) in done:
                        continue
                    tune, rest = np.flatnonzero(is_tune), np.flatnonzero(~is_tune)
                    found = compared(values, features, clusters, tune, rest, split)
                    writer.writerow({"set": name, "split": split, "features": how, **found})
                    stream.flush()


def show(folder):
    rows = list(csv.DictReader((folder / "policy_features.csv").open(encoding="utf-8")))
    print(
        "| set | features | tune queries | splits | winner stays | held-out gain | expected gain | deploys |"
    )
    print("| --- | --- | ---: | ---: | ---: | --- | ---: | ---: |")
    for name, how in dict.fromkeys((row["set"], row["features"]) for row in rows):
        mine = [row for row in rows if (row["set"], row["features"]) == (name, how)]
        gains = np.array([float(row["gain"]) for row in mine])
        expected = np.mean([float(row["gain_tune"]) for row in mine])
        stays = sum(row["model"] == "the winner" for row in mine)
        deploys = sum(row["deploy"] == "1" for row in mine)
        print(
            f"| {name} | {how} | {mine[0]['queries']} | {len(mine)} | {stays} | "
            f"{gains.mean():+.3f} [{gains.min():+.3f}, {gains.max():+.3f}] | {expected:+.3f} | {deploys} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--splits", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.folder, arguments.paths, arguments.splits)
    show(arguments.folder)


if __name__ == "__main__":
    main()
