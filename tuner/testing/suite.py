"""All checks in the order in which a failure is best understood, and two ways to run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tuner.testing import behaviour, shape
from tuner.testing.case import RetrieverCase

Check = Callable[[RetrieverCase], None]

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
"""Every check: a function of the case that raises AssertionError with what is wrong."""


def check_retriever(case: RetrieverCase) -> None:
    """Run every check of the contract.

    Raises:
        AssertionError: all that is broken, one line for each check.
    """
    broken = []
    for check in CHECKS:
        try:
            check(case)
        except AssertionError as error:
            broken.append(f"{check.__name__}: {error}")
        except Exception as error:
            broken.append(f"{check.__name__}: {type(error).__name__}: {error}")
    if broken:
        raise AssertionError("\n".join(broken))


class RetrieverContract:
    """Every check as a test of pytest's: subclass it in a test module and set ``case``."""

    case: ClassVar[RetrieverCase]

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Make one test of each check; called by pytest."""
        if "check" in metafunc.fixturenames:
            names = [check.__name__.removeprefix("check_") for check in CHECKS]
            metafunc.parametrize("check", CHECKS, ids=names)

    def test_contract(self, check: Check) -> None:
        """Run one check."""
        check(self.case)
