"""What policies of every sort share: the study that they come from, their verdict, their file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tuner.core.errors import InputError
from tuner.core.files import write_whole
from tuner.core.journal import JournalContent
from tuner.core.ledger import NOTHING_ASKED, Asked
from tuner.core.policy import POLICY, Policy
from tuner.core.rankings import FloatArray
from tuner.core.run_files import BEST_FILE, JOURNAL_FILE, POLICY_FILE
from tuner.core.steps import Say
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Trial
from tuner.run.accounts import accounting_beside
from tuner.run.assembly import Assembly
from tuner.run.folder import last_summary, remembering
from tuner.run.judge import judge, key_of, look, utilities
from tuner.verdict.looks import EarlierLooks, TunedOn
from tuner.verdict.ruling import Names
from tuner.verdict.verdict import Verdict
from tuner.verdict.winner import choose_winner


@dataclass(frozen=True, eq=False)
class EndedStudy:
    """A study that has ended, for a policy to be derived from.

    Attributes:
        assembly: keeps what is asked, and counts it.
        trials: those that were told, without a baseline that is a policy itself.
        values: the objective of trials on each tune query, by number.
        winner: the trial whose parameters are a policy's default.
        before: what policies of this study asked before this one, by what for.
    """

    assembly: Assembly
    run_dir: Path
    content: JournalContent
    trials: tuple[Trial, ...]
    values: Mapping[int, FloatArray]
    winner: Trial
    before: Mapping[str, Asked]


@dataclass(frozen=True)
class JudgedPolicy:
    """A policy, and whether it beats the fixed winner.

    ``verdict`` is None where there is none, and ``no_verdict`` then says why; ``looks`` is what
    became of the look at the held-out queries. ``asked`` is what was asked for it, by what for,
    ``money`` what that cost, where that is known, and ``asked_in_all`` what all policies of this
    study asked so far.
    """

    policy: Policy
    verdict: Verdict | None
    tuned_on: TunedOn
    no_verdict: str = ""
    looks: EarlierLooks | None = None
    asked: Mapping[str, Asked] = field(default_factory=dict)
    asked_in_all: Mapping[str, int] = field(default_factory=dict)
    money: float | None = None

    @property
    def queries_asked(self) -> dict[str, int]:
        """Return how many queries were sent, by what for; none by 0."""
        return {purpose: one.sent for purpose, one in self.asked.items() if one.sent}

    @property
    def kept_answers(self) -> int:
        """Return how many queries were not sent, since their answers were kept."""
        return sum(one.kept for one in self.asked.values())

    def to_record(self) -> dict[str, Any]:
        """Return what became of the policy as a JSON-ready mapping."""
        return {
            "verdict": None if self.verdict is None else self.verdict.to_record(),
            "no_verdict": self.no_verdict or None,
            "holdout_looks": None if self.looks is None else asdict(self.looks),
            "queries_asked": self.queries_asked,
            "kept_answers": self.kept_answers,
            **({} if self.money is None else {"money": self.money}),
        }


def ended_study(
    assembly: Assembly, content: JournalContent, run_dir: Path, *, say: Say
) -> EndedStudy:
    """Read what a policy is derived from.

    Raises:
        InputError: the study has not ended, or no trial kept its values by query.
    """
    if not has_ended(content):
        raise InputError(
            f"the study in {str(run_dir)!r} has not ended, and its verdict on the held-out queries "
            f"comes first: tuner resume {run_dir} first"
        )
    assembly = remembering(accounting_beside(assembly, run_dir), run_dir)
    before = assembly.ledger.by_purpose()
    trials = [
        trial
        for trial in content.trials.values()
        if trial.is_told and POLICY not in trial.params  # a baseline that is a policy itself
    ]
    values = utilities(assembly, run_dir / JOURNAL_FILE, trials, say=say)
    winner = choose_winner(trials, values)
    if winner is None or winner.number not in values:
        raise InputError(f"no trial of {str(run_dir)!r} kept its values by query")
    return EndedStudy(assembly, run_dir, content, tuple(trials), values, winner, before)


def judged(study: EndedStudy, policy: Policy, *, without: str = "") -> JudgedPolicy:
    """Compare a policy with the fixed winner on the held-out queries.

    ``without`` says why there is nothing to compare; then none is asked.
    """
    assembly, run_dir = study.assembly, study.run_dir
    verdict, looks = None, list[EarlierLooks]()

    def look_at() -> EarlierLooks:
        both = [key_of(assembly, choice) for choice in (policy, policy.default)]
        looks.append(look(run_dir.parent, assembly, both))
        return looks[0]

    if not without and not assembly.holdout_queries:
        without = (
            "no query was held out, and on the queries that chose it the policy is better by "
            "construction; compare it on other queries: tuner compare CONFIG --a "
            f"{run_dir / BEST_FILE} --b {run_dir / POLICY_FILE} --queries all"
        )
    elif not without:
        verdict = judge(
            assembly,
            policy,
            policy.default,
            assembly.holdout_queries,
            look_at=look_at,
            names=Names("the policy", "the fixed parameters"),
        )
    asked = {
        purpose: one.less(study.before.get(purpose, NOTHING_ASKED))
        for purpose, one in assembly.ledger.by_purpose().items()
    }
    section = assembly.config.cost
    return JudgedPolicy(
        policy,
        verdict,
        TunedOn.of(study.content.header),
        without,
        looks[0] if looks else None,
        asked,
        assembly.ledger.calls,
        None if section is None else section.cost.of(sum(asked.values(), NOTHING_ASKED)),
    )


def has_ended(content: JournalContent) -> bool:
    """Return whether a study has come to its end, with its verdict where it has one."""
    summary = last_summary(content)
    return summary is not None and summary.state == "finished"


def write_policy(run_dir: Path, found: JudgedPolicy) -> Path:
    """Write ``policy.yaml``, which stands wherever parameters do; whole or not at all."""
    record = found.policy.to_record()
    record["tuned_on"] = found.tuned_on.to_record()
    record["outcome"] = None if found.verdict is None else found.verdict.outcome
    record["verdict"] = None if found.verdict is None else found.verdict.sentence
    record["queries_asked"] = dict(found.asked_in_all)
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
