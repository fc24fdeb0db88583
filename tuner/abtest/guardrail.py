"""Guard-rails of two arms of different units: show that one is worse by less than a margin.

As in ``tuner.stats.guardrail``, the margin counts as broken until shown otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy.typing as npt

from tuner.abtest.comparison import mean_of, unit_values, welch, why_untested
from tuner.abtest.sequential import Look
from tuner.core.rankings import FloatArray
from tuner.stats.guardrail import check_margin, check_unit


@dataclass(frozen=True)
class ArmNonInferiority:
    """Whether the treatment is shown to be worse than the control by less than ``margin``.

    Attributes:
        loss: how much worse, positive is worse, in the metric's unit or as a share of the control.
        margin: the largest loss that is acceptable, in the same unit.
        is_relative: whether both are shares of the control.
        alpha: the rate at which a loss of exactly ``margin`` would be let pass.
        standard_error: of the loss beyond the margin, in the metric's unit.
        loss_bound: one-sided upper bound of the loss at one planned look; None where there is none.
        p_value: one-sided, of a loss of ``margin`` or more; None: not tested.
        always_valid_p: the same for any number of looks.
        broken_p: one-sided and always valid, of a loss of ``margin`` or less: small where the
            guard-rail is shown to be broken.
        remark: why nothing was tested, else None.
    """

    loss: float | None
    margin: float
    is_relative: bool
    alpha: float
    standard_error: float | None
    loss_bound: float | None
    p_value: float | None
    always_valid_p: float | None
    broken_p: float | None
    remark: str | None


def arm_non_inferiority(
    treatment: npt.ArrayLike,
    control: npt.ArrayLike,
    *,
    margin: float,
    higher_is_better: bool,
    planned_units: float,
    is_relative: bool = False,
    alpha: float = 0.05,
) -> ArmNonInferiority:
    """Test by a one-sided Welch test that the mean is worse by less than ``margin``.

    Where lower is better: the mean of the treatment less the mean of control + margin. With
    ``is_relative`` it is less (1 + margin) times each control's value, so that the control's own
    uncertainty counts. ``loss_bound`` is the margin at which p would be alpha (but for the degrees
    of freedom, which are those of no margin).

    1.0, 1.2 against 1.0, 1.0, 1.1, 1.1 with a margin of .5: difference .05 - .5 = -.45, standard
    error sqrt(.02 / 2 + .00333 / 4) = .1041, t = -4.32 with 1.17 degrees of freedom, p = .058.

    Raises:
        InputError: as for ``compare_arms``; the margin is negative, or a share of a control that
            is not above 0.
    """
    check_margin(margin, alpha)
    sign = -1.0 if higher_is_better else 1.0
    left, right = unit_values(treatment, "treatment"), unit_values(control, "control")
    base = mean_of(right)
    if is_relative and base is not None:
        check_unit(base)
    remark = why_untested(left, right)
    if remark is not None or base is None:
        return untested_guardrail(margin, is_relative, alpha, remark)

    def excess(allowed: float) -> tuple[FloatArray, FloatArray]:
        if is_relative:
            return sign * left, (sign + allowed) * right
        return sign * left, sign * right + allowed

    from scipy import special

    beyond, error, degrees = welch(*excess(margin))
    return guarded(
        sign * (float(left.mean()) - base) / (base if is_relative else 1.0),
        margin,
        beyond,
        error,
        is_relative=is_relative,
        loss_bound=_bound(left, right, sign, is_relative, alpha),
        p_value=float(special.stdtr(degrees, beyond / error)),
        look=Look((left.size + right.size) / planned_units, alpha, degrees),
    )


def guarded(
    loss: float,
    margin: float,
    excess: float,
    standard_error: float,
    *,
    is_relative: bool,
    loss_bound: float | None,
    p_value: float,
    look: Look,
) -> ArmNonInferiority:
    """Complete a guard-rail by its always-valid side; ``excess`` is the loss beyond the margin."""
    return ArmNonInferiority(
        loss=loss,
        margin=margin,
        is_relative=is_relative,
        alpha=look.alpha,
        standard_error=standard_error,
        loss_bound=loss_bound,
        p_value=p_value,
        always_valid_p=look.upper_p(excess, standard_error),
        broken_p=look.upper_p(-excess, standard_error),
        remark=None,
    )


def untested_guardrail(
    margin: float, is_relative: bool, alpha: float, remark: str | None
) -> ArmNonInferiority:
    """Return a guard-rail that nothing could be said about: not shown to be kept."""
    return ArmNonInferiority(None, margin, is_relative, alpha, None, None, None, None, None, remark)


def _bound(
    left: FloatArray, right: FloatArray, sign: float, is_relative: bool, alpha: float
) -> float | None:
    """Return the upper bound of the loss; for a share of the control Fieller's (1954)."""
    from scipy import special

    difference, error, degrees = welch(left, right)
    critical = -float(special.stdtrit(degrees, alpha))
    if not is_relative:
        return sign * difference + critical * error
    # (t - c (1 + s m))^2 = q^2 (v_t + (1 + s m)^2 v_c), solved for the ratio 1 + s m.
    squared = critical**2
    v_left = squared * float(left.var(ddof=1)) / left.size
    v_right = squared * float(right.var(ddof=1)) / right.size
    top, base = float(left.mean()), float(right.mean())
    a = base**2 - v_right
    if a <= 0.0:
        return None
    root = math.sqrt(max((top * base) ** 2 - a * (top**2 - v_left), 0.0))
    ratio = (top * base + sign * root) / a
    return sign * (ratio - 1.0)
