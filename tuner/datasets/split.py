"""Split queries into a part to tune on and a part that is held out for the verdict."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tuner.core.corpus import Query
from tuner.core.errors import InputError, did_you_mean
from tuner.datasets.together import together

STRATIFY_FIELDS = ("query_type", "difficulty")

Stratum = tuple[str, ...]


@dataclass(frozen=True)
class _Unit:
    """Queries that stay together: a group, copies of one text, or a single query."""

    query_ids: tuple[str, ...]
    stratum: Stratum
    draw: bytes


def split_queries(
    queries: Sequence[Query], *, holdout: float, stratify_by: Sequence[str], seed: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the tune part and of the holdout part, each in alphabetical order.

    ``holdout`` is the share of queries to hold out, in [0, 1); 0 holds out none. The answer
    depends on the seed and on the queries, not on their order.

    **Strata.** Queries with the same values of all ``stratify_by`` fields (``query_type``,
    ``difficulty``) are a stratum; those that agree in the first field only are its parent. The
    total, N * holdout rounded (halves up), is shared out from the top down: first among the
    query types, then each type's share among its difficulties, by largest remainders (the whole
    part of each exact share, then one more to the largest fractions; ties drawn by seed). So
    every stratum and every parent gets its exact share rounded up or down, and strata too rare
    for a whole query are pooled: what they lack singly is handed out within their parent.

    **Groups.** Queries with the same non-empty ``group`` stay together, and so do those with the
    same text (``together``), in the stratum that most of them belong to. What a group takes above
    or below a stratum's share is carried over to the next one, so that the total differs by at most
    half of the largest group.

    Worked example: 3 easy, 2 hard, holdout 0.5: total round(2.5) = 3; exact shares 1.5 and 1.0;
    whole parts 1 and 1; the one left goes to the easy ones: 2 and 1.

    Raises:
        InputError: a share outside [0, 1), an unknown field, a repeated id, or an empty part.
    """
    _check(queries, holdout, stratify_by)
    ordered = sorted(queries, key=lambda query: query.id)
    if holdout == 0:
        return tuple(query.id for query in ordered), ()
    units = _units(ordered, stratify_by, seed)
    held = _choose(units, _quotas(units, holdout, seed))
    tune = tuple(query.id for query in ordered if query.id not in held)
    if not held or not tune:
        empty = "holdout" if not held else "tune"
        raise InputError(
            f"holdout={holdout} of {len(queries)} queries leaves the {empty} part empty; "
            f"{_way_out(len(units), len(queries))}"
        )
    return tune, tuple(sorted(held))


def cut_queries(
    queries: Sequence[Query], parts: int, *, stratify_by: Sequence[str], seed: int
) -> tuple[tuple[str, ...], ...]:
    """Return the ids of so many parts of nearly the same size, each in alphabetical order.

    Part by part as ``split_queries`` holds out: the first is 1 / ``parts`` of all queries, the next
    1 / (``parts`` - 1) of the rest, and so on. So the first of two parts is what half a holdout is.

    Raises:
        InputError: as ``split_queries``, or fewer than two parts.
    """
    if parts < 2:
        raise InputError(f"parts={parts}: at least 2 are needed")
    left, found = list(queries), []
    for remaining in range(parts, 1, -1):
        rest, part = split_queries(
            left, holdout=1.0 / remaining, stratify_by=stratify_by, seed=seed
        )
        found.append(part)
        left = [query for query in left if query.id in set(rest)]
    return (*found, tuple(sorted(query.id for query in left)))


def _way_out(units: int, queries: int) -> str:
    if units < 2:
        one = "one query" if queries == 1 else "one group of queries"
        return f"there is only {one}: add more, or set holdout to 0"
    if units == queries:
        return "move it towards 0.5, or add queries"
    return (
        f"they form {units} groups that stay together: move it towards 0.5, or use smaller groups"
    )


def _check(queries: Sequence[Query], holdout: float, stratify_by: Sequence[str]) -> None:
    if not 0 <= holdout < 1:  # also refuses NaN
        raise InputError(f"holdout={holdout} must be a share from 0 to below 1, such as 0.5")
    for name in stratify_by:
        if name not in STRATIFY_FIELDS:
            hint = did_you_mean(name, STRATIFY_FIELDS)
            raise InputError(f"cannot stratify by {name!r}{hint}")
    if not queries:
        raise InputError("no queries to split")
    repeated = [id_ for id_, n in Counter(query.id for query in queries).items() if n > 1]
    if repeated:
        raise InputError(f"query {repeated[0]!r} is there more than once")


def _units(ordered: Sequence[Query], stratify_by: Sequence[str], seed: int) -> list[_Unit]:
    """Return the units in the order in which they are drawn."""
    members: defaultdict[int, list[Query]] = defaultdict(list)
    for number, query in zip(together(ordered).tolist(), ordered, strict=True):
        members[number].append(query)
    units = [
        _Unit(tuple(q.id for q in group), _stratum(group, stratify_by), _draw(seed, *_key(group)))
        for group in members.values()
    ]
    return sorted(units, key=lambda unit: (unit.draw, unit.query_ids))


def _key(group: Sequence[Query]) -> tuple[bool, str]:
    """Return what a unit is drawn by; the flag keeps a group named like a query's id apart."""
    named = min((query.group for query in group if query.group), default="")
    return bool(named), named or group[0].id


def _stratum(group: Sequence[Query], stratify_by: Sequence[str]) -> Stratum:
    values = Counter(tuple(str(getattr(q, name)) for name in stratify_by) for q in group)
    return min(values, key=lambda stratum: (-values[stratum], stratum))


def _draw(seed: int, *key: object) -> bytes:
    # A hash instead of a shuffle: one query more or less leaves the draw of the others alone.
    return hashlib.sha256(repr((seed, key)).encode("utf-8", "surrogatepass")).digest()


def _quotas(units: Sequence[_Unit], holdout: float, seed: int) -> dict[Stratum, int]:
    """Return how many queries each stratum should hold out."""
    share = Fraction(str(float(holdout)))  # 0.1 as one tenth: equal remainders must compare equal
    sizes: Counter[Stratum] = Counter()
    for unit in units:
        sizes[unit.stratum] += len(unit.query_ids)
    total = math.floor(sizes.total() * share + Fraction(1, 2))
    depth = len(next(iter(sizes)))
    quotas: dict[Stratum, int] = {(): total}
    for level in range(1, depth + 1):
        level_sizes: Counter[Stratum] = Counter()
        for stratum, size in sizes.items():
            level_sizes[stratum[:level]] += size
        quotas = {
            child: quota
            for parent, parent_quota in quotas.items()
            for child, quota in _largest_remainders(
                {s: n * share for s, n in level_sizes.items() if s[:-1] == parent},
                parent_quota,
                seed,
            ).items()
        }
    return quotas


def _largest_remainders(
    exact: Mapping[Stratum, Fraction], total: int, seed: int
) -> dict[Stratum, int]:
    """Round exact shares up or down to whole numbers with the given sum.

    The sum must be the shares' sum rounded up or down; then enough fractions are left for it.
    """
    whole = {stratum: math.floor(share) for stratum, share in exact.items()}
    by_remainder = sorted(
        exact, key=lambda stratum: (whole[stratum] - exact[stratum], _draw(seed, stratum))
    )
    for stratum in by_remainder[: total - sum(whole.values())]:
        whole[stratum] += 1
    return whole


def _choose(units: Sequence[_Unit], quotas: Mapping[Stratum, int]) -> set[str]:
    """Return the held-out ids: in each stratum, the units drawn first, up to its quota."""
    held: set[str] = set()
    carried = 0
    for stratum in sorted(quotas):
        wanted = quotas[stratum] + carried
        taken = 0
        for unit in units:
            size = len(unit.query_ids)
            if unit.stratum != stratum:
                continue
            if 2 * (taken + size - wanted) > size:  # leaving it out comes closer
                break
            held.update(unit.query_ids)
            taken += size
        carried = wanted - taken
    return held
