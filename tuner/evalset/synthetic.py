"""Build an evaluation set from a graph of facts: questions, answers, documents and evidence."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, did_you_mean
from tuner.datasets.collected import question_id
from tuner.datasets.dataset import Dataset, Evidence, Step
from tuner.evalset.drafts import Draft, Drafts
from tuner.evalset.facts import Fact, FactGraph, documents_of
from tuner.evalset.wording import (
    LANGUAGES,
    Wording,
    is_chinese,
    load_wording,
    quantity_words,
    vague_relations,
)

KINDS = ("1hop", "2hop", "3hop", "comparison", "intersection")
LEVELS = ("easy", "medium", "hard")

BIAS = (
    "these questions were made from the graph, so they favour retrievers that use this graph: "
    "find faults and compare graph settings with them, but confirm on people's questions that the "
    "graph helps at all"
)


@dataclass(frozen=True)
class Options:
    """What to build. Ranges: ``count`` and ``most_…`` at least 1.

    Attributes:
        count: how many questions, shared out evenly among the kinds.
        kinds: which of ``KINDS``.
        language: ``english``, ``chinese``, or ``auto``: that of the names in each question.
        relations: relation -> how it is worded; see `read_relations`.
        seed: draws the questions; the same seed, graph and options give the same ones.
        most_answers: a question with more answers is left out: it asks for a list.
        most_documents: a question that more documents support is left out.
        most_per_name: of one kind, so many questions start from the same name.
        hub_degree: a name with so many neighbours makes a question one level harder.
    """

    count: int = 100
    kinds: tuple[str, ...] = KINDS
    language: str = "auto"
    relations: Mapping[str, Mapping[str, str]] | None = None
    seed: int = 0
    most_answers: int = 5
    most_documents: int = 10
    most_per_name: int = 2
    hub_degree: int = 20

    def __post_init__(self) -> None:
        for name in ("count", "most_answers", "most_documents", "most_per_name", "hub_degree"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)}: must be at least 1")
        for kind in self.kinds:
            if kind not in KINDS:
                raise InputError(f"unknown kind of question {kind!r}{did_you_mean(kind, KINDS)}")
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise InputError(f"name each kind of question once, of: {', '.join(KINDS)}")
        choices = ("auto", *LANGUAGES)
        if self.language not in choices:
            hint = did_you_mean(self.language, choices)
            raise InputError(f"unknown language {self.language!r}{hint}")


@dataclass(frozen=True)
class _Question:
    draft: Draft
    text: str
    answers: tuple[str, ...]
    documents: tuple[str, ...]


def build_from_graph(
    corpus: Corpus, path: str, *, name: str = "graph", options: Options | None = None
) -> Dataset:
    """Make questions from the triples of a corpus, as a data set over the same corpus.

    - **Text**: from templates; see `Wording`. No two questions have the same text.
    - **Answers**: all that satisfy the question. Those whose name stands in the question are no
      question, except in a comparison.
    - **Relevant documents**, grade 1: each document that states a fact on a path to an answer. A
      question of several hops has facts in at least two documents on each path, or it is left out.
    - **Evidence**: the names and the paths.
    - **Difficulty**: one level for each hop (comparison and intersection: two), and one more where
      a name on the way, other than an answer, has ``hub_degree`` neighbours; 1 is easy, 2 medium,
      3 and more hard.
    - **Group**: the first name in the question, so that a split keeps those questions together.

    ``path`` says where the corpus came from. What was left out is told in ``warnings``.

    Raises:
        InputError: no triples, or no question can be made of them.
    """
    if not corpus.triples:
        raise InputError(
            "there are no triples, and questions are made from them; add triples.jsonl with lines "
            '{"doc_id", "subject", "relation", "object"}',
            file=path,
        )
    options = options or Options()
    graph = FactGraph.build(corpus)
    maker = _Maker(graph, options, _wordings(options))
    questions = maker.questions()
    if not questions:
        raise InputError(f"no question can be made of the triples{maker.why_not()}", file=path)
    queries, qrels, evidences, answers = [], {}, {}, {}
    for question in questions:
        id_ = question_id(question.text)
        draft = question.draft
        group = graph.label(draft.named[0])
        queries.append(Query(id_, question.text, draft.kind, maker.difficulty(draft), group))
        qrels[id_] = dict.fromkeys(question.documents, 1.0)
        evidences[id_] = _evidence(graph, draft)
        answers[id_] = question.answers
    return Dataset.create(
        name,
        path,
        documents=corpus.documents,
        triples=corpus.triples,
        entities=corpus.entities,
        queries=queries,
        qrels=qrels,
        evidences=evidences,
        answers=answers,
        warnings=[BIAS, *maker.warnings(questions)],
    )


class _Maker:
    """Draws drafts of all kinds in turn, and keeps those that make a question."""

    def __init__(self, graph: FactGraph, options: Options, wordings: Mapping[str, Wording]) -> None:
        self._graph = graph
        self._options = options
        self._wordings = wordings
        self._skipped: Counter[str] = Counter()
        self._texts: set[str] = set()

    def questions(self) -> list[_Question]:
        options = self._options
        sources = {kind: self._accepted(kind) for kind in options.kinds}
        found: list[_Question] = []
        while sources and len(found) < options.count:
            # In turn, so that each kind has its share, and one that runs out leaves it to others.
            for kind in list(sources):
                question = next(sources[kind], None)
                if question is None:
                    del sources[kind]
                elif len(found) < options.count:
                    found.append(question)
        rank = {kind: position for position, kind in enumerate(options.kinds)}
        return sorted(found, key=lambda question: rank[question.draft.kind])

    def difficulty(self, draft: Draft) -> str:
        passed = {*draft.named, *(fact.subject for path in draft.paths for fact in path)}
        is_hub = any(
            self._graph.degrees.get(name, 0) >= self._options.hub_degree
            for name in passed - set(draft.answers)
        )
        level = len(draft.relations) if draft.form == "path" else 2
        return LEVELS[min(level + is_hub, len(LEVELS)) - 1]

    def warnings(self, questions: Sequence[_Question]) -> list[str]:
        told = []
        made = Counter(question.draft.kind for question in questions)
        options = self._options
        if len(questions) < options.count:
            counts = ", ".join(f"{made[kind]} {kind}" for kind in options.kinds)
            told.append(
                f"only {len(questions)} of {options.count} questions could be made: {counts}"
            )
        unsure = sum(self._is_told_elsewhere(question) for question in questions)
        if unsure:
            told.append(
                f"{unsure} questions have two names that a further document links by another "
                "relation; where it says the same in other words, its judgement is missing"
            )
        told += [f"{n} drafts {what} and were left out" for what, n in self._skipped.items()]
        return told

    def why_not(self) -> str:
        reasons = ", ".join(f"{n} drafts {what}" for what, n in self._skipped.items())
        return f": {reasons}" if reasons else "; their relations say too little, or lead nowhere"

    def _is_told_elsewhere(self, question: _Question) -> bool:
        linked = {
            id_
            for path in question.draft.paths
            for step in path
            for fact in self._graph.between(step.subject, step.object)
            for id_ in fact.documents
        }
        return not linked <= set(question.documents)

    def _accepted(self, kind: str) -> Iterator[_Question]:
        per_name: Counter[str] = Counter()
        for draft in self._drafts(kind):
            if per_name[draft.named[0]] >= self._options.most_per_name:
                continue
            question = self._worded(draft)
            reason = self._objection(question)
            if reason:
                self._skipped[reason] += 1
                continue
            key = question.text.casefold()
            if key in self._texts:
                continue
            self._texts.add(key)
            per_name[draft.named[0]] += 1
            yield question

    def _drafts(self, kind: str) -> Iterator[Draft]:
        most = self._options.most_answers
        drafts = Drafts(self._graph, self._order, vague_relations(), most, quantity_words())
        match kind:
            case "comparison":
                return drafts.comparisons()
            case "intersection":
                return drafts.intersections()
            case _:
                return drafts.paths(int(kind[0]))

    def _order(self, key: object) -> bytes:
        # A hash instead of a shuffle: one fact more or less leaves the draw of the others alone.
        return hashlib.sha256(repr((self._options.seed, key)).encode()).digest()

    def _worded(self, draft: Draft) -> _Question:
        graph = self._graph
        names = [graph.label(name) for name in draft.named]
        relations = [graph.relation_label(relation) for relation in draft.relations]
        wording = self._wording([*names, *relations])
        if draft.form == "path":
            text = wording.path(names[0], relations)
        elif draft.form == "intersection":
            text = wording.intersection(list(zip(relations, names, strict=True)))
        else:
            text = wording.comparison(draft.form, relations[0], names[0], names[1])
        answers = tuple(sorted(graph.label(name) for name in draft.answers))
        if draft.is_true is not None:
            answers = (wording.answer("yes" if draft.is_true else "no"),)
        documents = documents_of(fact for path in draft.paths for fact in path)
        return _Question(draft, text, answers, documents)

    def _wording(self, texts: Sequence[str]) -> Wording:
        language = self._options.language
        if language == "auto":
            language = "chinese" if any(map(is_chinese, texts)) else "english"
        return self._wordings[language]

    def _objection(self, question: _Question) -> str:
        draft = question.draft
        if len(question.documents) > self._options.most_documents:
            return f"are supported by more than {self._options.most_documents} documents"
        if draft.form == "path":
            lowered = question.text.casefold()
            if any(answer.casefold() in lowered for answer in question.answers):
                return "name their answer"
            if len(draft.relations) > 1 and any(map(_stands_in_one, draft.paths)):
                return "have all facts of a path in one document"
        if draft.kind == "comparison" and _stands_in_one([path[0] for path in draft.paths]):
            return "compare what stands in one document"
        return ""


def _stands_in_one(path: Sequence[Fact]) -> bool:
    return bool(set[str].intersection(*(set(fact.documents) for fact in path)))


def _wordings(options: Options) -> dict[str, Wording]:
    languages = LANGUAGES if options.language == "auto" else (options.language,)
    return {name: load_wording(name, relations=options.relations) for name in languages}


def _evidence(graph: FactGraph, draft: Draft) -> Evidence:
    paths: list[tuple[Step, ...]] = [
        tuple(
            (
                graph.label(fact.subject),
                graph.relation_label(fact.relation),
                graph.label(fact.object),
            )
            for fact in path
        )
        for path in draft.paths
    ]
    names = (name for path in paths for step in path for name in (step[0], step[2]))
    return Evidence(tuple(dict.fromkeys(names)), tuple(paths))
