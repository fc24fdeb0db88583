"""What graph-retriever's strategies can be tuned by, and the links that they follow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.words import name_words
from tuner.retrieval.adapters.embedding import embedder_knob
from tuner.retrieval.hybrid.names import own_names, phrases
from tuner.retrieval.knobs import Knob, knob, knobs_of

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
        "how many documents the vector search begins with; under eager, those above select_k "
        "are found for nothing",
        4,
        within=(1, 200),
        scale="log",
        constraint="start_k <= select_k",
        constraint_when={"strategy": ("eager",)},
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


TITLE = "title"
"""The metadata field of a corpus's documents that holds the names of the document itself."""

Edges = tuple[tuple[str, str], ...]
"""Pairs of metadata fields: from a document with a value in one to those with it in the other."""

_OF_CORPUS = {
    "shared": ((MENTIONS, MENTIONS),),
    "titles": ((MENTIONS, TITLE),),
    "both": ((MENTIONS, MENTIONS), (MENTIONS, TITLE)),
}
_EXAMPLE = 'such as [["mentions", "title"]]'

NAMES = ("triples", "titles", "both")


def read_edges(given: object, *, over_store: bool) -> dict[str, Edges]:
    """Return the alternatives for which links are followed, by name; the first is the default.

    One without a name is the only one. A corpus has some of its own; a store needs them given.

    Raises:
        InputError: no pairs of metadata fields, or fields that a corpus's documents do not have.
    """
    if given is None and not over_store:
        return dict(_OF_CORPUS)
    named: Mapping[Any, Any] = given if isinstance(given, Mapping) and given else {"": given}
    alternatives: dict[str, Edges] = {}
    problems = []
    for name, edges in named.items():
        key = ("edges", str(name)) if name else ("edges",)
        pairs = edges if isinstance(edges, list | tuple) else ()
        if not pairs:
            message = f"must be a list of pairs of metadata fields, {_EXAMPLE}"
            problems.append(Problem(message, key=key))
        wrong = [_pair_problem(pair, over_store=over_store) for pair in pairs]
        problems += [Problem(m, key=(*key, number)) for number, m in enumerate(wrong) if m]
        if not any(wrong):
            alternatives[str(name)] = tuple((source, target) for source, target in pairs)
    refuse(problems)
    return alternatives


def _pair_problem(pair: object, *, over_store: bool) -> str:
    if not (
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and all(isinstance(name, str) and name for name in pair)
    ):
        return f"{pair!r} is no pair of metadata fields"
    unknown = [name for name in pair if name not in (MENTIONS, TITLE)]
    if unknown and not over_store:
        return (
            f"the corpus's documents have the fields {MENTIONS} and {TITLE}, and no "
            f"{unknown[0]!r}; other fields are those of a store"
        )
    return ""


def edges_knobs(edges: Collection[str]) -> tuple[Knob, ...]:
    """Return the parameter that chooses which links are followed; none where there is no choice."""
    if len(edges) < 2:
        return ()
    description = "which links are followed, of the alternatives in the option `edges`"
    today, *_ = edges
    return (Knob("edges", "categorical", today, choices=tuple(edges), description=description),)


def index_knobs(names: str, embedder: str) -> tuple[Knob, ...]:
    """Return the parameters of an index over a corpus."""
    check_names(names)
    return (
        Knob(
            "names",
            "categorical",
            names,
            choices=NAMES,
            stage="index",
            description="where the names come from that link documents: triples (and entities of "
            "the data set; of one without, titles), titles (and capitalised phrases), or both",
        ),
        embedder_knob(embedder),
    )


def check_names(names: object) -> None:
    """Check where names shall come from.

    Raises:
        InputError: from nowhere that is known.
    """
    if names not in NAMES:
        message = f"{names!r} is not one of {', '.join(NAMES)}"
        raise InputError(message, key=("names",))


def mentions(corpus: Corpus, names: str) -> list[tuple[str, ...]]:
    """Return the names found in each document, by which documents are linked.

    Those of ``"triples"`` are in the corpus's triples and entities; where it has neither, and for
    ``"titles"``, they are the document's title and the capitalised phrases in its text.
    """
    has_facts = bool(corpus.triples or corpus.entities)
    found: dict[str, list[str]] = {document.id: [] for document in corpus.documents}
    if names != "triples" or not has_facts:
        for document in corpus.documents:
            own = (*own_names(document), *phrases(document.text))
            found[document.id] += (" ".join(name) for name in own)
    if names != "titles":
        for triple in corpus.triples:
            if triple.document_id in found:
                found[triple.document_id] += (triple.subject, triple.object)
        for document_id, of_document in corpus.entities.items():
            if document_id in found:
                found[document_id] += of_document
    return [_folded(found[document.id]) for document in corpus.documents]


def titles(corpus: Corpus) -> list[tuple[str, ...]]:
    """Return what each document itself is called."""
    return [_folded(map(" ".join, own_names(document))) for document in corpus.documents]


def _folded(names: Iterable[str]) -> tuple[str, ...]:
    folded = (" ".join(name_words(name)) for name in names)
    return tuple(dict.fromkeys(name for name in folded if name))
