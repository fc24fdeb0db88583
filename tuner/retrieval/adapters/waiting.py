"""An index that another system builds: its parameters in a request, and polls until it is ready."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuner.core.checks import option_problems
from tuner.core.errors import OutageError, Problem, TunerError, did_you_mean
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.adapters.answers import shown
from tuner.retrieval.adapters.mapping import expression_problems, holds
from tuner.retrieval.knobs import Knob, space_knobs, unvalued

INDEX = "index"
INTERVAL_S = 2.0
# A service that is restarted while it builds is asked again for so long.
PATIENCE_S = 60.0
# Not what stands after a dollar: that is a variable of the environment.
_PLACE = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")


def places_in(text: str) -> tuple[str, ...]:
    """Return the names that stand in braces.

    >>> places_in("http://host/indexes/{index}?size={chunk_tokens}&key=${KEY}")
    ('index', 'chunk_tokens')
    """
    return tuple(dict.fromkeys(_PLACE.findall(text)))


def fill_places(text: str, values: Mapping[str, Any], quote: Callable[[str], str] = str) -> str:
    """Return a text with values in its places; one without a value stays as it is."""

    def value(match: re.Match[str]) -> str:
        return quote(_text(values[match[1]])) if match[1] in values else match[0]

    return _PLACE.sub(value, text)


def without_places(text: Any) -> Any:
    """Return a text with numbers in its places, to be checked; what is no text stays as it is."""
    return _PLACE.sub("0", text) if isinstance(text, str) else text


def _text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def key_problems(
    given: Any, known: tuple[str, ...], needed: str, key: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield which keys of a section are unknown or missing, or that it is no section."""
    if not isinstance(given, Mapping):
        yield Problem(f"must be a mapping with {', '.join(known)}", key=key)
        return
    for name in given:
        if name not in known:
            yield Problem(f"unknown key{did_you_mean(str(name), known)}", key=(*key, str(name)))
    if needed not in given:
        yield Problem("this key is required", key=(*key, needed))


def index_knobs(
    names: Collection[str], space: SearchSpace | None, baseline: Params | None
) -> tuple[Knob, ...]:
    """Return the parameters of an index as knobs, with the values that a configuration has."""
    found = space_knobs(space, baseline, names=names)
    return tuple(replace(knob, stage="index") for knob in found)


def declares_index(params_of: Callable[[Any], Collection[str]]) -> Any:
    """Return a ``declare_knobs`` of the parameters that the option ``index`` names.

    Without a configuration they have no values. Queries are sent whatever a configuration names.
    """

    def declare_knobs(
        _: type,
        /,
        *,
        index: Any = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
        **options: Any,  # noqa: ARG001
    ) -> tuple[Knob, ...]:
        names = params_of(index)
        if space is None and baseline is None:
            return tuple(unvalued(name, stage="index") for name in names)
        return index_knobs(names, space, baseline)

    return classmethod(declare_knobs)


@dataclass(frozen=True)
class Poll:
    """When what is asked again and again is taken for ready, or for failed."""

    ready_when: str
    failed_when: str | None
    interval_s: float

    KEYS = ("ready_when", "failed_when", "interval_s")

    @classmethod
    def problems(cls, given: Mapping[str, Any], key: tuple[str | int, ...]) -> Iterator[Problem]:
        """Yield what is wrong with a section."""
        if "ready_when" not in given:
            example = "write a JMESPath expression, such as \"status == 'ready'\""
            yield Problem(f"this key is required; {example}", key=(*key, "ready_when"))
        for name in ("ready_when", "failed_when"):
            if given.get(name) is not None:
                yield from expression_problems(given[name], (*key, name))
        interval_s = given.get("interval_s", INTERVAL_S)
        for problem in option_problems({"interval_s": interval_s}, {"interval_s": 0}):
            yield Problem(problem.message, key=(*key, *problem.key))

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Poll:
        """Read a section that has no problems."""
        interval_s = float(given.get("interval_s", INTERVAL_S))
        return cls(given["ready_when"], given.get("failed_when"), interval_s)

    def wait(self, ask: Callable[[], Any], limit: Limit) -> None:
        """Ask until the answer says that it is ready.

        Raises:
            OutageError: nobody has answered for a minute.
            TunerError: the answer says that it has failed, or the time is over.
        """
        last_heard = time.monotonic()
        while True:
            told = "nothing"
            try:
                answer = ask()
            except OutageError:
                if time.monotonic() - last_heard > PATIENCE_S:
                    raise
            else:
                last_heard, told = time.monotonic(), shown(answer)
                if self.failed_when is not None and holds(self.failed_when, answer):
                    raise TunerError(f"the system says that it has failed: {told}")
                if holds(self.ready_when, answer):
                    return
            if limit.is_over(self.interval_s):
                raise TunerError(f"{limit.reason}; the last answer to `poll`: {told}")
            time.sleep(self.interval_s)


class Limit:
    """How long an index may take from now on; None: for ever."""

    def __init__(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s
        self._begin = time.monotonic()

    def is_over(self, ahead_s: float = 0.0) -> bool:
        """Say whether the time is over, or will be in ``ahead_s`` seconds."""
        spent_s = time.monotonic() - self._begin + ahead_s
        return self.timeout_s is not None and spent_s >= self.timeout_s

    @property
    def left_s(self) -> float | None:
        """Return the seconds that are left, 0 where it is over; None: for ever."""
        if self.timeout_s is None:
            return None
        return max(0.0, self.timeout_s - (time.monotonic() - self._begin))

    @property
    def reason(self) -> str:
        """Return what is said where it is over."""
        return f"it was not built within {self.timeout_s:g} s (index.timeout_s)"
