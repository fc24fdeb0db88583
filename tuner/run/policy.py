"""Dynamic against fixed weights: a policy from what a study has measured, and its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tuner.core.errors import InputError
from tuner.core.files import write_whole
from tuner.core.journal import JournalContent
from tuner.core.policy import POLICY, Policy
from tuner.core.run_files import BEST_FILE, JOURNAL_FILE, POLICY_FILE
from tuner.core.steps import Say
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial
from tuner.evaluation.query_rule import learn_rule, rule_accuracy
from tuner.run.assembly import Assembly
from tuner.run.by_type import of_their_own
from tuner.run.folder import last_summary
from tuner.run.free import noted
from tuner.run.judge import judge, key_of, look, utilities
from tuner.verdict.looks import TunedOn
from tuner.verdict.ruling import Names
from tuner.verdict.verdict import Verdict
from tuner.verdict.winner import PRIOR_QUERIES, TypeChoice, choose_by_type, choose_winner


@dataclass(frozen=True)
class PolicyResult:
    """A policy, where it comes from, and whether it beats the fixed winner.

    ``winner`` is the trial whose parameters are the policy's default.
    ``accuracy`` is the share of tune queries whose type the rule tells when it was learned from
    the others. ``verdict`` is None where there is none, and ``no_verdict`` then says why.
    """

    policy: Policy
    winner: Trial
    choices: tuple[TypeChoice, ...]
    accuracy: float
    verdict: Verdict | None
    tuned_on: TunedOn
    no_verdict: str = ""

    def to_record(self) -> dict[str, Any]:
        """Return the result as a JSON-ready mapping, without the rule's weights."""
        return {
            "default": self.policy.default,
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
            "verdict": None if self.verdict is None else self.verdict.to_record(),
            "no_verdict": self.no_verdict or None,
        }


def derive_policy(
    assembly: Assembly,
    content: JournalContent,
    run_dir: Path,
    *,
    prior_queries: float = PRIOR_QUERIES,
    say: Say,
) -> PolicyResult:
    """Derive the best configuration of each query type from a study's trials.

    Nothing new is evaluated, but of free parameters each type has values of its own: what one
    answer tells of them, see ``by_type``.

    The held-out queries are answered by the type that the rule tells, never by their label.

    Raises:
        InputError: the study has not ended, the queries have fewer than two types, or the trials
            kept no values by query.
    """
    if not has_ended(content):
        raise InputError(
            f"the study in {str(run_dir)!r} has not ended, and its verdict on the held-out queries "
            f"comes first: tuner resume {run_dir} first"
        )
    queries = assembly.tune_queries
    types = [query.query_type for query in queries]
    if len(set(types)) < 2:
        raise InputError(
            "a policy needs at least two query types among the tune queries; "
            "write them as `query_type` in queries.jsonl"
        )
    trials = [
        trial
        for trial in content.trials.values()
        if trial.is_told and POLICY not in trial.params  # a baseline that is a policy itself
    ]
    values = utilities(assembly, run_dir / JOURNAL_FILE, trials, say=say)
    winner = choose_winner(trials, values)
    if winner is None or winner.number not in values:
        raise InputError(f"no trial of {str(run_dir)!r} kept its values by query")
    choose = partial(choose_by_type, query_types=types, winner=winner, prior_queries=prior_queries)
    choices = choose(trials, values)
    settled = noted(assembly, content.notes)
    if settled is not None and settled.free.names:
        others = of_their_own(
            assembly, run_dir, settled.free, choices, winner, values, prior_queries=prior_queries
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
    verdict, no_verdict = None, ""
    if not assembly.holdout_queries:
        no_verdict = (
            "no query was held out, and on the queries that chose it the policy is better by "
            "construction; compare it on other queries: tuner compare CONFIG --a "
            f"{run_dir / BEST_FILE} --b {run_dir / POLICY_FILE} --queries all"
        )
    else:
        both = [key_of(assembly, choice) for choice in (policy, policy.default)]
        verdict = judge(
            assembly,
            policy,
            policy.default,
            assembly.holdout_queries,
            look_at=partial(look, run_dir.parent, assembly, both),
            names=Names("the policy", "the fixed parameters"),
        )
    seed = assembly.config.study.seed
    accuracy = rule_accuracy(texts, types, seed=seed)
    tuned_on = TunedOn.of(content.header)
    return PolicyResult(policy, winner, choices, accuracy, verdict, tuned_on, no_verdict)


def has_ended(content: JournalContent) -> bool:
    """Return whether a study has come to its end, with its verdict where it has one."""
    summary = last_summary(content)
    return summary is not None and summary.state == "finished"


def write_policy(run_dir: Path, result: PolicyResult) -> Path:
    """Write ``policy.yaml``, which stands wherever parameters do; whole or not at all."""
    record = result.policy.to_record()
    record["tuned_on"] = result.tuned_on.to_record()
    record["verdict"] = None if result.verdict is None else result.verdict.sentence
    path = run_dir / POLICY_FILE
    write_whole(path, yaml.safe_dump(record, sort_keys=False, allow_unicode=True))
    return path


def check_same_data(header: StudyHeader, assembly: Assembly) -> None:
    """Refuse to mix a study's values with data, a split or an index that have changed since.

    Raises:
        InputError: names what has changed.
    """
    now = assembly.fingerprints()
    changed = [name for name, then in header.fingerprints.items() if now.get(name) != then]
    if changed:
        raise InputError(
            f"the study was run on something else: {', '.join(changed)} changed since; run it anew"
        )
