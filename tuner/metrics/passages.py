"""Passages' texts as arrays, made once a study, that measure a whole batch of contexts fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, MutableSequence, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat

import numpy as np

from tuner.core.errors import MetricError, one_line
from tuner.core.rankings import NO_DOCUMENT, FloatArray, IntArray, Rankings
from tuner.core.words import split_words, terms
from tuner.metrics.base import Judged
from tuner.metrics.efficiency import JudgedContexts, Tokenizer, default_tokenizer

GRAM = 3
"""Words or characters in the n-grams of redundancy: shorter ones repeat in any English text."""

FUNCTION_WORDS = frozenset(
    "a an and are as at be but by did do does for from had has have how if in into is it its no "
    "not of on or such that the their then there these they this to was were what when where "
    "which who whom whose why will with s".split()
)
"""English words that a query's coverage does not ask for: nearly every passage holds them."""


@dataclass(frozen=True)
class Rows:
    """Lists of numbers of different lengths: row i is ``values[starts[i]:starts[i + 1]]``."""

    values: IntArray
    starts: IntArray

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]]) -> Rows:
        """Lay lists out one after the other."""
        lists = list(rows)
        starts = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in lists], out=starts[1:])
        return cls(np.fromiter((v for row in lists for v in row), np.int64, starts[-1]), starts)

    def of_each(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the values of these rows in one array, and the place in ``rows`` of each."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        ends = np.cumsum(lengths)
        owners = np.repeat(np.arange(len(rows)), lengths)
        offsets = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
        return self.values[self.starts[rows][owners] + offsets], owners


@dataclass(frozen=True, eq=False)
class Passages:
    """What the texts of all documents say about the contexts of some queries.

    Make it with ``build``. Only n-grams that stand in several documents have to be compared when a
    context is measured; those of one document alone are counted ahead.

    Attributes:
        document_ids: the documents, one row each in the following.
        tokens: shape (documents,), tokens by the tokenizer.
        grams, own_grams: shape (documents,), n-grams, and different ones that no other document
            holds.
        shared_grams: the different n-grams that other documents hold too.
        query_terms: the terms of any query that a document holds.
        wanted: ``query * terms + term`` for each term of each query, ascending.
        term_count: how many different terms the queries have together.
        terms_of_query: shape (queries,), different terms of each.
    """

    document_ids: tuple[str, ...]
    tokens: FloatArray
    grams: IntArray
    own_grams: IntArray
    shared_grams: Rows
    query_terms: Rows
    wanted: IntArray
    term_count: int
    terms_of_query: FloatArray
    _rows_of: dict[str, tuple[Sequence[str], IntArray]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def build(
        cls,
        document_ids: Sequence[str],
        texts: Sequence[str],
        queries: Sequence[str],
        *,
        tokenizer: Tokenizer = default_tokenizer,
    ) -> Passages:
        """Read the documents' and queries' texts.

        Raises:
            MetricError: unequally many ids and texts, or a text on which the tokenizer fails.
        """
        if len(document_ids) != len(texts):
            raise MetricError(f"{len(texts)} texts for {len(document_ids)} documents")
        wanted_terms = [sorted(set(terms(query)) - FUNCTION_WORDS) for query in queries]
        number = {
            term: place
            for place, term in enumerate(sorted({t for row in wanted_terms for t in row}))
        }
        words = [split_words(text) for text in texts]
        counts, own, shared = _gram_rows(words)
        held = [sorted({number[term] for term in terms(text) if term in number}) for text in texts]
        wanted = [
            row * len(number) + number[term]
            for row, needed in enumerate(wanted_terms)
            for term in needed
        ]
        is_default = tokenizer is default_tokenizer
        tokens = (
            [len(row) for row in words] if is_default else _counts(tokenizer, document_ids, texts)
        )
        return cls(
            document_ids=tuple(document_ids),
            tokens=np.array(tokens, dtype=np.float64),
            grams=counts,
            own_grams=own,
            shared_grams=shared,
            query_terms=Rows.of(held),
            wanted=np.array(wanted, dtype=np.int64),
            term_count=len(number),
            terms_of_query=np.array([float(len(needed)) for needed in wanted_terms]),
        )

    def context_tokens(self, rankings: Rankings) -> FloatArray:
        """Return the tokens of each query's passages, shape (queries,)."""
        documents, query_rows = self._retrieved(rankings)
        return _sums(query_rows, self.tokens[documents], len(rankings.query_ids))

    def tokens_of(self, rankings: Rankings) -> FloatArray:
        """Return the tokens of each passage, of the shape of ``rankings.documents``; 0 fills.

        Raises:
            MetricError: a document whose text is not known.
        """
        documents, _ = self._retrieved(rankings)
        tokens = np.zeros(rankings.documents.shape)
        tokens[rankings.documents != NO_DOCUMENT] = self.tokens[documents]
        return tokens

    def within(self, rankings: Rankings, budget_tokens: int) -> Rankings:
        """Cut each ranking before the first passage that no longer fits into the budget.

        What a system returns beyond the tokens that a prompt has room for is not read, so systems
        that return much are compared with those that return little at the same length. ``scores``
        are cut alike; names and paths are left as they are.

        Raises:
            MetricError: a document whose text is not known.
        """
        tokens = self.tokens_of(rankings)
        fits = (rankings.documents != NO_DOCUMENT) & (np.cumsum(tokens, axis=1) <= budget_tokens)
        scores = rankings.scores
        return replace(
            rankings,
            documents=np.where(fits, rankings.documents, NO_DOCUMENT),
            scores=None if scores is None else np.where(fits, scores, np.nan),
            context_tokens=(tokens * fits).sum(axis=1),
        )

    def judge(self, rankings: Rankings, judged: Judged) -> JudgedContexts:
        """Measure the contexts; ``rankings`` answer the very queries that were given to ``build``.

        ``judged`` are the whole rankings, judged.

        Raises:
            MetricError: another number of queries, or a document whose text is not known.
        """
        count = len(rankings.query_ids)
        if count != len(self.terms_of_query):
            raise MetricError(f"{count} rankings for {len(self.terms_of_query)} queries")
        if judged.gains.shape != rankings.documents.shape:
            raise MetricError("context metrics need the whole rankings judged")
        documents, query_rows = self._retrieved(rankings)
        tokens = self.tokens[documents]
        is_hit = judged.hits[rankings.documents != NO_DOCUMENT]
        relevant = _sums(query_rows, tokens * is_hit, count)
        grams, owners = self.shared_grams.of_each(documents)
        span = int(self.shared_grams.values.max(initial=0)) + 1
        shared = _different(query_rows[owners] * span + grams) // span
        own = _sums(query_rows, self.own_grams[documents], count)
        held, owners = self.query_terms.of_each(documents)
        keys = query_rows[owners] * self.term_count + held
        covered = np.intersect1d(_different(keys), self.wanted, assume_unique=True)
        return JudgedContexts(
            tokens=_sums(query_rows, tokens, count),
            relevant_tokens=np.where(judged.is_defined, relevant, np.nan),
            grams=_sums(query_rows, self.grams[documents], count),
            different_grams=own + _sums(shared, np.ones(len(shared)), count),
            terms=self.terms_of_query,
            covered_terms=_sums(covered // max(self.term_count, 1), np.ones(len(covered)), count),
        )

    def _retrieved(self, rankings: Rankings) -> tuple[IntArray, IntArray]:
        """Return the row of each retrieved document, and the query that it was retrieved for."""
        query_rows, columns = np.nonzero(rankings.documents != NO_DOCUMENT)
        places = self._rows(rankings.document_ids)[rankings.documents[query_rows, columns]]
        if places.min(initial=0) < 0:
            lost = int((places < 0).argmax())
            id_ = rankings.document_ids[rankings.documents[query_rows[lost], columns[lost]]]
            raise MetricError(f"document {id_!r} was retrieved, but its text is not in the corpus")
        return places, query_rows

    def _rows(self, document_ids: Sequence[str]) -> IntArray:
        remembered = self._rows_of.get("last")
        if remembered is None or remembered[0] is not document_ids:
            row_of = {id_: row for row, id_ in enumerate(self.document_ids)}
            found = map(row_of.get, document_ids, repeat(NO_DOCUMENT))
            remembered = (document_ids, np.fromiter(found, np.int64, len(document_ids)))
            # A list may change under the same identity, so it is not remembered.
            if not isinstance(document_ids, MutableSequence):
                self._rows_of["last"] = remembered
        return remembered[1]


def _gram_rows(words: Sequence[Sequence[str]]) -> tuple[IntArray, IntArray, Rows]:
    """Return each text's n-grams: all, different ones of its own, and those that others share.

    A text shorter than an n-gram is one n-gram.
    """
    number: dict[tuple[str, ...], int] = {}
    rows = [
        [
            number.setdefault(tuple(row[start : start + GRAM]), len(number))
            for start in range(max(len(row) - GRAM + 1, min(len(row), 1)))
        ]
        for row in words
    ]
    different = [list(dict.fromkeys(row)) for row in rows]
    holders = Counter(gram for row in different for gram in row)
    place: dict[int, int] = {}
    shared = [
        [place.setdefault(gram, len(place)) for gram in row if holders[gram] > 1]
        for row in different
    ]
    own = [len(row) - len(others) for row, others in zip(different, shared, strict=True)]
    return np.array([len(row) for row in rows]), np.array(own), Rows.of(shared)


def _counts(tokenizer: Tokenizer, document_ids: Sequence[str], texts: Sequence[str]) -> list[int]:
    counts = []
    for id_, text in zip(document_ids, texts, strict=True):
        try:
            counts.append(len(tokenizer(text)))
        except Exception as error:  # whatever code from outside raises
            reason = one_line(error)
            raise MetricError(f"the tokenizer failed on document {id_!r}: {reason}") from error
    return counts


def _sums(rows: IntArray, values: FloatArray | IntArray, count: int) -> FloatArray:
    """Add up the values of each row, shape (count,)."""
    return np.bincount(rows, weights=values, minlength=count).astype(np.float64)


def _different(keys: IntArray) -> IntArray:
    # np.unique hashes since numpy 2.3, slower than sorting for these sizes.
    ordered = np.sort(keys)
    is_first = np.ones(len(ordered), dtype=np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]
