"""Measure what share of the relevant documents any retriever could find, by words or by graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tuner.datasets.building.facts import name_key
from tuner.datasets.dataset import Dataset

MOST_HOPS = 3

_LONGEST_NAME_WORDS = 8


@dataclass(frozen=True)
class Reach:
    """Shares in [0, 1] of all pairs of a query and a relevant document; None without any pair.

    Attributes:
        pairs: how many pairs there are.
        with_text: the document is in the corpus and has a text. No retriever of passages finds
            the others.
        sharing_a_term: query and document have a term in common. Without one, nothing that
            matches words finds it: it takes vectors, or the graph.
        within_hops: hops -> the document mentions a name in the query (0 hops), or a name that
            shares a document with such a name (1 hop), and so on. Empty without triples and
            entities.
        neither: it shares no term and is not within 3 hops; only vectors may find it.
    """

    pairs: int
    with_text: float | None
    sharing_a_term: float | None
    within_hops: Mapping[int, float | None]
    neither: float | None


def measure_reach(
    dataset: Dataset,
    gold: Mapping[str, Sequence[str]],
    terms_of: Callable[[Iterable[str]], list[list[str]]],
) -> Reach:
    """Measure reach; ``gold`` is query id -> relevant documents, ``terms_of`` gives index terms."""
    documents = {document.id: document for document in dataset.corpus.documents}
    pairs = [(query, id_) for query, ids in gold.items() for id_ in ids]
    wanted = sorted({id_ for _, id_ in pairs} & documents.keys())
    texts = [f"{documents[id_].title} {documents[id_].text}" for id_ in wanted]
    terms = dict(zip(wanted, map(set, terms_of(texts)), strict=True))
    asked = dict(
        zip(
            (query.id for query in dataset.queries),
            map(set, terms_of(query.text for query in dataset.queries)),
            strict=True,
        )
    )
    shares_term = [not asked[query].isdisjoint(terms.get(id_, ())) for query, id_ in pairs]
    hops = _hops(dataset, pairs)
    has_text = [id_ in documents and bool(documents[id_].text.strip()) for _, id_ in pairs]
    return Reach(
        pairs=len(pairs),
        with_text=_share(has_text),
        sharing_a_term=_share(shares_term),
        within_hops={
            most: _share([found is not None and found <= most for found in hops])
            for most in (range(MOST_HOPS + 1) if hops else ())
        },
        neither=_share(
            [
                not shares and (not hops or hops[position] is None)
                for position, shares in enumerate(shares_term)
            ]
        ),
    )


def _share(claims: Sequence[bool]) -> float | None:
    return sum(claims) / len(claims) if claims else None


def _hops(dataset: Dataset, pairs: Sequence[tuple[str, str]]) -> list[int | None]:
    """Return for each pair the hops from the query's names to the document; None beyond 3."""
    names_in = _names_in_documents(dataset)
    if not names_in:
        return []
    documents_with: defaultdict[str, list[str]] = defaultdict(list)
    for id_, names in names_in.items():
        for name in names:
            documents_with[name].append(id_)
    gold: defaultdict[str, set[str]] = defaultdict(set)
    for query_id, id_ in pairs:
        gold[query_id].add(id_)
    distances = {}
    for query in dataset.queries:
        names = _mentioned(query.text, documents_with)
        distances[query.id] = _distances(names, gold[query.id], names_in, documents_with)
    return [distances[query].get(id_) for query, id_ in pairs]


def _names_in_documents(dataset: Dataset) -> dict[str, set[str]]:
    corpus = dataset.corpus
    if not corpus.triples and not corpus.entities:
        return {}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for id_, names in corpus.entities.items():
        found[id_].update(map(name_key, names))
    for triple in corpus.triples:
        found[triple.document_id].update((name_key(triple.subject), name_key(triple.object)))
    for document in corpus.documents:
        found[document.id].add(name_key(document.title))
    return {id_: names - {""} for id_, names in found.items()}


def _mentioned(text: str, known: Mapping[str, object]) -> set[str]:
    """Return the known names that stand in a text: runs of words, and anything in Chinese."""
    key = name_key(text)
    words = [word.strip(".,;:?!\"'()[]“”‘’") for word in key.split()]
    words = [word.removesuffix("'s").removesuffix("’s") for word in words]
    runs = (
        " ".join(words[start:stop])
        for start in range(len(words))
        for stop in range(start + 1, min(start + _LONGEST_NAME_WORDS, len(words)) + 1)
    )
    found = {run for run in runs if run in known}
    # Without spaces between words, any run of characters may be a name.
    if any(ord(letter) >= 0x2E80 for letter in key):
        lengths = range(2, 13)
        pieces = (key[i : i + n] for i in range(len(key)) for n in lengths)
        found |= {piece for piece in pieces if piece in known and ord(piece[0]) >= 0x2E80}
    return found


def _distances(
    names: set[str],
    wanted: set[str],
    names_in: Mapping[str, set[str]],
    documents_with: Mapping[str, Sequence[str]],
) -> dict[str, int]:
    """Return document -> hops, breadth first over names and documents, until all are found."""
    distances: dict[str, int] = {}
    seen, frontier = set(names), set(names)
    for hops in range(MOST_HOPS + 1):
        reached = {id_ for name in frontier for id_ in documents_with[name]} - distances.keys()
        distances.update(dict.fromkeys(reached, hops))
        if wanted <= distances.keys():
            break
        frontier = {name for id_ in reached for name in names_in[id_]} - seen
        seen |= frontier
    return distances
