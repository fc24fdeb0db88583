"""What matters, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tuner.core.profile import Curve, Profile
from tuner.core.space import Categorical, Integer, Parameter, Real, SearchSpace
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Race, Trial, TrialState
from tuner.report.importance import Importance, importances, leader, section
from tuner.report.optuna_study import optuna_study
from tuner.report.review import read_review

PARAMETERS: dict[str, Parameter] = {"real": Real(-1.0, 1.0), "choice": Categorical((None, "a", 2))}
SPACE = SearchSpace(PARAMETERS)


def header_of(space: SearchSpace) -> StudyHeader:
    return StudyHeader(
        study_id="1f",
        name="night",
        created_at=0.0,
        seed=3,
        arms=(),
        space=space.to_mapping(),
        objective={"maximize": {"ndcg@10": 1.0}},
    )


def random_trials(space: SearchSpace, count: int, measure: Any, *, seed: int = 0) -> list[Trial]:
    rng = np.random.default_rng(seed)
    asked = [space.sample(rng) for _ in range(count)]
    return [
        Trial(number, "tpe", params, TrialState.FINISHED, float(measure(params)))
        for number, params in enumerate(asked)
    ]


def test_what_matters_is_found() -> None:
    space = SearchSpace({"x": Real(0.0, 1.0), "dead": Real(0.0, 1.0), "k": Integer(1, 9)})
    trials = random_trials(space, 60, lambda params: -((params["x"] - 0.3) ** 2))
    shares = importances(header_of(space), trials)
    assert next(iter(shares)) == "x"
    assert set(shares) == {"x", "dead", "k"}
    assert shares["x"].share > 0.8
    assert sum(one.share for one in shares.values()) == pytest.approx(1.0)
    assert shares["dead"].share < 0.1
    assert shares == importances(header_of(space), trials)


def test_a_free_parameter_has_the_share_that_its_curves_tell() -> None:
    space = SearchSpace({"free": Real(0.0, 1.0), "k": Integer(1, 9)})
    at = tuple(np.linspace(0.0, 1.0, 21).tolist())

    def trial(number: int) -> Trial:
        # Each has the best weight, .3, so that trials alone would say that it changes nothing.
        worths = tuple(1.0 - (weight - 0.3) ** 2 + 0.001 * number for weight in at)
        curve = Curve("free", at, worths, (None,) * 21)
        profile = Profile({"k": number}, 21, worths[6], (curve,))
        params = {"free": at[6], "k": number}
        return Trial(
            number, "tpe", params, TrialState.FINISHED, objective=worths[6], profile=profile
        )

    shares = importances(header_of(space), [trial(number) for number in range(1, 6)])
    assert shares["free"].share > 0.9


def test_a_log_scale_counts_as_such() -> None:
    space = SearchSpace({"x": Real(0.0001, 1.0, scale="log"), "y": Real(0.0, 1.0)})
    # Only below .01 does x matter: half of its log range, a hundredth of its linear one.
    trials = random_trials(space, 80, lambda p: float(p["x"] > 0.01) + 0.1 * p["y"])
    assert importances(header_of(space), trials)["x"].share > 0.8


def test_trials_that_were_raced_out_say_where_good_ones_are_not() -> None:
    space = SearchSpace({"x": Real(0.0, 1.0), "dead": Real(0.0, 1.0)})
    trials = [
        trial
        if trial.objective > -0.05
        else Trial(
            trial.number,
            "tpe",
            trial.params,
            TrialState.RACED_OUT,
            race=Race(9, trial.objective, -1.0, 0.0),
        )
        for trial in random_trials(space, 60, lambda params: -((params["x"] - 0.3) ** 2))
    ]
    shares = importances(header_of(space), trials)
    assert next(iter(shares)) == "x"


def test_a_conditional_parameter_has_a_share() -> None:
    space = SearchSpace(
        {"mode": Categorical(("text", "graph")), "hops": Integer(1, 4, when={"mode": ("graph",)})}
    )
    trials = random_trials(space, 80, lambda params: float(params.get("hops", 0)))
    shares = importances(header_of(space), trials)
    assert set(shares) == {"mode", "hops"}
    assert min(one.share for one in shares.values()) > 0.01


def few(count: int) -> list[Trial]:
    return random_trials(SPACE, count, lambda params: params["real"])


@pytest.mark.parametrize(
    "trials",
    [
        [],
        few(9),
        [trial.told(objective=0.5) for trial in few(30)],
        [few(1)[0].told(number=n, shared_from=0) for n in range(1, 30)],
        [trial.told(state=TrialState.FAILED, objective=None) for trial in few(30)],
    ],
    ids=["none", "few", "all equal", "one shared by all", "all failed"],
)
def test_nothing_is_said_where_nothing_can_be(trials: Sequence[Trial]) -> None:
    assert importances(header_of(SPACE), trials) == {}


def test_a_space_without_a_choice_has_no_importances() -> None:
    space = SearchSpace({"fixed": Real(0.5, 0.5)})
    trials = [Trial(n, "tpe", {"fixed": 0.5}, TrialState.FINISHED, n / 100) for n in range(20)]
    assert importances(header_of(space), trials) == {}


@pytest.mark.slow
def test_a_range_holds_what_other_trials_would_have_said() -> None:
    """The shares of thirty studies of one system lie within each other's ranges, as 9 of 10 do."""
    space = SearchSpace({name: Real(0.0, 1.0) for name in ("a", "b", "c")})

    def measure(params: Any) -> float:
        return float(params["a"] + 0.8 * params["b"] + 0.1 * params["c"])

    found = [
        importances(header_of(space), random_trials(space, 30, measure, seed=seed))
        for seed in range(12)
    ]
    assert all(one[name].low <= one[name].share <= one[name].high for one in found for name in one)
    within = [
        one[name].low <= other[name].share <= one[name].high
        for one in found
        for other in found
        if one is not other
        for name in ("a", "b")
    ]
    assert sum(within) / len(within) > 0.6


def test_no_leader_is_named_where_chance_would_name_another() -> None:
    """Of two parameters that matter alike, one forest names the one, the next forest the other."""
    space = SearchSpace({name: Real(0.0, 1.0) for name in ("a", "b", "dead")})
    for seed in range(4):
        trials = random_trials(space, 40, lambda p: p["a"] + p["b"], seed=seed)
        assert leader(importances(header_of(space), trials)) is None
        trials = random_trials(space, 40, lambda p: 3 * p["a"] + p["b"], seed=seed)
        assert leader(importances(header_of(space), trials)) == "a"


def test_choices_have_no_order() -> None:
    """The middle choice of three matters as much as the last would."""
    space = SearchSpace({"mode": Categorical(("x", "y", "z")), "a": Real(0.0, 1.0)})
    for best in ("x", "y", "z"):
        trials = random_trials(
            space, 100, lambda p, best=best: float(p["mode"] == best) + 0.2 * p["a"]
        )
        assert importances(header_of(space), trials)["mode"].share > 0.9


@pytest.mark.slow
def test_the_shares_are_those_of_optuna() -> None:
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    space = SearchSpace(
        {"a": Real(0.0, 1.0), "b": Real(0.0, 1.0), "mode": Categorical(("x", "y", "z"))}
    )
    trials = random_trials(space, 300, lambda p: p["a"] + 0.6 * p["b"] + 0.3 * (p["mode"] == "y"))
    mine = importances(header_of(space), trials)
    # Variances: 1/12, .36/12 and .09 * 2/9 make .625, .225 and .15.
    assert [mine[name].share for name in ("a", "b", "mode")] == pytest.approx(
        [0.625, 0.225, 0.15], abs=0.07
    )
    study = optuna_study(header_of(space), trials)
    theirs = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    assert {name: one.share for name, one in mine.items()} == pytest.approx(theirs, abs=0.04)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            {"a": Importance(0.7, 0.6, 0.8), "b": Importance(0.3, 0.2, 0.4)},
            "a matters most, with 70 %. Shares",
        ),
        (
            {
                "a": Importance(0.5, 0.3, 0.7),
                "b": Importance(0.4, 0.2, 0.6),
                "c": Importance(0.1, 0.05, 0.2),
                "d": Importance(0.02, 0.0, 0.05),
            },
            "a and b cannot be ranked: their ranges overlap. d hardly: any value does",
        ),
        ({"a": Importance(1.0, 1.0, 1.0)}, "a is all that varies. Shares"),
    ],
    ids=["a leader", "none", "one"],
)
def test_the_caption_names_a_leader_only_where_there_is_one(study, found, words) -> None:
    (chart,) = section(read_review(study(arms=(("grid", 1),))), found).blocks[0].charts
    assert words in chart.caption
    # Each bar has its range, in the figure and in its file.
    assert (chart.series[0].low[-1], chart.series[0].high[-1]) == (found["a"].low, found["a"].high)
    assert chart.numbers.rows[0][:4] == ("a", found["a"].share, found["a"].low, found["a"].high)
