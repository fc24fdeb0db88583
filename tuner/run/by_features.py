"""A policy by features of queries, from what a study has measured, and its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuner.core import calls
from tuner.core.policy import Policy
from tuner.core.trial import Params, Trial
from tuner.datasets.together import together
from tuner.evaluation.by_features.learned import Learned, learn
from tuner.evaluation.by_features.menu import Menu
from tuner.evaluation.free.asking import FreeEvaluator
from tuner.evaluation.free.one_by_one import OneByOne
from tuner.evaluation.free.settings import decided_by_answer
from tuner.retrieval.base import Measures, telling_legs
from tuner.retrieval.features import seen_of
from tuner.retrieval.free import FreeKnobs
from tuner.run.assembly import Assembly
from tuner.run.free import noted
from tuner.run.judged_policy import EndedStudy, JudgedPolicy, judged

NOTHING_BETTER = "no feature tells where another setting than the winner is better"


@dataclass(frozen=True)
class FeaturesResult:
    """A policy by features, how it was learned, and whether it beats the fixed winner.

    ``chosen`` are the parameters of each tune query under the policy.
    """

    judged: JudgedPolicy
    winner: Trial
    learned: Learned
    chosen: tuple[Params, ...]

    def to_record(self) -> dict[str, Any]:
        """Return the result as a JSON-ready mapping."""
        learned, policy = self.learned, self.judged.policy
        return {
            "default": policy.default,
            "settings": dict(policy.types),
            "model": learned.model or None,
            "features": list(learned.rule.features),
            "left_out": dict(learned.left_out),
            "missing": dict(learned.missing),
            "queries": learned.queries,
            "gain": learned.gain,
            "gain_error": learned.error,
            "rule": learned.rule.to_record(),
            **self.judged.to_record(),
        }


def derive_by_features(study: EndedStudy, *, function: str = "") -> FeaturesResult:
    """Learn from a study's tune queries which setting is best for which.

    Settings are those of its trials on the winner's index, and what the winner's answer tells of
    free parameters: it is taken from the disk where it was kept, else asked for again. Nothing else
    is asked of the tune queries. ``function`` names a function of the user's that tells further
    features of a query.

    Raises:
        InputError: the user's function fails.
    """
    assembly, winner = study.assembly, study.winner
    queries, retriever = assembly.tune_queries, assembly.retriever
    assert not isinstance(retriever, Measures)  # its trials keep no values by query
    default = assembly.params(winner.params)
    seen = seen_of(retriever, queries, default, function=function)
    seed = assembly.config.study.seed
    learned = learn(seen, _menu(study), together(queries), seed=seed, function=function)
    settings = {name: assembly.params(params) for name, params in learned.settings.items()}
    policy = Policy(default, settings, learned.rule)
    chosen = policy.params_for([query.text for query in queries], seen)
    without = "" if policy.types else NOTHING_BETTER
    return FeaturesResult(judged(study, policy, without=without), winner, learned, tuple(chosen))


def _menu(study: EndedStudy) -> Menu:
    """Return the winner, what its answer tells of free parameters, and trials on its index."""
    assembly, winner, values = study.assembly, study.winner, study.values
    space = assembly.plan.space
    index = {name: winner.params.get(name) for name in space.index}
    others = [
        (trial.params, values[trial.number])
        for trial in study.trials
        if trial.number in values
        and trial.is_feasible
        and trial.params != winner.params
        and {name: trial.params.get(name) for name in space.index} == index
    ]
    settled = noted(assembly, study.content.notes)
    own = values[winner.number]
    lines = {}
    if settled is not None and settled.free.names:
        answer = _answer(assembly, settled.free, winner)
        before = answer.table([winner.params]).by_query[0]
        for name in settled.free.names:
            tried, table = answer.each(name, winner.params)
            is_allowed = table.violation <= max(float(table.violation.min()), 0.0)
            settings = [
                {**winner.params, name: value}
                for value, is_one in zip(tried, is_allowed, strict=True)
                if is_one
            ]
            if len(settings) > 1:
                lines[name] = settings, own + table.by_query[np.flatnonzero(is_allowed)] - before
    return Menu.of(winner.params, own, lines, others)


def _answer(assembly: Assembly, free: FreeKnobs, winner: Trial) -> OneByOne:
    """Return what one answer to the winner tells of other settings, on the tune queries."""
    counting = assembly.counting(calls.EVALUATION)
    retriever = counting.retriever
    assert not isinstance(retriever, Measures)
    if free.mixing is not None:
        retriever = telling_legs(retriever)
    plan = assembly.plan
    whole = counting.evaluator_over(retriever, assembly.tune_queries)
    freely = FreeEvaluator(whole, plan.objective, plan.space, free)
    whole.ready(winner.asked)
    rankings = retriever.retrieve(assembly.tune_queries, freely.asked(winner.asked))
    start = {**winner.asked, **freely.profiler_over(whole, winner.asked).to_ask()}
    free = free.at(winner.asked)
    return OneByOne(whole, decided_by_answer(plan.objective), plan.space, free, rankings, start)
