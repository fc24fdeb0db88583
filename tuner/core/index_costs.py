"""What the indexes of a study cost: counted from its trials, for every view of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tuner.core.money import total
from tuner.core.shown import counted
from tuner.core.steps import INDEX, duration
from tuner.core.trial import IndexUse, Trial

# Megabytes from which on a size is written in gigabytes.
_GIGABYTE = 1000.0


@dataclass(frozen=True)
class IndexCosts:
    """What the trials of a study asked for of indexes, and what building them took.

    Attributes:
        built: how many different ones were built for it.
        found: how many lay in the cache already.
        failed: how many could not be built.
        seconds: what building took in all, those that failed included; not those that were found.
        megabytes: 10^6 bytes on the disk of all, those that were found included.
        tokens, money: of those that were built, as far as the system tells; None where it does not.
    """

    built: int = 0
    found: int = 0
    failed: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    tokens: int | None = None
    money: float | None = None

    @property
    def count(self) -> int:
        """Return how many different indexes the trials needed."""
        return self.built + self.found + self.failed

    @property
    def parts(self) -> str:
        """Return how they came about and what they took, for people.

        >>> IndexCosts(10, 2, 0, 1860.0, 4200.0).parts
        '10 built in 31 min 0 s, 2 found in the cache; 4.2 GB'
        """
        built = f"{self.built:,} built in {duration(self.seconds)}"
        came = [
            *([built] if self.built or not self.found else []),
            *([f"{self.found:,} found in the cache"] if self.found else []),
            *([f"{self.failed:,} could not be built"] if self.failed else []),
        ]
        took = [
            size(self.megabytes),
            *([] if self.tokens is None else [f"{self.tokens:,} tokens"]),
            *([] if self.money is None else [f"money {self.money:,.2f}"]),
        ]
        return f"{', '.join(came)}; {', '.join(took)}"

    @property
    def sentence(self) -> str:
        """Return all of it for people.

        >>> IndexCosts(1, 0, 1, 12.5, 3.0, tokens=5000).sentence
        '2 indexes: 1 built in 12.5 s, 1 could not be built; 3.0 MB, 5,000 tokens'
        """
        return f"{counted(self.count, 'index', 'indexes')}: {self.parts}"

    def to_metrics(self) -> dict[str, float]:
        """Return the figures by the names that trackers and scripts know them by."""
        told = {"index_tokens": self.tokens, "index_money": self.money}
        return {
            "indexes": self.count,
            "indexes_built": self.built,
            "indexes_found": self.found,
            "indexes_failed": self.failed,
            "index_seconds": self.seconds,
            "index_mb": self.megabytes,
            **{name: value for name, value in told.items() if value is not None},
        }


def index_costs(trials: Iterable[Trial]) -> IndexCosts | None:
    """Add up what the indexes of trials cost, each index once; None where no trial tells of any.

    A trial that failed after it had waited for an index, and names none, had one that could not be
    built: one for each reason, which tells the setting.
    """
    uses: dict[str, IndexUse] = {}
    reasons: set[str | None] = set()
    seconds = 0.0
    for trial in trials:
        if trial.index is not None:
            for use in trial.index.each:
                if use.is_new or use.name not in uses:
                    uses[use.name] = use
        elif has_failed_index(trial):
            reasons.add(trial.error)
            seconds += trial.seconds[INDEX]
    if not uses and not reasons:
        return None
    built = [use for use in uses.values() if use.is_new]
    tokens = [use.tokens for use in built if use.tokens is not None]
    money = [use.money for use in built if use.money is not None]
    return IndexCosts(
        built=len(built),
        found=len(uses) - len(built),
        failed=len(reasons),
        seconds=seconds + sum(use.seconds for use in built),
        megabytes=sum(use.megabytes for use in uses.values()),
        tokens=sum(tokens) if tokens else None,
        money=total(money) if money else None,
    )


def has_failed_index(trial: Trial) -> bool:
    """Say whether a trial failed since its index could not be built."""
    return trial.error is not None and trial.index is None and INDEX in trial.seconds


def index_metrics_of(index: IndexUse) -> Mapping[str, float]:
    """Return what building an index took, by the names of the metrics that tell it."""
    return {"index_seconds": index.seconds, "index_mb": index.megabytes}


def size(megabytes: float) -> str:
    """Write a size on the disk for people.

    >>> size(0.0123), size(1.26), size(4200.0)
    ('12.3 kB', '1.3 MB', '4.2 GB')
    """
    if megabytes < 1.0:
        return f"{megabytes * 1000.0:.1f} kB"
    if megabytes < _GIGABYTE:
        return f"{megabytes:.1f} MB"
    return f"{megabytes / _GIGABYTE:.1f} GB"
