"""Who grades passages in the place of people: a function of yours, or a model behind an address."""

from __future__ import annotations

import inspect
import json
import math
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tuner.core import registry
from tuner.core.checks import is_number, is_whole
from tuner.core.errors import InputError, OutageError, TunerError, one_line, refuse
from tuner.core.json_text import digest_of
from tuner.core.money import priced, total
from tuner.retrieval.adapters.event_loop import run_concurrently
from tuner.retrieval.adapters.http.connection import NotThereError, Service, connect
from tuner.retrieval.adapters.http.headers import read_headers, url_problems

KEY = "OPENAI_API_KEY"
TIMEOUT_S = 120.0
RETRY_WAIT_S = 1.0
PATH = "/chat/completions"
PLACES = ("{query}", "{passages}")
# English has about 4 bytes a token, Chinese 3; a grade in a list is a number, a comma and a space.
BYTES_A_TOKEN = 3
TOKENS_A_GRADE = 4

PROMPT = """\
Grade how well each passage answers the query.

{grades}

Query: {query}

{passages}

Answer with a JSON list of one grade for each passage, in their order, and nothing else, such as
[0, 2, 1] for three passages.
"""
MEANINGS = {
    0: "the passage is not relevant",
    1: "it is related",
    2: "it answers the query in part",
    3: "it answers the query",
}


@dataclass(frozen=True)
class Answer:
    """What a judge said of some passages of one query.

    Attributes:
        values: a grade or a score for each passage; None where what it said is of no use.
        money: what it cost; None where nobody knows.
        tokens: (read, written) by a model; zeros where it does not tell.
        problem: why it is of no use.
    """

    values: tuple[float, ...] | None
    money: float | None = None
    tokens: tuple[int, int] = (0, 0)
    problem: str = ""


# Takes the number of a query among those that were asked, and the answer, as soon as it is there.
Take = Callable[[int, Answer], None]


class Judge(Protocol):
    """Grades the passages of one query at a time."""

    @property
    def scale(self) -> Scale:
        """Return which grades there are."""
        ...

    def record(self) -> dict[str, Any]:
        """Return what it is, with all that its answers depend on: the same record, the same judge.

        The prompt is part of it, and which grades it was asked for, or that it tells scores.
        """
        ...

    def may_cost(self, query: str, passages: Sequence[str]) -> float:
        """Return the money that an answer may cost by its prices; 0 where it knows none."""
        ...

    def ask(self, asked: Sequence[tuple[str, Sequence[str]]], take: Take) -> list[TunerError]:
        """Grade the passages of each query, some queries at once; return what failed.

        Each answer is given to ``take`` as it comes. What that raises is raised when all that was
        sent has been answered.
        """
        ...


@dataclass(frozen=True)
class Scale:
    """Which grades there are, and from which scores each holds.

    ``thresholds`` are rising, one for each grade but the lowest; empty where grades are given.
    """

    grades: tuple[int, ...]
    thresholds: tuple[float, ...] = ()

    def grade(self, value: float) -> int:
        """Return the grade of a score, or a grade as it is.

        >>> [Scale((0, 1, 2), (0.3, 0.8)).grade(score) for score in (-4, 0.3, 0.9)]
        [0, 1, 2]
        """
        return self.grades[bisect_right(self.thresholds, value)] if self.thresholds else int(value)

    def record(self) -> dict[str, Any]:
        """Return what a judge tells: scores, which any thresholds make grades of, or which grades.

        >>> Scale((0, 1)).record(), Scale((0, 1), (0.5,)).record()
        ({'tells': 'grades', 'of': [0, 1]}, {'tells': 'scores'})
        """
        if self.thresholds:
            return {"tells": "scores"}
        return {"tells": "grades", "of": list(self.grades)}

    def problem(self, values: Any, count: int) -> str:
        """Say why a judge's answer for so many passages cannot be used; empty where it can."""
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
            return f"returned {values!r:.120}, not a list"
        if len(values) != count:
            return f"returned {len(values)} values for {count} passages"
        for value in values:
            is_score = is_number(value) and math.isfinite(value)
            if self.thresholds and not is_score:
                return f"returned {value!r:.60}, which is no score"
            if not self.thresholds and not (is_score and float(value) in self.grades):
                known = ", ".join(map(str, self.grades))
                return f"returned {value!r:.60}, which is none of the grades {known}"
        return ""


@dataclass(frozen=True)
class FunctionJudge:
    """A function from a query and a list of its passages to a list of grades or scores.

    It may return a mapping with ``grades`` and what they cost, ``money``.
    """

    name: str
    function: Callable[[str, list[str]], Any]
    scale: Scale
    retries: int = 3
    wait: Callable[[float], None] = time.sleep

    @classmethod
    def load(cls, name: str, scale: Scale, *, retries: int = 3) -> FunctionJudge:
        """Import it by ``module:function``.

        Raises:
            InputError: there is no such function, or it takes other arguments.
        """
        found = registry.load_outside("judge", name)
        if problem := registry.call_problem(found, "query", "passages"):
            raise InputError(
                f"{name!r} {problem}; it must take a query and a list of passages, and return a "
                "list of grades"
            )
        return cls(name, found, scale, retries)

    def record(self) -> dict[str, Any]:
        """Return its name, and a digest of the module's source: a changed one is another judge."""
        module = inspect.getmodule(self.function)
        try:
            source = inspect.getsource(module) if module is not None else ""
        except (OSError, TypeError):
            source = ""
        return {"by": self.name, "source": digest_of(source), **self.scale.record()}

    def may_cost(self, query: str, passages: Sequence[str]) -> float:  # noqa: ARG002  # one of all
        """Return 0: only its answers tell what they cost."""
        return 0.0

    def ask(self, asked: Sequence[tuple[str, Sequence[str]]], take: Take) -> list[TunerError]:
        """Call it for one query after the other."""
        failed = []
        for number, (query, passages) in enumerate(asked):
            answer = self._one(query, passages)
            if isinstance(answer, TunerError):
                failed.append(answer)
            else:
                take(number, answer)
        return failed

    def _one(self, query: str, passages: Sequence[str]) -> Answer | TunerError:
        tried = 0
        while True:
            tried += 1
            try:
                given = self.function(query, list(passages))
                break
            except Exception as error:  # whatever the function does
                if tried > self.retries:
                    problem = f"{self.name} failed (tried {tried} times): {one_line(error)}"
                    return OutageError(problem)
                self.wait(RETRY_WAIT_S * 2 ** (tried - 1))
        money = None
        if isinstance(given, Mapping):
            cost = given.get("money")
            money = float(cost) if is_number(cost) and cost >= 0 else None
            given = given.get("grades")
        given = given.tolist() if hasattr(given, "tolist") else given
        if problem := self.scale.problem(given, len(passages)):
            return Answer(None, money, problem=f"{self.name} {problem}")
        return Answer(tuple(map(float, given)), money)


@dataclass(frozen=True)
class ChatJudge:
    """A model behind an OpenAI-compatible address: ``POST …/chat/completions``.

    ``prompt`` has the places ``{query}`` and ``{passages}``, and ``{grades}`` for what they mean.
    ``price`` is the money for a million tokens read, and written; None where it is not known.
    """

    service: Service
    model: str
    scale: Scale
    prompt: str = PROMPT
    price: tuple[float, float] | None = None

    @classmethod
    def build(
        cls,
        url: str,
        model: str,
        scale: Scale,
        *,
        key: str | None,
        retries: int,
        prompt: str = PROMPT,
        price: tuple[float, float] | None = None,
    ) -> ChatJudge:
        """Check the address, the prompt and that the variable ``key`` is set; None sends no key.

        Raises:
            InputError: one of them is wrong.
        """
        refuse(list(url_problems(url)))
        for place in PLACES:
            if place not in prompt:
                raise InputError(f"the prompt has no place {place}")
        headers, problems = read_headers({"Authorization": f"Bearer ${{{key}}}"} if key else {})
        refuse(problems)
        whole = url if url.endswith(PATH) else url.rstrip("/") + PATH
        service = Service(whole, headers, TIMEOUT_S, retries, RETRY_WAIT_S, None)
        return cls(service, model, scale, prompt, price)

    def record(self) -> dict[str, Any]:
        """Return address, model and prompt; no secret is part of them."""
        return {
            "url": self.service.url,
            "model": self.model,
            "prompt": self.prompt,
            **self.scale.record(),
            "of": list(self.scale.grades),  # the prompt says what they mean, also to tell scores
        }

    def may_cost(self, query: str, passages: Sequence[str]) -> float:
        """Return the price of the prompt, with as few as 3 bytes a token, and of a list."""
        if self.price is None:
            return 0.0
        read = size_of(self._prompt(query, passages)) / BYTES_A_TOKEN
        return _money(self.price, read, TOKENS_A_GRADE * len(passages))

    def ask(self, asked: Sequence[tuple[str, Sequence[str]]], take: Take) -> list[TunerError]:
        """Ask the model for several queries at once."""
        not_taken: list[TunerError] = []

        async def one(number: int, query: str, passages: Sequence[str]) -> TunerError | None:
            answer = await answer_to(query, passages)
            if isinstance(answer, TunerError):
                return answer
            try:
                take(number, answer)
            except TunerError as error:  # the others are paid for too: they are waited for
                not_taken.append(error)
            return None

        async def answer_to(query: str, passages: Sequence[str]) -> Answer | TunerError:
            body = {
                "model": self.model,
                "temperature": 0,
                "messages": [{"role": "user", "content": self._prompt(query, passages)}],
            }
            try:
                answer, _ = await connect(self.service).send(body, {})
            except (OutageError, NotThereError) as error:
                return error
            except TunerError as error:  # of this query alone, such as a passage that is too long
                return Answer(None, problem=str(error))
            return self._read(answer, len(passages))

        calls = [
            lambda number=number, item=item: one(number, *item) for number, item in enumerate(asked)
        ]
        failed = run_concurrently(calls, limit=max(len(asked), 1), shared_by=self.service.url)
        if not_taken:
            raise not_taken[0]
        return [error for error in failed if error is not None]

    def _prompt(self, query: str, passages: Sequence[str]) -> str:
        numbered = (f"Passage {at}:\n{text}" for at, text in enumerate(passages, start=1))
        filled = {
            "{query}": query,
            "{passages}": "\n\n".join(numbered),
            "{grades}": "\n".join(
                f"{grade}: {MEANINGS.get(grade, 'better than the grade before')}"
                for grade in self.scale.grades
            ),
        }
        # All at once: a passage may hold what looks like a place.
        places = re.compile("|".join(map(re.escape, filled)))
        return places.sub(lambda found: filled[found[0]], self.prompt)

    def _read(self, answer: Any, count: int) -> Answer:
        usage = answer.get("usage") if isinstance(answer, dict) else None
        told = usage if isinstance(usage, dict) else {}
        read, written = (
            int(told[name]) if is_whole(told.get(name)) and told[name] >= 0 else 0
            for name in ("prompt_tokens", "completion_tokens")
        )
        money = None
        if self.price is not None and is_whole(told.get("prompt_tokens")):
            money = _money(self.price, read, written)
        try:
            text = answer["choices"][0]["message"]["content"]
            values = json.loads(re.findall(r"\[[^\[\]]*\]", text)[-1])
        except (LookupError, TypeError, ValueError):
            said = json.dumps(answer)
            problem = f"{self.model} returned no JSON list: {said:.200}"
            return Answer(None, money, (read, written), problem)
        if problem := self.scale.problem(values, count):
            return Answer(None, money, (read, written), f"{self.model} {problem}")
        return Answer(tuple(map(float, values)), money, (read, written))


def _money(price: tuple[float, float], read: float, written: float) -> float:
    return total([priced(price[0], read), priced(price[1], written)]) / 1e6


def size_of(*texts: str) -> int:
    """Return how many bytes texts have together: what a model counts in, more than in letters."""
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def read_prompt(path: str | None) -> str:
    """Read a prompt from a file; the usual one without.

    Raises:
        InputError: the file cannot be read.
    """
    if path is None:
        return PROMPT
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise InputError(f"cannot be read: {one_line(error)}", file=path) from error
