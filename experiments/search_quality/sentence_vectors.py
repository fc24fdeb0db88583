"""Vectors of a model of sentence-transformers, each text embedded once: an embedder for experiments.

    export SENTENCE_MODEL=path/to/model SENTENCE_VECTORS=folder
    python experiments/search_quality/sentence_vectors.py builtin:atlas path/to/set … [--chunks 120]

embeds questions and passages ahead, and goes on where it was stopped. With this folder on
`PYTHONPATH`, `embedder: sentence_vectors:embed` then takes what lies in `$SENTENCE_VECTORS`; what
does not is embedded and kept. Whoever only reads needs no model.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from tuner.datasets import open_dataset
from tuner.retrieval.embedder import _PROBE
from tuner.retrieval.hybrid.chunks import cut
from tuner.retrieval.hybrid.text import full_text

_TOGETHER = 256  # texts in one file


def embed(texts):
    """Return the vectors of texts, shape (texts, dimensions)."""
    rows, vectors = _kept()
    new = [text for text in dict.fromkeys(texts) if text not in rows]
    for start in range(0, len(new), _TOGETHER):
        part = new[start : start + _TOGETHER]
        rows.update((text, len(vectors) + n) for n, text in enumerate(part))
        vectors.extend(_made(part))
    return np.stack([vectors[rows[text]] for text in texts])


def _folder():
    return Path(os.environ["SENTENCE_VECTORS"])


@lru_cache(maxsize=1)
def _kept():
    """Return which row each text has, and the rows."""
    rows, vectors = {}, []
    for path in sorted(_folder().glob("*.json")):
        texts = json.loads(path.read_text())
        rows.update((text, len(vectors) + n) for n, text in enumerate(texts))
        vectors.extend(np.load(path.with_suffix(".npy")))
    return rows, vectors


def _made(texts):
    """Embed texts and keep their vectors; the names of the texts are written last."""
    found = _model().encode(texts, show_progress_bar=False).astype(np.float32)
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / sha256("\0".join(texts).encode()).hexdigest()[:16]
    np.save(path.with_suffix(".npy"), found)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(texts))
    unfinished.rename(path.with_suffix(".json"))
    return found


@lru_cache(maxsize=1)
def _model():
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(os.environ["SENTENCE_MODEL"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--chunks", type=int, nargs="*", default=[])
    arguments = parser.parse_args()
    embed([_PROBE])  # An index asks for it, to know the model by.
    for path in arguments.paths:
        dataset = open_dataset(path)
        texts = [query.text for query in dataset.queries]
        texts += map(full_text, dataset.corpus.documents)
        for tokens in arguments.chunks:
            for document in dataset.corpus.documents:
                pieces = cut(document.text, tokens=tokens, overlap=0)
                texts += (f"{document.title} {piece}".strip() for piece in pieces)
        for start in range(0, len(texts), _TOGETHER):
            embed(texts[start : start + _TOGETHER])
            print(
                f"{dataset.name}: {min(start + _TOGETHER, len(texts))} of {len(texts)}", flush=True
            )


if __name__ == "__main__":
    main()
