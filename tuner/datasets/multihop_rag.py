"""Read MultiHop-RAG: news articles, and questions with the facts in them that answer each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuner.core.corpus import Query
from tuner.datasets.collected import Collected, one_line
from tuner.datasets.dataset import Dataset
from tuner.datasets.folders import files_by_role, report_empty
from tuner.datasets.items import Item, peek_keys, read_items
from tuner.datasets.lines import ABSENT, ProblemLog

_CORPUS, _QUERIES = "articles", "questions"


class MultihopRag:
    """MultiHop-RAG, as published: two JSON files. See `MultihopRag.read`."""

    layout = (
        "a folder with MultiHop-RAG's two JSON files, or either of them beside the other: articles "
        "(title, body, url) and questions (query, answer, question_type, evidence_list)"
    )

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether the path is one of the two files, or a folder of just these two."""
        if path.is_dir():
            found = files_by_role(path, _role, layout=MultihopRag.layout)
            return {role: len(files) for role, files in found.items()} == {_CORPUS: 1, _QUERIES: 1}
        return bool(_role(path))

    @staticmethod
    def read(path: Path) -> Dataset:
        """Read and check both files; the one that is not named is found by its content.

        - articles: ``{"title", "body", "url"}``; the corpus.
        - questions: ``{"query", "answer", "question_type", "evidence_list"}``; the articles in
          the evidence list are relevant, with grade 1, found by url, or by title where there is
          none, and its ``fact`` is a supporting text. Query ids are made from the text. A
          question without evidence (a "null query") is left out with a warning.

        Raises:
            InputError: everything that is wrong, with file and record, all at once.
        """
        path = Path(path)
        collected = Collected()
        found = files_by_role(path, _role, layout=MultihopRag.layout)
        report_empty(found.get("", []), collected.log)
        corpus_file, queries_file = (
            _only(role, found.get(role, []), path, collected.log) for role in (_CORPUS, _QUERIES)
        )
        by_url, by_title = _read_articles(corpus_file, collected) if corpus_file else ({}, {})
        # Without any article, one report says why; not one more for each evidence.
        if queries_file and by_title:
            for item in read_items(queries_file, collected.log):
                _add(item, by_url, by_title, collected)
        return collected.dataset(path)


def _role(file: Path) -> str:
    keys = peek_keys(file)
    if keys >= {"query", "evidence_list"}:
        return _QUERIES
    return _CORPUS if keys >= {"title", "body", "url"} else ""


def _only(role: str, files: list[Path], path: Path, log: ProblemLog) -> Path | None:
    if len(files) == 1:
        return files[0]
    folder = path if path.is_dir() else path.parent
    if files:
        names = ", ".join(file.name for file in files)
        log.add("several", f"holds several files of {role}: {names}; keep one", folder)
    else:
        log.add("missing", f"no file of {role} here; expected {MultihopRag.layout}", folder)
    return None


def _read_articles(file: Path, collected: Collected) -> tuple[dict[str, str], dict[str, str]]:
    """Add the articles; return their ids by url and by title."""
    by_url: dict[str, str] = {}
    by_title: dict[str, str] = {}
    places: dict[str, str] = {}
    for item in read_items(file, collected.log):
        title = one_line(item.text("title"))
        # Line ends are kept: they part the paragraphs of an article.
        id_ = collected.add_document(title, item.text("body", is_required=True).strip())
        url = item.text("url")
        first = places.setdefault(url, item.place) if url else item.place
        if first != item.place and by_url[url] != id_:
            item.report("duplicate", f"another article has this url: {first}", "url")
        by_url.setdefault(url, id_)
        by_title.setdefault(title, id_)
    return by_url, by_title


def _add(
    item: Item, by_url: Mapping[str, str], by_title: Mapping[str, str], collected: Collected
) -> None:
    relevant = {}
    supports: dict[str, list[str]] = {}
    evidences = item.get("evidence_list", list, "a list of objects") or []
    for i, evidence in enumerate(evidences):
        id_, named = _article(evidence, by_url, by_title), _named(evidence)
        if id_ is None:
            message = "must be an object with the url, or the title, of one of the articles"
            got = f"; got {named!r}" if named else ""
            kind = ABSENT if named else "article"
            item.report(kind, f"{message}{got}", f"evidence_list[{i}]")
        if id_ or named:
            relevant[id_ or named] = 1.0
            supports.setdefault(id_ or named, []).extend(_facts(evidence))
    text = one_line(item.text("query", is_required=True))
    query_type, answer = item.text("question_type"), item.text("answer")
    query = Query("", text, query_type)
    collected.add_query(item, query, relevant, answers=[answer], supports=supports)


def _facts(evidence: Any) -> list[str]:
    fact = evidence.get("fact") if isinstance(evidence, dict) else None
    return [fact] if isinstance(fact, str) and fact.strip() else []


def _article(evidence: Any, by_url: Mapping[str, str], by_title: Mapping[str, str]) -> str | None:
    if not isinstance(evidence, dict):
        return None
    url, title = evidence.get("url"), evidence.get("title")
    if isinstance(url, str) and url:
        return by_url.get(url)
    return by_title.get(one_line(title)) if isinstance(title, str) else None


def _named(evidence: Any) -> str:
    """Return the url or title that evidence gives; empty where it gives none."""
    named = evidence.get("url") or evidence.get("title") if isinstance(evidence, dict) else ""
    return named if isinstance(named, str) else ""
