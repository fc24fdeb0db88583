"""Surfaces on which searches over indexes are compared: recorded ones, and made-up ones.

    python experiments/search_quality/index_surfaces.py FOLDER builtin:atlas path/to/set …

For each data set, 54 indexes are built: whole documents or chunks, with or without latent semantic
analysis, `bm25_k1` and `bm25_b`. With each index, the objective of `search_quality.py` is measured at
1,800 settings of the four query parameters, on at most 150 queries. The table is written to
`FOLDER/<set>.npz` (0.2 MB). An index takes seconds, so that a set takes minutes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from tuner.core.corpus import Corpus, Document
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.datasets import open_dataset
from tuner.retrieval.hybrid import Hybrid

MOST_QUERIES = 150
DEEPEST = 30
INDEX = {
    "chunk_words": (0, 60, 30),
    "embedding_dim": (0, 64, 256),
    "bm25_k1": (0.6, 1.2, 2.4),
    "bm25_b": (0.3, 0.8),
}
QUERY = {
    "graph_weight": (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "max_hops": (1, 2, 3, 4, 5),
    "temperature": (0.01, 0.03, 0.1, 0.3, 1.0),
    "top_k": (3, 5, 8, 10, 12, 15, 20, 30),
}
AXES = {**INDEX, **QUERY}
CONTINUOUS = ("bm25_k1", "bm25_b", "graph_weight", "temperature")
SPACE = SearchSpace(
    {
        "chunk_words": Categorical(INDEX["chunk_words"]),
        "embedding_dim": Categorical(INDEX["embedding_dim"]),
        "bm25_k1": Real(0.6, 2.4),
        "bm25_b": Real(0.3, 0.8),
        "graph_weight": Real(0.0, 1.0),
        "max_hops": Integer(1, 5),
        "temperature": Real(0.01, 1.0, scale="log"),
        "top_k": Integer(3, 30),
    }
)


@dataclass(frozen=True)
class Surface:
    """An objective over a space; ``index`` names the parameters that need another index."""

    name: str
    space: SearchSpace
    index: tuple[str, ...]
    value: object
    optimum: float


def recorded(path):
    """Return the surface of a recorded table: linear between numbers, the nearest of the others."""
    table = np.load(path)["objective"].astype(float)

    def value(params):
        corners = [((), 1.0)]
        for name, levels in AXES.items():
            corners = [
                ((*place, at), share * part)
                for place, share in corners
                for at, part in _places(name, levels, params[name])
            ]
        return sum(share * table[place] for place, share in corners)

    return Surface(Path(path).stem, SPACE, tuple(INDEX), value, float(table.max()))


def _places(name, levels, value):
    if name not in CONTINUOUS and name != "top_k":
        return [(levels.index(value), 1.0)]
    scale = math.log if name == "temperature" else float
    right = next(i for i, level in enumerate(levels) if level >= value - 1e-12)
    if right == 0 or levels[right] == value:
        return [(right, 1.0)]
    low, high = scale(levels[right - 1]), scale(levels[right])
    share = (scale(value) - low) / (high - low)
    return [(right - 1, 1.0 - share), (right, share)]


def record(path, cache):
    """Return the table of one data set, shape as ``AXES``."""
    dataset = open_dataset(path)
    queries = sorted(dataset.queries, key=lambda query: query.id)
    queries = queries[:: max(1, math.ceil(len(queries) / MOST_QUERIES))]
    table = np.zeros([len(levels) for levels in AXES.values()], dtype=np.float32)
    for place in np.ndindex(*[len(levels) for levels in INDEX.values()]):
        setting = {name: INDEX[name][at] for name, at in zip(INDEX, place, strict=True)}
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            table[place] = _with_index(dataset, queries, setting, Path(folder))
        seconds = time.perf_counter() - begin
        print(f"{dataset.name} {setting} best {table[place].max():.4f} {seconds:.0f} s", flush=True)
    return dataset.name, table


def _with_index(dataset, queries, setting, folder):
    corpus, document_of = _chunked(dataset.corpus, setting["chunk_words"])
    options = {"bm25_k1": setting["bm25_k1"], "bm25_b": setting["bm25_b"]}
    if setting["embedding_dim"]:
        options["dense"] = _dense(corpus, queries, setting["embedding_dim"], folder)
    retriever = Hybrid.build(corpus, cache_dir=folder, **options)
    retriever.prepare(queries)
    tokens = {d.id: len(f"{d.title} {d.text}") / 4 for d in corpus.documents}
    levels = itertools.product(*[QUERY[n] for n in ("graph_weight", "max_hops", "temperature")])
    found = [
        _objectives(
            retriever.retrieve(queries, {**dict(zip(QUERY, point, strict=False)), "top_k": DEEPEST}),
            document_of, tokens, dataset.qrels,
        )
        for point in levels
    ]  # fmt: skip
    return np.array(found).reshape([len(levels) for levels in QUERY.values()])


def _objectives(rankings, document_of, tokens, qrels):
    """Return the objective for each ``top_k``: the mean of nDCG@10 and recall@5 less the price."""
    totals = np.zeros(len(QUERY["top_k"]))
    for row, query in enumerate(rankings.query_ids):
        chunks = rankings.ids(row)
        first = list(dict.fromkeys(document_of[chunk] for chunk in chunks))
        price = np.cumsum([tokens[chunk] for chunk in chunks])
        relevant = {d for d, grade in qrels[query].items() if grade > 0}
        ideal = sum(1 / math.log2(i + 2) for i in range(min(10, len(relevant))))
        for column, k in enumerate(QUERY["top_k"]):
            seen = len({document_of[chunk] for chunk in chunks[:k]})
            hits = [document in relevant for document in first[:seen]]
            ndcg = sum(hit / math.log2(i + 2) for i, hit in enumerate(hits[:10])) / ideal
            recall = sum(hits[:5]) / len(relevant)
            spent = price[min(k, len(chunks)) - 1] if chunks else 0.0
            totals[column] += 0.5 * ndcg + 0.5 * recall - 0.005 * spent / 1000
    return totals / len(rankings.query_ids)


def _chunked(corpus, words):
    """Cut documents into pieces of at most ``words`` words with their title; 0: not at all."""
    if not words:
        return corpus, {document.id: document.id for document in corpus.documents}
    pieces, document_of = [], {}
    for document in corpus.documents:
        text = document.text.split()
        for start in range(0, max(len(text), 1), words):
            piece = f"{document.id}#{start // words}"
            part = " ".join(text[start : start + words])
            pieces.append(Document(piece, document.title, part))
            document_of[piece] = document.id
    return Corpus(tuple(pieces)), document_of


def _dense(corpus, queries, dimensions, folder):
    """Write vectors by latent semantic analysis; return the engine's option for them."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, stop_words="english", min_df=2)
    of_documents = words.fit_transform([f"{d.title} {d.text}" for d in corpus.documents])
    svd = TruncatedSVD(dimensions, n_iter=2, random_state=0)
    nothing = np.full(dimensions, 1e-9)  # A text without a known word is like no other.
    parts = {
        "matrix": svd.fit_transform(of_documents) + nothing,
        "queries": svd.transform(words.transform([q.text for q in queries])) + nothing,
    }
    for name, matrix in parts.items():
        np.save(folder / f"{name}.npy", matrix.astype(np.float32))
    (folder / "ids.txt").write_text("\n".join(query.id for query in queries))
    names = {name: str(folder / f"{name}.npy") for name in parts}
    return {**names, "query_ids": str(folder / "ids.txt")}


def shifting():
    """Return a surface whose best query settings move with the index."""
    space = SearchSpace(
        {
            "chunk_words": Integer(30, 300, scale="log"),
            "bm25_k1": Real(0.5, 3.0),
            "bm25_b": Real(0.0, 1.0),
            "graph_weight": Real(0.0, 1.0),
            "temperature": Real(0.01, 1.0, scale="log"),
            "top_k": Integer(3, 30),
        }
    )

    def value(params):
        chunk, k1, b, weight, warm, k = space.encode(params)
        worth = 0.8 - 0.25 * (chunk - 0.35) ** 2 - 0.15 * (k1 - 0.4) ** 2 - 0.08 * (b - 0.7) ** 2
        worth -= 0.2 * (weight - 0.35 - 0.4 * (k1 - 0.4)) ** 2
        worth -= 0.1 * (k - 0.7 + 0.6 * (chunk - 0.35)) ** 2
        return worth - 0.1 * (warm - 0.5) ** 2

    return Surface("shifting", space, ("chunk_words", "bm25_k1", "bm25_b"), value, 0.8)


def additive():
    """Return a surface on which an index is better or worse by the same at each query setting."""
    space = SearchSpace(
        {
            **{name: Real(0.0, 1.0) for name in ("cut", "links", "hubs")},
            "embedder": Categorical(("none", "small", "large")),
            **{name: Real(0.0, 1.0) for name in ("weight", "decay", "damping")},
        }
    )
    gains = {"none": 0.0, "small": 0.04, "large": 0.05}
    peaks = {"cut": 0.8, "links": 0.3, "hubs": 0.55, "weight": 0.7, "decay": 0.2, "damping": 0.6}

    def value(params):
        away = sum((params[name] - peak) ** 2 for name, peak in peaks.items())
        return 0.7 + gains[params["embedder"]] - 0.15 * away

    return Surface("additive", space, ("cut", "links", "hubs", "embedder"), value, 0.75)


def branching():
    """Return a surface with parameters that are there for some indexes only, and two hills."""
    space = SearchSpace(
        {
            "embedder": Categorical(("none", "lsa", "static")),
            "embedding_dim": Integer(32, 512, scale="log", when={"embedder": ("lsa", "static")}),
            "bm25_k1": Real(0.5, 3.0),
            "dense_weight": Real(0.0, 1.0, when={"embedder": ("lsa", "static")}),
            "graph_weight": Real(0.0, 1.0),
            "max_hops": Integer(1, 5),
        }
    )
    k1, weight, hops = (space.parameters[n] for n in ("bm25_k1", "graph_weight", "max_hops"))

    def value(params):
        worth = 0.7 - 0.1 * (k1.position(params["bm25_k1"]) - 0.4) ** 2
        worth -= 0.1 * (hops.position(params["max_hops"]) - 0.5) ** 2
        graph = weight.position(params["graph_weight"])
        if params["embedder"] == "none":
            return worth - 0.2 * (graph - 0.8) ** 2
        dim = space.parameters["embedding_dim"].position(params["embedding_dim"])
        best_dense = 0.3 if params["embedder"] == "lsa" else 0.6
        worth += 0.02 if params["embedder"] == "lsa" else 0.08
        worth -= 0.15 * (dim - 0.75) ** 2 + 0.2 * (params["dense_weight"] - best_dense) ** 2
        return worth - 0.2 * (graph - 0.4) ** 2

    return Surface("branching", space, ("embedder", "embedding_dim", "bm25_k1"), value, 0.78)


MADE_UP = (shifting, additive, branching)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("paths", nargs="+")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for path in arguments.paths:
        name, table = record(path, arguments.folder)
        np.savez_compressed(arguments.folder / f"{name}.npz", objective=table)


if __name__ == "__main__":
    main()
