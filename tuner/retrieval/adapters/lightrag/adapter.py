"""The retriever ``lightrag``: a working directory, or an index made from the corpus's graph."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from tuner.core.corpus import Corpus, Query, corpus_fingerprint
from tuner.core.errors import InputError
from tuner.core.json_text import digest_of
from tuner.core.rankings import ByCount, Rankings, RelationPath
from tuner.core.trial import Params
from tuner.core.words import count_tokens, split_words
from tuner.retrieval.adapters.embedding import (
    HASHED_WORDS,
    EmbedderName,
    identity,
    known_identity,
    make_embedder,
    passage_text,
    read_cost,
)
from tuner.retrieval.adapters.lightrag import runtime
from tuner.retrieval.adapters.lightrag.index import Index, open_index, write_index
from tuner.retrieval.adapters.lightrag.options import (
    CHUNK_TOKENS,
    KNOBS,
    OVERLAP_TOKENS,
    Settings,
    check_chunking,
    index_knobs,
)
from tuner.retrieval.adapters.lightrag.working_dir import (
    FILES,
    check_model,
    read_working_dir,
)
from tuner.retrieval.adapters.options import code_digest, installed_version, path_from_root
from tuner.retrieval.adapters.vectors import Kept
from tuner.retrieval.free import FreeKnobs
from tuner.retrieval.hybrid.cache import ensure
from tuner.retrieval.hybrid.names import phrases
from tuner.retrieval.hybrid.text import STOP_WORDS
from tuner.retrieval.knobs import Knob, knob_settings

_log = logging.getLogger(__name__)

_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{2,80})[\"”»]")
# Words that ask, but name nothing.
_ASKING = STOP_WORDS | frozenset(
    "did do does from had has have he her his how i me my name named of our she tell us we were "
    "what when where which who whom whose why you your".split()
)

Asked = tuple[str, list[str], list[str]]
"""A query's text, its low-level and its high-level keywords."""


@dataclass(frozen=True)
class Lightrag:
    """Retrieve passages as LightRAG does, with keywords by rule and no language model.

    Small and picklable: it knows where its index lies, and each process opens that once.
    """

    knobs: ClassVar[tuple[Knob, ...]] = KNOBS
    tells_spans: ClassVar[bool] = False
    resolve_options = path_from_root("working_dir")

    directory: Path
    fingerprint: str
    embedder: str
    _prepared: Kept = field(default_factory=Kept, repr=False, compare=False)

    @property
    def index_cost(self) -> Mapping[str, float]:
        """Return how many words were embedded; nothing of a working directory."""
        return read_cost(self.directory)

    @classmethod
    def declare_knobs(
        cls,
        *,
        working_dir: str | None = None,
        embedder: str = HASHED_WORDS,
        chunk_token_size: int = CHUNK_TOKENS,
        chunk_overlap_token_size: int = OVERLAP_TOKENS,
    ) -> tuple[Knob, ...]:
        """Return the parameters of its retrieval, and those of an index made from a corpus.

        Raises:
            InputError: sizes of chunks that cannot be.
        """
        if working_dir is not None:
            return KNOBS
        return (*KNOBS, *index_knobs(chunk_token_size, chunk_overlap_token_size, embedder))

    @classmethod
    def identify_index(cls, settings: Params, **options: Any) -> str:  # noqa: ARG003
        """Return a digest of code, package and embedder."""
        return digest_of([*_made_by(), known_identity(str(settings["embedder"]))])

    @classmethod
    def build(
        cls,
        corpus: Corpus,
        *,
        cache_dir: Path,
        working_dir: Annotated[
            str | None,
            "the working directory of LightRAG; left out: an index is made from the graph "
            "of the corpus",
        ] = None,
        embedder: EmbedderName = HASHED_WORDS,
        chunk_token_size: Annotated[
            int, "how many tokens a chunk has at most; without `working_dir`"
        ] = CHUNK_TOKENS,
        chunk_overlap_token_size: Annotated[
            int, "how many tokens two neighbouring chunks share; without `working_dir`"
        ] = OVERLAP_TOKENS,
    ) -> Self:
        """Make an index of the corpus's graph, or take up a working directory, once for all.

        A working directory is copied into the cache and never written to; it needs the embedder
        that its vectors were made with, and its chunks are what they are. In an index that is
        made, documents are cut by LightRAG's own rule.

        Raises:
            InputError: LightRAG is not installed or too old, a working directory is broken or does
                not fit the corpus, or the corpus cannot be indexed.
            TunerError: the embedder failed, gave zero or NaN vectors, or is not the one that the
                working directory was made with; or the cache cannot be written.
        """
        parts = [*_made_by(), corpus_fingerprint(corpus)]
        if working_dir is not None and embedder == HASHED_WORDS:
            raise InputError(
                "a working directory needs the embedder that its vectors were made with; write "
                "embedder: package.module:function",
                key=("embedder",),
            )
        sizes = (chunk_token_size, chunk_overlap_token_size)
        if working_dir is not None and sizes != (CHUNK_TOKENS, OVERLAP_TOKENS):
            message = "the chunks of a working directory are made; leave their sizes out"
            raise InputError(message, key=("working_dir",))
        check_chunking(*sizes)
        parts.append(identity(embedder))
        existing = None
        if working_dir is None:
            parts += map(str, sizes)
        else:
            path = Path(working_dir).expanduser().absolute()
            existing = read_working_dir(path)
            check_model(existing, make_embedder(embedder, map(passage_text, corpus.documents)))
            _warn_of_missing(existing.documents(corpus), corpus, path)
            parts += [sha256((path / name).read_bytes()).hexdigest() for name in FILES]
        fingerprint = digest_of(parts)
        directory = Path(cache_dir).absolute() / f"lightrag-{fingerprint}"
        cut = partial(runtime.cut, tokens=sizes[0], overlap=sizes[1])
        ensure(
            directory, lambda unfinished: write_index(unfinished, corpus, embedder, existing, cut)
        )
        return cls(directory, fingerprint, embedder)

    def free_knobs(self, fixed: Params, searched: Collection[str]) -> FreeKnobs:  # noqa: ARG002
        """Return ``chunk_top_k``.

        In every mode LightRAG makes one list of passages, takes so many from its start, and then
        those that the budget has room for. In modes naive and mix it asks the vector search for so
        many, too; taken in turn with those of entities and relations, they stand among the first so
        many all the same.
        """
        return FreeKnobs(("chunk_top_k",))

    def prepare(self, queries: Sequence[Query]) -> None:
        """Embed the queries and their keywords once for all workers; keeps the vectors on disk.

        Raises:
            TunerError: the embedder failed, or gave a zero or NaN vector for a query.
        """
        labels = _texts(queries)
        if not labels:
            return
        self._prepared.make(self.directory, lambda: self._index().vectors.model, labels)

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        """Answer a batch; the vectors of prepared queries are not made again.

        Raises:
            InputError: unknown parameters or values outside their range.
            TunerError: the embedder failed, or gave a zero or NaN vector for a query.
        """
        settings = knob_settings(Settings, params, KNOBS)
        started = perf_counter()
        index = self._index()
        index.vectors.take_up(self._prepared)
        index.vectors.embed(_texts(queries))
        return self._answer(index, queries, settings, started)

    def serve(self, query: Query, params: Params) -> Rankings:
        """Answer one query with nothing prepared: its vectors are made anew."""
        settings = knob_settings(Settings, params, KNOBS)
        started = perf_counter()
        index = self._index()
        index.vectors.embed(_texts([query]), again=True)
        return self._answer(index, [query], settings, started)

    def _index(self) -> Index:
        return open_index(self.directory, self.embedder)

    def _answer(
        self, index: Index, queries: Sequence[Query], settings: Settings, started: float
    ) -> Rankings:
        embedded = perf_counter()
        usable = [runtime.is_long_enough(query.text) for query in queries]
        asked = [
            _asked(query) for query, is_usable in zip(queries, usable, strict=True) if is_usable
        ]
        given = iter(index.opened.answer(asked, settings))
        # A query of one or two letters is refused by LightRAG: its answer is empty.
        answers = [next(given) if is_usable else {} for is_usable in usable]
        searched = perf_counter()
        data = [answer.get("data") or {} for answer in answers]
        _explain(answers, queries, settings)
        counts = [index.counts(part.get("chunks", ())) for part in data]
        contexts = [_contexts(part) for part in data]
        return Rankings.from_ids(
            [query.id for query in queries],
            [list(own) for own in counts],
            seconds={
                "embed": embedded - started,
                "search": searched - embedded,
                "read": perf_counter() - searched,
            },
            context_tokens=np.array([sums[-1] for sums in contexts], dtype=np.float64),
            by_count=ByCount.of([list(own.values()) for own in counts], contexts),
            graph_used=np.array(
                [bool(part.get("entities") or part.get("relationships")) for part in data],
                dtype=np.bool_,
            ),
            entities=[
                [str(one["entity_name"]) for one in part.get("entities", ())] for part in data
            ],
            paths=[_paths(index, part) for part in data],
        )


def _made_by() -> list[str]:
    """Return what tells the code that shapes an index from any other."""
    version = installed_version(runtime.PACKAGE, oldest=(1, 5, 7), kind="lightrag")
    return [version, code_digest("lightrag")]


def keywords(query: str) -> tuple[list[str], list[str]]:
    """Return low-level keywords, the names in a query, and high-level ones, the query itself.

    They stand in place of those of the language model that LightRAG would ask.

    Without names, the words that do not merely ask stand for them. LightRAG embeds either list as
    one text. The words about the names alone (director, born) find far worse relations than the
    whole query: recall@10 0.33 against 0.60 in mode global on MuSiQue.

    >>> keywords("Where was the director of Night Ferry born?")
    (['night ferry'], ['Where was the director of Night Ferry born?'])
    """
    names = [" ".join(split_words(quoted)) for quoted in _QUOTED.findall(query)]
    names += [" ".join(name) for name in phrases(query)]
    low = [name for name in dict.fromkeys(names) if name]
    words = [word for word in dict.fromkeys(split_words(query)) if word not in _ASKING]
    whole = [query.strip()]
    return low or words or whole, whole


def _asked(query: Query) -> Asked:
    return (query.text.strip(), *keywords(query.text))


def _texts(queries: Sequence[Query]) -> dict[str, str]:
    """Return every text that LightRAG embeds for the queries, and whose it is."""
    labels: dict[str, str] = {}
    for query in queries:
        if runtime.is_long_enough(query.text):
            text, low, high = _asked(query)
            labels.setdefault(text, f"query {query.id!r}")
            for words in (low, high):
                labels.setdefault(", ".join(words), f"the keywords of query {query.id!r}")
    return labels


def _paths(index: Index, data: dict[str, Any]) -> list[RelationPath]:
    """Return the relations, a path of one step each: LightRAG follows no longer ones."""
    paths: list[RelationPath] = []
    for relation in data.get("relationships", ()):
        first, second = str(relation["src_id"]), str(relation["tgt_id"])
        pair = (min(first, second), max(first, second))
        facts = index.steps.get(pair) or [(first, str(relation.get("keywords", "")), second)]
        paths += [[fact] for fact in facts]
    return paths


def _contexts(data: dict[str, Any]) -> list[float]:
    """Count the words of all that LightRAG hands on, with 0, 1, … of its passages.

    Entities and relations are there whatever passages are.
    """
    texts = []
    for one in data.get("entities", ()):
        texts += [str(one["entity_name"]), str(one.get("description", ""))]
    for one in data.get("relationships", ()):
        texts += [str(one["src_id"]), str(one["tgt_id"]), str(one.get("description", ""))]
    passages = [float(_tokens(str(chunk.get("content", "")))) for chunk in data.get("chunks", ())]
    return list(accumulate(passages, initial=float(sum(map(_tokens, texts)))))


@lru_cache(maxsize=1 << 17)  # a study meets the same texts in every trial
def _tokens(text: str) -> int:
    return count_tokens(text)


def _warn_of_missing(
    documents: Mapping[str, Sequence[str]], corpus: Corpus, working_dir: Path
) -> None:
    held = {id_ for ids in documents.values() for id_ in ids}
    missing = [document.id for document in corpus.documents if document.id not in held]
    if missing:
        _log.warning(
            "%s holds no chunk of %d of the corpus's %d documents, such as %r",
            working_dir,
            len(missing),
            len(corpus.documents),
            missing[0],
        )


def _explain(
    answers: Sequence[dict[str, Any]], queries: Sequence[Query], settings: Settings
) -> None:
    """Say for how many queries the budget left no room for what was found: no error to LightRAG."""
    crowded = 0
    for answer in answers:
        info = (answer.get("metadata") or {}).get("processing_info") or {}
        found = info.get("merged_chunks_count", info.get("total_chunks_found", 0))
        crowded += found > 0 and info.get("final_chunks_count") == 0
    if crowded:
        _log.warning(
            "LightRAG returned no passage for %d of %d queries, though it had found some: "
            "max_total_tokens=%d leaves no room beside its prompt (about 1000), entities (up to "
            "%d) and relations (up to %d); counted as empty",
            crowded,
            len(queries),
            settings.max_total_tokens,
            settings.max_entity_tokens,
            settings.max_relation_tokens,
        )
