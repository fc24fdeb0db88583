"""Read a folder in the BEIR layout: corpus.jsonl, queries.jsonl and qrels/*.tsv."""

from __future__ import annotations

from pathlib import Path

from tuner.core.errors import InputError
from tuner.core.grades import RELEVANT_FROM
from tuner.core.steps import Advance, unheard
from tuner.datasets.dataset import Dataset
from tuner.datasets.folders import (
    CHOOSE_ONE,
    beir_qrels,
    no_such_split,
    only_variant,
    sample_files,
    stem,
    trec_qrels,
    variants,
)
from tuner.datasets.lines import ABSENT, ProblemLog
from tuner.datasets.tables import read_judgements
from tuner.datasets.texts import (
    judgement_warnings,
    read_corpus,
    read_evidences,
    read_graph,
    read_queries,
)

PREFERRED_SPLIT = "test"


class Beir:
    """The BEIR layout, with optional graph facts and labels beside it. See `Beir.read`."""

    layout = (
        "a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv (each may end in .gz); "
        "optional: triples.jsonl, entities.jsonl, evidences.jsonl"
    )

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether a folder has one of the layout's parts, and no other one's questions."""
        return path.is_dir() and (
            bool(_qrels_files(path))
            or (
                any(variants(path, f"{name}.jsonl") for name in ("corpus", "queries"))
                and not trec_qrels(path)
                and not sample_files(path)
            )
        )

    @staticmethod
    def read(
        path: Path,
        *,
        split: str | None = None,
        relevant_from: float = RELEVANT_FROM,
        advance: Advance = unheard,
    ) -> Dataset:
        """Read and check a folder; ``split`` names the file of judgements, such as ``"dev"``.

        Without it, ``qrels/test.tsv`` is read, or the only file there is. Queries without
        judgements are left out with a warning. Each line holds:

        - corpus: ``{"_id", "title", "text"}``; the title may be missing.
        - queries: ``{"_id", "text"}`` and optional ``query_type``, ``difficulty``, ``group``,
          ``answer`` and ``answer_aliases``.
        - qrels: query id, document id and grade, separated by tabs, with or without a header.
        - triples: ``{"doc_id", "subject", "relation", "object"}``.
        - entities: ``{"doc_id", "entities"}``.
        - evidences: ``{"query_id", "entities", "paths"}``; a path is a list of
          ``[subject, relation, object]``. Optional: ``supporting``, a list of
          ``{"doc_id", "text"}``, texts of relevant documents that hold the answer.

        Raises:
            InputError: everything that is wrong, with file and line, all at once.
        """
        path = Path(path)
        log = ProblemLog(advance)
        corpus_file = _required(path, "corpus.jsonl", log)
        queries_file = _required(path, "queries.jsonl", log)
        qrels_file = _choose_qrels(path, split, log)

        corpus = read_corpus(corpus_file, log) if corpus_file else None
        queries = read_queries(queries_file, log) if queries_file else None
        # Where a file gave no id at all, one report says why; not one more for each use of an id.
        document_ids = corpus.lines.keys() if corpus and corpus.lines else None
        query_ids = queries.lines.keys() if queries and queries.lines else None
        qrels = (
            read_judgements(qrels_file, log, query_ids, document_ids, relevant_from)
            if qrels_file
            else {}
        )
        triples, entities = read_graph(path, log, document_ids)
        evidences_file = only_variant(variants(path, "evidences.jsonl"), log)
        evidences, supports = (
            read_evidences(evidences_file, log, query_ids) if evidences_file else ({}, {})
        )

        problems = log.problems()
        if not log.has_only(ABSENT) or corpus is None or queries is None:
            raise InputError(problems=problems)
        return Dataset.create(
            path.resolve().name,
            str(path),
            documents=corpus.documents,
            queries=[query for query in queries.queries if query.id in qrels],
            qrels=qrels,
            triples=triples,
            entities=entities,
            evidences=evidences,
            answers=queries.answers,
            supports=supports,
            warnings=judgement_warnings(queries, qrels, relevant_from),
            unjudged=[query.id for query in queries.queries if query.id not in qrels],
            lacking=problems,
        )


def _qrels_files(folder: Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for file in beir_qrels(folder):
        files.setdefault(stem(file), []).append(file)
    return files


def _required(folder: Path, name: str, log: ProblemLog) -> Path | None:
    file = only_variant(variants(folder, name), log)
    if file is None:
        log.add("missing", f"not found; expected {Beir.layout}", folder / name)
    return file


def _choose_qrels(folder: Path, split: str | None, log: ProblemLog) -> Path | None:
    files = _qrels_files(folder)
    there = ", ".join(sorted(files))
    if not files:
        log.add("missing", f"holds no .tsv file; expected {Beir.layout}", folder / "qrels")
        return None
    if split is not None and split not in files:
        message = no_such_split("judgements", split, files)
    elif split is None and len(files) > 1 and PREFERRED_SPLIT not in files:
        message = f"several files of judgements: {there}; {CHOOSE_ONE}"
    else:
        only = next(iter(files)) if len(files) == 1 else PREFERRED_SPLIT
        return only_variant(files[split or only], log)
    log.add("split", message, folder / "qrels")
    return None
