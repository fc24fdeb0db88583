"""Answers of two sides, from files or functions with each side's contexts; written as they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuner.core import registry
from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.files import append_lines
from tuner.core.json_text import digest_of, json_text
from tuner.core.steps import Say
from tuner.datasets import BUILTIN, Dataset, open_dataset
from tuner.datasets.lines import ProblemLog, read_text
from tuner.datasets.tables import json_rows
from tuner.run.assembly import Assembly
from tuner.run.judge import Choice, look
from tuner.scoring.answer_metrics import find_similarity
from tuner.scoring.answers import (
    AnswerDuel,
    Answerer,
    Answers,
    ask_by_turns,
    compare_answers,
    contexts_of,
)

_ID_KEYS = ("query_id", "id", "_id")


DEFAULT_SIMILARITIES = ("token_f1", "exact_match")
Given = Mapping[str, Any] | None


@dataclass(frozen=True)
class AnswerSources:
    """What answers for A and for B; one function may answer for both.

    Attributes:
        names: a ``FILE.jsonl`` or ``module:function`` for A, and one for B.
        params: of A, by default the baseline's, and of B, by default A's.
        keep: a folder that what functions answer is written to.
    """

    names: Sequence[str]
    params: tuple[Given, Given] = (None, None)
    keep: Path | None = None

    def duel(
        self,
        config: str,
        load: Callable[[], Assembly],
        *,
        part: str,
        similarities: Sequence[str],
        say: Say,
    ) -> AnswerDuel:
        """Answer the queries of a part from both contexts, or read the answers, and compare.

        ``load`` opens ``config``; two files of answers need a data set alone.

        Raises:
            InputError: sources, similarities or parameters that do not fit.
        """
        self._check_keep()
        if len(self.names) > 2:
            raise InputError("--answers names at most two: what answers for A, and for B")
        found = [find_similarity(name) for name in similarities or DEFAULT_SIMILARITIES]
        are_files = [_is_file(name) for name in self.names]
        if all(are_files) and len(self.names) == 1:
            raise InputError("give a second --answers: the answers of B")
        assembly = None
        if not any(are_files) or not _is_dataset(config):
            assembly = load()
            dataset, queries = assembly.dataset, assembly.part(part)
        elif not all(are_files):
            message = f"{config!r} is a data set; a function needs a configuration's retriever"
            raise InputError(message)
        else:
            dataset = open_dataset(config)
            queries = dataset.queries
        queries = tuple(query for query in queries if any(dataset.answers.get(query.id, ())))
        if not queries:
            raise InputError(f"data set {dataset.name!r} has no expected answers for these queries")
        if all(are_files):
            first, second = (read_answers(Path(name), dataset, say=say) for name in self.names)
            answers, is_same = (first, second), first.texts == second.texts
            # What neither file holds was not asked; what one lacks, that side did not answer.
            asked = first.texts.keys() | second.texts.keys()
            queries = tuple(query for query in queries if query.id in asked)
        elif assembly is None or any(are_files):
            raise InputError("--answers: give two files, or functions for both")
        else:
            a, b = choices = self._choices(assembly)
            answers = self._ask(assembly, choices, queries, say)
            is_same = a == b and self.names[0] == self.names[-1]
        seed = 0 if assembly is None else assembly.config.study.seed
        duel = compare_answers(answers, queries, dataset.answers, found, seed=seed)
        # Between what is the same nothing is decided, so that is no look at the held-out queries.
        if is_same or assembly is None or part == "tune" or not assembly.holdout_queries:
            return duel
        return replace(duel, looks=_looks(assembly, answers))

    def _check_keep(self) -> None:
        keep = self.keep
        if keep is not None and not any(":" in name for name in self.names):
            message = "--keep-answers writes what a function answers; these are files already"
            raise InputError(message)
        if keep is not None and keep.exists() and not keep.is_dir():
            raise InputError(f"--keep-answers {keep}: this is a file; name a folder")

    def _choices(self, assembly: Assembly) -> tuple[Choice, Choice]:
        first, second = self.params
        a = assembly.baseline if first is None else assembly.choice(first)
        if a is None:
            raise InputError("give --a, or a `baseline:` section in the configuration")
        if len(self.names) == 1 and second is None:
            message = "give --b, the other context, or a second --answers, the other function"
            raise InputError(message)
        return a, a if second is None else assembly.choice(second)

    def _ask(
        self, assembly: Assembly, choices: tuple[Choice, Choice], queries: Sequence[Query], say: Say
    ) -> tuple[Answers, Answers]:
        documents = assembly.dataset.corpus.documents
        a, b = choices
        one = contexts_of(*assembly.answering(a), queries, documents)
        contexts = (one, one if a == b else contexts_of(*assembly.answering(b), queries, documents))
        sides = (_function(self.names[0]), _function(self.names[-1]))
        seed = assembly.config.study.seed
        with keeping(self.keep, say=say) as kept:
            return ask_by_turns(sides, contexts, queries, seed=seed, keep=kept)


def _function(name: str) -> Answerer:
    function: Answerer = registry.load("answering function", name)
    if problem := registry.call_problem(function, "context", "query"):
        raise InputError(
            f"--answers {name}: {problem}; write a function (context, query) -> answer"
        )
    return function


def _is_file(source: str) -> bool:
    if Path(source).expanduser().is_file():
        return True
    if ":" in source and not source.endswith((".jsonl", ".json")):
        return False
    raise InputError(
        f"--answers {source}: there is no such file; write FILE.jsonl, or module:function"
    )


def _is_dataset(config: str) -> bool:
    return config.startswith(BUILTIN) or not config.endswith((".yaml", ".yml"))


def _looks(assembly: Assembly, answers: tuple[Answers, Answers]) -> tuple[str, ...]:
    """Count this as a look at the held-out queries, and say how many there were before.

    The same answers again tell nothing new.
    """
    runs_dir = Path(assembly.config.study.runs_dir)
    keys = [f"answers {digest_of(side.texts)}" for side in answers]
    return tuple(look(runs_dir, assembly, keys).remarks(runs_dir))


def read_answers(path: Path, dataset: Dataset, *, say: Say) -> Answers:
    """Read ``{"id": …, "answer": …}`` a line, or one object of id and answer.

    Raises:
        InputError: lines that are wrong, an id twice, or no id of the data set.
    """
    log = ProblemLog()
    texts: dict[str, str] = {}
    for line, record in _records(read_text(path.expanduser(), log) or "", path, log):
        id_ = next((str(record[key]) for key in _ID_KEYS if record.get(key) is not None), None)
        if id_ is None or "answer" not in record:
            there = ", ".join(record) or "none"
            log.add("keys", f"needs an id and an answer; the keys are: {there}", path, line)
        elif id_ in texts:
            log.add("twice", f"query {id_!r} is answered twice", path, line)
        else:
            texts[id_] = "" if record["answer"] is None else str(record["answer"])
    known = {query.id for query in dataset.queries}
    if not log.mentions(path) and not known & texts.keys():
        some = f", such as {next(iter(texts))!r}" if texts else ""
        message = f"answers no query of the data set {dataset.name!r}: it holds {len(texts)} ids"
        log.add("none", f"{message}{some}", path)
    log.refuse()
    if len(texts.keys() - known):
        say(f"note: {path}: {len(texts.keys() - known)} ids are of no query and left out")
    return Answers(texts, {})


def _records(
    text: str, path: Path, log: ProblemLog
) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        whole = None
    if isinstance(whole, dict) and "answer" not in whole:
        return iter([(None, {"id": id_, "answer": answer}) for id_, answer in whole.items()])
    return json_rows(text, path, log)


@contextmanager
def keeping(folder: Path | None, *, say: Say) -> Iterator[Callable[[int, str, str], None]]:
    """Write every answer as soon as it is there: it may have cost money, and the next may fail."""
    if folder is None:
        yield lambda side, query_id, text: None  # noqa: ARG005
        return
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "a.jsonl", folder / "b.jsonl"]
    for path in paths:
        path.write_bytes(b"")

    def keep(side: int, query_id: str, text: str) -> None:
        record = {"id": query_id, "answer": text}
        append_lines(paths[side], json_text(record))

    yield keep
    say(f"answers: {paths[0]}, {paths[1]}")
