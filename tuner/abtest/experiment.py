"""An online experiment in YAML: arms, split, metrics, guard-rails, and when it may be decided."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainValidator, StrictInt, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from tuner.abtest.assignment import Assignment, Range
from tuner.config.checking import checked
from tuner.config.section import Number, Section
from tuner.config.source import Source, read_source, with_overrides
from tuner.core.checks import is_number
from tuner.core.errors import InputError, Problem, did_you_mean

_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*%\s*")


@dataclass(frozen=True)
class Amount:
    """A size of effect: in the metric's unit, or as a share of the control's value."""

    value: float
    is_relative: bool

    def __str__(self) -> str:
        return f"{self.value * 100:g} %" if self.is_relative else f"{self.value:g}"

    def of(self, control: float) -> float:
        """Return the amount in the metric's unit."""
        return self.value * abs(control) if self.is_relative else self.value


def _amount(written: Any) -> Amount:
    if isinstance(written, Amount):
        return written
    if is_number(written) and 0 <= written < 1e300:
        return Amount(float(written), is_relative=False)
    found = _PERCENT.fullmatch(written) if isinstance(written, str) else None
    if found is None:
        raise PydanticCustomError(
            "amount",
            "should be a number of at least 0, in the metric's unit, or a share such as 2%",
        )
    return Amount(float(found[1]) / 100.0, is_relative=True)


_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^[0-9.]+ ?%$"}]
}

AmountField = Annotated[Amount, PlainValidator(_amount), WithJsonSchema(_SCHEMA)]


CONTROL = "control"

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

Column = Annotated[str, Field(min_length=1)]


class RatioSection(Section):
    """Sums over a unit's rows: of one column, for each of another; for each row where left out."""

    of: Column = Field(description="the column that is summed")
    per: Column | None = Field(
        default=None, description="the column that it is divided by; left out: the number of rows"
    )


class QuantileSection(Section):
    """A quantile over rows, such as 0.95 of latency_ms."""

    of: Column = Field(description="the column whose quantile is taken")
    at: Number = Field(gt=0, lt=1, description="which quantile, such as 0.95")


class MetricSection(Section):
    """What is measured: exactly one of mean, sum, ratio and quantile."""

    mean: Column | None = Field(default=None, description="a unit's mean over its rows")
    sum: Column | None = Field(default=None, description="a unit's sum over its rows")
    ratio: RatioSection | None = Field(
        default=None, description="a column's sum divided by another's, or by the number of rows"
    )
    quantile: QuantileSection | None = Field(
        default=None, description="a quantile over rows, such as the 95th percentile of a time"
    )
    better: Literal["higher", "lower"] = Field(description="which direction is the good one")
    before: Column | RatioSection | None = Field(
        default=None,
        description="the unit's value from before the experiment, which makes the test sharper "
        "(CUPED)",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [self.mean, self.sum, self.ratio, self.quantile]
        if sum(kind is not None for kind in kinds) != 1:
            raise PydanticCustomError("kind", "needs exactly one of mean, sum, ratio and quantile")
        if self.quantile is not None and self.before is not None:
            raise PydanticCustomError(
                "before", "`before` sharpens means, sums and ratios; leave it out of a quantile"
            )
        return self

    @property
    def is_higher_better(self) -> bool:
        """Say which direction is the good one."""
        return self.better == "higher"

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of numbers that the metric reads, without those of before."""
        match self:
            case MetricSection(ratio=RatioSection(of=of, per=per)):
                return (of,) if per is None else (of, per)
            case MetricSection(quantile=QuantileSection(of=of)):
                return (of,)
            case _:
                return (str(self.mean or self.sum),)

    @property
    def before_columns(self) -> tuple[str, ...]:
        """Return the columns of numbers from before the experiment."""
        match self.before:
            case None:
                return ()
            case RatioSection(of=of, per=per):
                return (of,) if per is None else (of, per)
            case column:
                return (column,)


class PrimarySection(Section):
    """The one metric that decides, and the smallest gain in it that would matter."""

    metric: str = Field(description="a name below `metrics`")
    min_effect: AmountField = Field(
        description="the smallest gain that would matter: a number in the metric's unit, or a "
        "share such as 2%"
    )


class LimitSection(Section):
    """How much worse a metric may become: a number in its unit, or a share such as 5%."""

    max_increase: AmountField | None = Field(
        default=None, description="for a metric where lower is better: how much it may rise"
    )
    max_decrease: AmountField | None = Field(
        default=None, description="for a metric where higher is better: how much it may fall"
    )

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.max_increase is None) == (self.max_decrease is None):
            raise PydanticCustomError("bound", "needs exactly one of max_increase and max_decrease")
        return self

    @property
    def margin(self) -> Amount:
        """Return the largest acceptable loss."""
        margin = self.max_increase or self.max_decrease
        if margin is None:
            raise InputError("needs exactly one of max_increase and max_decrease")
        return margin


class LayerSection(Section):
    """The part of the units of a layer that the experiment may use; parts exclude each other."""

    name: str = Field(pattern=_NAME, description="the layer's name")
    start: Number = Field(
        default=0, ge=0, lt=1, description="where the experiment's part of the layer begins"
    )
    end: Number = Field(
        default=1, gt=0, le=1, description="where the experiment's part of the layer ends"
    )


class ExperimentConfig(Section):
    """A whole online experiment."""

    name: str = Field(pattern=_NAME, description="the name of the experiment")
    salt: str | None = Field(
        default=None,
        pattern=_NAME,
        description="the text that is hashed with each id to choose its arm; left out: the name",
    )
    arms: dict[str, dict[str, Any]] = Field(
        min_length=2,
        description="arm -> its parameters; one arm is called control: what runs today",
    )
    split: dict[str, Number] | None = Field(
        default=None,
        description="arm -> its share of the units; left out: equal shares; where the shares add "
        "up to less than 1, the other units take no part",
    )
    layer: LayerSection | None = Field(
        default=None,
        description="experiments in different parts of one layer share no units; left out: the "
        "experiment may use every unit",
    )
    unit: Column = Field(default="user", description="the column of what is assigned to an arm")
    arm: Column = Field(default="arm", description="the column of the unit's arm")
    date: Column = Field(default="date", description="the column of dates in a baseline file")
    metrics: dict[str, MetricSection] = Field(
        min_length=1, description="metric -> how it is measured"
    )
    primary: PrimarySection = Field(description="the one metric that decides")
    guardrails: dict[str, LimitSection] = Field(
        default_factory=dict, description="metric -> how much worse it may become"
    )
    minimum_sample_size: StrictInt = Field(
        ge=2, description="units in each arm before anything is decided"
    )
    alpha: Number = Field(
        default=0.05, gt=0, lt=0.5, description="how often an arm that is no better may be shipped"
    )
    power: Number = Field(
        default=0.8,
        ge=0.5,
        lt=1,
        description="how often a gain of `min_effect` is to be found, for `tuner abtest plan`",
    )
    decide: Literal["always_valid", "fixed_horizon"] = Field(
        default="always_valid",
        description="always_valid: look as often as you like; fixed_horizon: decide once, at the "
        "minimum sample size, which needs fewer units",
    )
    seed: StrictInt = Field(
        default=0, ge=0, lt=2**63, description="the seed of the resampling of quantiles"
    )

    @property
    def treatments(self) -> tuple[str, ...]:
        """Return the arms beside the control."""
        return tuple(arm for arm in self.arms if arm != CONTROL)

    @property
    def shares(self) -> dict[str, float]:
        """Return each arm's share of the units that the experiment may use."""
        split = self.split or {arm: 1.0 / len(self.arms) for arm in self.arms}
        return {arm: float(split[arm]) for arm in self.arms}

    @property
    def secondary(self) -> tuple[str, ...]:
        """Return the metrics that neither decide nor guard."""
        used = {self.primary.metric, *self.guardrails}
        return tuple(name for name in self.metrics if name not in used)

    @property
    def alpha_each(self) -> float:
        """Return the level for each treatment: alpha / treatments (Bonferroni)."""
        return float(self.alpha) / len(self.treatments)

    def planned_units(self, treatment: str) -> float:
        """Return the units of treatment and control when both have the minimum sample."""
        shares = (self.shares[treatment], self.shares[CONTROL])
        return self.minimum_sample_size * sum(shares) / min(shares)

    def assignment(self) -> Assignment:
        """Return how units are divided among the arms."""
        part = self.layer and Range(self.layer.name, float(self.layer.start), float(self.layer.end))
        return Assignment.of(self.salt or self.name, self.shares, range=part or None)


def load_experiment(
    path: str | Path, settings: Sequence[str] = ()
) -> tuple[ExperimentConfig, Source]:
    """Read an experiment with its ``--set`` overrides.

    Raises:
        InputError: with every problem found, each with file, line and key.
    """
    source = with_overrides(read_source(path), settings)
    config = checked(source, ExperimentConfig)
    problems = [*_arm_problems(config), *_metric_problems(config)]
    if not problems:
        try:
            config.assignment()
        except InputError as error:
            where = "layer" if "range" in str(error) else "split"
            problems = [Problem(str(error), key=(where,))]
    if problems:
        raise source.error(InputError(problems=problems))
    return config, source


def _arm_problems(config: ExperimentConfig) -> list[Problem]:
    problems = [
        Problem("a name has only letters, digits, '.', '_' and '-'", key=(section, name))
        for section, names in (("arms", config.arms), ("metrics", config.metrics))
        for name in names
        if not re.match(_NAME, name)
    ]
    if CONTROL not in config.arms:
        message = f"one arm must be called {CONTROL!r}: what runs today"
        problems.append(Problem(message, key=("arms",)))
    if config.split is None:
        return problems
    problems += [
        Problem(f"no such arm{did_you_mean(arm, config.arms)}", key=("split", arm))
        for arm in config.split
        if arm not in config.arms
    ]
    problems += [
        Problem(f"the arm {arm!r} has no share", key=("split",))
        for arm in config.arms
        if arm not in config.split
    ]
    return problems


def _metric_problems(config: ExperimentConfig) -> list[Problem]:
    problems: list[Problem] = []
    primary = config.primary.metric
    if primary not in config.metrics:
        message = f"unknown metric {primary!r}{did_you_mean(primary, config.metrics)}"
        problems.append(Problem(message, key=("primary", "metric")))
    if config.primary.min_effect.value == 0.0:
        problems.append(Problem("must be above 0", key=("primary", "min_effect")))
    for name, limit in config.guardrails.items():
        key = ("guardrails", name)
        if name not in config.metrics:
            problems.append(Problem(f"unknown metric{did_you_mean(name, config.metrics)}", key=key))
            continue
        if name == primary:
            problems.append(Problem("is the primary metric: it needs no guard-rail", key=key))
        better = config.metrics[name].better
        if (better == "lower") != (limit.max_increase is not None):
            wanted = "max_increase" if better == "lower" else "max_decrease"
            message = f"{better} is better here, so write {wanted}"
            problems.append(Problem(message, key=key))
    reserved = {config.unit, config.arm}
    for column, other in (("arm", config.unit), ("date", config.unit), ("date", config.arm)):
        if getattr(config, column) == other:
            message = f"the column {other!r} is named twice: units, arms and dates have one each"
            problems.append(Problem(message, key=(column,)))
    for name, metric in config.metrics.items():
        problems += [
            Problem(
                f"the column {column!r} holds units or arms, not numbers", key=("metrics", name)
            )
            for column in (*metric.columns, *metric.before_columns)
            if column in reserved
        ]
        shared = set(metric.columns) & set(metric.before_columns)
        problems += [
            Problem(
                f"the column {column!r} is what is measured; `before` needs a column from before "
                "the experiment",
                key=("metrics", name, "before"),
            )
            for column in sorted(shared)
        ]
    return problems
