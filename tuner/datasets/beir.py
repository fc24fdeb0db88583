"""Read a folder in the BEIR layout: corpus.jsonl, queries.jsonl and qrels/*.tsv."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.datasets._facts import read_entities, read_evidences, read_triples
from tuner.datasets._judgements import read_judgements
from tuner.datasets._lines import (
    ProblemLog,
    Record,
    note_id,
    read_records,
    text_field,
    texts_field,
)
from tuner.datasets.dataset import RELEVANT_GRADE, Dataset

PREFERRED_SPLIT = "test"


class Beir:
    """The BEIR layout, with optional graph facts and labels beside it. See `Beir.read`."""

    layout = (
        "a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv (each may end in .gz); "
        "optional: triples.jsonl, entities.jsonl, evidences.jsonl"
    )

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether the path is a folder with at least one of the layout's parts."""
        return path.is_dir() and (
            any(_variants(path, f"{stem}.jsonl") for stem in ("corpus", "queries"))
            or bool(_qrels_files(path))
        )

    @staticmethod
    def read(path: Path, *, split: str | None = None) -> Dataset:
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
          ``[subject, relation, object]``.

        Raises:
            InputError: everything that is wrong, with file and line, all at once.
        """
        path = Path(path)
        log = ProblemLog()
        corpus_file = _required(path, "corpus.jsonl", log)
        queries_file = _required(path, "queries.jsonl", log)
        qrels_file = _choose_qrels(path, split, log)

        corpus = _read_corpus(corpus_file, log) if corpus_file else None
        queries = _read_queries(queries_file, log) if queries_file else None
        # Where a file gave no id at all, one report says why; not one more for each use of an id.
        document_ids = corpus.lines.keys() if corpus and corpus.lines else None
        query_ids = queries.lines.keys() if queries and queries.lines else None
        qrels = read_judgements(qrels_file, log, query_ids, document_ids) if qrels_file else {}
        triples_file = _only(_variants(path, "triples.jsonl"), log)
        triples = read_triples(triples_file, log, document_ids) if triples_file else None
        entities_file = _only(_variants(path, "entities.jsonl"), log)
        entities = read_entities(entities_file, log, document_ids) if entities_file else None
        evidences_file = _only(_variants(path, "evidences.jsonl"), log)
        evidences = read_evidences(evidences_file, log, query_ids) if evidences_file else None

        problems = log.problems()
        if problems or corpus is None or queries is None:
            raise InputError(problems=problems)
        return Dataset.create(
            path.resolve().name,
            str(path),
            documents=corpus.documents,
            queries=[query for query in queries.queries if query.id in qrels],
            qrels=qrels,
            triples=triples or (),
            entities=entities,
            evidences=evidences,
            answers=queries.answers,
            warnings=_warnings(queries.queries, qrels),
        )


@dataclass(frozen=True)
class _CorpusFile:
    documents: list[Document]
    lines: dict[str, int]  # where each id was first seen, ids of broken lines included


@dataclass(frozen=True)
class _QueriesFile:
    queries: list[Query]
    answers: dict[str, tuple[str, ...]]
    lines: dict[str, int]


def _variants(folder: Path, name: str) -> list[Path]:
    return [file for file in (folder / name, folder / f"{name}.gz") if file.is_file()]


def _qrels_files(folder: Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    if (folder / "qrels").is_dir():
        for file in sorted((folder / "qrels").iterdir()):
            if file.is_file() and file.name.endswith((".tsv", ".tsv.gz")):
                name = file.name.removesuffix(".gz").removesuffix(".tsv")
                files.setdefault(name, []).append(file)
    return files


def _only(files: list[Path], log: ProblemLog) -> Path | None:
    if len(files) > 1:
        log.add("twice", f"is there with and without .gz ({files[1].name}); remove one", files[0])
    return files[0] if files else None


def _required(folder: Path, name: str, log: ProblemLog) -> Path | None:
    file = _only(_variants(folder, name), log)
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
        message = f"no judgements for split {split!r}; there are: {there}"
    elif split is None and len(files) > 1 and PREFERRED_SPLIT not in files:
        message = f"several splits and none is {PREFERRED_SPLIT!r}; name one of: {there}"
    else:
        only = next(iter(files)) if len(files) == 1 else PREFERRED_SPLIT
        return _only(files[split or only], log)
    log.add("split", message, folder / "qrels")
    return None


def _read_corpus(file: Path, log: ProblemLog) -> _CorpusFile:
    found = _CorpusFile([], {})
    for record in read_records(file, log, id_key="_id"):
        note_id(record, "_id", found.lines, file, log)
        if record.values is None:
            continue
        title, text = (text_field(record, key, file, log) for key in ("title", "text"))
        if not (title.strip() or text.strip()) and _are_strings(record, "title", "text"):
            message = f"document {record.id!r} has no title and no text{_keys_hint(record)}"
            log.add("empty", message, file, record.line)
        found.documents.append(Document(record.id, title, text))
    if not found.lines and not log.mentions(file):
        log.add("none", "holds no document", file)
    return found


def _read_queries(file: Path, log: ProblemLog) -> _QueriesFile:
    found = _QueriesFile([], {}, {})
    for record in read_records(file, log, id_key="_id"):
        note_id(record, "_id", found.lines, file, log)
        if record.values is None:
            continue
        text, query_type, difficulty, group = (
            text_field(record, key, file, log)
            for key in ("text", "query_type", "difficulty", "group")
        )
        if not text.strip() and _are_strings(record, "text"):
            message = f"query {record.id!r} has no text{_keys_hint(record)}"
            log.add("empty", message, file, record.line)
        found.queries.append(Query(record.id, text, query_type, difficulty, group))
        answer = text_field(record, "answer", file, log)
        answers = [answer, *texts_field(record, "answer_aliases", file, log)]
        if any(answers):
            found.answers[record.id] = tuple(dict.fromkeys(filter(None, answers)))
    if not found.lines and not log.mentions(file):
        log.add("none", "holds no query", file)
    return found


def _are_strings(record: Record, *keys: str) -> bool:
    # A field of another type has been reported already: not as an empty one too.
    values = record.values or {}
    return all(isinstance(values.get(key), str | None) for key in keys)


def _keys_hint(record: Record) -> str:
    keys = ", ".join(record.values or {})
    return "" if "text" in (record.values or {}) else f"; its keys are: {keys}"


def _warnings(queries: list[Query], qrels: dict[str, dict[str, float]]) -> tuple[str, ...]:
    unjudged = [query.id for query in queries if query.id not in qrels]
    hopeless = [
        id_
        for id_, judged in qrels.items()
        if not any(grade >= RELEVANT_GRADE for grade in judged.values())
    ]
    told = (
        (unjudged, "of {} queries have no judgement and were left out"),
        (hopeless, "of {} queries have judgements but no relevant document"),
    )
    return tuple(
        f"{len(ids)} {text.format(len(queries))} (first: {ids[0]!r})" for ids, text in told if ids
    )
