"""Draw a stratified sample of queries, the same for a seed whatever their order."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.files import write_whole
from tuner.core.steps import Say
from tuner.core.words import compare_key
from tuner.datasets.lines import ProblemLog, read_records
from tuner.datasets.texts import read_queries
from tuner.evalset.classify import Classifier
from tuner.evalset.distinct import (
    THRESHOLD,
    DistinctQuery,
    NearDuplicate,
    distinct_queries,
    drop_near_duplicates,
)
from tuner.evalset.query_log import QueryLog, read_query_log, since_date

Stratum = tuple[str, str]

_MANY = 20_000
"""Comparing so many queries with each other takes about half a minute, twice as many four times."""


@dataclass(frozen=True, slots=True)
class SampledQuery:
    """A query to be judged: what data sets keep of it, and how the log knows it."""

    query: Query
    count: int = 1
    users: int = 0
    clicked: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogSample:
    """What was drawn from a query log, and from how much: its entries, and its distinct queries."""

    log: QueryLog = field(repr=False)
    entries: int
    distinct: int
    near: Sequence[NearDuplicate]
    drawn: Sequence[SampledQuery]


def sample_log(
    log: str | Path,
    size: int,
    *,
    classify: Classifier,
    say: Say,
    columns: Mapping[str, str] | None = None,
    since: str | None = None,
    min_users: int = 1,
    threshold: float = THRESHOLD,
    seed: int = 0,
    by_traffic: bool = False,
) -> LogSample:
    """Draw ``size`` queries from a log, without its near duplicates; see ``sample_queries``.

    Left out are entries before ``since`` and queries that fewer than ``min_users`` users asked.

    Raises:
        InputError: a log that cannot be read, or one of which no query is left.
    """
    read = read_query_log(log, columns=columns)
    entries = since_date(read, since) if since is not None else read.entries
    distinct = distinct_queries(entries)
    if min_users > 1:
        if "user" not in read.columns:
            raise InputError("--min-users needs a column of users; name it: --column user=NAME")
        distinct = [query for query in distinct if query.users >= min_users]
    if len(distinct) > _MANY:
        say(f"comparing {len(distinct):,} queries; --since and --min-users make them fewer")
    kept, near = drop_near_duplicates(distinct, threshold=threshold)
    if not kept:
        raise InputError("no query is left; loosen --since or --min-users")
    drawn = sample_queries(kept, size, classify=classify, seed=seed, by_traffic=by_traffic)
    return LogSample(read, len(entries), len(distinct), near, drawn)


def query_id(text: str) -> str:
    """Return an id that depends on the text alone, so that later samples keep their judgements."""
    # The letter keeps a spreadsheet from reading 12e45678 as a number.
    return "q" + hashlib.sha256(compare_key(text).encode()).hexdigest()[:10]


def sample_queries(
    queries: Sequence[DistinctQuery],
    size: int,
    *,
    classify: Classifier,
    seed: int = 0,
    by_traffic: bool = False,
) -> list[SampledQuery]:
    """Draw ``size`` queries, each type and difficulty with its share of them, in order of text.

    Shares count distinct queries, or with ``by_traffic`` how often they are asked; then, within a
    stratum too, a query asked ten times as often is ten times as likely to be drawn first. Whole
    numbers come from the shares by largest remainders. All queries, where there are no more.

    Raises:
        InputError: a size below 1.
    """
    if size < 1:
        raise InputError(f"a sample of {size} queries; must be at least 1")
    strata: dict[Stratum, list[DistinctQuery]] = {}
    for query in queries:
        query_type, difficulty = classify(query.text)
        strata.setdefault((query_type, difficulty), []).append(query)

    def weight(query: DistinctQuery) -> int:
        return query.traffic if by_traffic else 1

    weights = {key: sum(map(weight, members)) for key, members in strata.items()}
    sizes = {key: len(members) for key, members in strata.items()}
    drawn: list[SampledQuery] = []
    for stratum, quota in _quotas(weights, sizes, size).items():
        # Efraimidis and Spirakis (2006): the smallest of Exp(1) / weight, without replacement.
        ordered = sorted(
            strata[stratum],
            key=lambda query: (-math.log(_uniform(seed, query.text)) / weight(query), query.text),
        )
        drawn += [
            SampledQuery(
                Query(query_id(query.text), query.text, *stratum),
                query.count,
                query.users,
                query.clicked,
            )
            for query in ordered[:quota]
        ]
    return sorted(drawn, key=lambda sampled: (sampled.query.text, sampled.query.id))


def write_sample(path: str | Path, sample: Sequence[SampledQuery]) -> None:
    """Write queries as JSON lines that every reader of a BEIR folder understands.

    Raises:
        InputError: the file cannot be written.
    """
    lines = []
    for sampled in sample:
        query = sampled.query
        record = {
            "_id": query.id,
            "text": query.text,
            "query_type": query.query_type,
            "difficulty": query.difficulty,
            "count": sampled.count,
            "users": sampled.users,
            "clicked": list(sampled.clicked),
        }
        lines.append(json.dumps({k: v for k, v in record.items() if v}, ensure_ascii=False) + "\n")
    try:
        write_whole(Path(path), "".join(lines))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error


def read_sample(path: str | Path) -> list[SampledQuery]:
    """Read queries from such a file, or from the queries.jsonl of any BEIR folder.

    Raises:
        InputError: everything that is wrong, with file and line, all at once.
    """
    file = Path(path)
    log = ProblemLog()
    queries = read_queries(file, log).queries
    clicked = {}
    if not log.problems():
        records = [*read_records(file, log, id_key="_id")]
        clicked = {record.id: record.texts("clicked") for record in records}
        if all(record.values.get("title") for record in records):
            log.add("documents", "holds documents with titles; queries are needed here", file)
    log.refuse()
    return [SampledQuery(query, clicked=clicked.get(query.id, ())) for query in queries]


def draw_some(sampled: Sequence[SampledQuery], count: int, *, seed: int) -> list[SampledQuery]:
    """Return so many of the queries, drawn by seed and id, in the order in which they stand.

    Raises:
        InputError: there are fewer.
    """
    if count > len(sampled):
        raise InputError(f"{count} queries were asked for, and there are {len(sampled)}")
    drawn = sorted(sampled, key=lambda item: _uniform(seed, item.query.id))[:count]
    ids = {item.query.id for item in drawn}
    return [item for item in sampled if item.query.id in ids]


def _uniform(seed: int, text: str) -> float:
    digest = hashlib.sha256(f"{seed}\n{compare_key(text)}".encode()).digest()
    return (int.from_bytes(digest[:7], "big") + 0.5) / 2**56  # within (0, 1), both ends excluded


def _quotas(
    weights: Mapping[Stratum, int], sizes: Mapping[Stratum, int], size: int
) -> dict[Stratum, int]:
    """Share ``size`` out by weight; what a stratum is too small for goes to the others."""
    quotas = dict.fromkeys(sorted(weights), 0)
    left = min(size, sum(sizes.values()))
    while left:
        open_strata = [key for key in quotas if quotas[key] < sizes[key]]
        total = sum(weights[key] for key in open_strata)
        exact = {key: left * weights[key] / total for key in open_strata}
        more = Counter({key: math.floor(share) for key, share in exact.items()})
        by_fraction = sorted(
            open_strata, key=lambda key: (math.floor(exact[key]) - exact[key], key)
        )
        for key in by_fraction[: left - more.total()]:
            more[key] += 1
        for key in open_strata:
            taken = min(more[key], sizes[key] - quotas[key])
            quotas[key] += taken
            left -= taken
    return quotas
