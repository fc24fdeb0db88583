"""A contract: checks that are run one by one on a case, with pytest or without."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

Check = Callable[[Any], None]
"""A function of the case that raises AssertionError with what is wrong."""


def need(is_kept: bool, broken: str) -> None:
    """Raise AssertionError with what is broken unless it is kept; ``-O`` changes nothing."""
    if not is_kept:
        raise AssertionError(broken)


def checks_in(module: str) -> tuple[Check, ...]:
    """Return the functions ``check_…`` of a module so far, in their order: none is forgotten."""
    there = vars(sys.modules[module]).items()
    own = ((name, thing) for name, thing in there if name.startswith("check_"))
    return tuple(thing for _, thing in own if thing.__module__ == module)


def check_all(checks: Sequence[Check], case: Any) -> None:
    """Run every check of a contract.

    Raises:
        AssertionError: all that is broken, one line for each check.
    """
    broken = []
    for check in checks:
        try:
            check(case)
        except AssertionError as error:
            broken.append(f"{check.__name__}: {error}")
        except Exception as error:
            broken.append(f"{check.__name__}: {type(error).__name__}: {error}")
    if broken:
        raise AssertionError("\n".join(broken))


class Contract:
    """Every check as a test of pytest's: subclass a contract in a test module, and set ``case``."""

    case: ClassVar[Any]
    checks: ClassVar[Sequence[Check]] = ()

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Make one test of each check; called by pytest."""
        if "check" in metafunc.fixturenames:
            names = [check.__name__.removeprefix("check_") for check in self.checks]
            metafunc.parametrize("check", self.checks, ids=names)

    def test_contract(self, check: Check) -> None:
        """Run one check."""
        check(self.case)
