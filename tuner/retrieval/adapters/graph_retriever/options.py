"""What graph-retriever's strategies can be tuned by, and the links that they follow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tuner.core.corpus import Corpus
from tuner.core.errors import Problem, refuse
from tuner.core.words import name_words
from tuner.retrieval.hybrid.names import own_names, phrases
from tuner.retrieval.knobs import knob, knobs_of

MENTIONS = "mentions"
"""The metadata field of a corpus's documents: the names found in each."""


@dataclass(frozen=True)
class Settings:
    """One trial's parameters, checked."""

    strategy: str = knob(
        "which documents are taken. eager: all that are found, step by step "
        "(breadth first); mmr: those that are relevant and unlike the ones taken; "
        "scored: the most similar first",
        "eager",
        choices=("eager", "mmr", "scored"),
    )
    select_k: int = knob("how many documents are returned at most", 5, within=(1, 200), scale="log")
    start_k: int = knob(
        "how many documents the vector search begins with; those above select_k "
        "are found for nothing",
        4,
        within=(1, 200),
        scale="log",
        constraint="start_k <= select_k",
    )
    adjacent_k: int = knob(
        "how many linked documents are looked at in each step", 10, within=(1, 200), scale="log"
    )
    max_depth: int = knob(
        "how many steps from the start; 0: none; 10 is in effect the library's own "
        "default, no limit",
        10,
        within=(0, 10),
    )
    lambda_mult: float = knob(
        "what counts: near 1 relevance, at 0 diversity alone",
        0.5,
        within=(0.0, 0.99),  # the library divides by 1 - lambda_mult
        when={"strategy": ("mmr",)},
    )


KNOBS = knobs_of(Settings)


def read_edges(edges: object) -> tuple[tuple[str, str], ...]:
    """Check links between documents: pairs of metadata fields, ``$id`` being the document itself.

    Raises:
        InputError: anything else.
    """
    pairs = edges if isinstance(edges, list | tuple) else ()
    problems = [
        Problem(f"{pair!r} is no pair of metadata fields", key=("edges", number))
        for number, pair in enumerate(pairs)
        if not (
            isinstance(pair, list | tuple)
            and len(pair) == 2
            and all(isinstance(name, str) and name for name in pair)
        )
    ]
    if not pairs:
        message = 'must be a list of pairs of metadata fields, such as [["mentions", "$id"]]'
        problems.append(Problem(message, key=("edges",)))
    refuse(problems)
    return tuple((str(source), str(target)) for source, target in pairs)


def mentions(corpus: Corpus) -> list[tuple[str, ...]]:
    """Return the names found in each document, by which documents are linked.

    They come from the corpus's triples and entities; where it has neither, from the document's
    title and the capitalised phrases in its text.
    """
    if not corpus.triples and not corpus.entities:
        return [
            _names(" ".join(name) for name in (*own_names(document), *phrases(document.text)))
            for document in corpus.documents
        ]
    found: dict[str, list[str]] = {document.id: [] for document in corpus.documents}
    for triple in corpus.triples:
        if triple.document_id in found:
            found[triple.document_id] += (triple.subject, triple.object)
    for document_id, names in corpus.entities.items():
        if document_id in found:
            found[document_id] += names
    return [_names(found[document.id]) for document in corpus.documents]


def _names(names: Iterable[str]) -> tuple[str, ...]:
    folded = (" ".join(name_words(name)) for name in names)
    return tuple(dict.fromkeys(name for name in folded if name))
