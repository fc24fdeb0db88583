"""What a relevant passage is worth at each rank: it is moved, and the answers are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tuner.answers.answerer import Answerer
from tuner.answers.asking import Asking, Plan, Replies, ask_all
from tuner.answers.configurations import Configuration
from tuner.answers.contexts import check_answers_queries, check_texts, passage_texts, retrieve
from tuner.core.corpus import Query
from tuner.core.errors import InputError, TunerError
from tuner.core.files import write_whole
from tuner.core.json_text import json_text
from tuner.core.rankings import FloatArray
from tuner.core.shown import counted
from tuner.core.steps import Advance, Say, unheard
from tuner.run.assembly import Assembly
from tuner.stats.discount import FittedDiscount, fit_discount_with_intervals
from tuner.stats.pairs import ROUNDING

# The context in which a further passage that is not relevant stands in the place of the gold one.
WITHOUT = 0
NOT_RELEVANT, TOO_FEW = "no relevant passage", "too few passages that are not relevant"
NO_ANSWER = "no answer of use at some rank"


@dataclass(frozen=True)
class Placed:
    """A query with one gold passage, and passages of the same ranking that are not relevant.

    ``others`` are the texts of as many as a context has passages, best first.
    """

    query: Query
    gold: str
    others: tuple[str, ...]

    def context(self, rank: int) -> tuple[str, ...]:
        """Return the passages with the gold one at a rank from 1, or without it (0).

        >>> placed = Placed(Query("q", "Where?"), "gold", ("a", "b", "c"))
        >>> placed.context(2), placed.context(0)
        (('a', 'gold', 'b'), ('a', 'b', 'c'))
        """
        if rank == WITHOUT:
            return self.others
        kept = self.others[:-1]
        return (*kept[: rank - 1], self.gold, *kept[rank - 1 :])


@dataclass(frozen=True)
class SelfAgreement:
    """How far the answers to the same question, asked twice, are of the same quality.

    Attributes:
        pairs: how many were asked twice, and answered twice.
        same: the share of the same quality; None without pairs.
        mean_difference: the mean of the absolute differences; None without pairs.
    """

    pairs: int
    same: float | None
    mean_difference: float | None

    @classmethod
    def of(cls, first: FloatArray, second: FloatArray) -> SelfAgreement:
        """Compare two lists of qualities, NaN where there was no answer."""
        away = np.abs(first - second)
        away = away[~np.isnan(away)]
        if not away.size:
            return cls(0, None, None)
        return cls(int(away.size), float((away <= ROUNDING).mean()), float(away.mean()))


@dataclass(frozen=True)
class Positions:
    """What came of an ablation by position.

    Attributes:
        passages: how many a context has.
        qualities: the mean quality by rank, and without the gold passage at ``WITHOUT``.
        fitted: the discount.
        left_out: how many queries, by why.
        agreement: of what was asked twice.
    """

    passages: int
    qualities: Mapping[int, float]
    fitted: FittedDiscount
    left_out: Mapping[str, int]
    agreement: SelfAgreement
    replies: Replies = field(repr=False)

    @property
    def discount(self) -> list[float]:
        """Return the weights as a configuration holds them."""
        return [round(weight, 4) for weight in self.fitted.weights]

    def to_record(self) -> dict[str, Any]:
        """Return it as a JSON-ready mapping."""
        return {
            "passages": self.passages,
            "discount": self.discount,
            "intervals": [list(interval) for interval in self.fitted.intervals],
            "confidence": 0.95,
            "queries": self.fitted.queries,
            "left_out": dict(self.left_out),
            "quality_without": self.qualities[WITHOUT],
            "ranks": [
                {
                    "rank": rank,
                    "quality": self.qualities[rank],
                    "gain": gain,
                    "gain_interval": list(interval),
                }
                for rank, gain, interval in zip(
                    self.fitted.ranks, self.fitted.gains, self.fitted.gain_intervals, strict=True
                )
            ],
            "self_agreement": asdict(self.agreement),
            "answers": self.replies.to_record(),
        }


@dataclass(frozen=True)
class Ablation:
    """How positions are tried.

    Attributes:
        passages: how many a context has.
        ranks: those that the gold passage is put at; None: all. Rank 1, the unit, is always one.
        twice: the share of all questions that is asked a second time.
    """

    passages: int = 10
    ranks: tuple[int, ...] | None = None
    twice: float = 0.1

    @property
    def tried(self) -> tuple[int, ...]:
        """Return the ranks in their order.

        Raises:
            InputError: one that a context of so many passages does not have.
        """
        ranks = range(1, self.passages + 1) if self.ranks is None else self.ranks
        wrong = [rank for rank in ranks if not 1 <= rank <= self.passages]
        if wrong:
            raise InputError(
                f"--ranks: {wrong[0]} is no rank of a context of {self.passages} passages "
                "(--passages)"
            )
        return tuple(sorted({1, *ranks}))


def place_gold(
    assembly: Assembly, configuration: Configuration, queries: Sequence[Query], passages: int
) -> tuple[list[Placed], dict[str, int]]:
    """Find a gold passage for each query, and others from its ranking; count those that lack them.

    The gold passage is the relevant one of the highest grade, the best ranked of equals. No other
    relevant passage is in the context. What nobody judged counts as not relevant.

    Raises:
        InputError: no query has both.
    """
    found = retrieve(assembly, configuration, queries, ())
    documents = {document.id: document for document in assembly.dataset.corpus.documents}
    placed, left_out = [], {NOT_RELEVANT: 0, TOO_FEW: 0}
    deepest = 0
    for row, query in enumerate(queries):
        grades = assembly.dataset.qrels.get(query.id, {})
        texts = passage_texts(found.rankings, row, documents)
        relevant = {
            id_
            for id_, grade in grades.items()
            if grade >= assembly.dataset.scale.relevant_from and id_ in documents
        }
        others = [text for id_, text in texts.items() if id_ not in relevant]
        deepest = max(deepest, len(others))
        if not relevant:
            left_out[NOT_RELEVANT] += 1
        elif len(others) < passages:
            left_out[TOO_FEW] += 1
        else:
            rank = {id_: place for place, id_ in enumerate(texts)}
            gold = min(relevant, key=lambda id_: (-grades[id_], rank.get(id_, len(rank)), id_))
            document = documents[gold]
            text = texts.get(gold, f"{document.title}\n{document.text}".strip())
            placed.append(Placed(query, text, tuple(others[:passages])))
    if len(placed) < 2:
        raise InputError(
            f"{counted(len(placed), 'query', 'queries')} of {len(queries)} has a relevant passage "
            f"and {passages} others in its ranking (at most {deepest} are there); give --passages "
            "of less, or parameters that retrieve more, such as --params '{\"top_k\": 30}'"
        )
    return placed, left_out


def try_positions(
    assembly: Assembly,
    configuration: Configuration,
    queries: Sequence[Query],
    ablation: Ablation,
    answerer: Answerer,
    plan: Plan,
    kept: Path,
    *,
    say: Say,
    advance: Advance = unheard,
) -> Positions:
    """Ask for answers with the gold passage at each rank, and fit the weights of the ranks.

    Raises:
        TunerError: see ``ask_all``; or the gold passage does not help even at rank 1.
        InputError: data, or ranks, that do not fit.
    """
    check_answers_queries(assembly)
    check_texts(assembly)
    ranks = ablation.tried
    placed, left_out = place_gold(assembly, configuration, queries, ablation.passages)
    columns = (WITHOUT, *ranks)
    once = [
        Asking(one.query.id, one.query.text, one.context(rank))
        for one in placed
        for rank in columns
    ]
    drawn = np.random.default_rng(plan.seed).permutation(len(once))
    count = min(len(once), int(len(once) * ablation.twice + 0.5))
    again = sorted(int(place) for place in drawn[:count])
    twice = [Asking(once[at].query_id, once[at].query, once[at].passages, round=1) for at in again]
    replies = ask_all([*once, *twice], answerer, plan, kept, say=say, advance=advance)
    values = np.array(replies.values)
    first, second = values[: len(once)], values[len(once) :]
    quality = first.reshape(len(placed), len(columns))
    is_whole = ~np.isnan(quality).any(axis=1)
    left_out[NO_ANSWER] = int((~is_whole).sum())
    clusters = [
        (bool(one.query.group), one.query.group or one.query.id)
        for one, whole in zip(placed, is_whole, strict=True)
        if whole
    ]
    quality = quality[is_whole]
    if len(quality) < 2:
        raise TunerError(
            f"{counted(len(quality), 'query', 'queries')} has answers at every rank: "
            f"{replies.reason}"
        )
    fitted = fit_discount_with_intervals(quality[:, 1:] - quality[:, :1], ranks, clusters=clusters)
    if not fitted.weights:
        low, high = fitted.gain_intervals[0]
        raise TunerError(
            f"with the relevant passage at rank 1 the answers are better by {fitted.gains[0]:+.3f} "
            f"than without it (95 % interval {low:+.3f} to {high:+.3f}, "
            f"{counted(fitted.queries, 'query', 'queries')}): that may be chance, and weights are "
            "in units of it; ask more queries, or look at what the function makes of passages"
        )
    return Positions(
        passages=ablation.passages,
        qualities={
            rank: float(mean) for rank, mean in zip(columns, quality.mean(axis=0), strict=True)
        },
        fitted=fitted,
        left_out={why: number for why, number in left_out.items() if number},
        agreement=SelfAgreement.of(first[again], second),
        replies=replies,
    )


def write_discount(path: Path, found: Positions, record: Mapping[str, Any]) -> Path:
    """Write ``context: {discount: […]}``, and what it rests on in a JSON file beside it.

    Raises:
        InputError: a file cannot be written.
    """
    beside = path.with_suffix(".json")
    head = f"# of {counted(found.fitted.queries, 'query', 'queries')}; intervals: {beside.name}\n"
    text = yaml.safe_dump(
        {"context": {"discount": found.discount}},
        default_flow_style=None,
        sort_keys=False,
        width=90,
    )
    try:
        write_whole(path, f"{head}{text}")
        write_whole(beside, f"{json_text({**found.to_record(), **record}, indent=2)}\n")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error
    return beside
