"""Dynamic against fixed weights: a policy from what a study has measured, and its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from tuner.core.errors import InputError
from tuner.core.policy import Policy
from tuner.core.trial import Trial
from tuner.evaluation.query_rule import learn_rule, rule_accuracy
from tuner.run.by_type import of_their_own
from tuner.run.free import noted
from tuner.run.judged_policy import EndedStudy, JudgedPolicy, judged
from tuner.verdict.winner import PRIOR_QUERIES, TypeChoice, choose_by_type


@dataclass(frozen=True)
class PolicyResult:
    """A policy by query type, where it comes from, and whether it beats the fixed winner.

    ``winner`` is the trial whose parameters are the policy's default.
    ``accuracy`` is the share of tune queries whose type the rule tells when it was learned from
    the others.
    """

    judged: JudgedPolicy
    winner: Trial
    choices: tuple[TypeChoice, ...]
    accuracy: float

    def to_record(self) -> dict[str, Any]:
        """Return the result as a JSON-ready mapping, without the rule's weights."""
        return {
            "default": self.judged.policy.default,
            "types": [
                {
                    "query_type": choice.query_type,
                    "queries": choice.queries,
                    "trial": choice.trial.evaluated_as,
                    "params": choice.trial.params,
                    "tune_gain": choice.gain,
                }
                for choice in self.choices
            ],
            "rule_accuracy": self.accuracy,
            **self.judged.to_record(),
        }


def derive_policy(study: EndedStudy, *, prior_queries: float = PRIOR_QUERIES) -> PolicyResult:
    """Derive the best configuration of each query type from a study's trials.

    Nothing new is evaluated, but of free parameters each type has values of its own: what one
    answer tells of them, see ``by_type``. What the study, or a policy before this one, was answered
    is not asked again.

    The held-out queries are answered by the type that the rule tells, never by their label.

    Raises:
        InputError: the queries have fewer than two types.
    """
    assembly, trials, values, winner = study.assembly, study.trials, study.values, study.winner
    queries = assembly.tune_queries
    types = [query.query_type for query in queries]
    if len(set(types)) < 2:
        raise InputError(
            "a policy needs at least two query types among the tune queries; "
            "write them as `query_type` in queries.jsonl"
        )
    choose = partial(choose_by_type, query_types=types, winner=winner, prior_queries=prior_queries)
    choices = choose(trials, values)
    settled = noted(assembly, study.content.notes)
    if settled is not None and settled.free.names:
        others = of_their_own(
            assembly, settled.free, choices, winner, values, prior_queries=prior_queries
        )
        values = {**values, **{trial.number: by_query for trial, by_query in others}}
        choices = choose([*trials, *(trial for trial, _ in others)], values)
    texts = [query.text for query in queries]
    policy = Policy(
        assembly.params(winner.params),
        {
            choice.query_type: assembly.params(choice.trial.params)
            for choice in choices
            if choice.trial.number != winner.number
        },
        learn_rule(texts, types),
    )
    found = judged(study, policy)
    accuracy = rule_accuracy(texts, types, seed=assembly.config.study.seed)
    return PolicyResult(found, winner, choices, accuracy)
