"""Whether leaving an index should wait for a paired test by query.

    python experiments/search_quality/leave_rule.py record TABLE.npy builtin:atlas
    python experiments/search_quality/leave_rule.py run TABLE.npy [--seeds 24]

A search leaves an index whose best is further behind than searching has gained on any other
(`tuner/backends/by_index.py`). That compares means over the same queries, so their difference is the mean
of the paired differences; what a paired test adds is to wait until that is so many standard errors below.
`record` writes the objective of each query, on the surface of `index_surfaces.py` (100 queries: 16 MB);
`run` searches it with either rule, and prints the regret after 120 trials in thousandths of the objective.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
from pathlib import Path

import index_surfaces
import numpy as np
from index_cost import TRIALS, search, two_levels
from index_surfaces import AXES, DEEPEST, INDEX, QUERY, SPACE, Surface

from tuner.backends.by_index import LEAST_TRIALS, _Search, scored_trials
from tuner.datasets import open_dataset
from tuner.retrieval.hybrid import Hybrid

MOST_QUERIES = 100
# So many standard errors below: racing stops trials at 1.
WAYS = {"today": None, "paired, 1 standard error": -1.0, "paired, 2 standard errors": -2.0}


def record(table, path):
    dataset = open_dataset(path)
    queries = sorted(dataset.queries, key=lambda query: query.id)
    queries = queries[:: max(1, math.ceil(len(queries) / MOST_QUERIES))]
    found = np.zeros([*map(len, AXES.values()), len(queries)], dtype=np.float16)
    for place in np.ndindex(*map(len, INDEX.values())):
        setting = {name: INDEX[name][at] for name, at in zip(INDEX, place, strict=True)}
        with tempfile.TemporaryDirectory() as folder:
            found[place] = _with_index(dataset, queries, setting, Path(folder))
        print(setting, flush=True)
    np.save(table, found)


def _with_index(dataset, queries, setting, folder):
    corpus, document_of = index_surfaces._chunked(dataset.corpus, setting["chunk_words"])
    options = {"bm25_k1": setting["bm25_k1"], "bm25_b": setting["bm25_b"]}
    if setting["embedding_dim"]:
        dim = setting["embedding_dim"]
        options["dense"] = index_surfaces._dense(corpus, queries, dim, folder)
    retriever = Hybrid.build(corpus, cache_dir=folder, **options)
    retriever.prepare(queries)
    tokens = {d.id: len(f"{d.title} {d.text}") / 4 for d in corpus.documents}
    rows = []
    for point in itertools.product(*list(QUERY.values())[:3]):
        params = {**dict(zip(QUERY, point, strict=False)), "top_k": DEEPEST}
        each = [
            index_surfaces._objectives(
                retriever.retrieve([query], params), document_of, tokens, dataset.qrels
            )
            for query in queries
        ]
        rows.append(np.array(each).T)
    return np.array(rows).reshape([*map(len, QUERY.values()), len(queries)])


def run(path, seeds):
    table = np.load(path).astype(np.float32)
    means = table.mean(-1, dtype=float)

    def value(params, of=means):
        corners = [((), 1.0)]
        for name, levels in AXES.items():
            corners = [
                ((*place, at), share * part)
                for place, share in corners
                for at, part in index_surfaces._places(name, levels, params[name])
            ]
        return sum(share * of[place] for place, share in corners)

    surface = Surface(path.stem, SPACE, tuple(INDEX), value, float(means.max()))
    today, ends = _Search._is_behind, {}
    print("| rule | regret | more than today |\n| --- | ---: | ---: |")
    for way, at in WAYS.items():
        _Search._is_behind = today if at is None else _paired(at, lambda p: value(p, table))
        paths = [search(surface, two_levels("tpe"), TRIALS, seed) for seed in range(seeds)]
        ends[way] = np.array([1000 * (surface.optimum - found[-1][1]) for found in paths])
        more = ends[way] - ends["today"]
        half = 1.96 * more.std(ddof=1) / math.sqrt(seeds)
        low, high = more.mean() - half, more.mean() + half
        told = "" if at is None else f"{more.mean():+.1f} [{low:+.1f}, {high:+.1f}]"
        print(f"| {way} | {ends[way].mean():.1f} | {told} |", flush=True)


def _paired(at, by_query):
    def is_behind(self, newest, leader):
        mine, best = self.own[newest].best, self.own[leader].best
        gains = [
            index.gain
            for key, index in list(self.own.items())[1:]
            if key != newest and len(scored_trials(index.trials)) >= LEAST_TRIALS
        ]
        is_known = len(scored_trials(self.own[newest].trials)) >= LEAST_TRIALS
        if newest == leader or mine is None or best is None or not is_known or not gains:
            return False
        difference = by_query(mine.params) - by_query(best.params) + max(gains)
        error = difference.std(ddof=1) / math.sqrt(len(difference))
        return difference.mean() < at * error

    return is_behind


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("record", "run"))
    parser.add_argument("table", type=Path)
    parser.add_argument("path", nargs="?")
    parser.add_argument("--seeds", type=int, default=24)
    arguments = parser.parse_args()
    if arguments.what == "record":
        record(arguments.table, arguments.path)
    else:
        run(arguments.table, arguments.seeds)


if __name__ == "__main__":
    main()
