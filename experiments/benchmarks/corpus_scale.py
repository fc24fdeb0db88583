"""How time, memory and disk grow with the corpus, from 10,000 passages to a million.

    python experiments/benchmarks/corpus_scale.py [--passages 10000 100000 1000000] [--queries 500]
        [--most-hops 3]

Makes corpora up (seeded): passages of about 450 characters whose words follow Zipf's law, a title
each, and links: a passage names three or so others by their titles, most of them near to it and
some known everywhere, as the passages of the Atlas do. A question asks for what two linked passages
tell. Then, each corpus in a process of its own, what a study does: read it, build the engine's
index, prepare all queries, evaluate trials with settings never seen before; and a worker that opens
the same index and evaluates trials.

Each row tells the processor time of all processes in seconds, and the wall time beside it (other
work on the machine changes only that); the peak of the memory of all processes (each shared page
counted once, and mapped files as far as they are in memory), the disk taken, a trial's time, and
the memory that a worker has for itself. The second table has the ratios to the smallest corpus, by
passage where it says so.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is loaded

import numpy as np
import psutil

from tuner.datasets import open_dataset
from tuner.evaluation.evaluator import Evaluator
from tuner.retrieval.hybrid import Hybrid

SEED = 7
METRICS = ("recall@5", "recall@10", "mrr@10", "ndcg@10", "context_tokens")
TRIALS = 40
LOOK_EVERY_S = 0.25
BLOCK = 5_000
SMALL_WORDS = (
    "the of and in to a was is for as on with by at from that his it an were which are this also "
    "be has had its or their who not her first but one he she they new two after been when other"
).split()
SYLLABLES = [
    onset + vowel
    for onset in "b d f g h k l m n p r s t v w z br dr st tr".split()
    for vowel in "aeiou"
]
ENDS = ("", "n", "r", "s", "l", "nd", "ck")
ACCENTED = 0.01  # so that a third of the passages is not ASCII
KINDS = ("film", "novel", "river", "song")


class Names:
    """Words by their rank in Zipf's law, and a title for each passage."""

    def __init__(self, passages: int) -> None:
        self.random = np.random.default_rng(SEED)
        made = dict.fromkeys(SMALL_WORDS)
        count = int(300 * passages**0.5)  # Heaps' law
        source = random.Random(SEED)
        while len(made) < count:
            parts = source.choices(SYLLABLES, k=source.choice((1, 2, 2, 3)))
            end = "é" if source.random() < ACCENTED else source.choice(ENDS)
            made["".join(parts) + end] = None
        self.words = np.array(list(made), dtype=object)
        weights = 1.0 / (np.arange(count) + 2.7)
        self.chances = np.cumsum(weights / weights.sum())
        self.titles = [self._title(source) for _ in range(passages)]
        # What is known everywhere: by Zipf's law, too, in an order of its own.
        popularity = 1.0 / (np.arange(passages) + 10.0) ** 0.8
        self.known = np.cumsum(popularity / popularity.sum())
        self.order = self.random.permutation(passages)

    def _title(self, source: random.Random) -> str:
        first, second, third = (self.words[source.randrange(50, len(self.words))] for _ in "123")
        form = source.random()
        if form < 0.5:
            return f"{first.capitalize()} {second.capitalize()}"
        if form < 0.7:
            return f"{first.capitalize()}"
        if form < 0.9:
            return f"{first.capitalize()} of the {second.capitalize()} {third.capitalize()}"
        return f"{first.capitalize()} {second.capitalize()} ({source.choice(KINDS)})"

    def drawn(self, shape: tuple[int, int]) -> np.ndarray:
        """Return words by Zipf's law."""
        return self.words[np.searchsorted(self.chances, self.random.random(shape))]

    def links(self, start: int, count: int) -> np.ndarray:
        """Return for each passage three others: two near to it, one known everywhere."""
        passages = len(self.titles)
        own = np.arange(start, start + count)[:, None]
        near = own + self.random.integers(1, 40, (count, 2)) * self.random.choice(
            (-1, 1), (count, 2)
        )
        known = self.order[np.searchsorted(self.known, self.random.random((count, 1)))]
        return np.hstack([near % passages, known])


def make(folder: Path, passages: int, queries: int) -> None:
    """Write a corpus, its questions and judgements in the BEIR layout."""
    names = Names(passages)
    bare = [title.partition(" (")[0] for title in names.titles]
    folder.mkdir(parents=True)
    asked = set(np.linspace(0, passages - 1, queries).astype(int).tolist())
    questions, judged = [], ["query-id\tcorpus-id\tscore"]
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for start in range(0, passages, BLOCK):
            count = min(BLOCK, passages - start)
            words, links = names.drawn((count, 60)), names.links(start, count)
            years = names.random.integers(1400, 2020, count)
            for row in range(count):
                number, said = start + row, words[row].tolist()
                near, far, known = (bare[place] for place in links[row].tolist())
                text = (
                    f"{bare[number]} was {' '.join(said[:12])} {near}. "
                    f"In {years[row]} {' '.join(said[12:26])}, and {far} {' '.join(said[26:34])}. "
                    f"{said[34].capitalize()} {' '.join(said[35:50])} of {known}'s "
                    f"{' '.join(said[50:])}."
                )
                record = {"_id": f"p{number:07}", "title": names.titles[number], "text": text}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                if number in asked:
                    id_ = f"q{len(questions):04}"
                    question = (
                        f"What {said[60 - 1]} was the {said[20]} of {near} for {bare[number]}?"
                    )
                    questions.append(json.dumps({"_id": id_, "text": question}))
                    judged += [f"{id_}\tp{number:07}\t1", f"{id_}\tp{links[row, 0]:07}\t1"]
    (folder / "queries.jsonl").write_text("\n".join(questions) + "\n", encoding="utf-8")
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n", encoding="utf-8")


def processor_s() -> float:
    """Return the processor time of this process, and of its children that have ended."""
    return sum(os.times()[:4])


@contextmanager
def told(phase: str) -> Iterator[None]:
    begin, worked = time.perf_counter(), processor_s()
    yield
    found = {"s": time.perf_counter() - begin, "processor_s": processor_s() - worked}
    print(json.dumps({"phase": phase, **found}), flush=True)


def settings(count: int, most_hops: int) -> Iterator[dict[str, float]]:
    source = random.Random(SEED)
    for _ in range(count):
        yield {
            "graph_weight": source.uniform(0.1, 0.9),
            "temperature": source.uniform(0.02, 1.0),
            "max_hops": source.randint(1, min(5, most_hops)),
            "top_k": source.randint(5, 30),
        }


def trial_ms(evaluate: Evaluator, most_hops: int) -> float:
    """Return the median of the processor times of trials, the first ones left out."""
    spent = []
    for params in settings(TRIALS, most_hops):
        begin = time.process_time()
        evaluate(params)
        spent.append(1000 * (time.process_time() - begin))
    return statistics.median(spent[5:])


def study(data: Path, cache: Path, most_hops: int) -> None:
    """Do what a study does, and print what each phase took; runs in a process of its own."""
    with told("read"):
        dataset = open_dataset(data)
    with told("index"):
        engine = Hybrid.build(dataset.corpus, cache_dir=cache, most_hops=most_hops)
    with told("prepare"):
        engine.prepare(dataset.queries)
    with told("evaluator"):
        documents = dataset.corpus.documents
        evaluate = Evaluator.build(
            engine, dataset.queries, dataset.qrels, METRICS, documents=documents
        )
    print(json.dumps({"phase": "trials", "trial_ms": trial_ms(evaluate, most_hops)}), flush=True)
    (cache / "evaluate.pickle").write_bytes(pickle.dumps(evaluate))


def worker(cache: Path, most_hops: int) -> None:
    """Evaluate trials as a worker does, and print what memory that took it."""
    before = own_bytes()
    evaluate = pickle.loads((cache / "evaluate.pickle").read_bytes())
    ms = trial_ms(evaluate, most_hops)
    own_mb = (own_bytes() - before) / 1e6
    print(json.dumps({"phase": "worker", "trial_ms": ms, "own_mb": own_mb}), flush=True)


def own_bytes() -> int:
    """Return the memory of this process that is no file's: what workers do not share."""
    told = psutil.Process().memory_info()
    return told.rss - getattr(told, "shared", 0)


def memory(process: psutil.Process) -> float:
    """Return the bytes of a process and its children, each shared page counted once."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            told = one.memory_full_info()
            total += getattr(told, "pss", told.uss)
        except psutil.Error:  # it has just ended
            continue
    return total


def watched(arguments: list[str]) -> dict[str, dict[str, float]]:
    """Run this script as a process; return what it prints by phase, with each phase's peak."""
    environment = {**os.environ, "MPLBACKEND": "agg"}
    process = subprocess.Popen(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    peak = [0.0]
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(LOOK_EVERY_S):
            try:
                peak[0] = max(peak[0], memory(psutil.Process(process.pid)))
            except psutil.Error:
                return

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    found: dict[str, dict[str, float]] = {}
    for line in process.stdout:
        row = {**json.loads(line), "peak_mb": peak[0] / 1e6}
        print(json.dumps(row), file=sys.stderr, flush=True)  # the largest takes long
        found[row.pop("phase")] = row
        peak[0] = 0.0
    is_over.set()
    if process.wait():
        raise SystemExit(f"the process ended with {process.returncode}")
    return found


def disk_mb(folder: Path, part: str) -> float:
    files = (path for found in folder.glob(part) for path in found.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in files) / 1e6


def measure(passages: int, queries: int, most_hops: int, folder: Path) -> dict[str, Any]:
    data, cache = folder / "data", folder / "cache"
    make(data, passages, queries)
    cache.mkdir()
    same = ["--cache", str(cache), "--most-hops", str(most_hops)]
    phases = watched(["--study", str(data), *same])
    opened = watched(["--worker", *same])["worker"]
    row: dict[str, Any] = {
        "passages": passages,
        "corpus MB": round((data / "corpus.jsonl").stat().st_size / 1e6, 1),
    }
    for phase in ("read", "index", "prepare"):
        row[f"{phase} s"] = round(phases[phase]["processor_s"], 1)
        row[f"{phase} wall s"] = round(phases[phase]["s"], 1)
        row[f"{phase} peak MB"] = round(phases[phase]["peak_mb"])
    row["index disk MB"] = round(disk_mb(cache, "hybrid-*/index"), 1)
    row["queries disk MB"] = round(disk_mb(cache, "hybrid-*/queries-*"), 1)
    row["trial ms"] = round(phases["trials"]["trial_ms"], 2)
    row["worker's trial ms"] = round(opened["trial_ms"], 2)
    row["worker's own MB"] = round(opened["own_mb"], 1)
    shutil.rmtree(folder)
    return row


def show(rows: list[dict[str, Any]], shown: Callable[[Any], str] = str) -> None:
    print(f"| {' | '.join(rows[0])} |\n| {' | '.join('---:' for _ in rows[0])} |")
    for row in rows:
        print(f"| {' | '.join(map(shown, row.values()))} |")
    print(flush=True)


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each row over the first: work and disk by passage, a trial's time as it is."""
    first = rows[0]
    by_passage = ("read s", "index s", "prepare s", "index disk MB")
    return [
        {"passages": row["passages"]}
        | {
            f"{name}, by passage": _ratio(
                row[name] / row["passages"], first[name] / first["passages"]
            )
            for name in by_passage
        }
        | {name: _ratio(row[name], first[name]) for name in ("trial ms", "worker's trial ms")}
        for row in rows
    ]


def _ratio(one: float, other: float) -> float | str:
    return round(one / other, 2) if other else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]  # it has one
    parser.add_argument("--passages", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--most-hops", type=int, default=6, help="how far walks are prepared")
    parser.add_argument("--folder", type=Path, help="where the corpora are made, for some minutes")
    parser.add_argument("--study", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.study:
        study(options.study, options.cache, options.most_hops)
        return
    if options.worker:
        worker(options.cache, options.most_hops)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = []
        for passages in options.passages:
            place = Path(folder) / str(passages)
            rows.append(measure(passages, options.queries, options.most_hops, place))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    show(rows)
    show(ratios(rows))


if __name__ == "__main__":
    main()
