"""Read HippoRAG's corpus and OpenIE results: passages with the triples found in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tuner.core.corpus import Corpus, Document, Triple, corpus_fingerprint
from tuner.core.errors import InputError
from tuner.core.grades import RELEVANT_FROM
from tuner.datasets.base import DatasetFormat
from tuner.datasets.collected import Collected, document_id, one_line
from tuner.datasets.dataset import Dataset
from tuner.datasets.folders import choose, files_by_role, report_empty
from tuner.datasets.hotpotqa import Hotpotqa
from tuner.datasets.items import Item, is_texts, peek, peek_keys, read_items
from tuner.datasets.lines import ProblemLog
from tuner.datasets.musique import Musique
from tuner.datasets.samples import Samples, read_samples
from tuner.datasets.wiki2 import Wiki2

_CORPUS, _FACTS, _QUESTIONS = "passages", "OpenIE results", "questions"
_PAPERS: tuple[type[DatasetFormat], ...] = (Hotpotqa, Wiki2, Musique)

_QUESTIONS_HINT = (
    "a file of questions in the same folder: the HotpotQA, 2WikiMultihopQA or MuSiQue JSON that "
    "the passages come from, or JSON lines with query and relevant_docs (titles or document ids)"
)


class Openie:
    """HippoRAG's files. See `Openie.read`."""

    layout = (
        "a folder with HippoRAG's OpenIE results (docs with extracted_entities, "
        "extracted_triples), optionally its corpus (title, text), and a file of questions "
        "(HotpotQA, 2WikiMultihopQA or MuSiQue JSON, or samples); or either of the first two files"
    )

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether the path is one of HippoRAG's own files, or a folder of nothing else."""
        if path.is_dir():
            found = files_by_role(path, _role, layout=Openie.layout)
            is_alone = "" not in found and all(len(files) == 1 for files in found.values())
            return is_alone and _FACTS in found
        return _role(path) in (_CORPUS, _FACTS)

    @staticmethod
    def read(
        path: Path,
        *,
        split: str | None = None,
        relevant_from: float = RELEVANT_FROM,
    ) -> Dataset:
        """Read and check the files of a folder; each is found by its content.

        - OpenIE results: ``{"docs": [...]}``, each with ``title`` and ``text``, or ``passage``
          (title, line feed, text), and ``extracted_entities`` and ``extracted_triples``: the
          graph. Triples that are not three strings are left out with a warning.
        - passages, optional: ``{"title", "text"}``; the corpus. Without it, the documents of the
          OpenIE results are the corpus.
        - questions: HotpotQA, 2WikiMultihopQA or MuSiQue JSON; their supporting paragraphs are
          looked up among the passages, and a question with one that is not there is left out
          with a warning. Or evaluation samples (see `Samples.read`), whose ``relevant_docs`` are
          titles or document ids: the first 12 hexadecimal digits of the SHA-1 of title, line
          feed and text.

        Of several files of questions, ``split`` names one without its suffix.

        Raises:
            InputError: everything that is wrong, with file and record, all at once.
        """
        path = Path(path)
        collected, graph = Collected(relevant_from=relevant_from), _Graph()
        found = _files(path)
        _read_graph(found, path, collected, graph)
        questions = _find_questions(found, path, split, collected.log)
        warnings = _read_questions(questions, collected) if questions is not None else ()
        return collected.dataset(
            path, triples=graph.triples, entities=graph.entities, warnings=warnings
        )


@dataclass(frozen=True)
class _Graph:
    triples: dict[Triple, None] = field(default_factory=dict)  # a set that keeps its order
    entities: dict[str, tuple[str, ...]] = field(default_factory=dict)


def _role(file: Path) -> str:
    keys = peek_keys(file)
    if keys >= {"docs", "extracted_triples"}:
        return _FACTS
    if {"title", "text"} <= keys <= {"title", "text", "idx"} and peek(file).lstrip()[:1] == "[":
        return _CORPUS
    is_asked = Samples.detect(file) or any(paper.detect(file) for paper in _PAPERS)
    return _QUESTIONS if is_asked else ""


def read_openie_corpus(path: Path) -> Corpus:
    """Read the passages and facts of HippoRAG's files, whether there are questions or not.

    Raises:
        InputError: everything that is wrong with them, with file and record, all at once.
    """
    collected, graph = Collected(), _Graph()
    _read_graph(_files(path), path, collected, graph)
    collected.log.refuse()
    found = Corpus(tuple(collected.documents.values()), tuple(graph.triples), graph.entities)
    return replace(found, fingerprint=corpus_fingerprint(found))


def _files(path: Path) -> dict[str, list[Path]]:
    return files_by_role(path, _role, layout=Openie.layout)


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _read_graph(
    found: Mapping[str, Sequence[Path]], path: Path, collected: Collected, graph: _Graph
) -> None:
    """Add the passages and the facts; report a file that is missing, empty or there twice."""
    report_empty(found.get("", []), collected.log)
    single = []
    for role in (_CORPUS, _FACTS):
        files = found.get(role, [])
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            message = f"holds several files of {role}: {names}; keep one"
            collected.log.add("several", message, _folder(path))
        elif not files and role == _FACTS:
            message = f"no {role} here; expected {Openie.layout}"
            collected.log.add("missing", message, _folder(path))
        single.append(files[0] if files else None)
    corpus, facts = single
    if corpus is not None:
        _read_passages(corpus, collected)
    if facts is not None:
        _read_facts(facts, corpus, collected, graph)


def _find_questions(
    found: Mapping[str, Sequence[Path]], path: Path, split: str | None, log: ProblemLog
) -> Path | None:
    asked, folder = found.get(_QUESTIONS, []), _folder(path)
    if not asked:
        log.add("missing", f"no questions, so nothing can be scored; add {_QUESTIONS_HINT}", folder)
    return choose(asked, folder, _QUESTIONS, log, split=split)


def _read_passages(file: Path, collected: Collected) -> None:
    for item in read_items(file, collected.log):
        title, text = one_line(item.text("title")), one_line(item.text("text"))
        if not (title or text):
            item.report("empty", "has no title and no text")
        elif document_id(title, text) in collected.documents:
            collected.odd("passages are the same as an earlier one and were left out", item)
        else:
            collected.document_places[collected.add_document(title, text)] = item


def _read_facts(file: Path, corpus: Path | None, collected: Collected, graph: _Graph) -> None:
    for item in read_items(file, collected.log, list_key="docs"):
        title, text = _passage(item)
        names = item.get("extracted_entities", list, "a list of names") or []
        triples = item.get("extracted_triples", list, "a list of triples") or []
        if not (title or text):
            item.report("empty", "has no title and no text")
            continue
        id_ = document_id(title, text)
        if corpus is None:
            collected.add_document(title, text)
        elif id_ not in collected.documents:
            collected.odd("OpenIE results are not about a passage here and were left out", item)
            continue
        found = [one_line(name) for name in names if isinstance(name, str)]
        for _ in range(len(names) - len(found)):
            collected.odd("entities are not strings and were left out", item)
        known = graph.entities.get(id_, ())
        graph.entities[id_] = tuple(dict.fromkeys([*known, *filter(None, found)]))
        for triple in triples:
            _add_triple(triple, id_, item, collected, graph)
    if corpus is not None and not graph.entities and not collected.log.mentions(file):
        message = f"is about other texts: no document has title and text of one in {corpus.name}"
        collected.log.add("unknown document", message, file)
    for id_, document in collected.documents.items():
        if id_ not in graph.entities:
            place = collected.document_places.get(id_, document.title)
            collected.odd("passages have no OpenIE result", place)


def _passage(item: Item) -> tuple[str, str]:
    """Return title and text, which later versions of HippoRAG write as one string."""
    if "title" in item.values or "text" in item.values:
        return one_line(item.text("title")), one_line(item.text("text"))
    title, line_end, text = item.text("passage", is_required=True).strip().partition("\n")
    return (one_line(title), one_line(text)) if line_end else ("", one_line(title))


def _add_triple(triple: object, id_: str, item: Item, collected: Collected, graph: _Graph) -> None:
    parts = [one_line(part) for part in triple] if is_texts(triple) else []
    if len(parts) == 3 and parts[0] and parts[2]:
        graph.triples[Triple(id_, *parts)] = None
    else:
        what = "triples do not have three parts (subject, relation, object) and were left out"
        collected.odd(what, item)


def _read_questions(file: Path, collected: Collected) -> tuple[str, ...]:
    """Add the questions of a file; return the warnings about it."""
    paper = next((paper for paper in _PAPERS if paper.detect(file)), None)
    if paper is None:
        document_of = _finder(collected.documents)
        unknown = "no passage has this id, and not just one has this title"
        read_samples(file, collected, document_of, unknown=unknown)
        return ()
    try:
        asked = paper.read(file)
    except InputError as error:
        raise InputError(problems=[*collected.log.problems(), *error.problems]) from error
    for query in asked.queries:
        relevant = asked.qrels[query.id]
        if not relevant.keys() <= collected.documents.keys():
            what = "questions have a relevant paragraph that is no passage here and were left out"
            collected.odd(what, query.id)
            continue
        collected.queries[query.id] = query
        collected.qrels[query.id] = dict(relevant)
    collected.evidences.update(asked.evidences)  # those of the left-out ones are dropped later
    collected.answers.update(asked.answers)
    collected.supports.update(asked.supports)
    return asked.warnings


def _finder(documents: Mapping[str, Document]) -> Callable[[str], str | None]:
    """Return a function from an id, or from the title of just one passage, to the id."""
    titles = Counter(document.title for document in documents.values())
    by_title = {d.title: id_ for id_, d in documents.items() if titles[d.title] == 1}
    return lambda name: name if name in documents else by_title.get(one_line(name))
