"""Statistics for judging configurations: is one really better, and how many queries would tell?"""

from tuner.stats.crossfit import widened_by, widened_by_both_ways
from tuner.stats.guardrail import NonInferiority, non_inferior_quantile, non_inferiority
from tuner.stats.multiple import (
    GroupComparison,
    alpha_of_look,
    correct_holm,
    levels_of_looks,
    per_group,
)
from tuner.stats.paired import (
    JudgeUse,
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
from tuner.stats.selection import (
    Choose,
    CorrectedEstimate,
    Rows,
    bootstrap_corrected,
    within_one_standard_error,
)
from tuner.stats.with_judge import (
    Estimate,
    Labels,
    Shares,
    calibrated_ratio,
    compare_with_judge,
    mean_with_judge,
    non_inferiority_with_judge,
)

__all__ = [
    "Choose",
    "CorrectedEstimate",
    "Estimate",
    "GroupComparison",
    "JudgeUse",
    "Labels",
    "NonInferiority",
    "PairedComparison",
    "Rows",
    "Shares",
    "alpha_of_look",
    "bca_interval",
    "bootstrap_corrected",
    "calibrated_ratio",
    "compare_paired",
    "compare_with_judge",
    "correct_holm",
    "degrees_of_freedom",
    "levels_of_looks",
    "mean_with_judge",
    "minimum_detectable_difference",
    "minimum_detectable_effect",
    "non_inferior_quantile",
    "non_inferiority",
    "non_inferiority_with_judge",
    "per_group",
    "power_paired",
    "power_unpaired",
    "queries_needed",
    "sample_size_paired",
    "sample_size_unpaired",
    "sign_flip_p",
    "standard_error",
    "widened_by",
    "widened_by_both_ways",
    "within_one_standard_error",
]
