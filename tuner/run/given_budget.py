"""The budget of a function that is tuned from Python: the keys of a configuration's section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from tuner.config.budget import BudgetSection, shares
from tuner.core.errors import InputError, Problem, did_you_mean, refuse
from tuner.core.ledger import Ledger
from tuner.run.budget import Budget, Need
from tuner.study.study import Study

_OF_QUERIES = ("query_evaluations", "money")


def given_budget(given: Mapping[str, Any] | None) -> BudgetSection:
    """Read a budget.

    Raises:
        InputError: an unknown key, a value out of its range, or a limit of queries or of money,
            which a function that measures itself tells nothing of.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"budget={given!r}: write a mapping, such as budget={{'minutes': 30}}")
    known = tuple(BudgetSection.model_fields)
    problems = []
    for name in given or {}:
        if name not in known:
            message = f"unknown key{did_you_mean(str(name), known)}"
            problems.append(Problem(message, key=("budget", str(name))))
        elif name in _OF_QUERIES:
            message = "the function measures itself, so its queries are not known; limit trials"
            problems.append(Problem(f"{message} or minutes", key=("budget", name)))
    refuse(problems)
    try:
        return BudgetSection.model_validate(dict(given or {}))
    except OverflowError:  # a whole number that no float holds
        raise InputError("a number is too large", key=("budget",)) from None
    except ValidationError as error:
        raise InputError(
            problems=[
                Problem(f"{one['msg']}, got {one['input']!r}", key=("budget", *one["loc"][:1]))
                for one in error.errors()
            ]
        ) from None


def shared_out(trials: Mapping[str, int], section: BudgetSection) -> dict[str, int]:
    """Return the trials of each backend: where the budget limits them, its share of those.

    >>> shared_out({"gp": 50, "tpe": 50}, BudgetSection(trials=5))
    {'gp': 3, 'tpe': 2}
    """
    if not section.trials or not trials:
        return dict(trials)
    parts = shares(list(trials.values()), section.trials)
    return {name: part for name, part in zip(trials, parts, strict=True) if part}


def limit_of(section: BudgetSection, study: Study, elapsed_s: Callable[[], float]) -> Budget:
    """Return the limit of a study of a function, which asks no queries that are known."""
    return Budget(section, study, Ledger(), elapsed_s, lambda: Need(0, 0))
