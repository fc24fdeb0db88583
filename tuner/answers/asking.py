"""Ask for answers: each is kept as it comes, so that what was paid for is never asked again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuner.answers.answerer import Answerer, Reply
from tuner.core.errors import InputError, OutageError, TunerError, one_line
from tuner.core.json_text import digest_of
from tuner.core.kept_lines import add_kept, make_ready, read_kept
from tuner.core.outages import is_outage
from tuner.core.shown import counted
from tuner.core.steps import Advance, Say, unheard

# So many in a row that were not answered are no accident.
FAILED_IN_A_ROW = 5
RETRY_WAIT_S = 1.0


@dataclass(frozen=True)
class Asking:
    """A query with the passages it is to be answered from, best first.

    ``round`` is 0, and 1 where the same is asked a second time.
    """

    query_id: str
    query: str
    passages: tuple[str, ...]
    round: int = 0

    def key(self, answerer: str) -> str:
        """Return a digest of all that the answer depends on."""
        return digest_of([answerer, self.round, self.query, *self.passages])


@dataclass(frozen=True)
class Plan:
    """How answers are asked for.

    Attributes:
        budget: what all answers may cost together, those kept included; None is no limit.
        price: what one answer costs where the function does not tell; None: nobody knows.
        retries: how often what fails, or is of no use, is asked for again.
        seed: draws the order.
    """

    budget: float | None = None
    price: float | None = None
    retries: int = 3
    seed: int = 0


@dataclass(frozen=True)
class KeptReply:
    """What a line of the file holds; ``answerer`` and ``key`` are digests."""

    answerer: str
    key: str
    round: int
    query_id: str
    quality: float | None
    answer: str
    money: float | None
    problem: str


@dataclass(frozen=True)
class Replies:
    """What came of it.

    Attributes:
        qualities: by the key of what was asked; without those that have none.
        keys: of what was asked, in the order in which it was given.
        asked: calls that were answered now; ``kept``: different questions that had an answer.
        failed: questions without a usable answer; ``reason`` is the first's.
        money: what all answers cost; None where nobody knows.
    """

    qualities: dict[str, float]
    keys: tuple[str, ...]
    asked: int
    kept: int
    failed: int
    reason: str
    money: float | None

    @property
    def values(self) -> list[float]:
        """Return the quality of each question in order, NaN where there is none."""
        return [self.qualities.get(key, float("nan")) for key in self.keys]

    @property
    def sentence(self) -> str:
        """Say what was asked, and what it cost."""
        cost = "" if self.money is None else f", {self.money:.4g} of money in all"
        return f"asked: {counted(self.asked, 'answer')}, {self.kept:,} were kept from before{cost}"

    def to_record(self) -> dict[str, Any]:
        """Return what was asked as plain data."""
        return {
            "asked": self.asked,
            "kept": self.kept,
            "failed": self.failed,
            "reason": self.reason or None,
            "money": self.money,
        }


def ask_all(
    askings: Sequence[Asking],
    answerer: Answerer,
    plan: Plan,
    file: Path,
    *,
    say: Say,
    advance: Advance = unheard,
    wait: Callable[[float], None] = time.sleep,
) -> Replies:
    """Have every question answered, in an order that is drawn; equal ones are asked once.

    Answers that stand in ``file`` are not asked for again. One that fails, or is of no use, after
    all its retries is left out, and asked for again by the next run.

    Raises:
        OutageError: 5 questions in a row had no answer; those before are kept.
        TunerError: the budget is spent, or 5 answers in a row are of no use.
        InputError: the file cannot be read or written, or a budget cannot be kept to.
    """
    return _Session(answerer, plan, file, say, wait).ask(askings, advance)


class _Session:
    """One go through the questions: what is known, and what it has cost."""

    def __init__(
        self, answerer: Answerer, plan: Plan, file: Path, say: Say, wait: Callable[[float], None]
    ) -> None:
        self.answerer, self.plan, self.file, self.wait = answerer, plan, file, wait
        self.name = digest_of(answerer.record())
        self.known: dict[str, Reply] = {}
        self.tries: dict[str, int] = {}
        self.money, self.is_priced, self.most = 0.0, False, 0.0
        self.asked = self.in_a_row = 0
        others = torn = 0
        kept = read_kept(
            file, KeptReply, what="quality of an answer", way_out="name another --kept FILE"
        )
        for line in kept:
            if line is None:
                torn += 1
            elif line.answerer != self.name:
                others += 1
            else:
                self._take(line.key, Reply(line.quality, line.answer, line.money, line.problem))
        make_ready(file)
        if others:
            say(f"note: {others} answers in {file} are of another function, and are not used")
        if torn:
            say(f"note: {torn} answers in {file} were torn by a crash, and are not used")

    def ask(self, askings: Sequence[Asking], advance: Advance) -> Replies:
        keys = tuple(asking.key(self.name) for asking in askings)
        each = dict(zip(keys, askings, strict=True))
        kept = sum(key in self.known and self.known[key].quality is not None for key in each)
        order = list(each)
        np.random.default_rng(self.plan.seed).shuffle(order)
        todo = [key for key in order if self._is_to_ask(key)]
        for number, key in enumerate(todo):
            advance(number, len(todo))
            self._one(key, each[key], len(todo) - number)
        advance(len(todo), len(todo))
        qualities = {
            key: reply.quality
            for key in each
            if (reply := self.known.get(key)) is not None and reply.quality is not None
        }
        lost = [key for key in each if key not in qualities]
        reasons = [self.known[key].problem for key in lost if key in self.known]
        return Replies(
            qualities=qualities,
            keys=keys,
            asked=self.asked,
            kept=kept,
            failed=len(lost),
            reason=next(iter(reasons), ""),
            money=self.money if self.is_priced else None,
        )

    def _is_to_ask(self, key: str) -> bool:
        reply = self.known.get(key)
        is_of_use = reply is not None and reply.quality is not None
        return not is_of_use and self.tries.get(key, 0) <= self.plan.retries

    def _one(self, key: str, asking: Asking, left: int) -> None:
        """Ask one question until it has an answer, or as often as one may."""
        failures = 0
        problem = ""
        error: Exception | None = None
        while self._is_to_ask(key) and failures <= self.plan.retries:
            self._check_budget(left)
            try:
                reply = self.answerer.ask(asking.query, asking.passages)
            except Exception as raised:  # whatever the function does
                error, failures = raised, failures + 1
                problem = f"{self.answerer.name} failed: {one_line(raised)}"
                if is_outage(raised) and failures <= self.plan.retries:
                    self.wait(RETRY_WAIT_S * 2 ** (failures - 1))
                continue
            error, problem = None, reply.problem
            self._keep(key, asking, reply)
        if not problem:
            self.in_a_row = 0
            return
        if error is not None:
            self.known.setdefault(key, Reply(None, problem=problem))
        self.in_a_row += 1
        if self.in_a_row >= FAILED_IN_A_ROW:
            end = f"({self.in_a_row} in a row); the answers so far are kept in {self.file}: "
            if error is not None:
                raise OutageError(f"{problem} {end}run the same command again")
            raise TunerError(f"{problem} {end}mend the function, and run the same command again")

    def _check_budget(self, left: int) -> None:
        """Refuse to ask what may cost more than is left.

        Raises:
            TunerError: says what is spent, and what the rest would cost.
        """
        budget = self.plan.budget
        if budget is None:
            return
        most = max(self.most, self.plan.price or 0.0)
        if self.money < budget and self.money + most <= budget * (1 + 1e-12):
            return
        mean = self.money / max(len(self.known), 1) or most
        raise TunerError(
            f"the budget of {budget:g} does not allow another answer, which may cost {most:.3g}: "
            f"{self.money:.4g} are spent on {counted(len(self.known), 'answer')}, {left} more "
            f"would cost about {mean * left:.3g}; the answers are kept in {self.file}: go on with "
            "a larger --budget"
        )

    def _keep(self, key: str, asking: Asking, reply: Reply) -> None:
        """Bring an answer to the disk before anything else is asked."""
        if reply.money is None and self.plan.price is not None:
            reply = Reply(reply.quality, reply.answer, self.plan.price, reply.problem)
        add_kept(
            self.file,
            KeptReply(
                answerer=self.name,
                key=key,
                round=asking.round,
                query_id=asking.query_id,
                quality=reply.quality,
                answer=reply.answer,
                money=reply.money,
                problem=reply.problem,
            ),
        )
        self.asked += 1
        self._take(key, reply)
        if self.plan.budget is not None and reply.money is None:
            raise InputError(
                "--budget needs to know what answers cost: give --price, what one of them costs, "
                "or have your function return {'quality': …, 'money': …}"
            )

    def _take(self, key: str, reply: Reply) -> None:
        if reply.quality is None:
            self.tries[key] = self.tries.get(key, 0) + 1
        self.known[key] = reply
        if reply.money is not None:
            self.money += reply.money
            self.most = max(self.most, reply.money)
            self.is_priced = True
