"""From a metric's name to the metric: ``"ndcg@10"`` <-> ``Metric``.

Every file that ``base.FILES`` names has a table ``METRICS``: a new metric is one new file and one
line there. One with more metrics than a table can list has a function ``family_of(name)`` too.
"""

from __future__ import annotations

import importlib
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tuner.core.errors import MetricError, TunerError, did_you_mean, one_line
from tuner.core.rankings import FloatArray
from tuner.metrics.base import FILES, Judged, Kind, MetricFamily, MetricOptions

if TYPE_CHECKING:  # these files hold tables of metrics, which this one reads
    from tuner.metrics.efficiency import JudgedContexts
    from tuner.metrics.graph import JudgedGraph

_CUTOFF = re.compile(r"[1-9][0-9]{0,8}")
_HIGHEST_CUTOFF = 10**9 - 1


@dataclass(frozen=True)
class Metric:
    """One metric with its cut-off: what ``"ndcg@10"`` means.

    Attributes:
        family: the name without the cut-off, ``"ndcg"``.
        cutoff: the rank that it looks down to, or None for the whole ranking; for metrics of a
            budget, the budget in tokens.
        function: see ``MetricFamily``.
        kind: what ``per_query`` reads.
        highest, takes, check, lower_is_better: see ``MetricFamily``.
    """

    family: str
    cutoff: int | None
    function: Callable[..., FloatArray]
    kind: Kind = "ranking"
    highest: float = 1.0
    takes: str = ""
    check: Callable[[Any, int | None], None] | None = None
    lower_is_better: bool = False

    @property
    def is_ranking(self) -> bool:
        """Say whether judged rankings are all that it needs."""
        return self.kind == "ranking"

    @property
    def name(self) -> str:
        """Return the name that ``parse`` understands."""
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    def with_options(self, options: MetricOptions) -> Metric:
        """Return the metric with the option that it takes, where it takes one that is set."""
        value = getattr(options, self.takes) if self.takes else None
        if value is None:
            return self
        return replace(self, function=partial(self.function, **{self.takes: value}))

    def check_options(self, options: MetricOptions) -> None:
        """Refuse an option that the metric cannot be computed with, or lacks.

        Raises:
            MetricError: says what to write.
        """
        if self.check is not None:
            self.check(getattr(options, self.takes), self.cutoff)

    def per_query(self, judged: Judged | JudgedGraph | JudgedContexts) -> FloatArray:
        """Return one value a query, shape (queries,), NaN where undefined.

        Raises:
            MetricError: the function raised something, such as one of yours.
        """
        try:
            return (
                self.function(judged) if self.cutoff is None else self.function(judged, self.cutoff)
            )
        except (TunerError, MemoryError):
            raise
        except Exception as error:  # whatever an author's function does
            raise MetricError(
                f"metric {self.name!r} raised {one_line(error)} ({_where(error)})"
            ) from error


def parse(name: str) -> Metric:
    """Read a metric's name.

    >>> parse("ndcg@10").cutoff
    10

    Raises:
        MetricError: no such metric, or a cut-off that is missing, not wanted or not a whole
            number from 1 to 999999999; the message says what to write.
    """
    if not isinstance(name, str):
        raise MetricError(f"a metric is one name such as 'ndcg@10', got {name!r}")
    families = _families()
    family_name, at, cutoff = name.partition("@")
    family = families.get(family_name) or _of_no_table(family_name)
    if family is None:
        digits = re.search(r"[1-9][0-9]*", cutoff or name)
        choices = _examples(families, digits.group() if digits else "10")
        # MLflow allows no "@", so the same metric is called recall_at_10 there.
        meant = name.lower().replace("_at_", "@")
        raise MetricError(f"unknown metric {name!r}{did_you_mean(meant, choices)}")
    if not at:
        if family.cutoff == "required":
            raise MetricError(f"metric {name!r} needs a cut-off; write for example '{name}@10'")
        return _metric(family_name, None, family)
    if family.cutoff == "none":
        raise MetricError(f"metric {name!r}: {family_name} takes no cut-off; write {family_name!r}")
    if not _CUTOFF.fullmatch(cutoff):
        raise MetricError(
            f"metric {name!r}: the cut-off is {cutoff!r}; it must be a whole number, at least 1 "
            f"and at most {_HIGHEST_CUTOFF}, such as '{family_name}@10'"
        )
    return _metric(family_name, int(cutoff), family)


def known_names() -> list[str]:
    """List all names in alphabetical order, with ``@k`` where a cut-off goes."""
    return sorted(_examples(_families(), "k"))


def descriptions() -> dict[str, str]:
    """Return what each family measures, in one line, by the name of the family."""
    return {name: family.description for name, family in sorted(_families().items())}


def listed(written: str) -> list[str]:
    """Split a list of names at commas; a bare number is a further cut-off of the name before it.

    >>> listed("recall@1,5, map")
    ['recall@1', 'recall@5', 'map']
    """
    names: list[str] = []
    for name in filter(None, map(str.strip, written.split(","))):
        family = names[-1].partition("@")[0] if name.isdecimal() and names else ""
        names.append(f"{family}@{name}" if family else name)
    return list(dict.fromkeys(names))


def depth_needed(metrics: Iterable[Metric]) -> int | None:
    """Return the rank down to which these metrics look, or None for whole rankings.

    Metrics of the text read every retrieved passage; their cut-off is a budget in tokens.
    """
    depth = 0
    for metric in metrics:
        if metric.cutoff is None or metric.kind == "text":
            return None
        depth = max(depth, metric.cutoff)
    return depth or None


def _examples(families: Mapping[str, MetricFamily], cutoff: str) -> list[str]:
    plain = [name for name, family in families.items() if family.cutoff != "required"]
    cut = [f"{name}@{cutoff}" for name, family in families.items() if family.cutoff != "none"]
    return plain + cut


def _metric(name: str, cutoff: int | None, family: MetricFamily) -> Metric:
    return Metric(
        name,
        cutoff,
        family.function,
        family.kind,
        family.highest,
        family.takes,
        family.check,
        family.lower_is_better,
    )


def _modules() -> tuple[ModuleType, ...]:
    return tuple(map(_module, FILES))


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever an author's file does when it is imported
        message = f"the metrics in {name} cannot be imported: {one_line(error)} ({_where(error)})"
        raise MetricError(message) from error


def _where(error: BaseException) -> str:
    """Return the line that raised an error."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}"


@cache
def _families() -> Mapping[str, MetricFamily]:
    families: dict[str, MetricFamily] = {}
    for module in _modules():
        table: Mapping[str, MetricFamily] = getattr(module, "METRICS", {})
        twice = families.keys() & table.keys()
        if twice:
            raise MetricError(f"{module.__name__} defines {sorted(twice)} a second time")
        families.update(table)
    return families


def _of_no_table(name: str) -> MetricFamily | None:
    """Ask the modules with more metrics than a table can list, such as one for each grade."""
    for module in _modules():
        family_of: Callable[[str], MetricFamily | None] | None = getattr(module, "family_of", None)
        family = family_of(name) if family_of is not None else None
        if family is not None:
            return family
    return None
