"""Which document of the data set is meant by what a framework found: by id, metadata or content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from tuner.core.corpus import Corpus
from tuner.core.errors import InputError, TunerError
from tuner.retrieval.adapters.answers import Passages, shown

KEY = ("id",)
OWN, CONTENT = "id", "content"
# Frameworks call it one or the other.
_METADATA = ("metadata", "meta")
_EXAMPLE = "write id: metadata.KEY, where the key of the metadata holds it, or id: content"


@dataclass(frozen=True)
class Hit:
    """One thing that was found, as its framework tells it; ``id`` is None where it has none."""

    id: Any
    metadata: Mapping[str, Any]
    content: str


@dataclass(frozen=True)
class Matching:
    """How documents are matched: ``how`` is ``"id"``, ``"content"`` or ``"metadata.KEY"``.

    ``by_content`` holds the ids of a corpus by the digest of their text, where these are asked for.
    """

    how: str
    by_content: Mapping[bytes, str] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, how: Any, corpus: Corpus) -> Matching:
        """Check the option that says how.

        Raises:
            InputError: it says none of these, or documents cannot be told by their content.
        """
        if how == OWN or _metadata_key(how):
            return cls(how)
        if how != CONTENT:
            message = f"{how!r} is none of id, content and metadata.KEY; {_EXAMPLE}"
            raise InputError(message, key=KEY)
        return cls(how, _by_content(corpus))

    def ids(self, hits: list[Hit], known: Passages) -> list[str]:
        """Return the id of each hit, in order; one that is there twice stays so.

        Raises:
            TunerError: a hit without an id, or with one that no document has.
        """
        return [self._id(hit, place, known) for place, hit in enumerate(hits, start=1)]

    def _id(self, hit: Hit, place: int, known: Passages) -> str:
        if self.how == CONTENT:
            found = self.by_content.get(_digest(hit.content))
            if found is None:
                raise TunerError(
                    f"result {place}: no document of the data set has the text "
                    f"{shown(hit.content)!r}; a part of a document is not found by its content: "
                    "keep the document's id in the metadata, and write id: metadata.KEY"
                )
            return found
        key = _metadata_key(self.how)
        given = hit.metadata.get(key) if key else hit.id
        if given is None:
            named = ", ".join(map(repr, hit.metadata)) or "nothing"
            where = f"no {key!r} in its metadata" if key else "no id"
            raise TunerError(
                f"result {place} has {where} (its metadata holds {named}){_hint(hit, known)}"
            )
        id_ = str(given)
        if known is not None and id_ not in known:
            raise TunerError(
                f"result {place}: no document of the data set has the id {shown(id_)!r} (one that "
                f"has: {min(known)!r}){_hint(hit, known)}"
            )
        return id_


def how_to_match(hits: list[Hit], corpus: Corpus, known: Passages) -> str:
    """Return the option ``id`` by which all hits are documents; empty where none does, or no hit.

    Their own ids come first, then a key of their metadata, then the text.
    """
    keys = list(hits[0].metadata) if hits else []
    for how in (OWN, *(f"metadata.{key}" for key in keys), CONTENT):
        try:
            if Matching.read(how, corpus).ids(hits, known):
                return how
        except TunerError:  # not by this
            continue
    return ""


def _hint(hit: Hit, known: Passages) -> str:
    """Say where the id of a document stands in a hit."""
    ids = known or {}
    for key, value in hit.metadata.items():
        if str(value) in ids:
            return f"; {key!r} of its metadata is one of a document: write id: metadata.{key}"
    if str(hit.id) in ids:
        return "; its own id is one of a document: write id: id"
    return f"; {_EXAMPLE}"


def _metadata_key(how: object) -> str:
    """Return the key that ``"metadata.KEY"`` names; empty where it is something else."""
    word, _, key = how.partition(".") if isinstance(how, str) else ("", "", "")
    return key if word in _METADATA else ""


def _by_content(corpus: Corpus) -> dict[bytes, str]:
    """Return ids by the digest of a document's text, with its title before it and without."""
    found: dict[bytes, str] = {}
    for document in corpus.documents:
        for text in {document.text, f"{document.title} {document.text}"}:
            other = found.setdefault(_digest(text), document.id)
            if other != document.id:
                raise InputError(
                    f"documents {other!r} and {document.id!r} have the same text, so content does "
                    "not tell which was found; keep ids in the metadata, and write id: "
                    "metadata.KEY",
                    key=KEY,
                )
    return found


def _digest(text: str) -> bytes:
    return blake2b(" ".join(text.split()).encode("utf-8", "replace"), digest_size=16).digest()
