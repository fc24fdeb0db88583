"""Write a data set to a folder, as BEIR or as evaluation samples, and prove that it reads back."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tuner.core.corpus import Query
from tuner.core.errors import InputError, did_you_mean
from tuner.core.files import write_whole
from tuner.core.grades import GradeScale
from tuner.core.json_text import json_text
from tuner.datasets.base import DatasetFormat
from tuner.datasets.beir import Beir
from tuner.datasets.dataset import Dataset, Evidence
from tuner.datasets.samples import Samples

LAYOUTS = ("beir", "samples")


def write_dataset(dataset: Dataset, folder: Path, *, layout: str = "beir") -> Dataset:
    """Write a data set to a new folder, read it again, and return what was read.

    The copy has the same fingerprint, or there is none: the folder appears only when everything
    is written and has been compared.

    Raises:
        InputError: the folder holds something already, cannot be written, or the layout cannot
            hold some of the content; the message says what.
    """
    if layout not in LAYOUTS:
        raise InputError(f"unknown layout {layout!r}{did_you_mean(layout, LAYOUTS)}")
    refuse_full(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise InputError(f"cannot write {str(folder)!r}: {error.strerror or error}") from error
    try:
        inner = scratch / folder.name  # the data set is named after its folder
        inner.mkdir()
        _WRITERS[layout](dataset, inner)
        copy = _read(inner, layout, dataset.scale)
        if copy.lacking:
            raise InputError(problems=copy.lacking)
        _compare(dataset, copy, layout)
        if folder.exists():
            folder.rmdir()
        inner.rename(folder)
        return _read(folder, layout, dataset.scale)
    except OSError as error:
        raise InputError(f"cannot write {str(folder)!r}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _read(folder: Path, layout: str, scale: GradeScale) -> Dataset:
    read = _READERS[layout].read(folder, relevant_from=scale.relevant_from)
    return read.with_scale(scale)


def write_notes(
    folder: Path, source: str, warnings: Iterable[str], settings: Mapping[str, Any]
) -> None:
    """Leave word beside questions made from a graph: who finds them must know how they were made.

    Raises:
        InputError: the folder cannot be written to.
    """
    told = "".join(f"- {warning}\n" for warning in warnings)
    text = (
        f"# {folder.name}\n\nQuestions made from the graph in `{source}` by `tuner dataset build "
        f"from-graph`.\n\n{told}\n```json\n{json_text(settings, indent=2)}\n```\n"
    )
    try:
        write_whole(folder / "README.md", text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(folder)) from error


def refuse_full(folder: Path) -> None:
    """Raise an InputError where a path is not free for a new folder."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists():
        raise InputError(f"{str(folder)!r} is there already; name a new folder, or remove it")


def _write_beir(dataset: Dataset, folder: Path) -> None:
    _write_corpus(dataset, folder)
    _write_lines(folder / "queries.jsonl", (_query(dataset, query) for query in dataset.queries))
    (folder / "qrels").mkdir()
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8", newline="\n") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for query in dataset.queries:
            for document, grade in dataset.qrels[query.id].items():
                file.write(f"{query.id}\t{document}\t{_number(grade)}\n")
    labelled = {**dict.fromkeys(dataset.evidences), **dict.fromkeys(dataset.supports)}
    if labelled:
        _write_lines(folder / "evidences.jsonl", (_evidence(dataset, id_) for id_ in labelled))


def _write_samples(dataset: Dataset, folder: Path) -> None:
    _refuse_hopeless(dataset)
    _write_corpus(dataset, folder)
    _write_lines(folder / "samples.jsonl", (_sample(dataset, query) for query in dataset.queries))


def _refuse_hopeless(dataset: Dataset) -> None:
    """Raise an InputError for questions that a reader of samples leaves out."""
    hopeless = [
        id_
        for id_, judged in dataset.qrels.items()
        if id_ not in dataset.evidences
        and not any(grade >= dataset.scale.relevant_from for grade in judged.values())
    ]
    if hopeless:
        raise InputError(
            f"{len(hopeless)} of {len(dataset.queries)} queries have no relevant document (first: "
            f"{hopeless[0]!r}), which the layout 'samples' cannot hold; write 'beir' instead"
        )


def _write_corpus(dataset: Dataset, folder: Path) -> None:
    corpus = dataset.corpus
    _write_lines(
        folder / "corpus.jsonl",
        ({"_id": d.id, "title": d.title, "text": d.text} for d in corpus.documents),
    )
    if corpus.triples:
        triples = (
            {
                "doc_id": triple.document_id,
                "subject": triple.subject,
                "relation": triple.relation,
                "object": triple.object,
            }
            for triple in corpus.triples
        )
        _write_lines(folder / "triples.jsonl", triples)
    if corpus.entities:
        entities = ({"doc_id": id_, "entities": names} for id_, names in corpus.entities.items())
        _write_lines(folder / "entities.jsonl", entities)


def _query(dataset: Dataset, query: Query) -> dict[str, Any]:
    answer, *aliases = dataset.answers.get(query.id, ("",))
    return {
        "_id": query.id,
        "text": query.text,
        **_filled({"answer": answer, "answer_aliases": aliases, **_labels(query)}),
    }


def _evidence(dataset: Dataset, query_id: str) -> dict[str, Any]:
    evidence = dataset.evidences.get(query_id, Evidence())
    supporting = [
        {"doc_id": name, "text": text}
        for name, texts in dataset.supports.get(query_id, {}).items()
        for text in texts
    ]
    return {
        "query_id": query_id,
        "entities": evidence.entities,
        "paths": evidence.paths,
        **_filled({"supporting": supporting}),
    }


def _sample(dataset: Dataset, query: Query) -> dict[str, Any]:
    answer, *aliases = dataset.answers.get(query.id, ("",))
    evidence = dataset.evidences.get(query.id, Evidence())
    judged = dataset.qrels[query.id]
    lowest = dataset.scale.relevant_from
    return {
        "id": query.id,
        "query": query.text,
        "relevant_docs": [id_ for id_, grade in judged.items() if grade >= lowest],
        **_filled(
            {
                "grades": {id_: g for id_, g in judged.items() if g != 1.0},
                "relevant_entities": evidence.entities,
                "relevant_paths": evidence.paths,
                "supporting_texts": dataset.supports.get(query.id, {}),
                "expected_answer": answer,
                "answer_aliases": aliases,
                **_labels(query),
            }
        ),
    }


def _labels(query: Query) -> dict[str, str]:
    return {
        "query_type": query.query_type,
        "difficulty": query.difficulty,
        "group": query.group,
    }


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _number(grade: float) -> str:
    return str(int(grade)) if float(grade).is_integer() else repr(float(grade))


def _write_lines(file: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _compare(dataset: Dataset, copy: Dataset, layout: str) -> None:
    """Raise an InputError that names what a copy does not hold as the data set does."""
    if copy.fingerprint == dataset.fingerprint and copy.supports == dataset.supports:
        return
    parts: dict[str, Callable[[Dataset], object]] = {
        "documents": lambda d: d.corpus.documents,
        "triples": lambda d: d.corpus.triples,
        "entities": lambda d: d.corpus.entities,
        "queries": lambda d: d.queries,
        "judgements": lambda d: d.qrels,
        "evidences": lambda d: d.evidences,
        "answers": lambda d: d.answers,
        "supporting texts": lambda d: d.supports,
    }
    changed = [name for name, part in parts.items() if part(dataset) != part(copy)]
    raise InputError(
        f"the layout {layout!r} cannot hold these {', '.join(changed)} as they are, so nothing "
        f"was written; try {' or '.join(repr(name) for name in LAYOUTS if name != layout)}"
    )


_WRITERS: dict[str, Callable[[Dataset, Path], None]] = {
    "beir": _write_beir,
    "samples": _write_samples,
}
_READERS: dict[str, DatasetFormat] = {"beir": Beir(), "samples": Samples()}
