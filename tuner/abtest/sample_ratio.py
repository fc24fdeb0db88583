"""Did each arm get its share of the units? If not, nothing else in the data can be believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tuner.core.errors import InputError

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
