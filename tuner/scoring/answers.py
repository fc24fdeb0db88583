"""Two ways to answer the same questions: asked by turns, scored alike, compared in pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError, TunerError, one_line
from tuner.core.rankings import FloatArray
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever
from tuner.scoring.answer_metrics import Similarity
from tuner.stats import (
    GroupComparison,
    PairedComparison,
    compare_paired,
    correct_holm,
    per_group,
    queries_needed,
)
from tuner.stats.power import MOST_TIMES

Answerer = Callable[[str, str], object]
"""From (context, query) to the answer; both texts, the passages of the context best first."""

ALPHA = 0.05


@dataclass(frozen=True)
class Answers:
    """What one side answered.

    Attributes:
        texts: by query id; empty where nothing was answered.
        errors: by query id, for calls that failed. A failed call has given no answer.
    """

    texts: Mapping[str, str]
    errors: Mapping[str, str]


@dataclass(frozen=True)
class AnswerDuel:
    """Two sides on the same questions.

    Attributes:
        metrics: by similarity, B less A, and the p-value by Holm over the similarities; the first
            one decides.
        by_type: the first similarity within each query type, corrected over the types.
        scores: by similarity, the values of A and of B, each of shape (queries,).
        queries: what was asked.
        answers: of A and of B.
        looks: what to know of earlier looks at the held-out queries, one sentence each.
    """

    metrics: Mapping[str, tuple[PairedComparison, float | None]]
    by_type: tuple[GroupComparison, ...]
    scores: Mapping[str, tuple[FloatArray, FloatArray]]
    queries: tuple[Query, ...]
    answers: tuple[Answers, Answers]
    looks: tuple[str, ...] = ()

    @property
    def changes(self) -> list[tuple[int, float]]:
        """Return the row of each query whose first similarity changed, and by how much it did."""
        before, after = next(iter(self.scores.values()))
        change = [(row, float(change)) for row, change in enumerate(after - before) if change]
        return sorted(change, key=lambda one: one[1])

    @property
    def sentence(self) -> str:
        """Return which side to take, in words."""
        name, (comparison, _) = next(iter(self.metrics.items()))
        return _sentence(name, comparison)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what went wrong on either side, and earlier looks, one sentence each."""
        found = []
        for called, side in zip("AB", self.answers, strict=True):
            empty = sum(not side.texts.get(query.id, "").strip() for query in self.queries)
            if side.errors:
                first = next(iter(side.errors.values()))
                found.append(f"{called} failed on {len(side.errors)} queries, such as: {first}")
            if empty:
                found.append(
                    f"{called} gave no answer to {empty} queries; each is scored as an empty one"
                )
        return (*found, *self.looks)

    def to_record(self) -> dict[str, Any]:
        """Return the duel as a JSON-ready mapping."""
        return {
            "sentence": self.sentence,
            "queries": len(self.queries),
            "metrics": {
                name: {**asdict(comparison), "adjusted_p": adjusted}
                for name, (comparison, adjusted) in self.metrics.items()
            },
            "by_type": [asdict(group) for group in self.by_type],
            "remarks": list(self.remarks),
        }


def contexts_of(
    retriever: Retriever, params: Params, queries: Sequence[Query], documents: Sequence[Document]
) -> list[str]:
    """Return the passages that each query retrieves, best first, a blank line between them."""
    retriever.prepare(queries)
    rankings = retriever.retrieve(queries, params)
    texts = {document.id: f"{document.title}\n{document.text}".strip() for document in documents}
    return [
        "\n\n".join(texts[id_] for id_ in rankings.ids(row) if id_ in texts)
        for row in range(len(queries))
    ]


def ask_by_turns(
    sides: tuple[Answerer, Answerer],
    contexts: tuple[Sequence[str], Sequence[str]],
    queries: Sequence[Query],
    *,
    seed: int,
    keep: Callable[[int, str, str], None] = lambda side, query_id, text: None,  # noqa: ARG005
) -> tuple[Answers, Answers]:
    """Ask both sides every question, one after the other, in an order drawn at random.

    The questions come in random order, and a coin decides for each which side goes first: caches
    that fill, services that slow down and models that change meet both alike. ``keep`` is told
    each answer at once: the side (0 for A), the query's id and the text.

    Raises:
        TunerError: one side failed on every question.
    """
    random = np.random.default_rng(seed)
    texts: tuple[dict[str, str], dict[str, str]] = ({}, {})
    errors: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for row in random.permutation(len(queries)):
        query = queries[row]
        for side in random.permutation(2):
            try:
                answer = sides[side](contexts[side][row], query.text)
            except Exception as error:  # whatever code from outside raises
                errors[side][query.id] = one_line(error)
                answer = None
            text = "" if answer is None else str(answer)
            texts[side][query.id] = text
            keep(int(side), query.id, text)
    for called, failed in zip("AB", errors, strict=True):
        if queries and len(failed) == len(queries):
            reason = next(iter(failed.values()))
            raise TunerError(f"{called} failed on all {len(failed)} queries: {reason}")
    return Answers(texts[0], errors[0]), Answers(texts[1], errors[1])


def compare_answers(
    answers: tuple[Answers, Answers],
    queries: Sequence[Query],
    accepted: Mapping[str, Sequence[str]],
    similarities: Sequence[Similarity],
    *,
    seed: int,
) -> AnswerDuel:
    """Score both sides against the accepted answers, and compare them by paired tests.

    Questions without an accepted answer are left out. A question that a side did not answer is
    scored as an empty answer: not to answer is no way to win.

    Raises:
        InputError: no question has an accepted answer, or no similarity is given.
        MetricError: a similarity failed.
    """
    asked = tuple(query for query in queries if any(accepted.get(query.id, ())))
    if not asked:
        raise InputError("none of the queries has an expected answer to compare with")
    if not similarities:
        raise InputError("give at least one similarity, such as token_f1")
    scores = {
        similarity.name: (
            _scores(answers[0], asked, accepted, similarity),
            _scores(answers[1], asked, accepted, similarity),
        )
        for similarity in similarities
    }
    comparisons = {name: compare_paired(b, a, seed=seed) for name, (a, b) in scores.items()}
    adjusted = correct_holm([comparison.p_value for comparison in comparisons.values()])
    first_a, first_b = scores[similarities[0].name]
    types = [query.query_type for query in asked]
    return AnswerDuel(
        metrics={
            name: (comparison, None if np.isnan(p) else float(p))
            for (name, comparison), p in zip(comparisons.items(), adjusted, strict=True)
        },
        by_type=per_group(first_b, first_a, types, seed=seed) if len(set(types)) > 1 else (),
        scores=scores,
        queries=asked,
        answers=answers,
    )


def _scores(
    answers: Answers,
    queries: Sequence[Query],
    accepted: Mapping[str, Sequence[str]],
    similarity: Similarity,
) -> FloatArray:
    return np.array(
        [
            similarity.score(
                answers.texts.get(query.id, ""),
                [text for text in accepted[query.id] if text],
                query.text,
            )
            for query in queries
        ]
    )


def _sentence(name: str, comparison: PairedComparison) -> str:
    mean, p_value = comparison.mean_difference, comparison.p_value
    if mean is None or p_value is None:
        return f"Nothing to decide by: {comparison.remark}."
    interval = ""
    if comparison.interval is not None:
        low, high = comparison.interval
        interval = f" [{low:+.3f}, {high:+.3f}]"
    figures = (
        f"{name} {comparison.treatment_mean:.3f} against {comparison.control_mean:.3f}, "
        f"{mean:+.3f}{interval} on {comparison.n} queries"
    )
    if p_value < ALPHA:
        return f"Take {'B' if mean > 0 else 'A'}: {figures}."
    if mean == 0.0 or not comparison.standard_deviation:
        return f"Keep A: no difference ({figures})."
    chance = f"Not enough queries: the difference may be chance ({figures})"
    if mean < 0.0:
        return f"{chance}. Nothing speaks for B: keep A."
    total = queries_needed(mean, comparison.standard_deviation)
    if total > MOST_TIMES * comparison.n:
        return f"{chance}. More queries will hardly decide it."
    return f"{chance}; a difference of this size would need about {total:,} queries to show."
