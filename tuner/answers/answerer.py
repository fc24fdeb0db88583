"""A function of yours that answers a query from passages, and says how good the answer is."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.core import registry
from tuner.core.checks import is_number, native
from tuner.core.errors import InputError
from tuner.core.json_text import digest_of

_WANTED = "return a number, or {'quality': 0.8, 'answer': '…'}"


@dataclass(frozen=True)
class Reply:
    """What the function returned for one query and its passages.

    Attributes:
        quality: how good the answer is, higher is better; None where what it returned is of no use.
        answer: its text; empty where it was not told.
        money: what it cost; None where nobody knows.
        problem: why it is of no use.
    """

    quality: float | None
    answer: str = ""
    money: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class Answerer:
    """A function from a query and a list of passages, best first, to a quality.

    It returns a number, or a mapping with ``quality``, and may add ``answer`` and ``money``.
    """

    name: str
    function: Callable[[str, list[str]], Any]

    @classmethod
    def load(cls, name: str) -> Answerer:
        """Import it by ``module:function``.

        Raises:
            InputError: there is no such function, or it takes other arguments.
        """
        found = registry.load_outside("answering function", name)
        if problem := registry.call_problem(found, "query", "passages"):
            raise InputError(
                f"--answers {name}: {problem}; write a function (query, passages) -> quality, a "
                "number that is higher the better the answer is"
            )
        return cls(name, found)

    def record(self) -> dict[str, Any]:
        """Return its name, and a digest of the module's source: a changed one is another."""
        module = inspect.getmodule(self.function)
        try:
            source = inspect.getsource(module) if module is not None else ""
        except (OSError, TypeError):
            source = ""
        return {"by": self.name, "source": digest_of(source)}

    def ask(self, query: str, passages: Sequence[str]) -> Reply:
        """Call the function once; whatever it raises is raised."""
        given = self.function(query, list(passages))
        answer, money = "", None
        if isinstance(given, Mapping):
            answer = "" if given.get("answer") is None else str(given["answer"])
            cost = native(given.get("money"))
            money = float(cost) if is_number(cost) and 0 <= cost < math.inf else None
            if "quality" not in given:
                keys = ", ".join(map(repr, given)) or "no key"
                problem = f"{self.name} returned a mapping with {keys} and no 'quality'; {_WANTED}"
                return Reply(None, answer, money, problem)
            given = given["quality"]
        value = native(given)
        value = float(value) if isinstance(value, bool) else value
        if not is_number(value) or not math.isfinite(value):
            problem = f"{self.name} returned {value!r:.60}, which is no quality; {_WANTED}"
            return Reply(None, answer, money, problem)
        return Reply(float(value), answer, money)
