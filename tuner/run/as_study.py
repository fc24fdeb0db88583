"""Assembly -> study: the header that describes it, and what it is made of."""

from __future__ import annotations

import time
import uuid
from functools import partial

from tuner.core.study_record import ArmRecord, StudyHeader
from tuner.evaluation.racing import standing
from tuner.run.assembly import Assembly
from tuner.run.earlier import Earlier
from tuner.run.folder import resolved_config, without_password
from tuner.run.versions import versions
from tuner.study.arms import Arm, Fixed
from tuner.study.results import EARLIER_ARM
from tuner.study.spec import StudySpec


def make_header(assembly: Assembly) -> StudyHeader:
    """Describe the study that this assembly would run, with a fresh identity."""
    config, searched = assembly.config, assembly.plan.space.index
    return StudyHeader(
        study_id=uuid.uuid4().hex,
        name=config.study.name,
        created_at=time.time(),
        seed=config.study.seed,
        arms=tuple(
            ArmRecord(name, section.kind, budget)
            for (name, _, budget), section in zip(assembly.plan.arms, config.backends, strict=True)
        ),
        space=assembly.plan.space.to_mapping(),
        objective=assembly.plan.objective.to_mapping(),
        baseline=assembly.baseline,
        dataset=assembly.dataset_record(),
        config=without_password(resolved_config(assembly)),
        fingerprints=assembly.fingerprints(),
        versions=versions(),
        ahead=config.study.ahead,
        index={"parameters": list(searched), "budget": config.index.budget} if searched else {},
    )


def make_spec(assembly: Assembly, earlier: Earlier) -> StudySpec:
    """Return what the study is made of, with what is known from earlier ones."""
    plan = assembly.plan
    arms = [Arm(name, backend, budget) for name, backend, budget in plan.arms]
    if again := earlier.asked:
        arms.insert(0, Arm(EARLIER_ARM, Fixed(again), len(again)))
    return StudySpec(
        arms,
        plan.space,
        plan.objective,
        arms_see=assembly.config.study.arms_see,
        by_query=None if assembly.config.racing is None else partial(standing, plan.objective),
        earlier=earlier.trials,
        goals=plan.objective.goals if plan.objective.pareto else None,
        most_indexes=assembly.config.index.budget,
    )
