"""An index that a program builds: one command starts it, another may ask whether it is ready."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError, OutageError, Problem, TunerError
from tuner.core.trial import Params
from tuner.retrieval.adapters.command.process import run_once
from tuner.retrieval.adapters.mapping import holds
from tuner.retrieval.adapters.waiting import (
    INDEX,
    Limit,
    Poll,
    fill_places,
    key_problems,
    places_in,
)

FOLDER = "folder"
_KEYS = ("command", "poll")
_POLL_KEYS = ("command", *Poll.KEYS)


@dataclass(frozen=True)
class IndexCommand:
    """The commands that build an index, as words with places for its parameters."""

    start: tuple[str, ...]
    poll: tuple[tuple[str, ...], Poll] | None
    working_dir: str

    @classmethod
    def read(cls, given: Mapping[str, Any], working_dir: str) -> IndexCommand:
        """Read a section that has no problems."""
        polled = given.get("poll")
        poll = None if polled is None else (words_of(polled["command"]), Poll.read(polled))
        return cls(words_of(given["command"]), poll, working_dir)

    @property
    def writes_folder(self) -> bool:
        """Say whether the index is a folder that the command is given to write to."""
        return FOLDER in places(self.start)

    @property
    def params(self) -> tuple[str, ...]:
        """Return the parameters of the index: all that is named beside its folder and name."""
        words = (*self.start, *(() if self.poll is None else self.poll[0]))
        return tuple(name for name in places(words) if name not in (FOLDER, INDEX))

    def built(self, params: Params, folder: Path, timeout_s: float | None) -> str:
        """Have an index built; return its name, the last line that the command printed.

        It is empty where the index is ``folder``.

        Raises:
            OutageError: a command cannot be started.
            TunerError: it fails, names no index, or takes longer than ``timeout_s``.
        """
        limit = Limit(timeout_s)
        values = {**params, FOLDER: folder}
        if self.writes_folder:
            folder.mkdir(parents=True)
        lines = self._run(self.start, values, limit).strip().splitlines()
        if self.writes_folder and not any(folder.iterdir()):
            raise TunerError(f"{self.start[0]}: the command wrote nothing to {{folder}}, {folder}")
        if not self.writes_folder and not lines:
            raise TunerError(
                f"{self.start[0]}: the command printed no name of an index as its last line; where "
                "the index is a folder that it writes, give it {folder} as an argument"
            )
        name = "" if self.writes_folder else lines[-1].strip()
        if self.poll is not None:
            words, poll = self.poll
            asked = {**values, INDEX: name or folder}
            poll.wait(lambda: _answer(self._run(words, asked, limit)), limit)
        return name

    def is_there(self, name: str, params: Params, folder: Path, timeout_s: float) -> bool:
        """Say whether an index that was built is still there, as far as ``poll`` tells.

        It is not where the command of ``poll`` fails, or says so, or the folder is gone.

        Raises:
            OutageError: the command cannot be started, or does not end in time.
        """
        if self.writes_folder and not folder.is_dir():
            return False
        if self.poll is None:
            return True
        words, poll = self.poll
        values = {**params, FOLDER: folder, INDEX: name or folder}
        done = run_once([fill_places(word, values) for word in words], self.working_dir, timeout_s)
        if done is None:
            raise OutageError(f"{words[0]}: no answer to `poll` within {timeout_s:g} s")
        if done.problem:
            return False
        return poll.failed_when is None or not holds(poll.failed_when, _answer(done.output))

    def _run(self, words: Sequence[str], values: Mapping[str, Any], limit: Limit) -> str:
        filled = [fill_places(word, values) for word in words]
        done = run_once(filled, self.working_dir, limit.left_s)
        if done is None:
            raise TunerError(limit.reason)
        if done.problem:
            raise TunerError(f"{words[0]}: {done.problem}")
        return done.output


def index_problems(given: Any) -> Iterator[Problem]:
    """Yield what is wrong with the section ``index``."""
    key = (INDEX,)
    yield from key_problems(given, _KEYS, "command", key)
    if not isinstance(given, Mapping):
        return
    yield from _word_problems(given, key)
    polled = given.get("poll")
    if polled is not None:
        yield from key_problems(polled, _POLL_KEYS, "command", (*key, "poll"))
    if isinstance(polled, Mapping):
        yield from _word_problems(polled, (*key, "poll"))
        yield from Poll.problems(polled, (*key, "poll"))


def params_of(given: Any) -> tuple[str, ...]:
    """Return the parameters of the index that a section names; none where it has problems."""
    if given is None or any(index_problems(given)):
        return ()
    return IndexCommand.read(given, ".").params


def places(words: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the places of all words."""
    return tuple(dict.fromkeys(name for word in words for name in places_in(word)))


def words_of(command: Any) -> tuple[str, ...]:
    """Return a program and its arguments, given as a list, or as one text.

    Raises:
        InputError: it is neither.
    """
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError as error:
        raise InputError(f"cannot be split into words: {error}", key=("command",)) from error
    is_list = isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
    if not is_list or not words:
        message = f"must be a program and its arguments, such as [python, search.py]: {words!r}"
        raise InputError(message, key=("command",))
    return tuple(words)


def _word_problems(given: Mapping[str, Any], key: tuple[str | int, ...]) -> Iterator[Problem]:
    try:
        words_of(given.get("command", "true"))
    except InputError as error:
        for problem in error.problems:
            yield Problem(problem.message, key=(*key, *problem.key))


def _answer(output: str) -> Any:
    """Return what a poll printed: decoded where it is JSON, else as a text."""
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return output.strip()
