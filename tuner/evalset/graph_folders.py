"""The facts and passages of a graph that Microsoft GraphRAG or LightRAG made, from its folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tuner.core.corpus import Corpus, Document, Triple
from tuner.core.errors import InputError
from tuner.retrieval.adapters.lightrag.working_dir import CHUNKS, GRAPH
from tuner.retrieval.adapters.ms_graphrag.output import read_output, table_path

_SEPARATOR = "<SEP>"
# A relation of more words says more than how two names are related.
_MOST_WORDS = 10
# Marks and words behind which another thing is said.
_SEVERAL = re.compile(r"[.,;:!?]|\band\b|\bor\b", re.IGNORECASE)
_XML = "{http://graphml.graphdrawing.org/xmlns}"


def read_graph_folder(place: Path) -> Corpus | None:
    """Read a folder's graph; None where it is neither GraphRAG's output nor LightRAG's.

    Its passages are text units or chunks, by their own ids: study it with ``judge: text_unit``, or
    with ``working_dir``. A relation is what its description says between the two names, or, of
    LightRAG, its first keyword; the name that comes first in the description is the subject. What
    says neither in a few words is no fact to ask for: of GraphRAG these may be many.

    Raises:
        InputError: a file is missing or broken.
    """
    for folder in (place, place / "output"):
        if table_path(folder, "text_units").is_file():
            return _of_graphrag(folder)
    if (place / CHUNKS).is_file() or (place / GRAPH).is_file():
        return _of_lightrag(place)
    return None


def _of_graphrag(folder: Path) -> Corpus:
    output = read_output(folder)
    documents = tuple(
        Document(unit.id, Path(output.titles[unit.document_id]).stem, unit.text)
        for unit in output.units
    )
    facts = (
        _fact(one.document_id, one.subject, one.object, one.relation) for one in output.triples
    )
    return Corpus(documents, tuple(filter(None, facts)), dict(output.entities))


def _of_lightrag(folder: Path) -> Corpus:
    chunks = _chunks(folder / CHUNKS)
    graph = _graph(folder / GRAPH)
    documents = tuple(
        Document(id_, "", str(chunk.get("content", ""))) for id_, chunk in chunks.items()
    )
    entities: dict[str, list[str]] = {id_: [] for id_ in chunks}
    for node in graph.nodes:
        for id_ in _sources(node, chunks):
            entities[id_].append(node["id"])
    facts = (
        _fact(id_, edge["source"], edge["target"], edge.get("description", ""), keyword)
        for edge in graph.edges
        for keyword in [re.split(rf"[,;]|{_SEPARATOR}", edge.get("keywords", ""))[0].strip()]
        for id_ in _sources(edge, chunks)
    )
    named = {id_: tuple(names) for id_, names in entities.items() if names}
    return Corpus(documents, tuple(filter(None, facts)), named)


def _fact(id_: str, first: str, second: str, told: str, keyword: str = "") -> Triple | None:
    """Return a fact with a relation of few words; None where its description has none.

    >>> _fact("t1", "KVARNBY", "ADA HOLM", "Ada Holm was born in Kvarnby.")
    Triple(document_id='t1', subject='ADA HOLM', relation='was born in', object='KVARNBY')
    >>> _fact("t1", "Ada Holm", "Kvarnby", "They are related.") is None
    True
    """
    text = " ".join(told.split(_SEPARATOR)[0].split())
    if keyword:
        found = {name: text.casefold().find(name.casefold()) for name in (first, second)}
        is_turned = min(found.values()) >= 0 and found[second] < found[first]
        return Triple(id_, *((second, keyword, first) if is_turned else (first, keyword, second)))
    for sentence in re.split(r"(?<=[.!?])\s+", text):
        for subject, object_ in ((first, second), (second, first)):
            said = re.match(
                rf"(?:the )?{re.escape(subject)}\s+(.+?)\s+(?:the |a |an )?{re.escape(object_)}\b",
                sentence,
                re.IGNORECASE,
            )
            if said and len(said[1].split()) <= _MOST_WORDS and not _SEVERAL.search(said[1]):
                return Triple(id_, subject, said[1], object_)
    return None


def _chunks(path: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=str(path)) from error
    if not isinstance(content, dict) or not all(isinstance(c, dict) for c in content.values()):
        raise InputError("does not hold LightRAG's chunks", file=str(path))
    return content


@dataclass(frozen=True)
class _Graph:
    """Nodes with ``id``, edges with ``source`` and ``target``, and what is noted of each."""

    nodes: tuple[Mapping[str, str], ...]
    edges: tuple[Mapping[str, str], ...]


def _graph(path: Path) -> _Graph:
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise InputError(f"is no graph: {error}", file=str(path)) from error
    called = {key.get("id", ""): key.get("attr.name", "") for key in root.iter(f"{_XML}key")}

    def noted(element: ElementTree.Element) -> dict[str, str]:
        data = element.iter(f"{_XML}data")
        found = {called.get(one.get("key", ""), ""): one.text or "" for one in data}
        return {**found, **element.attrib}

    return _Graph(
        tuple(map(noted, root.iter(f"{_XML}node"))), tuple(map(noted, root.iter(f"{_XML}edge")))
    )


def _sources(noted: Mapping[str, str], chunks: Mapping[str, Any]) -> Iterator[str]:
    """Yield the chunks that a node or an edge was found in."""
    return (id_ for id_ in noted.get("source_id", "").split(_SEPARATOR) if id_ in chunks)
