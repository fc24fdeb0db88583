"""The contract of parameters of an index: each setting has its own, built once, and whole."""

from __future__ import annotations

import inspect
import json
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tuner.core.corpus import Corpus, Query
from tuner.core.json_text import digest_of
from tuner.core.rankings import Rankings
from tuner.core.space import SearchSpace
from tuner.core.steps import Advance
from tuner.core.trial import Params
from tuner.retrieval.base import Knob, Retriever
from tuner.retrieval.build_options import with_index
from tuner.retrieval.indexes import Indexed, IndexLimits
from tuner.retrieval.indexes.limits import NO_LIMITS
from tuner.testing.contract import Contract, check_all, checks_in, need

_IN_A_PROCESS = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tuner.testing.indexes import ready_in_a_process; ready_in_a_process(sys.argv[2])"
)
_LOOK_S = 0.01


@dataclass(frozen=True)
class IndexCase:
    """One kind of retriever with parameters of its index, to check.

    Attributes:
        kind: the class that a configuration names.
        queries: at least one that ``first`` and ``other`` answer with different documents.
        first: the parameters of the index that the configuration describes.
        other: others of them.
        options: those of the ``retriever:`` section.
        space: the configuration's, for a kind whose parameters are whatever the user says.
    """

    kind: Any
    corpus: Corpus = field(repr=False)
    queries: Sequence[Query]
    first: Params = field(kw_only=True)
    other: Params = field(kw_only=True)
    options: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    space: SearchSpace | None = field(default=None, kw_only=True)

    def given(self, call: Any) -> dict[str, Any]:
        """Return what of a configuration a method of the kind names."""
        today = {"space": self.space, "baseline": dict(self.first)}
        names = inspect.signature(call).parameters
        return {name: thing for name, thing in today.items() if name in names}

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return the kind's knobs of the stage ``"index"``."""
        declare = self.kind.declare_knobs
        declared = declare(**self.options, **self.given(declare))
        return tuple(knob for knob in declared if knob.stage == "index")

    def opened(self, cache_dir: Path, first: Params, limits: IndexLimits = NO_LIMITS) -> Indexed:
        """Return the retriever over indexes in a folder, its queries prepared."""
        name = digest_of([self.kind.__qualname__, sorted(self.options)])
        indexed = Indexed(
            name,
            _Recipe(self),
            self.corpus,
            cache_dir,
            knobs=self.knobs,
            first=first,
            limits=limits,
        )
        indexed.prepare(self.queries)
        return indexed

    @cached_property
    def cache_dir(self) -> Path:
        """Return the folder in which most checks have their indexes."""
        return Path(tempfile.mkdtemp(prefix="indexes-"))

    @cached_property
    def indexed(self) -> Indexed:
        """Return the retriever that most checks ask."""
        return self.opened(self.cache_dir, self.first)


@dataclass(frozen=True)
class _Recipe:
    """Builds the kind of a case with parameters of its index."""

    case: IndexCase

    def __call__(
        self, corpus: Corpus, folder: Path, settings: Params, advance: Advance
    ) -> Retriever:
        build = self.case.kind.build
        options, given = with_index(self.case.kind, self.case.options, settings)
        more = {"cache_dir": folder, "advance": advance, **self.case.given(build)}
        names = inspect.signature(build).parameters
        given |= {name: thing for name, thing in more.items() if name in names}
        retriever: Retriever = build(corpus, **options, **given)
        return retriever


def check_index_knobs(case: IndexCase) -> None:
    """Check that the parameters of the index are declared, each with its stage, before a build."""
    names = {knob.name for knob in case.knobs}
    asked = {*case.first, *case.other}
    need(
        bool(names) and asked <= names,
        f"declare_knobs must name {', '.join(sorted(asked))} with stage='index'; it names "
        f"{', '.join(sorted(names)) or 'none'}",
    )


def check_same_setting_same_index(case: IndexCase) -> None:
    """Check that a setting has one index, which is built once and found by whoever comes later."""
    uses = [case.indexed.ready(case.other) for _ in range(2)]
    again = case.opened(case.cache_dir, case.first)
    uses += [again.ready(case.other), again.ready(case.first)]
    need(uses[0].name == uses[1].name == uses[2].name, "the same setting has several indexes")
    need(not uses[1].is_new, "an index that is there was built again")
    need(not uses[2].is_new, "another study does not find an index that is there")
    need(not uses[3].is_new, "another study does not find the configuration's own index")


def check_other_setting_other_index(case: IndexCase) -> None:
    """Check that another setting has an index of its own, and that it is the one that answers."""
    first, other = case.indexed.ready(case.first), case.indexed.ready(case.other)
    need(first.name != other.name, f"{case.first} and {case.other} have the same index")
    need(
        _answers(case, case.indexed, case.first) != _answers(case, case.indexed, case.other),
        f"{case.first} and {case.other} get the same answers to all queries: the index is not "
        "used, or the case needs other settings",
    )


def check_an_index_is_the_same_wherever_it_is_built(case: IndexCase) -> None:
    """Check that an index built here answers as one that a process of its own has built."""
    turned = case.opened(Path(tempfile.mkdtemp(prefix="indexes-")), case.other)
    for params in (case.first, case.other):
        wanted = _answers(case, case.indexed, params)
        got = _answers(case, turned, params)
        need(got == wanted, f"{params} is answered with {got} where another is first, not {wanted}")


def check_all_lies_in_the_folder(case: IndexCase) -> None:
    """Check that nothing is written to the cache but indexes and the documents for builders."""
    case.indexed.ready(case.other)
    found = {path.name for path in case.cache_dir.iterdir()} - {"indexes", "corpora"}
    need(not found, f"written outside of `cache_dir` of an index: {', '.join(sorted(found))}")


def check_copies(case: IndexCase) -> None:
    """Check that a copy, as a worker gets it, answers the same from each index."""
    copy: Indexed = pickle.loads(pickle.dumps(case.indexed))
    for params in (case.first, case.other):
        wanted, got = _answers(case, case.indexed, params), _answers(case, copy, params)
        need(got == wanted, f"a copy answers {params} with {got}, not {wanted}")


def check_two_builders_at_once(case: IndexCase) -> None:
    """Check that of two processes that want an index at once one builds it."""
    with tempfile.TemporaryDirectory(prefix="indexes-") as folder:
        indexed = case.opened(Path(folder), case.first)
        both = [_start(indexed, case.other, Path(folder)) for _ in range(2)]
        told = [process.communicate() for process in both]
        for process, (_, error) in zip(both, told, strict=True):
            need(process.returncode == 0, f"a builder failed: {error[-500:]}")
        new = sorted(json.loads(said.splitlines()[-1]) for said, _ in told)
        need(new == [False, True], f"of two builders at once one is to build; is new: {new}")


def check_a_killed_builder(case: IndexCase) -> None:
    """Check that a builder which is killed leaves nothing that is taken for an index."""
    with tempfile.TemporaryDirectory(prefix="indexes-", ignore_cleanup_errors=True) as folder:
        indexed = case.opened(Path(folder), case.first)
        there = _folders(folder)
        process = _start(indexed, case.other, Path(folder))
        while process.poll() is None and _folders(folder) == there:
            time.sleep(_LOOK_S)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        got = _answers(case, indexed, case.other)
    wanted = _answers(case, case.indexed, case.other)
    need(got == wanted, f"after a killed builder {case.other} is answered {got}, not {wanted}")


def _folders(cache_dir: str) -> set[Path]:
    return {path for path in (Path(cache_dir) / "indexes").iterdir() if path.is_dir()}


def ready_in_a_process(order: str) -> None:
    """Have an index ready, in a process that a check started, and print whether it is new."""
    indexed, params = pickle.loads(Path(order).read_bytes())
    print(json.dumps(indexed.ready(params).is_new), flush=True)


def _start(indexed: Indexed, params: Params, folder: Path) -> subprocess.Popen[str]:
    # joblib's own pickler takes what a test module defines, which other processes cannot import.
    from joblib.externals.loky.backend.reduction import dumps

    order = folder.with_name(f"{folder.name}.order")
    order.write_bytes(dumps((indexed, params)))
    return subprocess.Popen(
        [sys.executable, "-c", _IN_A_PROCESS, json.dumps(sys.path), str(order)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _answers(case: IndexCase, indexed: Indexed, params: Params) -> list[list[str]]:
    rankings: Rankings = indexed.retrieve(case.queries, dict(params))
    return [rankings.ids(row) for row in range(len(case.queries))]


CHECKS = checks_in(__name__)
"""Every check of parameters of an index, in the order in which a failure is best understood."""


def check_indexes(case: IndexCase) -> None:
    """Run every check of the contract of indexes, as ``check_all`` does."""
    check_all(CHECKS, case)


class IndexContract(Contract):
    """The contract of indexes as tests of pytest's; ``case`` is an ``IndexCase``."""

    checks = CHECKS
