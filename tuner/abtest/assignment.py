"""Who gets which arm: a salted 64-bit hash of the unit's id, the same everywhere and for ever.

And did each arm get its share? If not, nothing else in the data can be believed.

``% 100`` would round a split of .005 up to 1 %, and an experiment without a salt of its own would
give its treatment to the same people as the one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tuner.core.errors import InputError

BUCKETS = 2**64

# Splits are exact to this much, so a smaller share is a slip.
SMALLEST_SHARE = 1e-6

# Thirds written with 16 digits sum to 1 but for this much.
_ROUNDING = Fraction(1, 10**9)


@dataclass(frozen=True)
class Range:
    """A part of the units of a layer, from ``start`` up to but without ``end``, in 0 to 1.

    Experiments of one layer whose ranges do not overlap never share a unit.
    """

    layer: str
    start: float
    end: float

    def overlaps(self, other: Range) -> bool:
        """Say whether a unit can be in both ranges as members of one layer.

        >>> Range("ranking", 0.0, 0.5).overlaps(Range("ranking", 0.5, 1.0))
        False
        """
        return self.layer == other.layer and self.start < other.end and other.start < self.end

    def holds(self, unit: str) -> bool:
        """Say whether the unit is in the range."""
        return _bound(self.start) <= hash64(f"layer:{self.layer}", unit) < _bound(self.end)


def check_apart(first: Range | None, second: Range | None, names: tuple[str, str]) -> bool:
    """Say whether two experiments, called by their files' names, are known never to share a unit.

    They are not where one has no range, or another layer.

    Raises:
        InputError: their ranges of one layer overlap.
    """
    if first is None or second is None or first.layer != second.layer:
        return False
    if first.overlaps(second):
        raise InputError(
            f"layer {second.layer!r}: {second.start:g} to {second.end:g} of {names[1]} and "
            f"{first.start:g} to {first.end:g} of {names[0]} overlap; choose parts that do not"
        )
    return True


@dataclass(frozen=True)
class Assignment:
    """How an experiment divides units among its arms; built by ``Assignment.of``.

    Attributes:
        salt: what makes this experiment's division independent of any other's.
        arms: names, in the order of their shares on the line from 0 to 2^64.
        bounds: the first number beyond each arm's share.
        range: the part of a layer that the experiment may use; None for everybody.
    """

    salt: str
    arms: tuple[str, ...]
    bounds: tuple[int, ...]
    range: Range | None = None

    @classmethod
    def of(
        cls, salt: str, shares: Mapping[str, float], *, range: Range | None = None
    ) -> Assignment:
        """Build from each arm's share; where they sum to less than 1, the rest is in no arm.

        Raises:
            InputError: a share is under 1e-6, they sum to more than 1, or a range is empty.
        """
        parts = {arm: exactly(share) for arm, share in shares.items()}
        for arm, share in shares.items():
            if not share >= SMALLEST_SHARE:
                raise InputError(
                    f"the share of {arm!r} is {share!r}; it must be at least {SMALLEST_SHARE}"
                )
        total = sum(parts.values(), Fraction())
        is_whole = abs(total - 1) < _ROUNDING
        if not parts or (total > 1 and not is_whole):
            raise InputError(
                f"the shares sum to {float(total):.7g}; give each arm its share of the units, "
                "such as 0.5 and 0.5, in all at most 1"
            )
        if range is not None and not 0.0 <= range.start < range.end <= 1.0:
            raise InputError(
                f"the range {range.start} to {range.end} is empty or leaves 0 to 1; write for "
                "example 0 and 0.5"
            )
        bounds: list[int] = []
        so_far = Fraction()
        for part in parts.values():
            so_far += part
            bounds.append(min(int(so_far * BUCKETS), BUCKETS))
        if is_whole:
            bounds[-1] = BUCKETS
        return cls(salt, tuple(parts), tuple(bounds), range)

    def arm(self, unit: str) -> str | None:
        """Return the unit's arm; None where the unit is not part of the experiment.

        >>> half = Assignment.of("wider-graph", {"control": 0.5, "treatment": 0.5})
        >>> [half.arm(unit) for unit in ("ann", "bob", "eve")]
        ['control', 'treatment', 'control']
        """
        if self.range is not None and not self.range.holds(unit):
            return None
        number = hash64(self.salt, unit)
        for arm, bound in zip(self.arms, self.bounds, strict=True):
            if number < bound:
                return arm
        return None


def hash64(salt: str, unit: str) -> int:
    """Return the first 8 bytes of SHA-256 of ``salt``, a zero byte and ``unit``, big-endian.

    A whole number from 0 to 2^64 - 1, which any language can compute again. The zero byte keeps
    ("ab", "c") and ("a", "bc") apart.

    >>> hash64("wider-graph", "ann")
    4557693124891185294
    """
    digest = hashlib.sha256(f"{salt}\0{unit}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def exactly(share: float) -> Fraction:
    """Return the decimal number that was written: 0.1 + 0.2 + 0.7 is then exactly 1.

    >>> exactly(0.1) + exactly(0.2) + exactly(0.7)
    Fraction(1, 1)
    """
    return Fraction(repr(float(share)))


def _bound(share: float) -> int:
    return int(exactly(share) * BUCKETS)


# Fabijan et al. 2019: so strict because every analysis of every experiment is checked.
SAMPLE_RATIO_ALPHA = 0.001


@dataclass(frozen=True)
class SampleRatio:
    """How many units each arm got, and how likely that is if the split works as configured.

    Attributes:
        observed: units of each arm.
        expected: the same by the configured split.
        p_value: of the chi-square test.
        is_mismatch: ``p_value`` < .001: stop, and find out where units got lost or were added.
    """

    observed: Mapping[str, int]
    expected: Mapping[str, float]
    p_value: float
    is_mismatch: bool


def check_sample_ratio(observed: Mapping[str, int], shares: Mapping[str, float]) -> SampleRatio:
    """Test by chi-square whether counts agree with the arms' shares of the experiment.

    5200 and 4800 for a half each: (200^2 + 200^2) / 5000 = 16, with one degree of freedom
    p = 6.3e-5, a mismatch.

    >>> check_sample_ratio({"a": 5200, "b": 4800}, {"a": 0.5, "b": 0.5}).is_mismatch
    True

    Raises:
        InputError: no units at all, or the arms are not the same.
    """
    if set(observed) != set(shares):
        raise InputError(f"counts of {sorted(observed)}, but shares of {sorted(shares)}")
    total = sum(observed.values())
    if total == 0:
        raise InputError("there are no units in any arm")
    from scipy import stats

    whole = sum(shares.values())
    expected = {arm: total * share / whole for arm, share in shares.items()}
    counts = [observed[arm] for arm in expected]
    p_value = float(stats.chisquare(counts, list(expected.values())).pvalue)
    if len(shares) == 1:
        p_value = 1.0
    return SampleRatio(dict(observed), expected, p_value, p_value < SAMPLE_RATIO_ALPHA)
