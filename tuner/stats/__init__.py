"""Statistics for judging configurations: is one really better, and how many queries would tell?"""

from tuner.stats.alpha_spending import alpha_of_look, levels_of_looks
from tuner.stats.assignment import Assignment, Range
from tuner.stats.guardrail import NonInferiority, non_inferior_quantile, non_inferiority
from tuner.stats.multiple import GroupComparison, correct_holm, per_group
from tuner.stats.online import ArmComparison, compare_arms
from tuner.stats.online_cuped import adjust_cuped
from tuner.stats.online_guardrail import ArmNonInferiority, arm_non_inferiority
from tuner.stats.online_quantile import compare_quantiles, draw_quantiles, quantile_non_inferiority
from tuner.stats.online_ratio import linearised
from tuner.stats.paired import (
    PairedComparison,
    compare_paired,
    degrees_of_freedom,
    standard_error,
)
from tuner.stats.power import (
    minimum_detectable_difference,
    minimum_detectable_effect,
    power_paired,
    power_unpaired,
    queries_needed,
    sample_size_paired,
    sample_size_unpaired,
)
from tuner.stats.resampling import bca_interval, sign_flip_p
from tuner.stats.sample_ratio import SampleRatio, check_sample_ratio
from tuner.stats.selection import (
    Choose,
    CorrectedEstimate,
    Rows,
    bootstrap_corrected,
    within_one_standard_error,
)
from tuner.stats.sequential import always_valid_p, confidence_sequence

__all__ = [
    "ArmComparison",
    "ArmNonInferiority",
    "Assignment",
    "Choose",
    "CorrectedEstimate",
    "GroupComparison",
    "NonInferiority",
    "PairedComparison",
    "Range",
    "Rows",
    "SampleRatio",
    "adjust_cuped",
    "alpha_of_look",
    "always_valid_p",
    "arm_non_inferiority",
    "bca_interval",
    "bootstrap_corrected",
    "check_sample_ratio",
    "compare_arms",
    "compare_paired",
    "compare_quantiles",
    "confidence_sequence",
    "correct_holm",
    "degrees_of_freedom",
    "draw_quantiles",
    "levels_of_looks",
    "linearised",
    "minimum_detectable_difference",
    "minimum_detectable_effect",
    "non_inferior_quantile",
    "non_inferiority",
    "per_group",
    "power_paired",
    "power_unpaired",
    "quantile_non_inferiority",
    "queries_needed",
    "sample_size_paired",
    "sample_size_unpaired",
    "sign_flip_p",
    "standard_error",
    "within_one_standard_error",
]
