"""The sections of a configuration: names, types, ranges and defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    model_validator,
)

from tuner.config.budget import MOST_TRIALS, BudgetSection, CostSection
from tuner.config.dataset import DatasetSection
from tuner.config.index import IndexSection
from tuner.config.nightly import NightlySection
from tuner.config.objective import ContextSection, ObjectiveSection
from tuner.config.section import (
    ENGINE,
    Number,
    OpenSection,
    Section,
    one_of,
    with_options_of_each_kind,
)
from tuner.config.stopping import StopSection
from tuner.core.study_record import AHEAD
from tuner.tracking.base import EXPERIMENT


class StudySection(Section):
    """Name and seed of the study, and where its run directory goes."""

    name: str = Field(
        default="study",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="the name of the study, and the start of its run directory's name",
    )
    seed: StrictInt = Field(
        default=0, ge=0, lt=2**63, description="the one seed of everything that is random"
    )
    arms_see: Literal["own", "all"] = Field(
        default="own",
        description="which trials an arm learns from: its own only, or those of all arms",
    )
    ahead: StrictInt = Field(
        default=AHEAD,
        ge=0,
        le=1000,
        description="each trial is suggested without the results of this many trials before it, "
        "even where they are known already; so the same seed gives the same trials on any number "
        "of workers, and at least ahead + 1 workers are kept busy. Arms that learn from their own "
        "trials share that number",
    )
    runs_dir: str = Field(
        default="runs", min_length=1, description="the folder that holds the run directories"
    )


class RetrieverSection(OpenSection):
    """Which retriever answers; further keys are its options."""

    model_config = ConfigDict(json_schema_extra=with_options_of_each_kind)

    kind: str = Field(
        default=ENGINE,
        min_length=1,
        description="the kind of retriever, or a class of your own as `package.module:Class`",
    )


class BackendSection(OpenSection):
    """One arm: a search backend and the trials it may spend; further keys are its options."""

    kind: str = Field(
        min_length=1,
        description=one_of("backends"),
    )
    trials: StrictInt = Field(
        ge=1,
        le=MOST_TRIALS,
        description="how many trials this arm may spend; more of them later: "
        "`tuner resume --trials`",
    )
    name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$",
        description="the arm's name; its kind where left out, so two arms of a kind need names",
    )

    @property
    def arm(self) -> str:
        """Return what its arm is called."""
        return self.name or self.kind.replace(":", ".")


# Both learn from their trials, each in its own way.
DEFAULT_BACKENDS = [BackendSection(kind="gp", trials=40), BackendSection(kind="tpe", trials=40)]


class ExecutionSection(OpenSection):
    """Where evaluations run."""

    kind: str = Field(
        default="auto",
        min_length=1,
        description=one_of("execution"),
    )
    workers: Literal["auto"] | Annotated[StrictInt, Field(ge=1, le=512)] = Field(
        default="auto",
        description="how many trials are evaluated at once; auto: one for each core, and on a "
        "cluster what it has",
    )
    trial_timeout_s: Number | None = Field(
        default=600,
        ge=0.01,
        description="a trial that takes more seconds than this has failed; null: no limit",
    )


class GuardrailSection(Section):
    """How much worse a metric may become: a share for times and tokens, else the metric's unit."""

    max_increase: Annotated[Number, Field(ge=0)] | None = Field(
        default=None,
        description="for a metric where lower is better: how much it may rise; 0.1 is 10 % of "
        "a time or of tokens",
    )
    max_decrease: Annotated[Number, Field(ge=0)] | None = Field(
        default=None,
        description="for a metric where higher is better: how much it may fall, in its own unit",
    )

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.max_increase is None) == (self.max_decrease is None):
            raise ValueError("needs exactly one of max_increase and max_decrease")
        return self


class VerdictSection(Section):
    """When the winner counts as better than the baseline."""

    alpha: Number = Field(
        default=0.05,
        gt=0,
        lt=0.5,
        description="how often chance alone may make winner and baseline look different, either "
        "way; at the first look a winner that is no better is deployed in half as many cases",
    )
    min_effect: Number = Field(
        default=0.01,
        gt=0,
        description="the smallest gain that would matter, in the weighted mean of the metrics",
    )
    guardrails: dict[str, GuardrailSection] = Field(
        default_factory=dict, description="metric -> how much worse it may become"
    )


class RacingSection(Section):
    """Stops a trial after some of the queries where the best trial is out of its reach."""

    rungs: list[Number] = Field(
        default=[0.1, 0.2, 0.3, 0.5, 0.7],
        min_length=1,
        description="after which shares of the queries a trial may be stopped, in rising order",
    )
    stop_below: Number = Field(
        default=-1.0,
        le=0,
        description="a trial is stopped where the mean of its differences to the best trial, "
        "divided by their standard error, is below this",
    )


class TrackingSection(Section):
    """The MLflow store that shows the study."""

    uri: str = Field(
        default="sqlite:///mlflow.db",
        min_length=1,
        description="the address of the store: a server, a database or a folder",
    )
    experiment: str = Field(
        default=EXPERIMENT, min_length=1, description="the experiment that shows the study"
    )
    model: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$",
        description="the registered model that each study's winner becomes a version of; left "
        "out: the study's name",
    )


class Config(Section):
    """A whole configuration."""

    study: StudySection = Field(
        default=StudySection(), description="the name, the seed and the folder of the study"
    )
    dataset: DatasetSection | None = Field(
        default=None,
        description="where the corpus and the judged queries are; left out only where the "
        "retriever returns metrics itself",
    )
    retriever: RetrieverSection = Field(
        default=RetrieverSection(), description="which retriever is tuned, and its options"
    )
    space: dict[str, dict[str, Any]] = Field(
        min_length=1,
        description="what is searched: parameter -> `{type, low, high, scale, step, choices, "
        "when}`",
    )
    space_constraints: list[str] = Field(
        default_factory=list,
        description="rules between parameters, such as `start_k <= select_k`",
    )
    objective: ObjectiveSection = Field(default=ObjectiveSection(), description="what is maximised")
    metrics: list[str] = Field(
        default=["recall@5", "recall@10", "mrr@10", "ndcg@10", "context_tokens"],
        description="further metrics, reported for every trial beside those of the objective",
    )
    context: ContextSection = Field(
        default=ContextSection(),
        description="how the passages that a query retrieved are measured",
    )
    baseline: dict[str, Any] | StrictStr | None = Field(
        default=None,
        description="the parameters that run today, which the winner is compared with; or a "
        "file that holds them, such as `best.yaml`, `policy.yaml` or a run "
        "directory",
    )
    backends: list[BackendSection] = Field(
        default=DEFAULT_BACKENDS,
        min_length=1,
        description="the arms of the search: each is one search backend with its trials",
    )
    start_from: list[dict[str, Any] | StrictStr] = Field(
        default_factory=list,
        description="what is known already: sets of parameters as mappings or files such as "
        "`best.yaml`, which are asked first; and earlier studies of the same system, as run "
        "directories or MLflow run ids, whose trials are learnt from. `warm_start` is its old name",
    )
    budget: BudgetSection = Field(
        default=BudgetSection(),
        description="what a run may spend; it ends at the first limit that is reached, with a "
        "verdict",
    )
    cost: CostSection | None = Field(
        default=None,
        description="what the system costs; with it a run says what it has spent",
    )
    stop: StopSection | None = Field(
        default=None,
        description="ends the search where the trials that are left are not expected to gain "
        "enough; left out: all trials are spent",
    )
    index: IndexSection = Field(
        default=IndexSection(),
        description="what indexes may take, where parameters of the index are searched",
    )
    racing: RacingSection | None = Field(
        default=None,
        description="for costly evaluations: stops trials that fall behind; left out: every "
        "trial answers every query",
    )
    free: Literal["on", "off"] | dict[str, Any] = Field(
        default="on",
        description="whether parameters such as `top_k`, of which one answer tells every value, "
        "are computed instead of asked, once that was seen to be so; a mapping such as "
        "`{top_k: prefix}` is `on`, and names those of a system that does not tell itself",
    )
    verdict: VerdictSection = Field(
        default=VerdictSection(),
        description="when the winner counts as better than the baseline",
    )
    inspection: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="whether the finished study asks the system some 50 more queries, to find "
        "parameters without effect; auto: only where a query took less than 50 ms",
    )
    execution: ExecutionSection = Field(
        default=ExecutionSection(), description="where evaluations run"
    )
    tracking: TrackingSection | None = Field(
        default=TrackingSection(),
        description="the MLflow store that shows the study; null: none",
    )
    nightly: NightlySection = Field(
        default=NightlySection(), description="what `tuner nightly` does every night"
    )

    def shared_out(self) -> Config:
        """Return the same with the trials of its budget as those of its backends.

        Each gets the share that its own ``trials`` are of all; one that gets none is left out.
        """
        if not self.budget.trials:
            return self
        parts = self.budget.parts([backend.trials for backend in self.backends])
        backends = [
            backend.model_copy(update={"trials": part})
            for backend, part in zip(self.backends, parts, strict=True)
            if part
        ]
        budget = self.budget.model_copy(update={"trials": None})
        return self.model_copy(update={"backends": backends, "budget": budget})
