"""The retriever that answers from run files: their scores, weighed and fused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np

from tuner.core.corpus import Corpus, Query, corpus_fingerprint
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.json_text import digest_of
from tuner.core.rankings import Rankings
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.core.words import count_tokens
from tuner.retrieval.adapters.alternatives import choice_knob, file_digest, read_alternatives
from tuner.retrieval.adapters.options import code_digest, path_from_root
from tuner.retrieval.adapters.runs.fusion import (
    best,
    fuse,
    make_knobs,
    mixing_of,
    read_params,
    told_legs,
    weight_name,
)
from tuner.retrieval.adapters.runs.legs import Run, Table, open_batch, open_table
from tuner.retrieval.dead import no_weight_problems
from tuner.retrieval.free import FreeKnobs
from tuner.retrieval.hybrid.cache import ensure
from tuner.retrieval.knobs import Knob, knob_params

ReadRun = Callable[[Path], Run]
Named = TypeVar("Named", str, tuple[str, str])

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_EXAMPLE = "write {graph: graph.run, text: text.run}"
_DEPTHS = "depths.json"

Legs = Mapping[str, Mapping[str, Path]]
"""The files of each leg by their names; where a leg has one, it has no name."""


@dataclass(frozen=True)
class Runs:
    """Fuses two or more runs. Made by ``Runs.build``; pickles as the path of its arrays.

    The treatment of what is missing, negative, equal or unscored is in ``normalisation.normalise``,
    ``normalisation.missing`` and ``legs.Table.build``. Equal fused scores are ordered by document
    id, descending, as trec_eval does.
    """

    tells_spans: ClassVar[bool] = False

    directory: Path
    fingerprint: str
    legs: tuple[str, ...]
    knobs: tuple[Knob, ...]
    tells_legs: bool = False

    resolve_options = path_from_root("legs")

    @classmethod
    def declare_knobs(cls, *, legs: Any, read_run: ReadRun | None = None) -> tuple[Knob, ...]:
        """Return the choices among the files of each leg, and with ``read_run`` the fusion's knobs.

        Raises:
            InputError: what is wrong with the legs' names, or in their files.
        """
        paths = _paths(legs)
        if read_run is None:
            return _run_knobs(paths)
        depths = _depths(paths, read_run)
        return (*make_knobs(depths, widest=sum(depths.values())), *_run_knobs(paths))

    @classmethod
    def identify_index(cls, settings: Params, *, legs: Any) -> str:  # noqa: ARG003
        """Return a digest of the code and of every file."""
        return digest_of([code_digest("runs"), _contents(_paths(legs))])

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        cache_dir: Path,
        legs: Annotated[
            Any,
            "the runs to be mixed, each as name: run file, or as name: {choice: run file, …} for "
            "run files that are choices",
        ],
        read_run: ReadRun,
        index_params: Params | None = None,
        space: SearchSpace | None = None,
        baseline: Params | None = None,
    ) -> Self:
        """Read the runs, or open the arrays of equal ones in ``cache_dir``.

        ``legs`` maps names to run files, or to several by a name each; then ``index_params`` say
        which, as ``run_<leg>``, by default the first. ``read_run`` reads one: query -> document ->
        score, or query -> documents, best first. Where the corpus has documents they must hold all
        those of the runs, and contexts are counted by their texts. ``space`` and ``baseline`` are
        those of the study, by which its weights are checked.

        Raises:
            InputError: what is wrong with the legs' names or in their files, all at once; weights
                of the study that leave no leg.
            TunerError: the cache cannot be written.
        """
        paths = _paths(legs)
        weights = [weight_name(leg) for leg in paths]
        today = dict.fromkeys(weights, 1.0) | dict(baseline or {})
        refuse(no_weight_problems(weights, space, today))
        names = knob_params(index_params or {}, _run_knobs(paths))
        chosen = {leg: str(names.get(f"run_{leg}", "")) for leg in paths}
        contents = _contents(paths)
        if not all(map(all, (files.values() for files in contents.values()))):
            _depths(paths, read_run)  # says in words what is wrong, and with any other file too
        fingerprint = digest_of(
            [code_digest("runs"), corpus_fingerprint(corpus), contents, sorted(chosen.items())]
        )
        directory = Path(cache_dir).absolute() / f"runs-{fingerprint}"

        def write(unfinished: Path) -> None:
            tokens = {d.id: count_tokens(f"{d.title} {d.text}") for d in corpus.documents} or None
            depths = _depths(paths, read_run) if names else {}
            runs = _each({leg: paths[leg][chosen[leg]] for leg in paths}, read_run)
            Table.build(runs, tokens=tokens).save(unfinished)
            (unfinished / _DEPTHS).write_text(json.dumps(depths), encoding="utf-8")

        ensure(directory, write)
        table = open_table(directory)
        # Of all files of a leg, so that the parameters are the same whichever is chosen.
        depths = {name: s.shape[1] for name, s in zip(table.names, table.scores, strict=True)}
        depths |= json.loads((directory / _DEPTHS).read_text(encoding="utf-8"))
        widest = sum(depths.values()) if names else table.pool.shape[1]
        return cls(directory, fingerprint, table.names, make_knobs(depths, widest=widest))

    def free_knobs(self, fixed: Params, searched: Collection[str]) -> FreeKnobs:
        """Return ``top_k``, the weights, and ``rrf_k`` where no other fusion is tried."""
        mixing = mixing_of(self.legs, searched, fixed)
        return FreeKnobs(("top_k",), mixing if mixing.parameters else None)

    def telling_legs(self) -> Runs:
        """Return the same retriever, with answers that carry their legs."""
        return replace(self, tells_legs=True)

    def prepare(self, queries: Sequence[Query]) -> None:
        """Make sure that every leg knows some of the queries.

        Raises:
            InputError: a leg that has none of them, most likely because ids are written otherwise.
        """
        table = open_table(self.directory)
        asked = {query.id for query in queries}
        known = np.array(table.query_ids)
        problems = []
        for name, lengths in zip(table.names, table.lengths, strict=True):
            own = known[lengths[:-1] > 0].tolist()
            if asked and asked.isdisjoint(own):
                message = (
                    f"the run has none of the data set's queries: it has {_some(own)}, "
                    f"the data set has {_some([query.id for query in queries])}"
                )
                problems.append(Problem(message, key=("retriever", "legs", name)))
        refuse(problems)

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer a batch; a query that no leg knows has an empty answer.

        Raises:
            InputError: unknown parameters, values outside their range, or weights that are all 0.
        """
        settings = read_params(params, self.knobs, self.legs)
        started = perf_counter()
        query_ids = tuple([query.id for query in queries])
        batch = open_batch(self.directory, query_ids)
        columns, scores = best(fuse(batch, settings), settings.top_k)
        documents = np.take_along_axis(batch.pool, columns, axis=1).astype(np.int64)
        documents[columns < 0] = -1
        table = open_table(self.directory)
        tokens = None
        if table.token_counts is not None:
            tokens = np.where(documents >= 0, table.token_counts[documents], 0.0)
        rankings = Rankings(
            query_ids=query_ids,
            document_ids=table.document_ids,
            documents=documents,
            scores=scores,
            seconds={"fuse": perf_counter() - started},
            context_tokens=None if tokens is None else tokens.sum(axis=1),
            tokens=tokens,
        )
        if not self.tells_legs:
            return rankings
        return replace(rankings, legs=told_legs(table, batch, settings))


def _paths(legs: Any) -> Legs:
    """Check what the configuration says of the legs."""
    if not isinstance(legs, Mapping):
        raise InputError(f"must map names to run files, got {legs!r}; {_EXAMPLE}", key=("legs",))
    problems = []
    if len(legs) < 2:
        message = f"a fusion needs two runs or more, got {len(legs)}; {_EXAMPLE}"
        problems.append(Problem(message, key=("legs",)))
    found: dict[str, Mapping[str, Path]] = {}
    for name, given in legs.items():
        key = ("legs", str(name))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            message = "a leg's name starts with a letter and has letters, digits and _ only"
            problems.append(Problem(message, key=key))
        elif isinstance(given, Mapping):
            try:
                found[name] = read_alternatives(given, key=key, example="{small: a.run, …}")
            except InputError as error:
                problems += error.problems
        elif not isinstance(given, str | Path) or not str(given):
            problems.append(Problem(f"must be a run file, got {given!r}", key=key))
        else:
            found[name] = {"": Path(given).expanduser()}
    refuse(problems)
    return found


def _run_knobs(legs: Legs) -> tuple[Knob, ...]:
    """Return an index parameter for each leg with several files, which chooses among them."""
    return tuple(
        choice_knob(f"run_{leg}", files, next(iter(files)), f"which run the leg {leg!r} is")
        for leg, files in legs.items()
        if len(files) > 1
    )


def _contents(legs: Legs) -> dict[str, dict[str, str]]:
    """Return hashes of all files; "" for one that is not there."""
    return {
        leg: {name: file_digest(path) for name, path in files.items()}
        for leg, files in sorted(legs.items())
    }


def _depths(legs: Legs, read_run: ReadRun) -> dict[str, int]:
    """Return how many documents the deepest answer in any of a leg's files has."""
    flat = {(leg, name): path for leg, files in legs.items() for name, path in files.items()}
    depths: dict[str, int] = {}
    for (leg, _), run in _each(flat, read_run).items():
        depths[leg] = max(depths.get(leg, 1), *map(len, run.values()), 1)
    return depths


def _each(paths: Mapping[Named, Path], read_run: ReadRun) -> dict[Named, Run]:
    """Read every file, and report what is wrong with any of them all at once."""
    found, problems = {}, list[Problem]()
    for name, path in sorted(paths.items()):
        try:
            found[name] = read_run(path)
        except InputError as error:
            problems += error.problems
    refuse(problems)
    return found


def _some(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, ids[:3])) + (", …" if len(ids) > 3 else "")
