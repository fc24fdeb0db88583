"""Read a file of judgements and several run files, and notice when they do not fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.core.errors import InputError, Problem
from tuner.core.grades import RELEVANT_FROM, GradeScale
from tuner.datasets import Dataset
from tuner.datasets.run_files import (
    QUERY_LABELS,
    Judgements,
    look_like_grades,
    look_like_scores,
    read_qrels,
    read_query_labels,
    read_run,
)
from tuner.datasets.run_json import Run
from tuner.metrics.base import MetricOptions
from tuner.metrics.efficiency import default_tokenizer, load_tokenizer
from tuner.metrics.ordering import Answer
from tuner.scoring.inputs import ScoringInputs, Told

_RANKS_FORMAT = "tsv of ranks"


@dataclass(frozen=True, eq=False)
class RunFile:
    """One run file: its short name, path, format, the answers by query, and what it tells."""

    name: str
    path: str
    format: str
    answers: Mapping[str, Answer]
    told: Told


@dataclass(frozen=True, eq=False)
class RunFiles:
    """Judgements and the runs to be scored against them.

    ``remarks`` are sentences about what was assumed in reading.
    """

    qrels_path: str
    qrels_format: str
    grades: Mapping[str, Mapping[str, float]]
    runs: tuple[RunFile, ...]
    remarks: tuple[str, ...]


def read_files(
    qrels_path: str | None,
    run_paths: Sequence[str],
    *,
    dataset: Dataset | None = None,
    relevant_from: float = RELEVANT_FROM,
) -> RunFiles:
    """Read judgements and runs in any known format; a run is named after its file.

    Without a file of judgements they are those of the data set.

    Raises:
        InputError: what is wrong in any of the files, all at once; a run that is given twice; or
            judgements and runs that are swapped, where their columns tell.
    """
    _check_given_once(qrels_path, run_paths)
    problems: list[Problem] = []
    judgements, runs = None, list[Run]()
    try:
        judgements = _judgements(qrels_path, dataset, relevant_from)
    except InputError as error:
        problems += error.problems
    for path in run_paths:
        try:
            runs.append(read_run(Path(path)))
        except InputError as error:
            problems += error.problems
    if problems or judgements is None:
        raise InputError(problems=problems)
    remarks = [] if dataset is None else list(dataset.warnings)
    is_told = relevant_from != RELEVANT_FROM
    if qrels_path is not None and not is_told and look_like_scores(judgements.grades):
        remark = (
            f"{qrels_path}: most grades are fractions; only from 1 on is one relevant "
            "(--relevant-from)"
        )
        # Grades may be fractions, so this is no error. TREC's columns tell the two files apart.
        is_told_by_columns = judgements.format == "trec"
        if not is_told_by_columns and any(look_like_grades(run.answers) for run in runs):
            remark += (
                ". A run holds small whole numbers, like grades: did you swap --qrels and --run?"
            )
        remarks.append(remark)
    remarks += [
        f"{path}: the third column counts up from 1, so it was read as ranks, not scores"
        for path, run in zip(run_paths, runs, strict=True)
        if run.format == _RANKS_FORMAT
    ]
    named = zip(_names(run_paths), run_paths, runs, strict=True)
    return RunFiles(
        qrels_path=qrels_path or (dataset.path if dataset is not None else ""),
        qrels_format=judgements.format,
        grades=judgements.grades,
        runs=tuple(
            RunFile(name, path, run.format, run.answers, Told(run.entities, run.paths))
            for name, path, run in named
        ),
        remarks=tuple(remarks),
    )


def inputs_of(
    files: RunFiles,
    dataset: Dataset | None,
    *,
    tokenizer: str | None,
    discount: Sequence[float] | None,
    scale: GradeScale,
) -> ScoringInputs:
    """Gather what metrics beyond judgements and rankings read."""
    return ScoringInputs(
        documents=() if dataset is None else dataset.corpus.documents,
        query_texts={} if dataset is None else {query.id: query.text for query in dataset.queries},
        evidences={} if dataset is None else dataset.evidences,
        told={run.name: run.told for run in files.runs},
        tokenizer=default_tokenizer if tokenizer is None else load_tokenizer(tokenizer),
        options=MetricOptions(discount),
        scale=scale,
    )


def read_groups(source: str | Dataset, query_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return label -> the group of each query, such as ``{"difficulty": ["hard", "easy"]}``.

    The labels are those of a file, or of a data set. Labels that all queries share are left out; a
    query without one is in the group "unlabelled".

    Raises:
        InputError: the file is broken, or labels none of the queries.
    """
    if isinstance(source, str):
        labels, path = read_query_labels(Path(source)), source
    else:
        path = source.path
        labels = {
            query.id: {"query_type": query.query_type, "difficulty": query.difficulty}
            for query in source.queries
        }
    if not labels.keys() & set(query_ids):
        raise InputError(f"holds none of the judged queries, such as {query_ids[0]!r}", file=path)
    groups = {
        label: [labels.get(query, {}).get(label) or "unlabelled" for query in query_ids]
        for label in QUERY_LABELS
    }
    varied = {label: names for label, names in groups.items() if len(set(names)) > 1}
    if not varied:
        raise InputError(
            f"all judged queries have the same {' and '.join(QUERY_LABELS)}, or none", file=path
        )
    return varied


def _judgements(
    qrels_path: str | None, dataset: Dataset | None, relevant_from: float
) -> Judgements:
    if qrels_path is not None:
        return read_qrels(Path(qrels_path), relevant_from=relevant_from)
    if dataset is None:
        raise InputError("give the judgements by --qrels QRELS, or a data set by --dataset PATH")
    return Judgements("data set", {query: dict(of) for query, of in dataset.qrels.items()})


def _check_given_once(qrels_path: str | None, run_paths: Sequence[str]) -> None:
    seen = {} if qrels_path is None else {Path(qrels_path).resolve(): "--qrels"}
    for path in run_paths:
        place = Path(path).resolve()
        if place in seen:
            raise InputError(f"{path!r} is given twice: as {seen[place]} and as --run")
        seen[place] = "--run"


def _names(paths: Sequence[str]) -> list[str]:
    """Return the files' names without suffix, or the paths where two of these are the same."""
    short = [Path(Path(path).name.removesuffix(".gz")).stem for path in paths]
    return short if len(set(short)) == len(short) else list(paths)
