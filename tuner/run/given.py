"""What ``tuner.tune`` is given as sections of a configuration: what it may spend, when it stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tuner.config.budget import BudgetSection
from tuner.config.checking import checked_mapping
from tuner.config.stopping import StopSection
from tuner.core.errors import Problem, refuse
from tuner.core.journal import read_journal
from tuner.core.ledger import Ledger
from tuner.core.run_files import JOURNAL_FILE
from tuner.run.budget import Budget, HasTrials, Need, ReadTrials
from tuner.run.folder import earlier_seconds
from tuner.run.going_on import has_more, out_of_reach
from tuner.study.stopping import Stop

_OF_QUERIES = ("query_evaluations", "money")


def given_budget(given: Mapping[str, Any] | None) -> BudgetSection:
    """Read a budget.

    Raises:
        InputError: an unknown key, a value out of its range, or a limit of queries or of money,
            which a function that measures itself tells nothing of.
    """
    if given is None:
        return BudgetSection()
    section = checked_mapping(given, BudgetSection, name="budget", example="{'minutes': 30}")
    message = "the function measures itself, so its queries are not known; limit trials or minutes"
    refuse(Problem(message, key=("budget", n)) for n in _OF_QUERIES if n in section.limits)
    return section


def given_stop(given: Mapping[str, Any] | None) -> Stop | None:
    """Read when a search stops; None: when its trials are done.

    Raises:
        InputError: an unknown key, or a value out of its range.
    """
    if given is None:
        return None
    section = checked_mapping(given, StopSection, name="stop", example="{'gain_below': 0.002}")
    return Stop(section.gain_below, section.within)


def shared_out(trials: Mapping[str, int], section: BudgetSection) -> dict[str, int]:
    """Return the trials of each backend: where the budget limits them, its share of those.

    >>> shared_out({"gp": 50, "tpe": 50}, BudgetSection(trials=5))
    {'gp': 3, 'tpe': 2}
    """
    parts = dict(zip(trials, section.parts(list(trials.values())), strict=True))
    return {name: part for name, part in parts.items() if part or not section.trials}


def limit_of(section: BudgetSection, study: HasTrials, elapsed_s: Callable[[], float]) -> Budget:
    """Return the limit of a study of a function, which asks no queries that are known."""
    return Budget(section, study, Ledger(), elapsed_s, lambda: Need(0, 0))


def check_more(folder: Path | None, section: BudgetSection, arms: Mapping[str, int]) -> None:
    """Refuse to give the study in a folder more where its budget leaves none of it.

    Raises:
        InputError: a limit does not reach to one more trial, and to what it has to be raised.
    """
    if folder is None or not (folder / JOURNAL_FILE).is_file():
        return
    content = read_journal(folder / JOURNAL_FILE)
    if has_more(content.header, arms, section):
        elapsed_s = earlier_seconds(content)
        trials = ReadTrials(list(content.trials.values()))
        refuse(out_of_reach(limit_of(section, trials, lambda: elapsed_s)))
