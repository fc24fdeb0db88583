"""The hybrid engine: BM25 and a graph of names, fused; the retriever that ships with the tuner."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Self

import numpy as np

from tuner.core.account import Account
from tuner.core.corpus import Corpus, Query, corpus_fingerprint
from tuner.core.errors import InputError, TunerError
from tuner.core.feature_rule import Seen
from tuner.core.json_text import digest_of
from tuner.core.rankings import BoolArray, FloatArray, IntArray, Legs, Rankings
from tuner.core.steps import Advance, unheard
from tuner.core.trial import Params
from tuner.retrieval.free import FreeKnobs, Mixing, Share
from tuner.retrieval.hybrid.account import account
from tuner.retrieval.hybrid.batch import Batch
from tuner.retrieval.hybrid.cache import ensure
from tuner.retrieval.hybrid.embedders import NONE as NO_EMBEDDER
from tuner.retrieval.hybrid.embedders import identity
from tuner.retrieval.hybrid.fusion import (
    SCORE_STEP,
    Groups,
    best,
    fuse,
    normalise_graph,
    normalise_text,
)
from tuner.retrieval.hybrid.index import Index, open_index
from tuner.retrieval.hybrid.knobs import Settings, knobs_of, read_params
from tuner.retrieval.hybrid.mixture import mixed
from tuner.retrieval.hybrid.options import HybridOptions, read_options
from tuner.retrieval.hybrid.prepared import open_prepared, write_prepared
from tuner.retrieval.hybrid.rerank import LEXICAL, NONE, Questions, by_coverage, model_scores
from tuner.retrieval.hybrid.sources import code_digest
from tuner.retrieval.hybrid.trace import read_relations, trace, write_relations
from tuner.retrieval.knobs import Knob

# Its own `fuse`, as data: what scores 0 after rounding is not returned.
_MIXING = Mixing(
    {"graph": Share("graph_weight"), "text": Share("graph_weight", is_rest=True)},
    step=SCORE_STEP,
    least=0.0,
    graph="graph",
)


@dataclass(frozen=True)
class Hybrid:
    """Retrieve passages by text and by walks through the graph of names.

    Small and picklable: it knows where its index lies, and each process opens that once.

    >>> from tempfile import TemporaryDirectory
    >>> from tuner.core.corpus import Document
    >>> corpus = Corpus((
    ...     Document("1", "Marie Curie", "Marie Curie was born in Warsaw."),
    ...     Document("2", "Warsaw", "Warsaw lies on the river Vistula."),
    ... ))
    >>> with TemporaryDirectory() as cache:
    ...     engine = Hybrid.build(corpus, cache_dir=Path(cache))
    ...     engine.serve(Query("q", "On which river lies the city of Marie Curie?"), {}).ids(0)
    ['1', '2']
    """

    directory: Path
    fingerprint: str
    options: HybridOptions
    tells_legs: bool = False
    _prepared: list[Path] = field(default_factory=list, repr=False, compare=False)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Return what can be tuned; the options that it was built with are the defaults."""
        return tuple(knobs_of(self.options).values())

    @property
    def index_cost(self) -> Mapping[str, float]:
        """Return how many words an embedder read; nothing where none did."""
        if self.options.embedder == NO_EMBEDDER:
            return {}
        return {"tokens": float(self._index().token_counts.sum())}

    def free_knobs(self, fixed: Params, searched: Collection[str]) -> FreeKnobs:
        """Return ``top_k``, and ``graph_weight`` where nothing orders the passages anew."""
        reranker = fixed.get("rerank", self.options.rerank)
        is_mixed = reranker == NONE and "rerank" not in searched
        return FreeKnobs(("top_k",), _MIXING if is_mixed else None)

    def telling_legs(self) -> Hybrid:
        """Return the same engine, whose prepared answers carry what they were mixed from."""
        return replace(self, tells_legs=True)

    @classmethod
    def declare_knobs(cls, **options: Any) -> tuple[Knob, ...]:
        """Return the knobs of an engine with these options.

        Raises:
            InputError: unknown or impossible options.
        """
        return tuple(knobs_of(read_options(options)).values())

    @classmethod
    def identify_index(cls, settings: Params, **options: Any) -> str:
        """Return a digest of the code and the files that shape an index."""
        return _made_by(read_options({**options, **settings}))

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        cache_dir: Path,
        advance: Advance = unheard,
        **options: Annotated[Any, HybridOptions],
    ) -> Self:
        """Index the corpus, or open the index of an equal corpus and options in ``cache_dir``.

        ``options`` are the fields of ``HybridOptions``; ``advance`` is told how far it is.

        Raises:
            InputError: unknown or impossible options, no documents, or an id that occurs twice.
            TunerError: the cache cannot be written.
        """
        checked = read_options(options)
        fingerprint = _fingerprint(corpus, checked)
        directory = Path(cache_dir).absolute() / f"hybrid-{fingerprint}" / "index"

        def write(unfinished: Path) -> None:
            Index.build(corpus, checked, advance).save(unfinished)
            write_relations(unfinished, corpus)

        ensure(directory, write)
        return cls(directory, fingerprint, checked)

    def prepare(self, queries: Sequence[Query], advance: Advance = unheard) -> None:
        """Work out ahead of the trials what does not depend on parameters; keeps it on disk.

        Queries prepared in one call are quick in any selection and order.

        Raises:
            TunerError: the cache cannot be written.
        """
        unique = {query.text: query for query in queries}
        ordered = [unique[text] for text in sorted(unique)]
        if not ordered:
            return
        key = digest_of([[q.text, q.id] for q in ordered])
        directory = self.directory.with_name(f"queries-{key}")

        def write(unfinished: Path) -> None:
            write_prepared(unfinished, self._index(), ordered, advance)

        ensure(directory, write)
        if directory not in self._prepared:
            self._prepared.append(directory)

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer a batch; from prepared work where one call of ``prepare`` covered all of it.

        Raises:
            InputError: unknown parameters or values outside their range.
        """
        settings = read_params(params, knobs_of(self.options))
        started = perf_counter()
        for directory in reversed(self._prepared):
            batch = open_prepared(directory).batch(queries)
            if batch is not None:
                return self._from_batch(queries, batch, settings, started)
        return self._live(queries, settings)

    def features_of(
        self,
        queries: Sequence[Query],
        params: Params,  # noqa: ARG002  # as in TellsFeatures
    ) -> Seen:
        """Return how rare the words of each query are, and which names its walks start from."""
        lookup = self._index().lookup
        found = [lookup.seen(query.text) for query in queries]
        return {
            name: np.array([one[name] for one in found]) for name in (found[0] if found else ())
        }

    def serve(self, query: Query, params: Params) -> Rankings:
        """Answer one query from the index alone, ranking every document."""
        return self._live([query], read_params(params, knobs_of(self.options)))

    def explain(self, queries: Sequence[Query], params: Params, rankings: Rankings) -> Rankings:
        """Return ``rankings``, its own answer to the batch, with names and paths of the graph.

        Both are empty where ``graph_weight`` is 0. With ``passage_weight``, walks that start from
        the names of the best passage by text are among them.
        """
        settings = read_params(params, knobs_of(self.options))
        if settings.graph_weight == 0:
            return replace(rankings, entities=[[]] * len(queries), paths=[[]] * len(queries))
        traced = list(
            trace(
                self._index(),
                read_relations(self.directory),
                queries,
                rankings.documents,
                settings=settings,
            )
        )
        return replace(
            rankings,
            entities=[entities for entities, _ in traced],
            paths=[paths for _, paths in traced],
        )

    def account(self, query: Query, params: Params, rankings: Rankings) -> Account:
        """Return how ``rankings``, its own answer to ``query`` alone, came about."""
        settings = read_params(params, knobs_of(self.options))
        relations = read_relations(self.directory)
        return account(self._index(), relations, query, rankings, settings)

    def _index(self) -> Index:
        try:
            return open_index(self.directory, self.options)
        except FileNotFoundError as error:
            raise TunerError(
                f"the index in {self.directory} is gone: build the retriever again"
            ) from error

    def _from_batch(
        self, queries: Sequence[Query], batch: Batch, settings: Settings, started: float
    ) -> Rankings:
        looked_up = perf_counter()
        text = batch.text_scores(settings)
        if settings.graph_weight > 0:
            graph = batch.graph_scores(settings)
            has_starts = settings.passage_weight > 0
            is_used = graph.max(axis=1, initial=0.0) > 0 if has_starts else batch.has_seeds
        else:
            graph = text
            is_used = np.zeros(len(queries), dtype=bool)
        scored = perf_counter()
        fused = fuse(graph, text, settings.graph_weight)
        columns, scores = best(fused, settings.ranked, batch.groups)
        passages = np.take_along_axis(batch.pool, columns, axis=1).astype(np.int64)
        passages[columns < 0] = -1
        if settings.rerank != NONE:
            covered = np.take_along_axis(batch.questions.covered, columns, axis=1)
            questions = Questions(batch.questions.weights, covered)
            passages, scores = self._reranked(queries, passages, scores, questions, settings)
        times = {"text": looked_up - started, "graph": scored - looked_up}
        rankings = self._rankings(queries, passages, scores, is_used, times, scored)
        if not self.tells_legs or settings.rerank != NONE or settings.graph_weight == 0:
            return rankings
        return replace(rankings, legs=self._legs(batch, graph, text))

    def _legs(self, batch: Batch, graph: Any, text: Any) -> Legs:
        index, pool = self._index(), batch.pool
        tokens = np.where(pool >= 0, index.token_counts[pool], 0.0)
        documents, spans = index.documents_of(pool)
        return Legs(("graph", "text"), documents, np.stack([graph, text]), tokens, spans)

    def _live(self, queries: Sequence[Query], settings: Settings) -> Rankings:
        index = self._index()
        started = perf_counter()
        lexical, dense = index.text_parts(list(queries))
        text = lexical
        if dense is not None:
            text = normalise_text(mixed(lexical, dense, settings.dense_weight))
        matched = perf_counter()
        graph = text
        is_used = np.zeros(len(queries), dtype=bool)
        if settings.graph_weight > 0:
            starts = index.best_passages(lexical, dense) if settings.passage_weight > 0 else None
            texts = [query.text for query in queries]
            graph = normalise_graph(index.graph_scores(texts, settings, starts))
            is_used = graph.max(axis=1, initial=0.0) > 0
        scored = perf_counter()
        fused = fuse(graph, text, settings.graph_weight)
        groups = None
        if index.owners is not None:
            groups = Groups.of(np.broadcast_to(index.owners, fused.shape))
        passages, scores = best(fused, settings.ranked, groups)
        if settings.rerank != NONE:
            questions = Questions.of(index.bm25, [query.text for query in queries], passages)
            passages, scores = self._reranked(queries, passages, scores, questions, settings)
        times = {"text": matched - started, "graph": scored - matched}
        return self._rankings(queries, passages, scores, is_used, times, scored)

    def _reranked(
        self,
        queries: Sequence[Query],
        passages: IntArray,
        scores: FloatArray,
        questions: Questions,
        settings: Settings,
    ) -> tuple[IntArray, FloatArray]:
        count, depth = settings.top_k, settings.rerank_depth
        if settings.rerank == LEXICAL:
            order, ranked = by_coverage(scores, questions, depth=depth, count=count)
            return np.take_along_axis(passages, order, axis=1), ranked
        texts = self._index().texts
        asked = [query.text for query in queries]
        model = model_scores(settings.rerank, self.fingerprint)
        order = model.order(asked, passages, texts or (), depth=depth)[:, :count]
        # A model's scores have a scale of their own: a place keeps its score.
        return np.take_along_axis(passages, order, axis=1), scores[:, :count]

    def _rankings(
        self,
        queries: Sequence[Query],
        passages: IntArray,
        scores: FloatArray,
        is_used: BoolArray,
        times: dict[str, float],
        scored: float,
    ) -> Rankings:
        index = self._index()
        tokens = np.where(passages >= 0, index.token_counts[passages], 0.0)
        documents, spans = index.documents_of(passages)
        return Rankings(
            query_ids=tuple([query.id for query in queries]),
            document_ids=index.document_ids,
            documents=documents,
            scores=scores,
            seconds={**times, "fuse": perf_counter() - scored},
            context_tokens=tokens.sum(axis=1),
            spans=spans,
            graph_used=is_used,
            tokens=tokens,
        )


def _fingerprint(corpus: Corpus, options: HybridOptions) -> str:
    """Hash the corpus's content, the options, and what else shapes the index."""
    return digest_of([_made_by(options), corpus_fingerprint(corpus), asdict(options)])


def _made_by(options: HybridOptions) -> str:
    """Hash the engine's code, the embedder's, and the files that the options name."""
    digest = sha256(json.dumps([code_digest(), identity(options.embedder)]).encode())
    if options.dense is not None:
        for path in (options.dense.matrix, options.dense.queries, options.dense.query_ids):
            try:
                digest.update(Path(str(path)).read_bytes())
            except OSError as error:
                raise InputError(f"cannot read dense vectors: {error}", file=path) from error
    return digest.hexdigest()
