"""The contract of retrievers: all checks, in the order in which a failure is best understood."""

from __future__ import annotations

from tuner.testing import retriever_behaviour as behaviour
from tuner.testing import retriever_shape as shape
from tuner.testing.contract import Check, Contract, check_all
from tuner.testing.retriever_case import RetrieverCase

CHECKS: tuple[Check, ...] = (
    shape.check_knobs,
    shape.check_fingerprint,
    shape.check_one_row_a_query,
    shape.check_ids_are_known,
    shape.check_no_document_twice,
    shape.check_scores_fall,
    shape.check_what_is_reported,
    behaviour.check_no_query_no_row,
    behaviour.check_same_answer_twice,
    behaviour.check_queries_stand_alone,
    behaviour.check_trials_leave_no_trace,
    behaviour.check_defaults_are_filled_in,
    behaviour.check_unknown_knob_is_refused,
    behaviour.check_params_are_left_alone,
    behaviour.check_pickling,
    behaviour.check_policy,
    behaviour.check_single_query,
)
"""Every check of a retriever."""


def check_retriever(case: RetrieverCase) -> None:
    """Run every check of the contract of retrievers.

    Raises:
        AssertionError: all that is broken, one line for each check.
    """
    check_all(CHECKS, case)


class RetrieverContract(Contract):
    """The contract of retrievers as tests of pytest's; ``case`` is a ``RetrieverCase``."""

    checks = CHECKS
