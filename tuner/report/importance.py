"""Which parameters matter, how sure that is (fANOVA over many forests), and which do nothing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.core.rankings import FloatArray, IntArray
from tuner.core.shown import as_percent, joined
from tuner.core.space import Categorical, Parameter, SearchSpace
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Params, Trial
from tuner.report.chart import Axis, Chart, Numbers, Value, chart_of_rows
from tuner.report.curves import computed_trials
from tuner.report.marginals import Movement, movement, sampled
from tuner.report.parts import Block, Charts, Items, Section, Table, Text, shown
from tuner.report.review import Review

# From fewer distinct trials a forest learns nothing.
FEWEST_TRIALS = 10
# A single forest's order of the parameters changed with its seed in half of the studies.
FORESTS, TREES, DEPTH = 20, 8, 8
# So many points stand for a curve.
POINTS = 11


@dataclass(frozen=True)
class Importance:
    """A parameter's share of what moves the objective, and the range of it over the forests.

    ``moves`` says which way and how far it moves the objective.
    """

    share: float
    low: float
    high: float
    moves: Movement | None = None


def importances(header: StudyHeader, trials: Sequence[Trial]) -> dict[str, Importance]:
    """Return what share of the objective's movement each parameter has, largest first, sum 1.

    fANOVA (Hutter, Hoos and Leyton-Brown, ICML 2014): a random forest is fitted to the trials, and
    the variance of its prediction over the whole space, each parameter on its own scale, is split
    among the parameters. Of 20 forests, each fitted to as many trials drawn anew from all (with
    replacement), the share is the mean, and the range is that of all: what a forest's chance or
    a few other trials would change lies within it. The same trials give the same figures.

    Of a free parameter each trial tells of other values too, and all of these count: up to 11
    along each of its curves. Drawn anew are trials, each with what it tells.

    A parameter that is inactive counts as in the middle of its range. Trials that were raced out
    count with their estimate, those outside the space not at all. With few trials it tells what is
    without effect far more reliably than PED-ANOVA, which looks at the best tenth only.

    ``{}`` where nothing can be said: fewer than 10 distinct settings, all of one worth, or nothing
    that varies.
    """
    space = SearchSpace.from_mapping(header.space)
    told = [
        [trial, *computed_trials(trial, most=POINTS)]
        for trial in sorted(trials, key=lambda trial: trial.number)
        if trial.worth is not None and trial.shared_from is None and space.contains(trial.params)
    ]
    counted = [one for of_trial in told for one in of_trial]
    varied = {name: found for name, found in space.parameters.items() if found.count != 1}
    if len(counted) < FEWEST_TRIALS or len({t.worth for t in counted}) < 2 or not varied:
        return {}
    columns = np.array(
        [
            [at for name in varied for at in _columns(varied[name], name, trial.params)]
            for trial in counted
        ]
    )
    widths = [one.count if isinstance(one, Categorical) else 1 for one in varied.values()]
    worths = np.array([trial.worth for trial in counted], dtype=np.float64)
    ends = np.cumsum([0, *map(len, told)])
    rows = [np.arange(begin, end) for begin, end in itertools.pairwise(ends)]
    drawn = [
        _forest_shares(columns, worths, widths, rows, seed=number) for number in range(FORESTS)
    ]
    seen = [one for one in drawn if one is not None]
    if not seen:  # no tree found a difference
        return {}
    shares = np.array([one.shares for one in seen])
    moves = [
        movement(parameter, np.array([one.marginals[place] for one in seen]))
        for place, parameter in enumerate(varied.values())
    ]
    mean, low, high = shares.mean(axis=0), shares.min(axis=0), shares.max(axis=0)
    found = {
        name: Importance(float(share), float(least), float(most), how)
        for name, how, share, least, most in zip(varied, moves, mean, low, high, strict=True)
    }
    return dict(sorted(found.items(), key=lambda one: -one[1].share))


def leader(found: Mapping[str, Importance]) -> str | None:
    """Return what matters most; None where its range meets that of another, or is alone.

    >>> leader({"a": Importance(0.7, 0.6, 0.8), "b": Importance(0.3, 0.2, 0.4)})
    'a'
    >>> leader({"a": Importance(0.6, 0.4, 0.8), "b": Importance(0.4, 0.2, 0.6)})
    """
    first, *others = found
    is_ahead = all(found[name].high < found[first].low for name in others)
    return first if others and is_ahead else None


def _columns(parameter: Parameter, name: str, params: Params) -> list[float]:
    """Return where in its range a parameter is, from 0 to 1, or 1 for its choice and 0 for others.

    A tree can then tell any choice from the rest, as choices have no order.
    """
    value = params[name] if name in params else parameter.at(0.5)
    if not isinstance(parameter, Categorical):
        return [parameter.position(value)]
    return [float(number == parameter.index(value)) for number in range(parameter.count)]


@dataclass(frozen=True)
class _Seen:
    """What a tree or a forest says of each parameter: its share, and its marginal."""

    shares: FloatArray
    marginals: tuple[FloatArray, ...]


def _forest_shares(
    columns: FloatArray,
    worths: FloatArray,
    widths: Sequence[int],
    of_trials: Sequence[IntArray],
    *,
    seed: int,
) -> _Seen | None:
    """Return the shares by a forest on trials drawn anew; None where it saw no difference.

    ``of_trials`` says which rows tell of each trial.
    """
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    count = len(of_trials)
    sample = rng.integers(count, size=count)
    found = []
    for _ in range(TREES):
        again = sample[rng.integers(count, size=count)]
        rows = np.concatenate([of_trials[place] for place in again])
        tree = DecisionTreeRegressor(max_depth=DEPTH, random_state=int(rng.integers(2**31)))
        tree.fit(columns[rows], worths[rows])
        fractions = _tree_fractions(tree.tree_, widths)
        if fractions is not None:
            found.append(fractions)
    mean = np.mean([one.shares for one in found], axis=0) if found else np.zeros(1)
    total = float(mean.sum())
    if total <= 0.0:
        return None
    marginals = zip(*(one.marginals for one in found), strict=True)
    return _Seen(mean / total, tuple(np.mean(each, axis=0) for each in marginals))


def _tree_fractions(tree: Any, widths: Sequence[int]) -> _Seen | None:
    """Return how much of a tree's variance over the space each parameter explains alone.

    ``widths`` says how many columns each has. The tree is constant on the boxes of its leaves, so
    every integral is a sum: with the other parameters averaged out it is a step function of the one
    left, between the edges of the boxes or over the choices.
    """
    low, high = np.zeros((tree.node_count, sum(widths))), np.ones((tree.node_count, sum(widths)))
    for node in range(tree.node_count):  # a parent stands before its children
        left, right = tree.children_left[node], tree.children_right[node]
        if left == right:
            continue
        at, cut = tree.feature[node], tree.threshold[node]
        low[left] = low[right] = low[node]
        high[left] = high[right] = high[node]
        high[left, at] = low[right, at] = cut
    is_leaf = tree.children_left == tree.children_right
    values, low, high = tree.value[is_leaf, 0, 0], low[is_leaf], high[is_leaf]
    ends = np.cumsum([0, *widths])
    cells = [
        _cells(low[:, begin:end], high[:, begin:end]) for begin, end in itertools.pairwise(ends)
    ]
    sides: FloatArray = np.array([is_within @ sizes for is_within, sizes in cells])
    volumes = sides.prod(axis=0)
    mean = volumes @ values
    variance = volumes @ (values - mean) ** 2
    if variance <= 0.0:
        return None
    alone, marginals = [], []
    for (is_within, sizes), side, width in zip(cells, sides, widths, strict=True):
        weights = np.divide(values * volumes, side, out=np.zeros_like(side), where=side > 0.0)
        marginal = weights @ is_within
        alone.append(sizes @ (marginal - mean) ** 2)
        marginals.append(sampled(marginal, sizes, is_choice=width > 1))
    return _Seen(np.array(alone) / variance, tuple(marginals))


def _cells(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return which cells of a parameter each box holds, shape (boxes, cells), and their sizes."""
    count = low.shape[1]
    if count > 1:
        choices = np.eye(count)
        is_within = ((low[:, None] <= choices) & (choices <= high[:, None])).all(axis=2)
        return np.asarray(is_within, dtype=np.float64), np.full(count, 1.0 / count)
    edges: FloatArray = np.unique(np.concatenate((low, high)))
    is_within = (low <= edges[:-1]) & (high >= edges[1:])
    sizes: FloatArray = np.diff(edges)
    return is_within.astype(np.float64), sizes


# A parameter whose whole range lies below this share hardly moves the objective.
LITTLE = 0.1
MOST_NAMED = 5
_MARKS = ("+", "−", "∩", "∪")
SHARES = tuple((n / 10, f"{n * 10} %") for n in range(11))


def shares(review: Review) -> dict[str, Importance]:
    """Return each parameter's share of what moves the objective; ``{}`` where that is unknown."""
    return importances(review.header, review.trials)


def section(review: Review, found: Mapping[str, Importance]) -> Section:
    """Rank the parameters, and name dead knobs and whatever else is odd about the system."""
    blocks: list[Block] = []
    if found:
        blocks += [Charts("importance", (_chart(found),)), _directions(found)]
    else:
        blocks.append(
            Text(
                f"It cannot be said: that takes at least {FEWEST_TRIALS} different settings that "
                "are not all worth the same."
            )
        )
    if review.summary.remarks:
        blocks.append(Items(review.summary.remarks))
    elif review.summary.winner is not None and review.header.dataset:
        blocks.append(Text("Every parameter changes some ranking: no dead knob was found."))
    lead = "Each parameter's share of what moves the objective, over the whole space."
    return Section("importance", "What matters", lead, tuple(blocks))


def _chart(found: Mapping[str, Importance]) -> Chart:
    described = {name: _described(name, one) for name, one in found.items()}
    return chart_of_rows(
        "importance",
        "Importance of the parameters",
        f"{_reading(found)} Shares add up to 100 %. They are means over {FORESTS} forests (fANOVA),"
        " each fitted to trials drawn anew; the thin lines span all of them.",
        Axis("share", SHARES, span=(0.0, 1.03 * max(one.high for one in found.values()))),
        [
            (
                f"{name}  {_mark(one)}{as_percent(one.share)}",
                *(one.share, one.low, one.high),
                described[name],
            )
            for name, one in found.items()
        ],
        Numbers(
            ("parameter", "share", "low", "high", "sign", "moves", "moves_low", "moves_high"),
            tuple(
                (name, one.share, one.low, one.high, *_moves(one)) for name, one in found.items()
            ),
        ),
        description="; ".join(described.values()),
        form="bars",
    )


def _directions(found: Mapping[str, Importance]) -> Table:
    """Say of each parameter which way it moves the objective, and how far."""
    columns = ("parameter", "share", "which way", "moves the objective by", "range")
    rows = tuple(
        (
            name,
            f"{as_percent(one.share)} ({as_percent(one.low)} to {as_percent(one.high)})",
            f"{_mark(one)}{one.moves.words}",
            shown(one.moves.size),
            f"{shown(one.moves.low)} to {shown(one.moves.high)}",
        )
        for name, one in found.items()
        if one.moves is not None
    )
    caption = (
        "From its worst to its best value, the other parameters averaged over the whole space: + "
        "more is better, − less is better, ∩ best inside its range, ∪ best at the ends. Ranges "
        "span the forests; where these do not agree on a direction, none is named"
    )
    return Table(caption, columns, rows, frozenset(columns[3:]))


def _mark(one: Importance) -> str:
    return f"{one.moves.sign} " if one.moves is not None and one.moves.sign in _MARKS else ""


def _moves(one: Importance) -> tuple[Value, ...]:
    moves = one.moves
    return (None,) * 4 if moves is None else (moves.sign, moves.size, moves.low, moves.high)


def _described(name: str, one: Importance) -> str:
    share = f"{as_percent(one.share)} ({as_percent(one.low)} to {as_percent(one.high)})"
    if one.moves is None:
        return f"{name} {share}"
    return (
        f"{name} {share}, {one.moves.words}; from worst to best it moves by {shown(one.moves.size)}"
    )


def _reading(found: Mapping[str, Importance]) -> str:
    """Name the leader where there is one, and what hardly matters."""
    first, *others = found
    little = [name for name, one in found.items() if one.high < LITTLE]
    if leader(found) is not None:
        text = f"{first} matters most, with {as_percent(found[first].share)}."
    elif not others:
        text = f"{first} is all that varies."
    else:
        rivals = [name for name in others if found[name].high >= found[first].low]
        text = f"{_named([first, *rivals])} cannot be ranked: their ranges overlap."
    if little:
        text += f" {_named(little)} hardly: any value does nearly as well."
    return text


def _named(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    if more > 0:
        return f"{', '.join(names[:MOST_NAMED])} and {more} more"
    return joined(names)
