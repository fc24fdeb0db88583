"""What mixed rankings are worth for every value of a weight at once: an exact line search.

Along one weight each document's score is a line, so two documents change places at most once, where
their lines cross. The rankings, and what they are worth, are step functions whose steps lie there
(as in minimum error rate training, Och 2003; and coordinate ascent, Metzler and Croft 2007). All
crossings of all queries are found in one go, sorted once, and added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuner.core.rankings import BoolArray, FloatArray, IntArray
from tuner.evaluation.free.lines import Lines
from tuner.metrics.base import Judged
from tuner.metrics.names import Metric

# Queries that are looked at together, and pairs of their documents.
_BLOCK = 32
_MOST_PAIRS = 1_000_000


@dataclass(frozen=True, eq=False)
class Worth:
    """What a ranking of relevant documents and its tokens are worth.

    Attributes:
        metrics: those that are added up; each reads judged rankings.
        shares: what each counts, summing to 1.
        token_price: what one token costs.
        relevant_count, ideal, relevant_from, highest: as in ``Judged``, one row a query.
    """

    metrics: tuple[Metric, ...]
    shares: tuple[float, ...]
    token_price: float
    relevant_count: IntArray
    ideal: FloatArray
    relevant_from: float
    highest: float | None

    def of(self, gains: FloatArray, rows: IntArray) -> FloatArray:
        """Return the weighted mean of the metrics of rankings; NaN where one is undefined.

        ``gains`` has shape (rankings, depth), and ``rows`` tells the query of each.
        """
        judged = Judged(
            gains,
            self.relevant_count[rows],
            self.ideal[rows],
            None,
            self.relevant_from,
            self.highest,
        )
        parts = [
            share * metric.per_query(judged)
            for metric, share in zip(self.metrics, self.shares, strict=True)
        ]
        total: FloatArray = np.sum(parts, axis=0)
        return total


@dataclass(frozen=True, eq=False)
class Steps:
    """The objective of each query, and their mean, for one depth and every weight.

    Attributes:
        depth: how many documents are returned.
        edges: shape (steps + 1,), ascending, from the lowest to the highest weight.
        objective: shape (steps,), the mean over queries between two edges.
        rows, at, change: of each change its query, its weight and by how much the query's objective
            changes there; sorted by weight.
        first: shape (queries,), the objective of each query before the first change; NaN where
            undefined.
    """

    depth: int
    edges: FloatArray
    objective: FloatArray
    rows: IntArray
    at: FloatArray
    change: FloatArray
    first: FloatArray

    @property
    def widths(self) -> FloatArray:
        """Return the width of each step."""
        return np.diff(self.edges)

    def step_at(self, weight: float) -> int:
        """Return the step in which a weight lies."""
        place = int(np.searchsorted(self.edges, weight, side="right")) - 1
        return min(max(place, 0), len(self.objective) - 1)

    def by_query(self, weight: float) -> FloatArray:
        """Return the objective of each query at a weight, shape (queries,)."""
        values: FloatArray = self.by_query_at(np.array([weight]))[0]
        return values

    def by_query_at(self, weights: FloatArray) -> FloatArray:
        """Return the objective of each query at ascending weights, shape (weights, queries)."""
        places = np.searchsorted(self.at, weights, side="left")
        changes = [
            np.bincount(self.rows[a:b], self.change[a:b], minlength=len(self.first))
            for a, b in zip([0, *places[:-1]], places, strict=True)
        ]
        values: FloatArray = self.first + np.cumsum(changes, axis=0)
        return values

    def errors(self, reference: FloatArray) -> FloatArray:
        """Return the standard error of the paired difference to a reference at each step.

        ``reference`` has shape (queries,); the result (steps,).
        """
        is_known = ~np.isnan(self.first) & ~np.isnan(reference)
        n = int(is_known.sum())
        if n < 2:
            return np.full(len(self.objective), np.nan)
        start = np.where(is_known, self.first - reference, 0.0)
        order = np.argsort(self.rows, kind="stable")  # by query, and by weight within
        rows, change = self.rows[order], np.where(is_known[self.rows[order]], self.change[order], 0)
        after = start[rows] + _sums_within(rows, change)
        squared = np.empty(len(rows))
        squared[order] = after**2 - (after - change) ** 2
        linear = np.empty(len(rows))
        linear[order] = change
        sums = np.concatenate([[start.sum()], start.sum() + np.cumsum(linear)])
        squares = np.concatenate([[(start**2).sum()], (start**2).sum() + np.cumsum(squared)])
        variance = np.maximum(squares - sums**2 / n, 0.0) / (n - 1)
        errors: FloatArray = np.sqrt(variance / n)
        return errors


def sweep(lines: Lines, worth: Worth, depths: Sequence[int], looks_to: int) -> list[Steps]:
    """Return the steps of the objective over the weight, for each depth.

    ``looks_to`` is the rank down to which the metrics look: below it no place counts, and of the
    depths all but one at most should not be beyond.
    """
    deepest = max(depths)
    near = lines.near_the_top(deepest)
    moves = _moves(near, deepest)
    counted = min(looks_to, deepest)
    ranked = [min(depth, counted) for depth in depths]
    states = _states(near, moves, counted)
    values = _values(states, worth, sorted(set(ranked)))
    defined = int((worth.relevant_count > 0).sum())
    # Both parts are sorted by weight once, so that to sort them together is to merge two runs.
    by_depth = _by_group(moves.boundary, moves.at, near)
    ends = np.searchsorted(moves.boundary[by_depth], np.arange(deepest + 2))
    tokens_to = _tokens_to(near, moves, deepest)
    steps = []
    for depth, rank in zip(depths, ranked, strict=True):
        rows, at, change, first = values[rank]
        # As everywhere: of what tokens cost the mean is over all queries, of metrics over those
        # that define them.
        counts = np.full(len(rows), 1.0 / max(defined, 1))
        tokens = tokens_to[:, depth - 1]
        of_depth = by_depth[ends[depth] : ends[depth + 1]]
        if worth.token_price and of_depth.size:
            price = -worth.token_price * moves.tokens[of_depth]
            rows = np.concatenate([rows, moves.rows[of_depth]])
            at = np.concatenate([at, moves.at[of_depth]])
            change = np.concatenate([change, price])
            counts = np.concatenate([counts, np.full(len(price), 1.0 / len(first))])
        order = np.argsort(at, kind="stable")
        rows, at, change, counts = rows[order], at[order], change[order], counts[order]
        start = first - worth.token_price * tokens
        mean = (np.nansum(first) / max(defined, 1)) - worth.token_price * float(tokens.mean())
        steps.append(
            Steps(
                depth,
                np.concatenate([[lines.low], at, [lines.high]]),
                mean + np.concatenate([[0.0], np.cumsum(change * counts)]),
                rows,
                at,
                change,
                start,
            )
        )
    return steps


def _tokens_to(lines: Lines, moves: _Moves, depth: int) -> FloatArray:
    """Return the tokens of the first documents at the lowest weight, shape (queries, depth)."""
    queries = len(lines.tokens)
    is_kept = lines.is_there & (moves.first_ranks <= depth)
    rows, _ = np.nonzero(is_kept)
    places = rows * depth + moves.first_ranks[is_kept] - 1
    by_rank = np.bincount(places, lines.tokens[is_kept], minlength=queries * depth)
    tokens: FloatArray = np.cumsum(by_rank.reshape(queries, depth), axis=1)
    return tokens


@dataclass(frozen=True, eq=False)
class _Moves:
    """Documents that move by one rank; sorted by query, document and weight.

    ``boundary`` is the smaller of the two ranks: how deep a ranking is that gains or loses the
    document. ``tokens`` is what such a ranking gains. ``ranks`` are those after the move.
    """

    rows: IntArray
    columns: IntArray
    at: FloatArray
    ranks: IntArray
    boundary: IntArray
    tokens: FloatArray
    first_ranks: IntArray


def _moves(lines: Lines, depth: int) -> _Moves:
    width = lines.intercept.shape[1]
    at_low = lines.intercept + lines.low * lines.slope
    columns = np.broadcast_to(np.arange(width), at_low.shape)
    order = np.lexsort((columns, -lines.slope, -at_low), axis=1)
    first = np.empty_like(order)
    np.put_along_axis(first, order, columns + 1, axis=1)
    # Block by block, so that what is sorted stays in the processor's cache.
    parts = []
    for documents, at in _crossings(lines):
        doc, shift, weights = _sorted_moves(documents, at, lines)
        after = first.ravel()[doc] + _sums_within(doc, shift)
        boundary = np.minimum(after, after - shift)
        kept = np.flatnonzero(boundary <= depth)
        parts.append([one[kept] for one in (doc, shift, weights, after, boundary)])
    doc, shift, weights, after, boundary = (
        np.concatenate([part[place] for part in parts]) for place in range(5)
    )
    tokens = -shift * lines.tokens.ravel()[doc]
    return _Moves(doc // width, doc % width, weights, after, boundary, tokens, first)


def _sorted_moves(
    documents: IntArray, at: FloatArray, lines: Lines
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return whose rank changes, by how much, and where; by document, and by weight within one.

    ``documents`` names those that fall at the weights ``at``, and then those that rise there. All
    three are sorted as one number, which takes a sixth of the time of looking up their order.
    """
    width = max(int(documents.max(initial=0)).bit_length(), 1)
    bits = min(44, 62 - width)  # of a weight: to 1e-13 of the range for up to 500,000 documents
    span = lines.high - lines.low
    most = float(2**bits - 1)
    place = np.rint((at - lines.low) * (most / (span or 1.0))).astype(np.int64) << 1
    keys = documents << (bits + 1)
    keys[: len(at)] += place
    keys[len(at) :] += place + 1
    keys.sort()
    shift = 1 - ((keys & 1) << 1)
    weights = ((keys >> 1) & (2**bits - 1)) * (span / most)
    weights += lines.low
    return keys >> (bits + 1), shift, weights


def _crossings(lines: Lines) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield, by blocks of queries: who falls and then who rises, and where their lines cross.

    Documents are given as places in the flattened lines.
    """
    at_low = lines.intercept + lines.low * lines.slope
    at_high = lines.intercept + lines.high * lines.slope
    intercept, slope = lines.intercept.ravel(), lines.slope.ravel()
    width = lines.intercept.shape[1]
    # What is there stands at the left of a row: queries with few are not looked at as wide.
    counts = lines.is_there.sum(axis=1)
    order = np.argsort(counts, kind="stable")
    start = 0
    while start < len(order):
        most = int(counts[order[min(start + _BLOCK, len(order)) - 1]])
        size = max(1, min(_BLOCK, _MOST_PAIRS // max(most * most, 1)))
        block = order[start : start + size]
        start += size
        low, high = at_low[block, :most], at_high[block, :most]
        is_crossing = low[:, :, None] > low[:, None, :]
        is_crossing &= high[:, :, None] < high[:, None, :]
        pairs, rising = np.divmod(np.flatnonzero(is_crossing), max(most, 1))
        places, falling = np.divmod(pairs, max(most, 1))
        starts = block[places] * width
        falling += starts
        rising += starts
        apart = intercept[falling] - intercept[rising]
        closing = slope[rising] - slope[falling]
        at = np.clip(apart / closing, lines.low, lines.high)
        yield np.concatenate([falling, rising]), at


@dataclass(frozen=True, eq=False)
class _States:
    """The grades of the first ranks of each query, before any and after each change.

    Sorted by query and weight; ``is_first`` marks the state of a query before its first change.
    ``by_weight`` is their order by weight alone.
    """

    rows: IntArray
    at: FloatArray
    gains: FloatArray
    is_first: BoolArray
    by_weight: IntArray


def _states(lines: Lines, moves: _Moves, depth: int) -> _States:
    """Return the states down to a depth."""
    queries, width = lines.gains.shape
    has_gain = lines.gains > 0
    slots = np.where(has_gain, np.cumsum(has_gain, axis=1) - 1, -1)
    most = int(slots.max(initial=-1)) + 1
    doc = moves.rows * width + moves.columns
    is_kept = (slots.ravel()[doc] >= 0) & (moves.boundary <= depth)
    doc, at = doc[is_kept], moves.at[is_kept]
    rows = np.concatenate([np.arange(queries), doc // width])
    at = np.concatenate([np.full(queries, lines.low), at])
    slot = np.concatenate([np.full(queries, -1), slots.ravel()[doc]])
    rank = np.concatenate([np.zeros(queries, dtype=np.int64), moves.ranks[is_kept]])
    order = np.lexsort((at, rows))
    rows, at, slot, rank = rows[order], at[order], slot[order], rank[order]
    is_first = slot < 0
    places = np.arange(len(rows))
    gains = np.zeros((len(rows), depth))
    for number in range(most):
        owner = slots == number
        has_it = owner.any(axis=1)
        column = owner.argmax(axis=1)
        first = np.where(has_it, np.take_along_axis(moves.first_ranks, column[:, None], 1)[:, 0], 0)
        grade = np.where(has_it, np.take_along_axis(lines.gains, column[:, None], 1)[:, 0], 0.0)
        known = np.where(slot == number, rank, first[rows])
        last = np.maximum.accumulate(np.where(is_first | (slot == number), places, 0))
        now = known[last]
        is_in = (now >= 1) & (now <= depth) & has_it[rows]
        gains[places[is_in], now[is_in] - 1] = grade[rows[is_in]]
    by_weight = np.argsort(at, kind="stable")
    return _States(rows, at, gains, is_first, by_weight)


def _values(
    states: _States, worth: Worth, depths: Sequence[int]
) -> dict[int, tuple[IntArray, FloatArray, FloatArray, FloatArray]]:
    """Return, by depth, rows, weights and changes of the metrics' part, and each first value.

    Changes are sorted by weight. Many states are alike, and each sort is looked at once.
    """
    some, sort = _sorts(states, worth)
    width = states.gains.shape[1]
    places = np.arange(width)
    gains = np.concatenate([np.where(places < d, states.gains[some], 0.0) for d in depths])
    worths = worth.of(gains, np.tile(states.rows[some], len(depths))).reshape(len(depths), -1)
    starts = np.flatnonzero(states.is_first)
    found = {}
    for depth, of_sort in zip(depths, worths, strict=True):
        values = of_sort[sort]
        change = np.diff(values, prepend=0.0)
        change[starts] = 0.0
        order = states.by_weight[np.nan_to_num(change[states.by_weight]) != 0.0]
        found[depth] = states.rows[order], states.at[order], change[order], values[starts]
    return found


def _sorts(states: _States, worth: Worth) -> tuple[IntArray, IntArray]:
    """Return one state of each sort, and of which sort each state is: worth the same, and why."""
    of_query = np.concatenate([worth.ideal, worth.relevant_count[:, None]], axis=1)[states.rows]
    whole = np.ascontiguousarray(np.concatenate([states.gains, of_query], axis=1), dtype=np.float64)
    bits = whole.view(np.uint64)
    shift, factor = np.uint64(33), np.uint64(0xFF51AFD7ED558CCD)  # as MurmurHash3 mixes bits
    bits = (bits ^ (bits >> shift)) * factor
    bits = bits ^ (bits >> shift)
    odd = np.random.default_rng(0).integers(1, 2**63, whole.shape[1], dtype=np.uint64) * 2 + 1
    digests = (bits * odd).sum(axis=1, dtype=np.uint64)
    _, some, sort = np.unique(digests, return_index=True, return_inverse=True)
    return some, sort


def _by_group(groups: IntArray, weights: FloatArray, lines: Lines) -> IntArray:
    """Return the order by group, and by weight within a group.

    How equals are ordered is no matter: between them lies no step.
    """
    span = max(lines.high - lines.low, 1e-300)
    # One sort of one number, exact to 1e-11 of the range for up to 100,000 groups. A stable sort
    # takes six times as long.
    place = groups + (weights - lines.low) / span * (1.0 - 1e-9)
    order: IntArray = np.argsort(place)
    return order


def _sums_within(groups: IntArray, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return running sums that begin anew with each group; equal groups stand side by side."""
    if not len(groups):
        return values
    sums = np.cumsum(values)
    starts = np.concatenate([[0], np.flatnonzero(groups[1:] != groups[:-1]) + 1])
    before = np.repeat(sums[starts] - values[starts], np.diff(np.append(starts, len(groups))))
    sums -= before
    return sums
