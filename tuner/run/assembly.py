"""Plan -> objects: the data opened, the index built, and all of it checked to fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tuner.config import Config, Source
from tuner.config.free import fingerprint_of_free
from tuner.core.calls import PREPARING
from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError
from tuner.core.json_text import digest_of
from tuner.core.ledger import Asked, Ledger, heard_by
from tuner.core.policy import POLICY, Policy, is_policy
from tuner.core.rankings import FloatArray
from tuner.core.steps import (
    INDEX,
    PREPARATION,
    READING,
    Advance,
    Phases,
    Say,
    unheard,
    unheard_step,
)
from tuner.core.trial import IndexUse, Outcome, Params
from tuner.datasets import Dataset, open_dataset
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.self_measured import SelfMeasured
from tuner.evaluation.system_metrics import needs_latency, tell_of_index
from tuner.retrieval.base import Measures, Notes, Retriever, prepare, ready
from tuner.retrieval.dead import dead_problems
from tuner.retrieval.indexes import indexed_in
from tuner.retrieval.knobs import Knob, knob_params, knob_problems
from tuner.retrieval.wrapped.around import tells_spans
from tuner.retrieval.wrapped.counted import CountTokens, counted
from tuner.retrieval.wrapped.policy import PolicyRetriever, WithPolicy
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.run.baseline import baseline_origin, read_baseline, read_policy
from tuner.run.builds import Builds
from tuner.run.context_tokens import token_counter, without_token_counts
from tuner.run.people import PeoplesLabels, with_people
from tuner.run.planning import Plan, below, fitted_arms, measuring
from tuner.run.split import divide
from tuner.run.systems import build_retriever, explained, measured, resolved
from tuner.verdict.looks import TunedOn

# What stands in the place of a data set where the system measures itself.
NO_DATASET = Dataset("", "", Corpus(()), (), {})


@dataclass(frozen=True, eq=False)
class Assembly:
    """A configuration with its data opened and its index built, ready to evaluate.

    ``policy`` is the baseline's, where it is one; ``baseline`` then only names it.
    ``baseline_tuned_on`` is what it was tuned on, where it comes from a file that says so.
    ``ledger`` adds up the queries that are asked, by purpose (``core.calls``); ``builds`` hears of
    the indexes that are built. ``count_tokens`` counts those of contexts, where they cost something
    and the retriever does not tell. ``source`` is the file that the configuration was read from.
    ``parts`` are the tune queries in parts, where all of them are to decide: the search is repeated
    without each.
    ``people``: which queries people graded, where the others' labels are a judge's.
    """

    config: Config
    plan: Plan
    dataset: Dataset
    tune_queries: tuple[Query, ...]
    holdout_queries: tuple[Query, ...]
    retriever: Retriever | Measures
    baseline: Params | None
    policy: Policy | None = None
    baseline_tuned_on: TunedOn | None = None
    ledger: Ledger = field(default_factory=Ledger)
    builds: Builds = field(default_factory=lambda: Builds(unheard_step))
    count_tokens: CountTokens | None = None
    source: Source | None = None
    parts: tuple[tuple[Query, ...], ...] = ()
    people: PeoplesLabels | None = None

    @property
    def deciding_queries(self) -> tuple[Query, ...]:
        """Return the queries that the verdict is on: those held out, or those of all parts."""
        return self.holdout_queries or (self.tune_queries if self.parts else ())

    @property
    def _part_ids(self) -> list[list[str]]:
        return [[query.id for query in part] for part in self.parts]

    def without_part(self, number: int) -> Assembly:
        """Return the same with part ``number``, from 0, held out, and the others to tune on."""
        held = self.parts[number]
        ids = {query.id for query in held}
        rest = tuple(query for query in self.tune_queries if query.id not in ids)
        return replace(self, tune_queries=rest, holdout_queries=held, parts=())

    def located(self, error: InputError) -> InputError:
        """Return the same error with file and line of every key of the configuration."""
        return error if self.source is None else self.source.error(error)

    def counting(self, purpose: str) -> Assembly:
        """Return the same, with every query that it asks of the system counted for a purpose."""
        retriever = self.retriever
        if isinstance(retriever, Measures):
            return self
        if isinstance(retriever, Remembered):
            counting = retriever.counting(purpose, self.ledger, self.count_tokens)
            return replace(self, retriever=counting)
        return replace(self, retriever=counted(retriever, purpose, self.ledger, self.count_tokens))

    def timeless(self) -> Assembly:
        """Return the same without metrics of latency, which ask queries once more to time them."""
        names = tuple(name for name in self.plan.metric_names if not needs_latency([name]))
        return replace(self, plan=replace(self.plan, metric_names=names))

    def evaluator(self, queries: Sequence[Query]) -> Evaluator | SelfMeasured:
        """Make the evaluate function over some of the data set's queries."""
        if isinstance(self.retriever, Measures):
            return SelfMeasured(self.retriever, self.fixed)
        return self.evaluator_over(self.retriever, queries)

    def evaluator_over(self, retriever: Retriever, queries: Sequence[Query]) -> Evaluator:
        """Make the evaluate function over some queries, answered by a retriever."""
        return Evaluator.build(
            retriever,
            queries,
            self.dataset.qrels,
            self.plan.metric_names,
            documents=self.dataset.corpus.documents,
            evidences=self.dataset.evidences,
            tokenizer=self.plan.tokenizer,
            options=self.config.context.options,
            budget_tokens=self.config.objective.budget_tokens,
            fixed=self.fixed,
            scale=self.dataset.scale,
            spans=self.dataset.spans,
            # Kinds that ship report them; of others nobody knows before they have answered.
            counts_missing=":" in self.config.retriever.kind,
        )

    @property
    def fixed(self) -> Params:
        """Return the parameters that are not tuned: as the baseline has them, in every trial."""
        baseline = (self.baseline or {}) if self.policy is None else self.policy.default
        names = self.plan.space.names
        return {name: value for name, value in baseline.items() if name not in names}

    @property
    def guessed(self) -> tuple[Knob, ...]:
        """Return the parameters whose default nobody tells, so that one was made up."""
        return tuple(knob for knob in self.retriever.knobs if knob.is_guess)

    def part(self, name: str) -> tuple[Query, ...]:
        """Return the queries of a part: ``"all"``, ``"tune"`` or ``"holdout"``.

        Raises:
            InputError: there are none.
        """
        parts = {
            "all": self.dataset.queries,
            "tune": self.tune_queries,
            "holdout": self.holdout_queries,
        }
        if self.config.dataset is None and name != "holdout":
            return ()
        if self.config.dataset is None:
            kind = self.config.retriever.kind
            raise InputError(f"the retriever {kind!r} measures itself: there are no queries")
        if not parts[name]:
            raise InputError("no query is held out; write --queries all")
        return parts[name]

    def params(self, given: Mapping[str, Any]) -> Params:
        """Check parameters against the retriever's knobs; those left out take the baseline's
        value where they are not tuned, else the default. Of a baseline that is a policy, all of it.

        Raises:
            InputError: a knob that does not exist, or a value outside its range.
        """
        if self.policy is not None and POLICY in given:
            return self.policy.to_record()
        return knob_params({**self.fixed, **given}, self.retriever.knobs)

    def choice(self, given: Mapping[str, Any]) -> Params | Policy:
        """Check parameters, or a policy's parameters by query type, against the knobs.

        Raises:
            InputError: a knob that does not exist, a value outside its range, or a broken policy.
        """
        if self.policy is not None and POLICY in given:
            return self.policy
        return read_policy(given, self.params) if is_policy(given) else self.params(given)

    def answering(self, choice: Params | Policy) -> tuple[Retriever, Params]:
        """Return the retriever and the parameters that answer as a choice says.

        Raises:
            InputError: the system measures itself, so it answers no queries.
        """
        if isinstance(self.retriever, Measures):
            raise InputError(f"{self.config.retriever.kind!r} measures itself: it answers nothing")
        if isinstance(choice, Policy):
            return PolicyRetriever(self.retriever, choice), {}
        return self.retriever, choice

    def ready(self, choice: Params | Policy, advance: Advance = unheard) -> IndexUse | None:
        """Have every index built that a choice needs, and say what they are, where it is known.

        Raises:
            TunerError: one cannot be built.
        """
        if isinstance(self.retriever, Measures):
            return None
        retriever, params = self.answering(choice)
        return ready(retriever, {**self.fixed, **params}, advance)

    def evaluate(self, choice: Params | Policy, queries: Sequence[Query]) -> Outcome:
        """Evaluate parameters or a policy on some of the data set's queries."""
        evaluator = self.evaluator(queries)
        if isinstance(evaluator, Evaluator):
            retriever, params = self.answering(choice)
            return replace(evaluator, retriever=retriever)(params)
        if isinstance(choice, Policy):
            raise InputError("a policy needs queries, and the retriever measures itself")
        return evaluator(choice)

    def evaluate_by_both(
        self, choice: Params | Policy, queries: Sequence[Query]
    ) -> tuple[Outcome, Mapping[str, FloatArray]]:
        """Evaluate once: return the outcome, and every query's values by the judge's grades.

        These, by metric, are of all that documents' labels decide; empty where no judge counts.
        """
        people = self.people
        if people is None or not people.counts or isinstance(self.retriever, Measures):
            return self.evaluate(choice, queries), {}
        retriever, params = self.answering(choice)
        evaluator = self.evaluator_over(retriever, queries)
        rankings, outcome = evaluator.answered(params)
        names = tuple(metric.name for metric in evaluator.metrics if metric.kind != "graph")
        judged = replace(
            self,
            plan=replace(self.plan, metric_names=names),
            dataset=replace(self.dataset, qrels={**self.dataset.qrels, **people.by_judge}),
        )
        found = judged.evaluator_over(retriever, queries).measure(rankings).per_query
        return outcome, {name: found[name] for name in names}

    def fingerprints(self) -> dict[str, str]:
        """Return a hash for each part of the study that must not change when it is resumed."""
        split, racing = sorted(query.id for query in self.tune_queries), self.config.racing
        names, told = self.plan.metric_names, measuring(self.config.model_dump(mode="json"))
        return {
            "space": self.plan.space.fingerprint,
            "objective": digest_of(self.plan.objective.to_mapping()),
            "metrics": digest_of([*names, told] if told else names),
            "dataset": self.dataset.fingerprint,
            "split": digest_of(split),
            "fixed": digest_of(self.fixed),
            "retriever": self.retriever.fingerprint,
            **fingerprint_of_free(self.config.free),
            **({"parts": digest_of(self._part_ids)} if self.parts else {}),
            **({} if racing is None else {"racing": digest_of(racing.model_dump())}),
        }

    def dataset_record(self) -> dict[str, Any]:
        """Describe the data for the study's header; empty where there are none."""
        if self.config.dataset is None:
            return {}
        return {
            "name": self.dataset.name,
            "path": self.dataset.path,
            "fingerprint": self.dataset.fingerprint,
            "documents": len(self.dataset.corpus.documents),
            "queries": len(self.dataset.queries),
            "tune_queries": len(self.tune_queries),
            "holdout_queries": len(self.holdout_queries),
            **({} if self.people is None else {"labels": self.people.to_record()}),
        }


def assemble(
    config: Config, source: Source, plan: Plan, *, say: Say, phases: Phases | None = None
) -> Assembly:
    """Open the data, build the index or open it from the cache, and check that all of it fits.

    ``phases`` is the clock of the command, and tells how far each part is.

    Raises:
        InputError: a problem in the data, the retriever's options, its knobs, or the baseline.
    """
    phases = phases or Phases()
    with _located(source, ("retriever",)):
        config = resolved(config, source)
    section = config.dataset
    if section is None:
        with phases.phase(INDEX):
            return _assemble_measured(config, source, plan)
    with _located(source, ("dataset",)), phases.phase(READING) as advance:
        dataset = open_dataset(
            section.path, format=section.format, scale=section.scale, advance=advance
        )
        dataset, people = with_people(section, dataset, say)
        division = divide(section, dataset, people, config.study.seed, say)
    by_id = {query.id: query for query in dataset.queries}
    with _located(source, ("retriever",)), phases.phase(INDEX) as advance:
        retriever = build_retriever(config, plan.space, dataset.corpus, advance)
    if section.judge == "evidence" and not tells_spans(retriever):
        message = (
            f"{config.retriever.kind!r} does not tell which part of a document it retrieved, so "
            "no supporting text can be judged; leave `judge` out to judge whole documents"
        )
        raise source.error(InputError(message, key=("dataset", "judge")))
    if isinstance(retriever, Notes):
        for told in retriever.notes():
            say(f"note: {told}")
    if not dataset.corpus.documents:
        plan = without_token_counts(plan, say)
    problems = knob_problems(plan.space, retriever.knobs)
    if problems:
        raise source.error(InputError(problems=problems))
    if indexed_in(retriever) is None and (asked := tell_of_index(plan.metric_names)):
        message = f"{config.retriever.kind!r} has one index, and tells nothing of it; leave it out"
        raise source.error(InputError(f"metric {asked[0]!r}: {message}", key=("objective",)))
    shaping = [knob.name for knob in retriever.knobs if knob.stage == "index"]
    plan = replace(plan, space=plan.space.with_index(shaping))
    with _located(source, ("baseline",)):
        baseline, policy = read_baseline(config, retriever.knobs)
    if policy is None:
        for dead in dead_problems(plan.space, baseline, retriever.knobs):
            say(f"note: {dead.message}")
    with _located(source, ("backends",)):
        fitted_arms(plan, baseline, config.index.budget)
    if division.parts and plan.space.index:
        raise source.error(
            InputError(
                f"{', '.join(plan.space.index)} shape the index, and each search without a part "
                "would build indexes of its own; hold queries out instead (holdout: 0.5)",
                key=("dataset", "split", "parts"),
            )
        )
    builds = Builds(phases.listen)
    if (indexed := indexed_in(retriever)) is not None:
        indexed.tell, indexed.may_build = builds.take, bool(plan.space.index)
    if policy is not None:
        retriever = WithPolicy(retriever, policy)
    ledger = Ledger()

    def tell(queries: int) -> None:  # a system that makes itself ready may have to be asked
        ledger.add(PREPARING, Asked(sent=queries))

    with explained(config), phases.phase(PREPARATION) as advance, heard_by(tell):
        prepare(retriever, dataset.queries, advance)
    return Assembly(
        config=config,
        plan=plan,
        dataset=dataset,
        tune_queries=tuple(by_id[id_] for id_ in division.tune),
        holdout_queries=tuple(by_id[id_] for id_ in division.held_out),
        retriever=retriever,
        baseline=baseline,
        policy=policy,
        baseline_tuned_on=baseline_origin(config, source),
        ledger=ledger,
        count_tokens=token_counter(config, plan, dataset),
        builds=builds,
        source=source,
        parts=tuple(tuple(by_id[id_] for id_ in ids) for ids in division.parts),
        people=people,
    )


def _assemble_measured(config: Config, source: Source, plan: Plan) -> Assembly:
    """Assemble a system that measures itself."""
    with _located(source, ("retriever",)):
        system = measured(config, plan.space)
    problems = knob_problems(plan.space, system.knobs)
    if problems:
        raise source.error(InputError(problems=problems))
    with _located(source, ("baseline",)):
        baseline, policy = read_baseline(config, system.knobs)
        if policy is not None:
            raise InputError("a policy needs queries, and the retriever measures itself")
    return Assembly(config, plan, NO_DATASET, (), (), system, baseline, source=source)


@contextmanager
def _located(source: Source, key: tuple[str | int, ...]) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        problems = [below(problem, key) for problem in error.problems]
        raise source.error(InputError(problems=problems)) from error
