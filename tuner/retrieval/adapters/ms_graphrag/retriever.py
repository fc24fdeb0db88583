"""GraphRAG's text units and graph in the built-in engine, to be tuned at the engine's speed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.json_text import digest_of
from tuner.core.rankings import NO_DOCUMENT, BoolArray, ByCount, IntArray, Rankings
from tuner.core.steps import Advance, unheard
from tuner.core.trial import Params
from tuner.retrieval.adapters.ms_graphrag.output import (
    COLUMNS,
    JudgedBy,
    Output,
    judged_ids,
    read_output,
)
from tuner.retrieval.adapters.ms_graphrag.outputs import (
    OutputFolder,
    OutputFolders,
    OutputName,
    chosen_folder,
    contents,
    output_knobs,
)
from tuner.retrieval.adapters.options import code_digest, path_from_root
from tuner.retrieval.free import FreeKnobs
from tuner.retrieval.hybrid import Hybrid
from tuner.retrieval.hybrid.options import HybridOptions
from tuner.retrieval.knobs import Knob

# What GraphRAG calls a document whose title it was not told; "(3)" is a row of that file.
_FILE_NAME = re.compile(r"\.(txt|md|csv|jsonl?|parquet|pdf|docx?|html?)( \(\d+\))?$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class MsGraphrag:
    """Answers with text units by BM25 and walks over GraphRAG's entities.

    Text units are the passages. A passage is linked to the entities and to both ends of the
    relationships that GraphRAG found in it; no other names are looked for in the texts, but for
    the documents' titles. ``top_k`` counts text units; where documents are judged, the text units
    of one document are ranked where the best of them stands, and the ranks close up.

    Attributes:
        engine: the built-in engine over the text units.
        judged: what text units are judged by, ascending; empty where these are their own ids.
        places: shape (text units,), where each of the engine's text units stands in ``judged``.
    """

    resolve_options = path_from_root("path", "outputs")

    engine: Hybrid
    judged: tuple[str, ...]
    places: IntArray
    fingerprint: str

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return those of the engine."""
        return self.engine.knobs

    @property
    def index_cost(self) -> Mapping[str, float]:
        """Return what the engine tells."""
        return self.engine.index_cost

    @classmethod
    def declare_knobs(
        cls,
        *,
        path: Any = None,  # noqa: ARG003
        outputs: Any = None,
        output: Any = None,
        judge: Any = None,  # noqa: ARG003
        **options: Any,
    ) -> tuple[Knob, ...]:
        """Return those of the engine with these options, and the choice among several outputs.

        Raises:
            InputError: impossible options.
        """
        return (*Hybrid.declare_knobs(**options), *output_knobs(outputs, output))

    @classmethod
    def identify_index(
        cls,
        settings: Params,
        *,
        path: Any = None,
        outputs: Any = None,
        output: Any = None,  # noqa: ARG003
        judge: Any = None,  # noqa: ARG003
        **options: Any,
    ) -> str:
        """Return a digest of the code, the engine's own files, and the tables of every folder."""
        own = {name: value for name, value in settings.items() if name != "output"}
        engine = Hybrid.identify_index(own, **options)
        return digest_of([code_digest("ms_graphrag"), engine, contents(path, outputs, COLUMNS)])

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        cache_dir: Path,
        path: OutputFolder = None,
        outputs: OutputFolders = None,
        output: OutputName = None,
        judge: JudgedBy = "document",
        advance: Advance = unheard,
        **options: Annotated[Any, HybridOptions],
    ) -> Self:
        """Index an output folder, or open the index of an equal one in ``cache_dir``.

        ``path`` is the folder with GraphRAG's parquet files, or ``output`` names one of the folders
        in ``outputs``; ``judge`` says whose ids the data
        set's judgements name, ``"document"`` or ``"text_unit"`` (see ``judged_ids``); ``options``
        are those of the built-in engine.

        Raises:
            InputError: a broken folder, one that does not fit the data set, or wrong options.
            TunerError: the cache cannot be written.
        """
        made = read_output(chosen_folder(path, outputs, output))
        judged_by = judged_ids(made, corpus, judge)
        engine = Hybrid.build(as_corpus(made), cache_dir=cache_dir, advance=advance, **options)
        if judge == "text_unit":
            return cls(engine, (), np.zeros(0, dtype=np.int64), engine.fingerprint)
        unit_ids = sorted(judged_by)  # the engine's order
        judged = tuple(sorted(set(judged_by.values())))
        place_of = {id_: place for place, id_ in enumerate(judged)}
        places = np.array([place_of[judged_by[id_]] for id_ in unit_ids], dtype=np.int64)
        fingerprint = digest_of([engine.fingerprint, [judged_by[id_] for id_ in unit_ids]])
        return cls(engine, judged, places, fingerprint)

    def free_knobs(self, fixed: Params, searched: Collection[str]) -> FreeKnobs:
        """Return the engine's: ``top_k`` alone where a document has several text units.

        The ranks of documents close up, so what weights mix is then not known by document.
        """
        free = self.engine.free_knobs(fixed, searched)
        return free if self._are_documents else replace(free, mixing=None)

    def telling_legs(self) -> Self:
        """Return the same retriever, whose prepared answers carry what they were mixed from."""
        return replace(self, engine=self.engine.telling_legs())

    @property
    def _are_documents(self) -> bool:
        """Say whether each text unit stands for a document of its own."""
        return len(self.judged) == len(self.places)

    def prepare(self, queries: Sequence[Query], advance: Advance = unheard) -> None:
        """Prepare the engine."""
        self.engine.prepare(queries, advance)

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer a batch.

        Raises:
            InputError: unknown parameters or values outside their range.
        """
        return self._judged(self.engine.retrieve(queries, params))

    def serve(self, query: Query, params: Params) -> Rankings:
        """Answer one query from the index alone."""
        return self._judged(self.engine.serve(query, params))

    def explain(self, queries: Sequence[Query], params: Params, rankings: Rankings) -> Rankings:
        """Return ``rankings``, its own answer to the batch, with entities and paths."""
        units = self.engine.retrieve(queries, params)
        told = self.engine.explain(queries, params, units)
        return replace(rankings, entities=told.entities, paths=told.paths)

    def _judged(self, rankings: Rankings) -> Rankings:
        """Put the judged documents in the place of their text units."""
        if not self.judged:
            return rankings
        units = rankings.documents
        documents = np.where(units == NO_DOCUMENT, NO_DOCUMENT, self.places[units])
        is_kept = _is_first(documents) & (documents != NO_DOCUMENT)
        order = np.argsort(~is_kept, axis=1, kind="stable")
        kept = np.take_along_axis(is_kept, order, axis=1)
        documents = np.where(kept, np.take_along_axis(documents, order, axis=1), NO_DOCUMENT)
        scores = rankings.scores
        if scores is not None:
            scores = np.where(kept, np.take_along_axis(scores, order, axis=1), 0.0)
        legs = rankings.legs if self._are_documents else None
        if legs is not None:
            places = np.where(legs.documents < 0, NO_DOCUMENT, self.places[legs.documents])
            legs = replace(legs, documents=places)
        # Where a text unit stands in its document is not known.
        return replace(
            rankings,
            document_ids=self.judged,
            documents=documents,
            scores=scores,
            spans=None,
            tokens=rankings.tokens if self._are_documents else None,
            legs=legs,
            by_count=None if self._are_documents else _by_count(rankings, order, kept),
        )


def _by_count(rankings: Rankings, order: IntArray, kept: BoolArray) -> ByCount:
    """Return with how many text units each document is there; it stands where ``order`` says."""
    contexts = None
    if rankings.tokens is not None:
        sums = np.cumsum(rankings.tokens, axis=1)
        contexts = np.concatenate([np.zeros((len(sums), 1)), sums], axis=1)
    return ByCount(np.where(kept, order + 1, 0), contexts)


def as_corpus(output: Output) -> Corpus:
    """Return text units as documents, with GraphRAG's entities and relationships as their facts.

    A text unit has the title of its document, unless that is a file's name.
    """
    titles = {
        id_: "" if _FILE_NAME.search(title) else title for id_, title in output.titles.items()
    }
    documents = (Document(unit.id, titles[unit.document_id], unit.text) for unit in output.units)
    return Corpus(tuple(documents), output.triples, dict(output.entities))


def _is_first(documents: IntArray) -> np.ndarray:
    """Return whether each document stands in its row for the first time."""
    is_first = np.ones(documents.shape, dtype=np.bool_)
    for column in range(1, documents.shape[1]):
        earlier = documents[:, :column] == documents[:, column, None]
        is_first[:, column] = ~earlier.any(axis=1)
    return is_first
