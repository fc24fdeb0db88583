"""The retriever that asks a command: one JSON line a query, one JSON line an answer."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar

from tuner.core.checks import option_problems
from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, OutageError, Problem, TunerError, refuse
from tuner.core.ledger import teller
from tuner.core.rankings import Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.adapters.answers import (
    Answer,
    Passages,
    collected,
    passage_tokens,
    rankings_of,
    read_answer,
    shown,
)
from tuner.retrieval.adapters.command.index import (
    FOLDER,
    IndexCommand,
    index_problems,
    params_of,
    words_of,
)
from tuner.retrieval.adapters.command.process import Process, idle_processes
from tuner.retrieval.adapters.options import path_from_root
from tuner.retrieval.adapters.own_index import made_once, place_of
from tuner.retrieval.adapters.waiting import INDEX, declares_index, index_knobs
from tuner.retrieval.knobs import Knob, knob_params, space_knobs


@dataclass(frozen=True)
class Command:
    """Answers with a command of yours; made by ``Command.build``.

    The command reads ``{"id": …, "query": …, "params": {…}}`` from a line of its standard input and
    writes ``{"id": …, "results": […]}`` to a line of its standard output, flushed; or
    ``{"id": …, "error": "why"}``. It ends when its input does. Where it crashes, hangs or prints
    anything else it is killed, the trial fails, and the next one starts it anew. As many processes
    run as trials do at once.

    ``index`` is the name of the index that is asked, and stands beside the query; it is empty where
    the index is a folder in ``kept``. ``index_params`` are what it was built with.
    """

    takes_knobs: ClassVar[bool] = True
    declare_knobs = declares_index(params_of)
    resolve_options = path_from_root("working_dir", default=".")

    command: tuple[str, ...]
    working_dir: str
    timeout_s: float
    start_timeout_s: float
    knobs: tuple[Knob, ...]
    fingerprint: str
    known: Passages = field(repr=False)
    index: str | None = None
    index_params: Params = field(default_factory=dict)
    kept: Path | None = None
    asking: IndexCommand | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the options, and see whether this machine has the program and the folder.

        Raises:
            InputError: it has not.
        """
        self.__dict__.update(state)
        if problems := list(_problems(self.command, Path(self.working_dir))):
            raise InputError(problems=problems)

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        command: Annotated[Sequence[str] | str, "the program and its arguments"],
        index: Annotated[
            Mapping[str, Any] | None,
            "the command that builds an index, and the one that tells when it is ready: command, "
            "poll",
        ] = None,
        cache_dir: Path | None = None,
        index_params: Params | None = None,
        index_timeout_s: float | None = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
        working_dir: Annotated[str, "the folder that it runs in"] = ".",
        timeout_s: Annotated[float, "seconds for one answer"] = 60,
        start_timeout_s: Annotated[
            float, "seconds for the first answer of each process, which starts the program"
        ] = 300,
    ) -> Command:
        """Check the command; it is started by the first question. Have its index built, if any.

        ``timeout_s`` is for one answer, ``start_timeout_s`` for the first one of each process.
        ``index_params`` are the parameters of the index; those left out take the values of the
        baseline. What is built lies in ``cache_dir``, or its name does.

        Raises:
            InputError: no such program or folder, or a limit that is not above 0.
            TunerError: the index cannot be built.
        """
        folder = Path(working_dir).expanduser().resolve()
        words = words_of(command)
        problems = list(_problems(words, folder))
        limits = {"timeout_s": timeout_s, "start_timeout_s": start_timeout_s}
        problems += option_problems(limits, dict.fromkeys(limits, 0))
        problems += [] if index is None else index_problems(index)
        refuse(problems)
        shaping = index_knobs(params_of(index), space, baseline)
        of_index = {knob.name for knob in shaping}
        missing = [
            Problem(f"{{{name}}} is neither in the space nor in the baseline", key=(INDEX,))
            for name in params_of(index)
            if name not in of_index
        ]
        if missing and space is not None:
            raise InputError(problems=missing)
        built = cls(
            words,
            str(folder),
            float(timeout_s),
            float(start_timeout_s),
            tuple(knob for knob in space_knobs(space, baseline) if knob.name not in of_index),
            _fingerprint(corpus, (*words, *_index_words(index)), folder),
            passage_tokens(corpus),
        )
        if index is None:
            return built
        if cache_dir is None:
            raise InputError("give a `cache_dir` to keep the index in", key=(INDEX,))
        asking = IndexCommand.read(index, str(folder))
        params = knob_params(index_params or {}, shaping)
        told = json.dumps([index, built.fingerprint], sort_keys=True)
        place = place_of(cache_dir, "command", json.dumps([index, words]), corpus, params)
        name = made_once(
            place,
            told,
            partial(asking.built, params, place / FOLDER, index_timeout_s),
            lambda name: asking.is_there(name, params, place / FOLDER, built.start_timeout_s),
        )
        return replace(built, index=name, index_params=params, kept=place, asking=asking)

    def is_there(self) -> bool:
        """Say whether the index is still there, as far as ``poll`` tells."""
        if self.asking is None or self.index is None or self.kept is None:
            return True
        folder = self.kept / FOLDER
        return self.asking.is_there(self.index, self.index_params, folder, self.start_timeout_s)

    @property
    def tells_each_query(self) -> bool:
        """Say that it tells of each query."""
        return True

    @property
    def queries_at_once(self) -> int:
        """Return 1: a process answers one query after the other."""
        return 1

    def prepare(self, queries: Sequence[Query]) -> None:
        """Do nothing: a process is started where a trial runs."""

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Ask the command, one query after the other.

        Raises:
            InputError: a parameter that is neither in the space nor in the baseline.
            OutageError: the command crashed, or took too long.
            TunerError: it answered something else.
        """
        filled = knob_params(params, self.knobs)
        begin = time.perf_counter()
        idle = idle_processes(self.command, self.working_dir, os.getpid())
        process = idle.take()
        tell = teller()
        try:
            with collected(queries, self.known) as collection:
                for row, query in enumerate(queries):
                    tell(1)
                    collection.take([self._ask(process, query, filled)], row)
        finally:
            if process.is_in_step:
                idle.give_back(process)
            else:
                process.close(grace_s=0)
        seconds = {"call": time.perf_counter() - begin}
        return rankings_of(queries, list(collection.answers.values()), self.known, seconds)

    def _ask(self, process: Process, query: Query, params: Params) -> Answer:
        index = {} if self.kept is None else {INDEX: self.index or str(self.kept / FOLDER)}
        request = {"id": query.id, "query": query.text, **index, "params": params}
        line = json.dumps(request).encode() + b"\n"
        timeout_s = self.timeout_s if process.has_answered else self.start_timeout_s
        try:
            response = _response(process.ask(line, timeout_s), query.id)
            process.is_in_step = True
            if response.get("error") is not None:
                raise TunerError(f"the command says: {shown(response['error'])}")
            return read_answer(response, self.known)
        except OutageError as error:
            raise OutageError(f"query {query.id!r}: {error}") from error
        except TunerError as error:
            raise TunerError(f"query {query.id!r}: {error}") from error


def _response(line: bytes, query_id: str) -> Mapping[str, Any]:
    try:
        response = json.loads(line)
    except (ValueError, RecursionError):
        response = None
    if not isinstance(response, Mapping):
        text = shown(line.decode("utf-8", errors="replace"))
        raise TunerError(
            f"the command printed {text!r}, which is no answer: standard output is for lines of "
            "JSON only, print all else to standard error"
        )
    if response.get("id") != query_id:
        raise TunerError(f"the answer is to {response.get('id')!r}; send the question's id back")
    return response


def _index_words(index: Any) -> tuple[str, ...]:
    return () if index is None else IndexCommand.read(index, ".").start


def _problems(words: Sequence[str], folder: Path) -> Iterator[Problem]:
    if not folder.is_dir():
        yield Problem(f"no such folder: {str(folder)!r}", key=("working_dir",))
    elif "/" in words[0] and not (folder / words[0]).is_file():
        yield Problem(f"no such program: {str(folder / words[0])!r}", key=("command",))
    elif "/" not in words[0] and shutil.which(words[0]) is None:
        yield Problem(f"no program {words[0]!r} on the path", key=("command",))


def _fingerprint(corpus: Corpus, words: Sequence[str], folder: Path) -> str:
    """Hash the command, the files that it names, such as a script, and the corpus."""
    digest = sha256(json.dumps([corpus.fingerprint, *words]).encode())
    for word in words[1:]:
        path = folder / word
        if os.path.isfile(path):  # unlike Path.is_file, of any word at all
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
