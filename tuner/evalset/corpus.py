"""Open a corpus that has no judgements yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tuner.core.corpus import Corpus, corpus_fingerprint
from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.datasets.folders import only_variant, stem, variants
from tuner.datasets.items import peek_keys
from tuner.datasets.lines import ProblemLog
from tuner.datasets.openie import Openie, read_openie_corpus
from tuner.datasets.texts import read_corpus, read_graph
from tuner.evalset.graph_folders import read_graph_folder

_CORPUS = "corpus.jsonl"


def open_corpus(path: str | Path) -> Corpus:
    """Read a ``corpus.jsonl``, a folder that holds one, or the corpus of any known data set.

    HippoRAG's OpenIE results will do too, and so will a folder of Microsoft GraphRAG or LightRAG.
    ``triples.jsonl`` and ``entities.jsonl`` beside it are read as well; questions and judgements
    are not looked at, and need not be there. A file may have another name, as long as it holds JSON
    lines ``{"_id", "title", "text"}``.

    Raises:
        InputError: nothing is there, or its content is wrong, with file and line.
    """
    place = Path(path).expanduser()
    log = ProblemLog()
    if place.is_dir() and (graph := read_graph_folder(place)) is not None:
        return replace(graph, fingerprint=corpus_fingerprint(graph))
    if place.is_dir():
        file = only_variant(variants(place, _CORPUS), log)
        if file is None and not log.problems():
            return read_openie_corpus(place) if Openie.detect(place) else open_dataset(path).corpus
    elif peek_keys(place) >= {"_id", "text"} and stem(place) != "queries":
        file = place
    elif place.is_file() and Openie.detect(place):
        return read_openie_corpus(place)
    else:
        return open_dataset(path).corpus
    if file is None:
        raise InputError(problems=log.problems())
    corpus = read_corpus(file, log)
    known = corpus.lines.keys() if corpus.lines else None
    triples, entities = read_graph(file.parent, log, known)
    found = Corpus(tuple(corpus.documents), tuple(triples), entities)
    log.refuse()
    return replace(found, fingerprint=corpus_fingerprint(found))
