"""The data of a night: what they are, and what changed since the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuner.core.corpus import Query
from tuner.core.json_text import digest_of
from tuner.nightly.records import Part
from tuner.retrieval.base import Measures
from tuner.run.assembly import Assembly
from tuner.verdict.looks import query_digest

_COUNTED = {"corpus": "documents", "queries": "queries", "judgements": "judgements"}


def data_record(assembly: Assembly) -> dict[str, Any]:
    """Describe tonight's data and index: counts, and a hash of everything that may change."""
    dataset = assembly.dataset
    hashes = assembly.fingerprints()
    if assembly.config.dataset is not None:
        texts = sorted((query.id, query.text) for query in dataset.queries)
        hashes |= {
            "corpus": dataset.corpus.fingerprint,
            "queries": digest_of(texts),
            "judgements": digest_of(dataset.qrels),
        }
    return {
        "documents": len(dataset.corpus.documents),
        "queries": len(dataset.queries),
        "judgements": sum(map(len, dataset.qrels.values())),
        "fingerprints": hashes,
    }


def what_changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a sentence for everything that differs between two nights' data.

    >>> night = {"documents": 9, "queries": 4, "judgements": 4, "fingerprints": {"corpus": "a"}}
    >>> what_changed(night, {**night, "documents": 12, "fingerprints": {"corpus": "b"}})
    ['the corpus changed: 12 documents, 9 before']
    """
    then, current = before["fingerprints"], now["fingerprints"]
    found = [
        f"the {name} changed: {_counts(before[counted], now[counted], counted)}"
        for name, counted in _COUNTED.items()
        if then.get(name) != current.get(name)
    ]
    has_new_corpus = then.get("corpus") != current.get("corpus")
    # The index is built of the corpus: a new one is no news then.
    if then.get("retriever") != current.get("retriever") and not has_new_corpus:
        found.append("the retriever or its index changed")
    if then.get("space") != current.get("space"):
        found.append("the search space changed")
    if then.get("objective") != current.get("objective"):
        found.append("the objective changed")
    return found


def judged_part(assembly: Assembly) -> tuple[Query, ...]:
    """Return the queries that the verdict is given on: held-out ones, or all where none are.

    Empty where the system measures itself.
    """
    if isinstance(assembly.retriever, Measures):
        return ()
    return assembly.holdout_queries or assembly.tune_queries


def part_of(queries: Sequence[Query]) -> tuple[str, Part]:
    """Return the queries as they are recorded, and the name of that record."""
    part = Part(
        tuple(query_digest(query.text) for query in queries),
        tuple(query.query_type for query in queries),
    )
    return digest_of([part.digests, part.types]), part


def params_key(params: Mapping[str, Any]) -> str:
    """Return a short name for parameters, equal for equal ones."""
    return digest_of(params)


def _counts(before: int, now: int, counted: str) -> str:
    return f"{now} {counted}, {before} before" if now != before else f"{now} {counted}, as before"
