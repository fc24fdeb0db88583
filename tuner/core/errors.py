"""Errors that tell the reader what is wrong, where, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from tuner.core.json_text import encodable
from tuner.core.shown import shortened, shown

LONGEST_ERROR = 500

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_ALARM = 20  # quality slips
EXIT_SAMPLE_RATIO = 21  # the arms of an experiment do not have their shares
EXIT_INTERRUPTED = 130


class TunerError(Exception):
    """A failure that is explained to the user in words, without a traceback."""

    exit_code = EXIT_FAILED
    # Rankings of what a retriever had answered before it failed, for whoever keeps answers.
    answered: object = None


class OutageError(TunerError):
    """A system gave no answer, for a reason that may be gone when it has been started anew."""

    exit_code = EXIT_INTERRUPTED


class NotBuiltError(TunerError):
    """An index that could not be built, and will not be by asking for it once more."""


def one_line(error: BaseException) -> str:
    """Return an exception's class and message in one line of at most 500 characters.

    What is explained in words already goes without its class.

    >>> one_line(ValueError("the index\\nis empty")), one_line(KeyError())
    ('ValueError: the index is empty', 'KeyError')
    >>> one_line(TunerError("the index is empty"))
    'the index is empty'
    """
    try:
        message = " ".join(str(error).split())
    except BaseException:  # a broken __str__ must not hide the failure itself, even by sys.exit()
        message = "(its message cannot be shown)"
    name = type(error).__name__
    if message and isinstance(error, TunerError):
        return shortened(encodable(message), LONGEST_ERROR)
    return shortened(encodable(f"{name}: {message}" if message else name), LONGEST_ERROR)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with what the user gave.

    ``key`` is a path into a mapping, such as ``("space", "max_hops", "low")``; lines count from 1.
    """

    message: str
    file: str | None = None
    line: int | None = None
    key: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
        path = ".".join(str(part) for part in self.key)
        return shown(": ".join(part for part in (place, _cut(path), _cut(self.message)) if part))


# A quoted text, or a word, that would hide what is said about it.
_LONG = re.compile(r"'[^'\n]{301,}'|\"[^\"\n]{301,}\"|[^\s'\"]{301,}")
_SHOWN = 100


def _cut(message: str) -> str:
    """Return a message in which very long values are cut, and say how long they are."""
    return _LONG.sub(lambda found: f"{found[0][:_SHOWN]}… ({len(found[0]):,} characters)", message)


class InputError(TunerError):
    """Bad input, with every problem that was found, all at once."""

    exit_code = EXIT_BAD_INPUT

    def __init__(
        self,
        message: str | None = None,
        *,
        file: str | None = None,
        line: int | None = None,
        key: Sequence[str | int] = (),
        problems: Iterable[Problem] = (),
    ) -> None:
        own = () if message is None else (Problem(message, file, line, tuple(key)),)
        self.problems: tuple[Problem, ...] = (*own, *problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problems)


def refuse(problems: Iterable[Problem]) -> None:
    """Raise an InputError with every problem, where there are any."""
    if found := tuple(problems):
        raise InputError(problems=found)


class MetricError(InputError):
    """A metric name or cut-off that does not exist, or a ranking that cannot be scored."""


def _rebuild(kind: type[InputError], problems: tuple[Problem, ...]) -> InputError:
    return kind(problems=problems)


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the closest choice, else the list of all choices.

    >>> did_you_mean("ndgc@10", ["ndcg@10", "mrr"])
    "; did you mean 'ndcg@10'?"
    """
    known = sorted(set(choices))
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(known)}" if known else ""
