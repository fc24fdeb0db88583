"""How far two who graded the same items agree beyond chance: Cohen's kappa, plain or weighted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tuner.core.errors import InputError, did_you_mean

Weights = Literal["none", "linear", "quadratic"]


@dataclass(frozen=True)
class Agreement:
    """How far two annotators agree.

    Attributes:
        pairs: how many items both graded; ``same``: the share with the same grade, in [0, 1].
        kappa: at most 1, 0 for what chance would give, or None where it is undefined.
        weights: how much less a near miss counts than a far one.
        why_undefined: the reason, in words; empty where kappa is defined.
        table: (first's grade, second's grade) -> how many items.
    """

    pairs: int
    same: float | None
    kappa: float | None
    weights: Weights
    why_undefined: str
    table: dict[tuple[int, int], int]

    def passes(self, gate: float) -> bool:
        """Say whether kappa is defined and at least ``gate``; a gate of 0 lets all pass."""
        # A sum of shares may come out a little below the round number that it is.
        return gate == 0 or (self.kappa is not None and self.kappa >= gate - 1e-12)


def cohen_kappa(
    first: Sequence[int],
    second: Sequence[int],
    *,
    weights: Weights = "quadratic",
) -> Agreement:
    """Compare two annotators' grades of the same items, in the same order.

    kappa = 1 - sum(w * observed) / sum(w * expected) over all pairs of grades (Cohen 1960, 1968).
    The expected counts are those of two annotators who keep their own shares of each grade but
    grade at random. The weight of a disagreement between grades a and b is 1 (``none``),
    \\|a - b\\| (``linear``) or (a - b)**2 (``quadratic``): a 3 against a 2 is a smaller matter
    than a 3 against a 0.

    Kappa is undefined where an annotator gave every item the same grade: chance alone then agrees
    as much as they do, so that they may agree on everything and nothing is known.

    Worked example, weights none: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no. Observed agreement
    35/50 = .7; by chance .5 * .6 + .5 * .4 = .5; kappa = (.7 - .5) / (1 - .5) = .4.

    Raises:
        InputError: sequences of different lengths, or unknown weights.
    """
    if weights not in get_args(Weights):
        raise InputError(f"unknown weights {weights!r}{did_you_mean(weights, get_args(Weights))}")
    if len(first) != len(second):
        raise InputError(f"{len(first)} grades against {len(second)}: must be of the same items")
    table = dict(sorted(Counter(zip(first, second, strict=True)).items()))
    pairs = len(first)
    same = sum(count for (a, b), count in table.items() if a == b) / pairs if pairs else None
    why = _why_undefined(first, second)
    kappa = None if why else _kappa(first, second, weights)
    return Agreement(pairs, same, kappa, weights, why, table)


def _why_undefined(first: Sequence[int], second: Sequence[int]) -> str:
    if not first:
        return "nothing was graded by both"
    for name, grades in (("first", first), ("second", second)):
        if len(set(grades)) == 1:
            pairs = "the only pair" if len(grades) == 1 else f"all {len(grades)} pairs"
            message = f"the {name} annotator gave grade {grades[0]} to {pairs}"
            return f"{message}, so that agreement cannot be told from chance"
    return ""


def _kappa(first: Sequence[int], second: Sequence[int], weights: Weights) -> float:
    from sklearn.metrics import cohen_kappa_score

    low, high = min(*first, *second), max(*first, *second)
    # Its weights count positions in the list of labels: without the grades that nobody gave, a 3
    # against a 1 would be as close as a 2 against a 1.
    labels = list(range(low, high + 1))
    return float(
        cohen_kappa_score(
            list(first),
            list(second),
            labels=labels,
            weights=None if weights == "none" else weights,
        )
    )
