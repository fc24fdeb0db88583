"""Read evaluation samples: questions with what they should retrieve, one JSON object a line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

from tuner.core.checks import is_number
from tuner.core.corpus import Query
from tuner.core.errors import did_you_mean
from tuner.core.grades import RELEVANT_FROM
from tuner.core.steps import Advance, unheard
from tuner.datasets.collected import Collected
from tuner.datasets.dataset import Dataset, Evidence, Step
from tuner.datasets.folders import (
    SAMPLE_KEYS,
    choose,
    is_samples,
    only_variant,
    sample_files,
    variants,
)
from tuner.datasets.items import Item, is_texts, read_items
from tuner.datasets.lines import ABSENT, ProblemLog, json_type
from tuner.datasets.texts import PATHS_SHAPE, parse_paths, read_corpus, read_graph

PREFERRED_SPLIT = "samples"
DIFFICULTIES = ("easy", "medium", "hard")

_KEYS = SAMPLE_KEYS | {
    "id", "_id", "grades", "supporting_texts", "expected_answer", "answer_aliases", "difficulty",
    "query_type", "group",
}  # fmt: skip


class Samples:
    """Evaluation samples beside their corpus. See `Samples.read`."""

    layout = (
        "a folder with corpus.jsonl and samples.jsonl, or the latter file: JSON lines with query, "
        "relevant_docs (or relevant_entities, relevant_paths) and optional id, grades, "
        "expected_answer, difficulty, query_type; optional: triples.jsonl, entities.jsonl"
    )

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether the path is a file of samples, or a folder with one and no judgements."""
        return bool(sample_files(path)) if path.is_dir() else is_samples(path)

    @staticmethod
    def read(
        path: Path,
        *,
        split: str | None = None,
        relevant_from: float = RELEVANT_FROM,
        advance: Advance = unheard,
    ) -> Dataset:
        """Read and check samples, and the corpus.jsonl of the same folder.

        Of several files of samples in a folder, ``split`` names one without its suffix; by
        default it is ``samples.jsonl``, or the only one. Each line holds:

        - corpus: ``{"_id", "title", "text"}``; the title may be missing.
        - samples: ``query``, and at least one of ``relevant_docs`` (a list of document ids),
          ``relevant_entities`` and ``relevant_paths`` (lists of ``[subject, relation, object]``):
          what a sample does not label is undefined in the metrics of that label. Optional: ``id``
          (made from the text where it is missing), ``grades`` (document id -> grade; a relevant
          document without one has grade 1), ``expected_answer``, ``answer_aliases``,
          ``difficulty``, ``query_type`` and ``group``.
          ``supporting_texts``: document id -> texts in it that hold the answer.
        - triples and entities: as in the BEIR layout.

        Samples without any label are left out with a warning; an unknown key, and a
        difficulty other than easy, medium and hard, are warned of.

        Raises:
            InputError: everything that is wrong, with file and line, all at once.
        """
        path = Path(path)
        folder = path if path.is_dir() else path.parent
        log = ProblemLog(advance)
        file = _choose(path, split, log)
        corpus_file = only_variant(variants(folder, "corpus.jsonl"), log)
        if corpus_file is None and not log.mentions(folder / "corpus.jsonl"):
            log.add("missing", f"not found; expected {Samples.layout}", folder / "corpus.jsonl")
        corpus = read_corpus(corpus_file, log) if corpus_file else None
        # Where a file gave no id at all, one report says why; not one more for each use of an id.
        ids = corpus.lines.keys() if corpus and corpus.lines else None
        collected = Collected(
            log,
            {d.id: d for d in (corpus.documents if corpus else ())},
            relevant_from=relevant_from,
            may_lack_documents=True,
        )
        if file is not None:
            read_samples(file, collected, _known(ids), unknown="not in the corpus")
        triples, entities = read_graph(folder, log, ids)
        return collected.dataset(path, triples=triples, entities=entities)


def _known(ids: Collection[str] | None) -> Callable[[str], str | None]:
    return lambda name: name if ids is None or name in ids else None


def _choose(path: Path, split: str | None, log: ProblemLog) -> Path | None:
    # A samples.jsonl of other or no records is read too, so that these are told.
    files = [path] if path.is_file() else sample_files(path) or variants(path, "samples.jsonl")
    if not files:
        log.add("missing", f"no file of samples here; expected {Samples.layout}", path)
    return choose(files, path, "samples", log, split=split, preferred=PREFERRED_SPLIT)


def read_samples(
    file: Path, collected: Collected, document_of: Callable[[str], str | None], *, unknown: str
) -> None:
    """Add the samples of a file.

    ``document_of`` finds a document's id by what the samples call it; where it returns None, the
    document is reported as ``unknown``.
    """
    for item in read_items(file, collected.log):
        relevant = _relevant(item, document_of, unknown, collected.relevant_from)
        text, id_ = item.text("query", is_required=True), item.id("id", "_id")
        query_type, difficulty, group = map(item.text, ("query_type", "difficulty", "group"))
        evidence = Evidence(item.texts("relevant_entities"), _paths(item))
        answers = [item.text("expected_answer"), *item.texts("answer_aliases")]
        query = Query(id_, text, query_type, difficulty, group)
        supports = {document_of(name) or name: texts for name, texts in _supports(item).items()}
        collected.add_query(item, query, relevant, evidence, answers=answers, supports=supports)
        for key in sorted(item.values.keys() - _KEYS):
            hint = did_you_mean(key, _KEYS)
            hint = hint if "did you mean" in hint else ""
            collected.odd(f"samples have the unknown key {key!r}{hint}", item)
        if difficulty and difficulty not in DIFFICULTIES:
            levels = ", ".join(DIFFICULTIES)
            collected.odd(f"samples have the difficulty {difficulty!r}, not {levels}", item)


def _relevant(
    item: Item, document_of: Callable[[str], str | None], unknown: str, relevant_from: float
) -> dict[str, float]:
    has_others = any(item.values.get(name) for name in ("relevant_entities", "relevant_paths"))
    if "relevant_docs" not in item.values and has_others:
        listed: tuple[str, ...] = ()  # judged by its names and paths
    else:
        listed = item.texts("relevant_docs") if item.get("relevant_docs", list, "a list") else ()
    grades = _grades(item)
    for name in dict.fromkeys((*listed, *grades)):
        if document_of(name) is None:
            item.report(ABSENT, f"unknown document {name!r}: {unknown}")
    for name, times in Counter(listed).items():
        if times > 1:
            item.report("repeat", f"the document {name!r} is there {times} times", "relevant_docs")
    for name in listed:
        if name in grades and grades[name] < relevant_from:
            message = f"{name!r} is in 'relevant_docs', but its grade is below {relevant_from:g}"
            item.report("grade", message, "grades")
    graded = {**dict.fromkeys(listed, 1.0), **grades}
    return {document_of(name) or name: grade for name, grade in graded.items()}


def _grades(item: Item) -> dict[str, float]:
    if item.values.get("grades") is None:
        return {}
    found = {}
    grades = item.get("grades", dict, "an object of document id and grade") or {}
    for name, grade in grades.items():
        if is_number(grade) and math.isfinite(grade):
            found[name] = float(grade)
        else:
            message = f"must be a finite number such as 0, 1 or 2, got {json_type(grade)}"
            item.report("grade", message, f"grades[{name!r}]")
    return found


def _supports(item: Item) -> dict[str, list[str]]:
    if item.values.get("supporting_texts") is None:
        return {}
    expected = "an object of document id and list of texts"
    told = item.get("supporting_texts", dict, expected) or {}
    for name in [name for name, texts in told.items() if not is_texts(texts)]:
        item.report("supporting", "must be a list of strings", f"supporting_texts[{name!r}]")
        del told[name]
    return told


def _paths(item: Item) -> tuple[tuple[Step, ...], ...]:
    paths = parse_paths(item.values.get("relevant_paths"))
    if paths is None:
        item.report("paths", f"must be {PATHS_SHAPE}", "relevant_paths")
    return paths or ()
