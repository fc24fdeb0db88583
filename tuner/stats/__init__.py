"""Statistics for judging configurations: is one really better, and how many queries would tell?"""

from tuner.stats.guardrail import NonInferiority, non_inferior_quantile, non_inferiority
from tuner.stats.multiple import (
    GroupComparison,
    alpha_of_look,
    correct_holm,
    levels_of_looks,
    per_group,
)
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
from tuner.stats.selection import (
    Choose,
    CorrectedEstimate,
    Rows,
    bootstrap_corrected,
    within_one_standard_error,
)

__all__ = [
    "Choose",
    "CorrectedEstimate",
    "GroupComparison",
    "NonInferiority",
    "PairedComparison",
    "Rows",
    "alpha_of_look",
    "bca_interval",
    "bootstrap_corrected",
    "compare_paired",
    "correct_holm",
    "degrees_of_freedom",
    "levels_of_looks",
    "minimum_detectable_difference",
    "minimum_detectable_effect",
    "non_inferior_quantile",
    "non_inferiority",
    "per_group",
    "power_paired",
    "power_unpaired",
    "queries_needed",
    "sample_size_paired",
    "sample_size_unpaired",
    "sign_flip_p",
    "standard_error",
    "within_one_standard_error",
]
