"""The sections of a configuration: names, types, ranges and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    model_validator,
)

from tuner.core.grades import GradeScale
from tuner.core.study_record import AHEAD
from tuner.metrics.base import MetricOptions
from tuner.tracking.base import EXPERIMENT

if TYPE_CHECKING:
    from tuner.retrieval._build_options import BuildOption

_ENGINE = "hybrid"

Number = Annotated[StrictInt | StrictFloat, Field(allow_inf_nan=False)]


class Section(BaseModel):
    """A part of the configuration; keys that it does not know are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OpenSection(BaseModel):
    """A part whose further keys are options of the named ``kind``, checked by that kind itself."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def options(self) -> dict[str, Any]:
        """Return the keys beyond those that every kind shares."""
        return dict(self.model_extra or {})


class StudySection(Section):
    """Name and seed of the study, and where its run directory goes."""

    name: str = Field(default="study", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    seed: StrictInt = Field(default=0, ge=0, lt=2**63, description="one seed for everything random")
    arms_see: Literal["own", "all"] = Field(
        default="own", description="whether an arm learns from its own trials only or from all"
    )
    ahead: StrictInt = Field(
        default=AHEAD,
        ge=0,
        le=1000,
        description="a trial is suggested without the results of so many before it, whether they "
        "are there or not, so that the same seed gives the same trials on any number of workers; "
        "up to ahead + 1 workers are kept busy",
    )
    runs_dir: str = Field(default="runs", min_length=1, description="folder of the run directories")


class SplitSection(Section):
    """How queries are divided into the part to tune on and the part held out."""

    holdout: Number = Field(default=0.5, ge=0, lt=1, description="share of the queries held out")
    stratify_by: list[Literal["query_type", "difficulty"]] = ["query_type", "difficulty"]


class DatasetSection(Section):
    """Where the corpus and the judged queries are."""

    path: str = Field(min_length=1, description="a folder, or builtin:atlas")
    format: str | None = Field(default=None, description="detected where left out")
    relevant_from: Number = Field(
        default=1, gt=0, description="the lowest grade that says relevant, such as 0.5 of 0 to 1"
    )
    max_grade: Number | Literal["query", "dataset"] = Field(
        default="query",
        description="what metrics that divide by the highest grade divide by: the highest of the "
        "query's judgements, of the data set's, or a number",
    )
    split: SplitSection = SplitSection()

    @property
    def scale(self) -> GradeScale:
        """Return how grades are read.

        Raises:
            InputError: the highest grade is below the lowest that is relevant.
        """
        highest = self.max_grade if isinstance(self.max_grade, str) else float(self.max_grade)
        return GradeScale(float(self.relevant_from), highest)


def _with_options_of_each_kind(schema: dict[str, Any]) -> None:
    """Add the options of the kinds that ship here to the schema, for editors."""
    from tuner.core import registry
    from tuner.retrieval._build_options import build_options

    schema["allOf"] = [
        {
            "if": {"properties": {"kind": {"const": kind}}, **_named(kind)},
            "then": {"properties": dict(map(_property, build_options(load)))},
        }
        for kind in registry.kinds("retrieval")
        for load in [registry.load("retrieval", kind)]
    ]


def _named(kind: str) -> dict[str, Any]:
    return {} if kind == _ENGINE else {"required": ["kind"]}


def _property(option: BuildOption) -> tuple[str, dict[str, Any]]:
    schema = TypeAdapter(option.hint).json_schema()
    schema = _inlined(schema, schema.pop("$defs", {}))
    default = {} if option.is_required else {"default": option.default}
    return option.name, {**schema, **default, "description": option.description}


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """Put definitions where they are referred to: pydantic knows none but its own."""
    match schema:
        case {"$ref": reference}:
            return definitions[reference.rpartition("/")[2]]
        case dict():
            return {key: _inlined(value, definitions) for key, value in schema.items()}
        case list():
            return [_inlined(value, definitions) for value in schema]
    return schema


class RetrieverSection(OpenSection):
    """Which retriever answers; further keys are its options."""

    model_config = ConfigDict(json_schema_extra=_with_options_of_each_kind)

    kind: str = Field(default=_ENGINE, min_length=1)


class ConstraintSection(Section):
    """Bounds that a metric must keep for a trial to count as feasible."""

    min: Number | None = None
    max: Number | None = None


class ObjectiveSection(Section):
    """What is maximised: a weighted mean of metrics, less a price, within constraints."""

    maximize: dict[str, Number] = Field(
        default={"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2},
        min_length=1,
        description="metric -> weight; the weights are divided by their sum",
    )
    price: dict[str, Number] = Field(
        default_factory=dict,
        description="metric -> price a unit, or metric_per_1000 -> price a thousand",
    )
    constraints: dict[str, ConstraintSection] = Field(default_factory=dict)
    pareto: list[str] = Field(
        default_factory=list,
        description="goals to find a front of: composite, and metrics such as context_tokens",
    )
    budget_tokens: StrictInt | None = Field(
        default=None,
        ge=1,
        description="cut every ranking at so many tokens of passages before it is measured",
    )


class BackendSection(OpenSection):
    """One arm: a search backend and the trials it may spend; further keys are its options."""

    kind: str = Field(min_length=1)
    trials: StrictInt = Field(ge=1, le=1_000_000)
    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$")


# Both learn from their trials, each in its own way.
DEFAULT_BACKENDS = [BackendSection(kind="gp", trials=40), BackendSection(kind="tpe", trials=40)]


class ExecutionSection(OpenSection):
    """Where evaluations run."""

    kind: str = Field(default="auto", min_length=1)
    workers: Literal["auto"] | Annotated[StrictInt, Field(ge=1, le=512)] = Field(
        default="auto", description="auto: one a core"
    )
    trial_timeout_s: Number | None = Field(default=600, ge=0.01)


class GuardrailSection(Section):
    """How much worse a metric may become: a share for times and tokens, else the metric's unit."""

    max_increase: Annotated[Number, Field(ge=0)] | None = None
    max_decrease: Annotated[Number, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.max_increase is None) == (self.max_decrease is None):
            raise ValueError("needs exactly one of max_increase and max_decrease")
        return self


class VerdictSection(Section):
    """When the winner counts as better than the baseline."""

    alpha: Number = Field(default=0.05, gt=0, lt=0.5, description="accepted rate of false winners")
    min_effect: Number = Field(
        default=0.01, gt=0, description="the smallest gain in the composite that would matter"
    )
    guardrails: dict[str, GuardrailSection] = Field(default_factory=dict)


class ContextSection(Section):
    """How the passages that a query retrieved are measured."""

    tokenizer: str | None = Field(
        default=None,
        description="package.module:function from a text to its tokens; by default words, and "
        "characters where the script has no spaces",
    )
    discount: list[Annotated[Number, Field(ge=0)]] | None = Field(
        default=None,
        min_length=1,
        description="the weight of each rank, from the first on, for discounted_precision_fitted@k",
    )
    efficiency: (
        dict[Literal["density", "coverage", "redundancy", "budget"], Annotated[Number, Field(ge=0)]]
        | None
    ) = Field(
        default=None,
        min_length=1,
        description="weights of the parts of context_efficiency, such as {density: 2, coverage: 1}",
    )

    @property
    def options(self) -> MetricOptions:
        """Return what metrics are told beside the judgements."""
        given = self.efficiency or {}
        weights: dict[str, float] = {part: float(weight) for part, weight in given.items()}
        discount = None if self.discount is None else [float(weight) for weight in self.discount]
        return MetricOptions(discount, weights or None)


class RacingSection(Section):
    """Stops a trial after some of the queries where the best trial is out of its reach."""

    rungs: list[Number] = Field(
        default=[0.1, 0.2, 0.3, 0.5, 0.7],
        min_length=1,
        description="shares of the queries after which a trial may be stopped, rising",
    )
    stop_below: Number = Field(
        default=-1.0,
        le=0,
        description="stop where mean / standard error of the differences to the best is below this",
    )


class TrackingSection(Section):
    """The MLflow store that shows the study."""

    uri: str = Field(default="sqlite:///mlflow.db", min_length=1)
    experiment: str = Field(default=EXPERIMENT, min_length=1)
    model: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$",
        description="the registered model that each study's winner becomes a version of; the "
        "study's name where left out",
    )


class NightlyBudgetSection(Section):
    """How much a night may search; whichever ends first."""

    trials: StrictInt | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="of all backends together, in the proportion of their own; 0: look for drift "
        "only; default: what the backends say",
    )
    minutes: Number | None = Field(
        default=None, gt=0, description="no trial is begun after so many; those under way end"
    )


class NotifySection(Section):
    """Who is told of a night: a command, with the summary as JSON on its input, or a web hook."""

    command: list[StrictStr] | None = Field(
        default=None, min_length=1, description="the program and its arguments; no shell"
    )
    webhook: str | None = Field(
        default=None,
        min_length=1,
        description="an address that is posted the summary as JSON; `${NAME}` stands for what the "
        "environment holds",
    )
    timeout_s: Number = Field(default=30, gt=0, le=3600)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.webhook is None):
            raise ValueError("needs exactly one of command and webhook")
        return self


class KeepSection(Section):
    """Which run directories of earlier nights stay; the champion's always does."""

    days: StrictInt | None = Field(default=None, ge=1, description="those of the latest days")
    studies: StrictInt | None = Field(default=None, ge=1, description="at most so many")


class NightlySection(Section):
    """What `tuner nightly` does every night."""

    budget: NightlyBudgetSection = NightlyBudgetSection()
    promote: Literal["auto", "ask", "never"] = Field(
        default="ask",
        description="what follows the verdict *deploy*: the challenger becomes the champion, or "
        "waits for `tuner promote`, or nothing",
    )
    notify: NotifySection | None = None
    keep: KeepSection = Field(
        default=KeepSection(), description="by default every run directory is kept"
    )


class Config(Section):
    """A whole configuration."""

    study: StudySection = StudySection()
    dataset: DatasetSection | None = Field(
        default=None, description="left out only where the retriever returns metrics itself"
    )
    retriever: RetrieverSection = RetrieverSection()
    space: dict[str, dict[str, Any]] = Field(
        min_length=1, description="parameter -> {type, low, high, scale, step, choices, when}"
    )
    space_constraints: list[str] = Field(
        default_factory=list, description="expressions such as `start_k <= select_k`"
    )
    objective: ObjectiveSection = ObjectiveSection()
    metrics: list[str] = Field(
        default=["recall@5", "recall@10", "mrr@10", "ndcg@10", "context_tokens"],
        description="reported for every trial, beside those of the objective",
    )
    context: ContextSection = ContextSection()
    baseline: dict[str, Any] | StrictStr | None = Field(
        default=None,
        description="the parameters that run today, or a file that holds them or a policy, such as "
        "best.yaml or policy.yaml; the winner is compared with them",
    )
    backends: list[BackendSection] = Field(
        default=DEFAULT_BACKENDS, min_length=1, description="the arms of the search"
    )
    warm_start: list[str] = Field(
        default_factory=list,
        description="run directories or MLflow run ids of earlier studies of the same thing",
    )
    racing: RacingSection | None = Field(
        default=None, description="for costly evaluations: stop trials that fall behind"
    )
    verdict: VerdictSection = VerdictSection()
    inspection: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="whether the finished study asks the system some 50 queries, to find "
        "parameters without effect; auto: unless a query took 50 ms or more",
    )
    execution: ExecutionSection = ExecutionSection()
    tracking: TrackingSection | None = TrackingSection()
    nightly: NightlySection = NightlySection()
