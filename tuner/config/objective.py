"""The sections of a configuration that say what is maximised, and how contexts are measured."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictInt

from tuner.config.section import Number, Section
from tuner.metrics.base import MetricOptions


class ConstraintSection(Section):
    """Bounds that a metric must keep for a trial to count as feasible."""

    min: Number | None = Field(default=None, description="the lowest value that is allowed")
    max: Number | None = Field(default=None, description="the highest value that is allowed")


class ObjectiveSection(Section):
    """What is maximised: a weighted mean of metrics, less a price, within constraints."""

    maximize: dict[str, Number] = Field(
        default={"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2},
        min_length=1,
        description="metric -> weight; the weights are divided by their sum",
    )
    price: dict[str, Number] = Field(
        default_factory=dict,
        description="metric -> what one unit of it costs, or metric_per_1000 -> what a "
        "thousand units cost; the price is taken off the objective",
    )
    constraints: dict[str, ConstraintSection] = Field(
        default_factory=dict,
        description="metric -> the bounds that a trial must keep; one that breaks them cannot win",
    )
    pareto: list[str] = Field(
        default_factory=list,
        description="several goals at once, whose best trade-offs are found: `composite`, and "
        "metrics such as `context_tokens`",
    )
    budget_tokens: StrictInt | None = Field(
        default=None,
        ge=1,
        description="every ranking is cut at this many tokens of passages before it is measured",
    )


class ContextSection(Section):
    """How the passages that a query retrieved are measured."""

    tokenizer: str | None = Field(
        default=None,
        description="`package.module:function`, from a text to its tokens; by default tokens "
        "are words, and characters where the script has no spaces",
    )
    discount: list[Annotated[Number, Field(ge=0)]] | None = Field(
        default=None,
        min_length=1,
        description="the weight of each rank, from the first on, for "
        "`discounted_precision_fitted@k`",
    )
    efficiency: (
        dict[Literal["density", "coverage", "redundancy", "budget"], Annotated[Number, Field(ge=0)]]
        | None
    ) = Field(
        default=None,
        min_length=1,
        description="weights of the parts of `context_efficiency`, such as `{density: 2, "
        "coverage: 1}`",
    )

    @property
    def options(self) -> MetricOptions:
        """Return what metrics are told beside the judgements."""
        given = self.efficiency or {}
        weights: dict[str, float] = {part: float(weight) for part, weight in given.items()}
        discount = None if self.discount is None else [float(weight) for weight in self.discount]
        return MetricOptions(discount, weights or None)
