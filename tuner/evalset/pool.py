"""Pool what several settings of a retriever return, for annotators to judge blind and shuffled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError
from tuner.core.policy import Policy, is_policy
from tuner.core.rankings import Rankings
from tuner.core.space import Categorical, Integer, Parameter, Real, SearchSpace
from tuner.core.trial import Params
from tuner.datasets.run_files import read_run
from tuner.evalset.sampling import SampledQuery
from tuner.evalset.sheets import Row
from tuner.metrics.ordering import top_documents
from tuner.retrieval.base import Retriever
from tuner.retrieval.knobs import Knob, knob_params

if TYPE_CHECKING:
    from tuner.config import Config, Source

MOST_CORNERS = 16
DEPTH_KNOB = "top_k"
"""The knob that says how many passages are returned; pools set it to their depth."""


@dataclass(frozen=True)
class Pool:
    """The rows of a sheet, and what came together on it.

    Attributes:
        rows: query after query.
        queries: how many have a passage to grade.
        clicked: how many passages users clicked.
        unknown_clicks: how many clicked documents are not in the corpus, and so on no sheet.
    """

    rows: Sequence[Row] = field(repr=False)
    queries: int
    clicked: int
    unknown_clicks: int


def pool_queries(
    sampled: Sequence[SampledQuery],
    corpus: Corpus,
    retriever: Retriever,
    settings: Sequence[Params],
    runs: Sequence[str],
    *,
    depth: int,
    seed: int,
) -> Pool:
    """Pool what a retriever finds with each setting, what is in run files, and what users clicked.

    Raises:
        InputError: a run file that answers none of the queries.
    """
    known = {document.id for document in corpus.documents}
    asked = [item.query for item in sampled]
    retriever.prepare(asked)
    rankings = [retriever.retrieve(asked, setting) for setting in settings]
    rankings += [_of_run(file, asked, depth) for file in runs]
    clicks = {s.query.id: [id_ for id_ in s.clicked if id_ in known] for s in sampled}
    found = pooled(rankings, depth=depth, also=clicks)
    rows = sheet_rows(asked, found, corpus.documents, seed=seed)
    strange = {id_ for item in sampled for id_ in item.clicked} - known
    return Pool(
        rows, len({row.query_id for row in rows}), sum(map(len, clicks.values())), len(strange)
    )


def _of_run(file: str, queries: Sequence[Query], depth: int) -> Rankings:
    """Read the best documents of each query from a run file; none where it lacks the query."""
    answers = read_run(Path(file)).answers
    ids = [query.id for query in queries]
    if not answers.keys() & set(ids):
        raise InputError("answers none of the queries; are their ids the same?", file=file)
    given = [answers.get(id_, ()) for id_ in ids]
    return Rankings.from_ids(ids, top_documents(ids, given, depth=depth, duplicates="error"))


def pooled(
    rankings: Iterable[Rankings], *, depth: int, also: Mapping[str, Sequence[str]] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return query id -> the union of all rankings' first ``depth`` documents, in order of id.

    This is the depth-k pooling of TREC: every system has its best documents judged, so that none
    is measured by another one's finds. ``also`` adds documents from elsewhere, such as clicks.

    Raises:
        InputError: a depth below 1.
    """
    if depth < 1:
        raise InputError(f"a pool of depth {depth}; must be at least 1")
    found: dict[str, set[str]] = {}
    for ranking in rankings:
        for row, query_id in enumerate(ranking.query_ids):
            found.setdefault(query_id, set()).update(ranking.ids(row)[:depth])
    for query_id, documents in (also or {}).items():
        found.setdefault(query_id, set()).update(documents)
    return {query_id: tuple(sorted(documents)) for query_id, documents in found.items()}


def sheet_rows(
    queries: Sequence[Query],
    pool: Mapping[str, Sequence[str]],
    documents: Sequence[Document],
    *,
    seed: int = 0,
) -> list[Row]:
    """Return the rows of an annotation sheet: query after query, each one's passages shuffled.

    The order depends on the seed and the ids alone, so that it tells nothing about which system
    found a passage, or how many did.

    Raises:
        InputError: a pooled document that is not among ``documents``.
    """
    by_id = {document.id: document for document in documents}
    rows = []
    for query in queries:
        pooled_ids = pool.get(query.id, ())
        for id_ in sorted(pooled_ids, key=lambda id_: _draw(seed, query.id, id_)):
            if id_ not in by_id:
                raise InputError(f"query {query.id!r}: document {id_!r} is not in the corpus")
            document = by_id[id_]
            rows.append(Row(query.id, query.text, id_, document.title, document.text))
    return rows


def _draw(seed: int, query_id: str, document_id: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{query_id}\n{document_id}".encode()).digest()


def configured_retriever(
    configured: tuple[Config, Source] | None, corpus: Corpus
) -> tuple[Retriever, SearchSpace | None]:
    """Build the retriever of a configuration over any corpus, and read its space.

    Without a configuration it is the built-in one, and there is no space.
    """
    from tuner.retrieval.hybrid import Hybrid
    from tuner.run.systems import build_retriever, cache_dir, resolved

    if configured is None:
        return Hybrid.build(corpus, cache_dir=cache_dir()), None
    config, source = configured
    space = SearchSpace.from_mapping(config.space, config.space_constraints)
    return build_retriever(resolved(config, source), space, corpus), space


def corners(space: SearchSpace) -> list[Params]:
    """Return the combinations of each parameter's ends, or choices; at most 16, evenly picked.

    Settings that lie far apart find different passages, which is what a pool is for.
    """
    levels = {
        # One level of the depth: the pool sets it.
        name: parameter.levels(1 if name == DEPTH_KNOB else _ends(parameter), edges=True)
        for name, parameter in space.parameters.items()
    }
    found = list(islice(space.combinations(levels), 10_000))
    if len(found) <= MOST_CORNERS:
        return found
    last = len(found) - 1
    return [found[round(i * last / (MOST_CORNERS - 1))] for i in range(MOST_CORNERS)]


def space_of(knobs: Sequence[Knob]) -> SearchSpace:
    """Return the space that a retriever's bounded knobs span, those that need a new index fixed."""
    parameters: dict[str, Parameter] = {}
    fixed = {knob.name: knob.default for knob in knobs if knob.stage == "index"}
    for knob in knobs:
        is_idle = any(name in fixed and fixed[name] not in v for name, v in knob.when.items())
        if knob.stage == "index" or knob.name == DEPTH_KNOB or is_idle:
            continue
        when = {name: values for name, values in knob.when.items() if name not in fixed}
        if knob.kind == "categorical":
            parameters[knob.name] = Categorical(knob.choices, when=when)
        elif knob.low is None or knob.high is None or knob.low >= knob.high:
            continue
        elif knob.kind == "integer":
            parameters[knob.name] = Integer(int(knob.low), int(knob.high), when=when)
        else:
            parameters[knob.name] = Real(knob.low, knob.high, scale=knob.scale, when=when)
    return SearchSpace(parameters)


def pool_settings(
    given: Sequence[Mapping[str, Any]],
    space: SearchSpace | None,
    knobs: Sequence[Knob],
    *,
    depth: int,
    baseline: Mapping[str, Any] | str | None = None,
) -> list[Params]:
    """Return the settings to pool, each one complete and once, deep enough.

    Those ``given``, else the knobs' defaults, the baseline, and the corners of ``space``, or of
    the knobs where there is no space. In the place of parameters there may be a policy, which
    stands for those of all its types.

    Raises:
        InputError: a parameter that does not exist, or a value outside its range.
    """
    chosen: Sequence[Mapping[str, Any]] = given
    if not given:
        # A string names the file that the configuration was read with, and has been replaced.
        fixed = baseline if isinstance(baseline, Mapping) else {}
        chosen = [{}, fixed, *corners(space_of(knobs) if space is None else space)]
    chosen = [params for each in chosen for params in _settings(each)]
    by_name = {knob.name: knob for knob in knobs}
    settings = []
    for params in chosen:
        complete = knob_params(params, knobs)
        if DEPTH_KNOB in by_name and not (given and DEPTH_KNOB in params):
            high = by_name[DEPTH_KNOB].high
            complete[DEPTH_KNOB] = depth if high is None else min(depth, int(high))
        if complete not in settings:
            settings.append(complete)
    return settings


def _settings(params: Mapping[str, Any]) -> list[Params]:
    if not is_policy(params):
        return [dict(params)]
    policy = Policy.from_record(params)
    return [policy.default, *policy.types.values()]


def _ends(parameter: Parameter) -> int:
    count = parameter.count
    if isinstance(parameter, Categorical):
        return len(parameter.choices)
    return 2 if count is None else min(2, count)
