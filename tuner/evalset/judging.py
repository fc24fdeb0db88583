"""Have a judge grade a sheet: its answers are kept, so that what was paid for is never asked again.

Each answer is written down as it comes, under a digest of all that was asked. A build that was
killed reads them back and asks for the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError, TunerError
from tuner.core.json_text import digest_of
from tuner.core.kept_lines import add_kept, make_ready
from tuner.core.money import is_passed, total
from tuner.core.steps import Advance, Say, unheard
from tuner.evalset.judges import Answer, Judge, Scale, size_of
from tuner.evalset.kept_answers import KeptAnswer, read_answers
from tuner.evalset.sheets import Row
from tuner.stats.agreement import Agreement, cohen_kappa

# So many queries are asked at once; what they may cost together is seen to be left.
AT_ONCE = 4


@dataclass(frozen=True)
class Asking:
    """Some passages of one query, in the order in which they are asked.

    ``round`` is 0, and 1 where they are asked a second time.
    """

    round: int
    rows: tuple[Row, ...]

    def key(self, judge: str) -> str:
        """Return a digest of all that the answer depends on."""
        query, passages = self.asked
        return digest_of([judge, self.round, [query, *passages]])

    @property
    def asked(self) -> tuple[str, list[str]]:
        """Return the query, and what a judge reads of each passage."""
        return self.rows[0].query, [passage_of(row) for row in self.rows]

    @property
    def size(self) -> int:
        """Return how many bytes that is."""
        query, passages = self.asked
        return size_of(query, *passages)


@dataclass(frozen=True)
class Plan:
    """How a sheet is asked for.

    Attributes:
        batch: how many passages of a query are asked for together at most.
        twice: the share of the queries that are asked for a second time, in another order.
        seed: draws the orders and these queries.
        retries: how often what cannot be read, or fails, is asked for again.
        budget: what all answers may cost together, those kept included; None is no limit.
    """

    batch: int = 10
    twice: float = 0.1
    seed: int = 0
    retries: int = 3
    budget: float | None = None


@dataclass(frozen=True)
class Graded:
    """What a judge said of a sheet.

    Attributes:
        grades: query id -> document id -> grade.
        agreement: of the first and the second asking.
        lacking: passages that it could not grade, as (query id, document id).
        asked: requests that were sent now; ``kept``: answers that were there.
        money: what all answers cost; None where nobody knows.
        tokens: (read, written) in all.
    """

    grades: Mapping[str, Mapping[str, float]] = field(repr=False)
    agreement: Agreement
    lacking: tuple[tuple[str, str], ...]
    asked: int
    kept: int
    money: float | None
    tokens: tuple[int, int]

    def to_record(self) -> dict[str, Any]:
        """Return all but the grades as plain data."""
        return {
            "passages": sum(map(len, self.grades.values())),
            "not_graded": [list(pair) for pair in self.lacking],
            "asked_twice": self.agreement.pairs,
            "self_agreement": {
                "same": self.agreement.same,
                "kappa": self.agreement.kappa,
                "weights": self.agreement.weights,
            },
            "money": self.money,
            "tokens_read": self.tokens[0],
            "tokens_written": self.tokens[1],
        }


def passage_of(row: Row) -> str:
    """Return what a judge reads of a passage."""
    return f"{row.title}\n{row.passage}".strip()


def askings(rows: Sequence[Row], plan: Plan) -> list[Asking]:
    """Return what is asked, in order: every query once, then a share of them again.

    Within a query the passages are in an order that is drawn, another one each time.
    """
    by_query: dict[str, list[Row]] = {}
    for row in rows:
        by_query.setdefault(row.query_id, []).append(row)
    again = sorted(by_query, key=lambda id_: _draw(plan.seed, "twice", id_))
    count = min(len(again), int(len(again) * plan.twice + 0.5))
    found = []
    for number, ids in enumerate((list(by_query), again[:count])):
        for id_ in ids:
            drawn = sorted(
                by_query[id_],
                key=lambda row: _draw(plan.seed, number, row.query_id, row.document_id),
            )
            found += [
                Asking(number, tuple(drawn[start : start + plan.batch]))
                for start in range(0, len(drawn), plan.batch)
            ]
    return found


def grade_sheet(
    rows: Sequence[Row],
    judge: Judge,
    scale: Scale,
    plan: Plan,
    answers: Path,
    *,
    say: Say,
    advance: Advance = unheard,
) -> Graded:
    """Have every row graded; answers that stand in the file ``answers`` are not asked for again.

    An answer of no use is paid for, written down, and asked for again; passages that a judge does
    not grade together after that are asked for one by one, and then left out.

    Raises:
        TunerError: the judge fails, or the budget is spent; what was answered is kept.
        InputError: the file of answers cannot be read or written.
    """
    return _Session(judge, scale, plan, answers, say, advance).grade(rows)


class _Session:
    """One go through a sheet: what is known, and what it has cost."""

    def __init__(
        self,
        judge: Judge,
        scale: Scale,
        plan: Plan,
        answers: Path,
        say: Say,
        advance: Advance,
    ) -> None:
        self.judge, self.scale, self.plan, self.file = judge, scale, plan, answers
        self.advance = advance
        self.name = digest_of(judge.record())
        self.known: dict[str, Answer] = {}
        self.tries: dict[str, int] = {}
        self.money, self.is_priced = 0.0, False
        self.most, self.most_a_byte = 0.0, 0.0  # that an answer, and a byte asked, has cost
        self.prices, self.sizes = set[float](), set[int]()
        self.tokens = (0, 0)
        self.asked = 0
        others = torn = 0
        for kept in read_answers(answers):
            if kept is None:
                torn += 1
            elif kept.judge != self.name:
                others += 1
            else:
                self._take(kept.key, self._checked(kept), kept.size)
        make_ready(answers)
        self.kept = len(self.known)
        if others:
            say(
                f"note: {others} answers in {answers} are of another judge, or of other grades, "
                "and are not used"
            )
        if torn:
            say(f"note: {torn} answers in {answers} were torn by a crash, and are not used")

    def grade(self, rows: Sequence[Row]) -> Graded:
        todo = askings(rows, self.plan)
        whole = len(todo)
        while todo:
            todo = list(self._single(todo))
            self.advance(max(whole - len(todo), 0), whole)
            some, todo = self._next(todo)
            if some:
                self._ask(some)
        return self._graded(rows)

    def _single(self, todo: Sequence[Asking]) -> Iterator[Asking]:
        """Yield what is still to be asked; what failed together, one by one."""
        for asking in todo:
            key = asking.key(self.name)
            answer, tries = self.known.get(key), self.tries.get(key, 0)
            if answer is not None and answer.values is not None:
                continue
            if tries <= self.plan.retries:
                yield asking
            elif len(asking.rows) > 1:
                yield from self._single([replace(asking, rows=(row,)) for row in asking.rows])

    def _next(self, todo: Sequence[Asking]) -> tuple[list[Asking], list[Asking]]:
        """Return what is asked now, and what is left if that is of no use.

        Raises:
            TunerError: the next one may cost more than is left.
        """
        if not todo:
            return [], []
        if self.plan.budget is None:
            return list(todo[:AT_ONCE]), list(todo)
        some: list[Asking] = []
        together = self.money
        for asking in todo[:AT_ONCE]:
            together = total([together, self._may_cost(asking)])
            is_spent = self.money >= self.plan.budget
            # Before the first answer nobody knows what one costs: one alone is asked.
            if is_spent or is_passed(self.plan.budget, by=together) or (some and not self.most):
                break
            some.append(asking)
        if not some:
            mean = self.money / max(len(self.known), 1) or self._may_cost(todo[0])
            raise TunerError(
                f"the budget of {self.plan.budget:g} does not allow another answer, which may cost "
                f"{self._may_cost(todo[0]):.3g}: "
                f"{self.money:.4g} are spent on {len(self.known)} answers, {len(todo)} more "
                f"would cost about {mean * len(todo):.3g}; the answers are kept in "
                f"{self.file}: go on with a larger --budget"
            )
        return some, list(todo)

    def _may_cost(self, asking: Asking) -> float:
        """Return the most that an answer may cost, by those so far and by the judge's prices.

        A longer request costs more than the dearest so far, and a shorter one perhaps no less;
        unless requests of different sizes all cost the same.
        """
        is_flat = len(self.prices) == 1 < len(self.sizes)
        by_size = 0.0 if is_flat else self.most_a_byte * asking.size
        return max(self.most, by_size, self.judge.may_cost(*asking.asked))

    def _ask(self, some: Sequence[Asking]) -> None:
        """Ask, and write every answer down as it comes."""

        def take(number: int, answer: Answer) -> None:
            asking = some[number]
            key = asking.key(self.name)
            self._write(key, asking, answer)
            self._take(key, answer, asking.size)
            if self.plan.budget is not None and answer.values is not None and answer.money is None:
                raise InputError(
                    "--budget needs to know what answers cost: give --price and ask a service that "
                    "tells the tokens of an answer (usage), or have your function return "
                    "{'grades': […], 'money': …}"
                )

        self.asked += len(some)
        failed = self.judge.ask([asking.asked for asking in some], take)
        if failed:
            raise TunerError(f"{failed[0]}; the answers so far are kept in {self.file}: run again")
        given_up = [tries for tries in self.tries.values() if tries > self.plan.retries]
        if len(given_up) >= AT_ONCE and not any(one.values for one in self.known.values()):
            problem = next(iter(self.known.values())).problem
            raise TunerError(f"no answer is of use: {problem}")

    def _checked(self, kept: KeptAnswer) -> Answer:
        """Return an answer that was kept, seen through as one that comes."""
        answer = kept.answer
        if answer.values is None:
            return answer
        problem = self.scale.problem(answer.values, len(kept.documents))
        return replace(answer, values=None, problem=problem) if problem else answer

    def _take(self, key: str, answer: Answer, size: int) -> None:
        if answer.values is None:
            self.tries[key] = self.tries.get(key, 0) + 1
        self.known[key] = answer
        if answer.money is not None:
            self.money = total([self.money, answer.money])
            self.most = max(self.most, answer.money)
            self.prices.add(answer.money)
            self.sizes.add(size)
            self.most_a_byte = max(self.most_a_byte, answer.money / size if size else 0.0)
            self.is_priced = True
        read, written = answer.tokens
        self.tokens = (self.tokens[0] + read, self.tokens[1] + written)

    def _write(self, key: str, asking: Asking, answer: Answer) -> None:
        kept = KeptAnswer(
            judge=self.name,
            key=key,
            round=asking.round,
            query_id=asking.rows[0].query_id,
            documents=tuple(row.document_id for row in asking.rows),
            values=answer.values,
            money=answer.money,
            tokens=answer.tokens,
            problem=answer.problem,
            size=asking.size,
        )
        add_kept(self.file, kept)

    def _graded(self, rows: Sequence[Row]) -> Graded:
        found: tuple[dict[tuple[str, str], int], ...] = ({}, {})
        for asking in askings(rows, self.plan):
            parts = [asking]
            answer = self.known.get(asking.key(self.name))
            if answer is None or answer.values is None:
                parts = [replace(asking, rows=(row,)) for row in asking.rows]
            for part in parts:
                said = self.known.get(part.key(self.name))
                if said is None or said.values is None:
                    continue
                for row, value in zip(part.rows, said.values, strict=True):
                    key = (row.query_id, row.document_id)
                    found[asking.round][key] = self.scale.grade(value)
        first, second = found
        both = [key for key in second if key in first]
        grades: dict[str, dict[str, float]] = {}
        for (query_id, document_id), grade in first.items():
            grades.setdefault(query_id, {})[document_id] = float(grade)
        every = dict.fromkeys((row.query_id, row.document_id) for row in rows)
        return Graded(
            grades=grades,
            agreement=cohen_kappa([first[key] for key in both], [second[key] for key in both]),
            lacking=tuple(key for key in every if key not in first),
            asked=self.asked,
            kept=self.kept,
            money=self.money if self.is_priced else None,
            tokens=self.tokens,
        )


def _draw(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()
