"""The retriever that answers from run files: their scores, weighed and fused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Self

import numpy as np

from tuner.core.corpus import Corpus, Query, corpus_fingerprint
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.json_text import digest_of
from tuner.core.rankings import Rankings
from tuner.core.trial import Params
from tuner.core.words import count_tokens
from tuner.retrieval.adapters.options import code_digest
from tuner.retrieval.adapters.runs.fusion import best, fuse, make_knobs, read_params
from tuner.retrieval.adapters.runs.legs import Run, Table, open_batch, open_table
from tuner.retrieval.hybrid.cache import ensure
from tuner.retrieval.knobs import Knob

ReadRun = Callable[[Path], Run]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_EXAMPLE = "write {graph: graph.run, text: text.run}"


@dataclass(frozen=True)
class Runs:
    """Fuses two or more runs. Made by ``Runs.build``; pickles as the path of its arrays.

    The treatment of what is missing, negative, equal or unscored is in ``normalisation.normalise``,
    ``normalisation.missing`` and ``legs.Table.build``. Equal fused scores are ordered by document
    id, descending, as trec_eval does.
    """

    directory: Path
    fingerprint: str
    legs: tuple[str, ...]
    knobs: tuple[Knob, ...]

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:  # noqa: ARG003
        """Return the options with the run files from the root; they start at the current folder."""
        legs = options.get("legs")
        if not isinstance(legs, Mapping):
            return dict(options)
        resolved = {
            name: str(Path(path).expanduser().resolve()) if isinstance(path, str) else path
            for name, path in legs.items()
        }
        return {**options, "legs": resolved}

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        cache_dir: Path,
        legs: Annotated[Any, "the runs to be mixed, each as name: run file"],
        read_run: ReadRun,
    ) -> Self:
        """Read the runs, or open the arrays of equal ones in ``cache_dir``.

        ``legs`` maps names to run files. ``read_run`` reads one: query -> document -> score, or
        query -> documents, best first. Where the corpus has documents they must hold all those of
        the runs, and contexts are counted by their texts.

        Raises:
            InputError: what is wrong with the legs' names or in their files, all at once.
            TunerError: the cache cannot be written.
        """
        paths = _paths(legs)
        fingerprint = _fingerprint(corpus, paths, read_run)
        directory = Path(cache_dir).absolute() / f"runs-{fingerprint}"

        def write(unfinished: Path) -> None:
            tokens = {d.id: count_tokens(f"{d.title} {d.text}") for d in corpus.documents} or None
            runs = _each(paths, read_run)
            Table.build(runs, tokens=tokens).save(unfinished)

        ensure(directory, write)
        table = open_table(directory)
        depths = {name: s.shape[1] for name, s in zip(table.names, table.scores, strict=True)}
        knobs = make_knobs(depths, widest=table.pool.shape[1])
        return cls(directory, fingerprint, table.names, knobs)

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
            tokens = np.where(documents >= 0, table.token_counts[documents], 0.0).sum(axis=1)
        return Rankings(
            query_ids=query_ids,
            document_ids=table.document_ids,
            documents=documents,
            scores=scores,
            seconds={"fuse": perf_counter() - started},
            context_tokens=tokens,
        )


def _paths(legs: Any) -> dict[str, Path]:
    """Check what the configuration says of the legs."""
    if not isinstance(legs, Mapping):
        raise InputError(f"must map names to run files, got {legs!r}; {_EXAMPLE}", key=("legs",))
    problems = []
    if len(legs) < 2:
        message = f"a fusion needs two runs or more, got {len(legs)}; {_EXAMPLE}"
        problems.append(Problem(message, key=("legs",)))
    for name, path in legs.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            message = "a leg's name starts with a letter and has letters, digits and _ only"
            problems.append(Problem(message, key=("legs", str(name))))
        elif not isinstance(path, str | Path) or not str(path):
            problems.append(Problem(f"must be a run file, got {path!r}", key=("legs", name)))
    refuse(problems)
    return {name: Path(path).expanduser() for name, path in legs.items()}


def _fingerprint(corpus: Corpus, paths: Mapping[str, Path], read_run: ReadRun) -> str:
    """Hash this code, the runs and the texts whose tokens are counted."""
    try:
        contents = {name: path.read_bytes() for name, path in sorted(paths.items())}
    except OSError:
        _each(paths, read_run)  # says in words what is wrong, and with any other file too
        raise
    hashes = {name: sha256(content).hexdigest() for name, content in contents.items()}
    return digest_of([code_digest("runs"), corpus_fingerprint(corpus), hashes])


def _each(paths: Mapping[str, Path], read_run: ReadRun) -> dict[str, Run]:
    """Read every leg, and report what is wrong with any of them all at once."""
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
