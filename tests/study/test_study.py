"""A study: turns, sharing, failures, and resuming as if nothing had happened."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tuner.backends.random import Random
from tuner.core.errors import InputError, TunerError
from tuner.core.journal import Stage, read_journal, read_per_query
from tuner.core.space import SearchSpace
from tuner.core.study_record import AHEAD, ArmRecord, StudyHeader
from tuner.core.trial import Outcome, Params, Trial, TrialState
from tuner.evaluation.objective import Objective
from tuner.execution.local.inline import Inline
from tuner.study.arms import Arm, arm_seed, next_arm, spent
from tuner.study.limit import Leave
from tuner.study.loop import run_study
from tuner.study.spec import StudySpec
from tuner.study.study import Study

WAIT_S = 900.0


@dataclass(frozen=True)
class Listed:
    """A backend that suggests given points in turn, whatever it is told."""

    points: tuple[Params, ...]

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        return list(self.points[len(history) : len(history) + count])


@dataclass(frozen=True)
class Counting:
    """A backend that suggests how many trials it was shown."""

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        return [{"k": len(history)}]


SPACE = SearchSpace.from_mapping({"k": {"type": "integer", "low": 0, "high": 99}})
OBJECTIVE = Objective({"score": 1.0}, {}, {})


def make(arms: list[Arm], **options: object) -> Study:
    header = StudyHeader(
        study_id="s",
        name="s",
        created_at=0.0,
        seed=1,
        arms=tuple(ArmRecord(arm.name, "toy", arm.budget) for arm in arms),
        space=SPACE.to_mapping(),
        objective=OBJECTIVE.to_mapping(),
        baseline=options.pop("baseline", None),  # type: ignore[arg-type]
        ahead=options.pop("ahead", AHEAD),  # type: ignore[arg-type]
    )
    path: Path | None = options.pop("path", None)  # type: ignore[assignment]
    return Study.create(header, StudySpec(arms, SPACE, OBJECTIVE, **options), path)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Seeing:
    """A backend that remembers which results it was shown, for each suggestion."""

    shown: list[set[int]]

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        self.shown.append({trial.number for trial in history if trial.is_told})
        assert all(trial.is_told == trial.is_scored for trial in history)
        return [{"k": len(history)}]


def seeing(ahead: int, budget: int = 8, **options: object) -> tuple[Study, list[set[int]]]:
    shown: list[set[int]] = []
    return make([Arm("a", Seeing(shown), budget)], ahead=ahead, **options), shown


def listed(name: str, *values: int) -> Arm:
    return Arm(name, Listed(tuple({"k": value} for value in values)), len(values))


def outcome(value: float) -> Outcome:
    return Outcome({"score": value}, {"score": np.array([value, math.nan])}, {"total": 0.1})


def test_arms_take_turns_by_share_of_budget() -> None:
    arms = [Arm("a", Random(budget=6), 6), Arm("b", Random(budget=3), 3)]
    study = make(arms, baseline={"k": 5})
    # baseline first; then a 0/6, b 0/3, a 1/6, a 2/6 ties with b 1/3 and a comes first, b ...
    names = [trial.arm for trial in study.asks()]
    assert names == ["baseline", "a", "b", "a", "a", "b", "a", "a", "b", "a"]
    assert [trial.number for trial in study.trials] == list(range(10))


def test_next_arm_skips_exhausted_arms() -> None:
    arms = [listed("a", 1), listed("b", 1, 2)]
    assert next_arm(arms, {"a": 0, "b": 0}, ()) is arms[0]
    assert next_arm(arms, {"a": 0, "b": 0}, ("a",)) is arms[1]
    assert next_arm(arms, {"a": 1, "b": 2}, ()) is None


def test_which_arms_had_nothing_left_is_known_from_the_turns() -> None:
    arms = [listed("a", 1, 2, 3, 4), listed("b", 1, 2), listed("c", 1, 2)]
    # a 0/4, b 0/2, c 0/2, a 1/4 (of 0/4, 1/2, 1/2), a 2/4, b 1/2, c 1/2, a 3/4.
    assert spent(arms, "abcaabca") == set()
    assert spent(arms, "abcac") == {"a", "b"}  # after a 2/4 the next turns were a's and b's
    assert spent(arms, "") == set()


def test_an_arm_that_had_nothing_left_is_asked_anew_when_the_study_is_given_more() -> None:
    arms = [listed("a", 1, 2, 3, 4), listed("b", 1, 2, 3, 4)]
    few = tuple(ArmRecord(name, "toy", 2) for name in "ab")
    more = tuple(ArmRecord(name, "toy", 4) for name in "ab")
    # a 1/2, b 1/2: then a had nothing, and b took its turn.
    assert spent(arms, "abb", [Stage(0, few)]) == {"a"}
    assert spent(arms, "abb", [Stage(0, few), Stage(3, more)]) == set()
    # With 4 each: a 1/4 is before b 2/4, so that a had nothing again.
    assert spent(arms, "abbb", [Stage(0, few), Stage(3, more)]) == {"a"}
    assert spent(arms, "abba", [Stage(0, few), Stage(3, more)]) == set()


def test_an_arm_that_has_nothing_left_leaves_its_budget() -> None:
    study = make([Arm("a", Listed(({"k": 1},)), 5), listed("b", 2, 3)])
    assert [(t.arm, t.params["k"]) for t in study.asks()] == [("a", 1), ("b", 2), ("b", 3)]


def test_arm_seeds_differ_and_do_not_change() -> None:
    # echo -n 1/tpe | sha256sum begins with a3fe2912; half of it, so that it fits 31 bits.
    assert arm_seed(1, "tpe") == 0xA3FE2912 >> 1
    seeds = {arm_seed(seed, name) for seed in range(20) for name in ("tpe", "gp", "grid")}
    assert len(seeds) == 60
    assert all(0 <= seed < 2**31 for seed in seeds)


@pytest.mark.parametrize(("arms_see", "expected"), [("own", [0, 0, 1, 1]), ("all", [0, 1, 2, 3])])
def test_what_arms_see(arms_see: str, expected: list[int]) -> None:
    study = make([Arm("a", Counting(), 2), Arm("b", Counting(), 2)], arms_see=arms_see)
    asked = list(study.asks())
    assert [t.params["k"] for t in study.trials] == expected
    # In "own", both arms ask for 0 and then for 1: only the first of each is evaluated.
    assert len(asked) == len(set(expected))


def test_equal_params_of_a_told_trial_are_shared_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    study = make([listed("a", 7, 8), listed("b", 7, 9)], path=path)
    first = study.ask(1)[0]
    assert study.tell(first, outcome(0.5)) == [study.trials[0]]
    assert [t.params["k"] for t in study.ask(5)] == [8, 9]
    shared = study.trials[1]
    assert (shared.arm, shared.state, shared.shared_from) == ("b", TrialState.SHARED, 0)
    assert (shared.objective, shared.metrics, shared.seconds) == (0.5, {"score": 0.5}, {})
    assert study.unreported() == [shared]
    assert study.unreported() == []
    study.close()
    assert read_journal(path).trials[1] == shared
    assert [file.name for file in (tmp_path / "trials").iterdir()] == ["0.npz"]


def test_equal_params_of_a_running_trial_wait_for_it() -> None:
    study = make([listed("a", 7), listed("b", 7), listed("c", 7)])
    (first,) = study.asks()
    assert [t.state for t in study.trials] == [TrialState.RUNNING] * 3
    told = study.tell(first, outcome(0.5))
    assert [(t.number, t.state.value, t.shared_from) for t in told] == [
        (0, "finished", None),
        (1, "shared", 0),
        (2, "shared", 0),
    ]
    assert study.is_done


def test_a_failure_is_shared_too() -> None:
    study = make([listed("a", 7), listed("b", 7)])
    (first,) = study.asks()
    told = study.tell(first, Outcome(error="ValueError: no"))
    assert [(t.state.value, t.error, t.objective, t.shared_from) for t in told] == [
        ("failed", "ValueError: no", None, None),
        ("failed", "ValueError: no", None, 0),
    ]


def test_the_baseline_shares_with_equal_params() -> None:
    study = make([listed("a", 7, 8)], baseline={"k": 7.0})
    baseline = study.ask(1)[0]
    assert (baseline.arm, baseline.params) == ("baseline", {"k": 7})
    told = study.tell(baseline, outcome(0.1))
    assert study.ask(2)[0].params == {"k": 8}
    assert study.trials[1].shared_from == told[0].number


def test_a_baseline_may_lie_outside_the_space() -> None:
    study = make([listed("a", 7)], baseline={"k": 500, "other": "x"})
    assert study.ask(1)[0].params == {"k": 500, "other": "x"}


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        ({}, "metric 'score' is missing"),
        ({"score": math.nan}, "not a finite number"),
        ({"score": math.inf}, "not a finite number"),
        ({"score": "high"}, "is a str, not a number"),
        ({"score": True}, "is a bool, not a number"),
        ({"score": None}, "undefined for every query"),
        ({"score": np.array([1.0])}, "is a ndarray, not a number"),
        (None, "a mapping from each metric to its value is needed"),
    ],
)
def test_metrics_that_cannot_be_scored_fail_the_trial(
    tmp_path: Path, metrics: dict[str, float], reason: str
) -> None:
    path = tmp_path / "journal.jsonl"
    study = make([listed("a", 7, 8)], path=path)
    (told,) = study.tell(study.ask(1)[0], Outcome(metrics, {"score": np.array([1.0])}))
    assert told.state is TrialState.FAILED
    assert told.objective is None
    assert told.error is not None
    assert reason in told.error
    assert study.ask(1)  # the study goes on
    study.close()
    assert read_journal(path).trials[0].error == told.error
    assert not (tmp_path / "trials").exists()


def test_numpy_numbers_are_numbers() -> None:
    study = make([listed("a", 7)])
    (told,) = study.tell(study.ask(1)[0], Outcome({"score": np.float32(0.5)}))  # type: ignore[dict-item]
    assert told.metrics == {"score": 0.5}
    assert type(told.metrics["score"]) is float


def test_a_suggestion_sees_the_results_of_all_trials_but_the_last_ones() -> None:
    study, shown = seeing(2)
    zero, one, two = study.ask(5)  # 3 waits for 0
    study.tell(two, outcome(0.2))
    study.tell(one, outcome(0.1))
    assert study.ask(1) == []
    assert not study.is_done
    study.tell(zero, outcome(0.0))
    three, four, five = study.ask(5)
    study.tell(five, outcome(0.5))
    study.tell(three, outcome(0.3))
    (six,) = study.ask(5)  # 7 waits for 4
    assert [trial.number for trial in (three, four, five, six)] == [3, 4, 5, 6]
    # Each sees those before n - 2, although 3 saw the light when 1 and 2 were told too.
    assert shown == [set(), set(), set(), {0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}]
    study.tell(four, outcome(0.4))
    (seven,) = study.ask(5)
    assert shown[-1] == {0, 1, 2, 3, 4}
    assert study.ask(1) == []
    assert {study.tell(trial, outcome(0.6))[0].number for trial in (seven, six)} == {6, 7}
    assert study.is_done


def test_a_backend_that_learns_nothing_waits_for_nobody() -> None:
    study = make([Arm("a", Random(budget=6), 6), Arm("b", Seeing([]), 2)], ahead=0)
    # a 0/6, b 0/2, a 1/6 to 3/6, and then b's second, which waits for its first.
    asked = study.ask(9)
    assert [trial.arm for trial in asked] == ["a", "b", "a", "a", "a"]
    study.tell(asked[1], outcome(0.5))
    assert [trial.arm for trial in study.ask(9)] == ["b", "a", "a"]


@pytest.fixture
def in_thread() -> Iterator[Callable[[Iterator[Trial]], SimpleQueue[Trial | None]]]:
    """Pull all trials in another thread; None says that there are no more."""
    threads: list[threading.Thread] = []

    def start(asked: Iterator[Trial]) -> SimpleQueue[Trial | None]:
        pulled: SimpleQueue[Trial | None] = SimpleQueue()

        def pull() -> None:
            for trial in asked:
                pulled.put(trial)
            pulled.put(None)

        threads.append(threading.Thread(target=pull))
        threads[-1].start()
        return pulled

    yield start
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_who_pulls_waits_until_a_trial_is_told(in_thread: Any) -> None:
    study, _ = seeing(1, budget=4)
    pulled = in_thread(study.asks())
    zero, one = (pulled.get(timeout=WAIT_S) for _ in range(2))
    study.tell(one, outcome(0.1))  # 2 waits for 0 still
    assert pulled.empty()
    study.tell(zero, outcome(0.0))
    two, three = (pulled.get(timeout=WAIT_S) for _ in range(2))
    assert (two.number, three.number) == (2, 3)
    assert pulled.get(timeout=WAIT_S) is None  # none is left, so nobody waits


@pytest.mark.parametrize("how", ["stop", "time", "held back"])
def test_who_waits_is_let_go(in_thread: Any, how: str) -> None:
    study, _ = seeing(0, budget=4)
    is_over = threading.Event()
    pulled = in_thread(study.asks(limit=lambda: Leave(over="enough" if is_over.is_set() else "")))
    zero = pulled.get(timeout=WAIT_S)
    match how:
        case "stop":
            study.stop()
        case "time":
            is_over.set()
        case _:
            study.hold_back(zero)
    assert pulled.get(timeout=WAIT_S) is None
    assert not study.is_done


def test_a_trial_that_is_asked_again_ends_a_wait(in_thread: Any) -> None:
    study, _ = seeing(1, budget=4)
    pulled = in_thread(study.asks())
    zero, one = (pulled.get(timeout=WAIT_S) for _ in range(2))
    study.hold_back(zero)
    study.ask_again(zero)
    assert pulled.get(timeout=WAIT_S) == zero
    study.tell(one, outcome(0.1))
    study.tell(zero, outcome(0.1))
    assert pulled.get(timeout=WAIT_S).number == 2
    study.stop()


def test_the_thread_that_tells_is_not_let_to_wait_for_itself() -> None:
    study, _ = seeing(1)
    asked = study.asks(teller=threading.get_ident())
    assert [next(asked).number, next(asked).number] == [0, 1]
    with pytest.raises(TunerError, match="trial 2 was asked for before trial 0 was told"):
        next(asked)


def test_a_trial_is_told_once() -> None:
    study = make([listed("a", 7, 8)])
    trial = study.ask(1)[0]
    study.tell(trial, outcome(0.5))
    with pytest.raises(TunerError, match="trial 0 is not under way"):
        study.tell(trial, outcome(0.6))
    with pytest.raises(TunerError, match="trial 5 is not under way"):
        study.tell(replace(trial, number=5), outcome(0.6))


def test_two_arms_need_two_names() -> None:
    with pytest.raises(InputError, match="two arms are called 'a'"):
        make([listed("a", 1), listed("a", 2)])
    with pytest.raises(InputError, match="two arms are called 'baseline'"):
        make([listed("baseline", 1)], baseline={"k": 1})


def test_stop_ends_asking_but_not_telling() -> None:
    study = make([listed("a", 1, 2)])
    trial = study.ask(1)[0]
    study.stop()
    assert list(study.asks()) == []
    assert len(study.tell(trial, outcome(1.0))) == 1
    assert study.best == study.trials[0]
    assert not study.is_done


def test_unfinished_trials_come_first_when_resumed(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    study = toy.create(path, 5)
    asked = study.ask(3)
    told = study.tell(asked[1], toy.evaluate(asked[1].params))
    study.close()
    resumed = toy.resume(path, 5)
    again = resumed.ask(3)
    assert again[:2] == [asked[0], asked[2]]
    assert again[2].number == len(study.trials)
    assert resumed.trials[asked[1].number] == told[0]
    assert resumed.header == study.header
    resumed.close()


def test_resumed_at_any_trial_it_suggests_the_same(tmp_path: Path, toy: ModuleType) -> None:
    def finish(study: Study, steps: int) -> None:
        for _ in range(steps):
            for trial in study.ask(1):
                study.tell(trial, toy.evaluate(trial.params))

    whole = toy.create(None, 12)
    finish(whole, 100)
    expected = [(t.number, t.arm, t.params, t.state, t.shared_from) for t in whole.trials]
    assert whole.is_done
    assert TrialState.SHARED in {t.state for t in whole.trials}
    for steps in range(0, 25, 3):
        path = tmp_path / f"{steps}" / "journal.jsonl"
        study = toy.create(path, 12)
        finish(study, steps)
        study.ask(1)  # asked, never told
        study.close()
        resumed = toy.resume(path, 12)
        finish(resumed, 100)
        resumed.close()
        found = [(t.number, t.arm, t.params, t.state, t.shared_from) for t in resumed.trials]
        assert found == expected


def test_a_killed_sharing_is_completed_when_resumed(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    study = toy.create(path, 30)
    while not any(trial.state is TrialState.SHARED for trial in study.trials):
        for trial in study.ask(1):
            study.tell(trial, toy.evaluate(trial.params))
    study.close()
    shared = next(t for t in study.trials if t.state is TrialState.SHARED)
    lines = path.read_bytes().split(b"\n")
    told_at = next(
        i for i, line in enumerate(lines) if b'"told","trial":%d,' % shared.number in line
    )
    path.write_bytes(b"\n".join(lines[:told_at]) + b"\n")  # asked, but its sharing not yet told
    resumed = toy.resume(path, 30)
    resumed.ask(1)
    again = resumed.trials[shared.number]
    resumed.close()
    assert replace(again, told_at=shared.told_at) == shared


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 8}, "seed was 7 and is 8 now"),
        ({"ahead": 40}, f"ahead was {AHEAD} and is 40 now"),
        ({"fingerprints": {"space": "s2", "dataset": "d1"}}, "fingerprints.space was"),
        ({"fingerprints": {"dataset": "d1"}}, "is null now"),
        ({"arms": (ArmRecord("grid", "grid", 5),)}, "the arm 'random', a random search of 5 tri"),
        (
            {"arms": (ArmRecord("grid", "grid", 5), ArmRecord("random", "random", 4))},
            "the arm 'random' had 5 trials and has 4 now; it can be given more, not fewer",
        ),
        (
            {"arms": (ArmRecord("grid", "tpe", 5), ArmRecord("random", "random", 5))},
            "the arm 'grid' was a grid search and is a tpe now",
        ),
        (
            {"arms": (ArmRecord("random", "random", 5), ArmRecord("grid", "grid", 5))},
            "the arms stand in another order, in which they would take turns",
        ),
        ({"baseline": None}, "baseline was"),
        ({"objective": {}}, 'objective.maximize was {"score": 1.0} and is null now'),
        ({"space": {"hops": {"type": "integer", "low": 1, "high": 6}}}, "space.hops.high was 5"),
    ],
)
def test_another_study_is_refused(
    tmp_path: Path, toy: ModuleType, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "journal.jsonl"
    toy.create(path, 5).close()
    before = path.read_bytes()
    header = replace(toy.header(5), **change)
    with pytest.raises(InputError) as caught:
        Study.resume(header, toy.spec(5), path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before  # refused without a trace
    toy.resume(path, 5).close()


def test_other_versions_are_noted(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    toy.create(path, 5).close()
    header = replace(toy.header(5), versions={"numpy": "2"}, study_id="x", name="other")
    study = Study.resume(header, toy.spec(5), path)
    study.close()
    assert study.header == toy.header(5)
    note = read_journal(path).notes[-1]
    assert (note["kind"], note["versions"]) == ("other_versions", {"numpy": ["1", "2"]})


@dataclass(frozen=True)
class Encoding:
    """A backend that encodes what it is shown, as those that learn do."""

    def suggest(
        self, space: SearchSpace, history: Sequence[Trial], *, count: int, seed: int
    ) -> list[Params]:
        for trial in history:
            space.encode(trial.params)
        return [{"k": len(history)}]


@pytest.mark.parametrize(("baseline", "shown"), [({"k": 500}, [0, 1]), ({"k": 50}, [1, 2])])
def test_arms_see_only_points_of_the_space(baseline: Params, shown: list[int]) -> None:
    study = make([Arm("a", Encoding(), 2)], baseline=baseline, arms_see="all")
    for _ in range(3):
        (trial,) = study.ask(1)
        study.tell(trial, Outcome({"score": 1.0}))
    assert [trial.params for trial in study.trials] == [baseline, *({"k": k} for k in shown)]


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome({"score": 1.0}, {"score": np.ones(2)}, {"total": "long"}),  # type: ignore[dict-item]
        Outcome({"score": 1.0}, {}, None),  # type: ignore[arg-type]
        Outcome({"score": 1.0}, {}, {}, ValueError("x")),  # type: ignore[arg-type]
        Outcome({"score": 1.0}, {"score": np.array([object()])}),
        Outcome({"score": 1.0}, {"score": [[1.0], [1.0, 2.0]]}),  # type: ignore[dict-item]
    ],
)
def test_a_bad_outcome_fails_its_trial(tmp_path: Path, outcome: Outcome) -> None:
    path = tmp_path / "journal.jsonl"
    study = make([listed("a", 7, 8)], path=path)
    (told,) = study.tell(study.ask(1)[0], outcome)
    assert told.state is TrialState.FAILED
    assert study.ask(1)  # the study goes on
    study.close()
    assert read_journal(path).trials[0].error == told.error
    assert not (tmp_path / "trials").exists()


def test_per_query_values_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    study = make([listed("a", 7)], path=path)
    values = {name: [0.5, 1.0] for name in ("file", "args", "allow_pickle", "a/b", "x.npy", "ä@1")}
    (told,) = study.tell(study.ask(1)[0], Outcome({"score": 1.0}, values))  # type: ignore[arg-type]
    study.close()
    assert told.state is TrialState.FINISHED
    assert {name: list(v) for name, v in read_per_query(path, 0).items()} == values


def test_what_was_under_way_when_a_run_died_is_suspect(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    study = toy.create(path, 12)
    study.ask(3)
    study.tell(study.trials[1], toy.evaluate(study.trials[1].params))
    assert study.suspects == frozenset()
    study.close()  # without a word of how it ended: as if it had died
    resumed = toy.resume(path, 12)
    assert resumed.suspects == {0, 2}
    study.stop()
    resumed.tell(resumed.ask(1)[0], toy.evaluate(resumed.trials[0].params))
    resumed.stop()
    assert run_study(resumed, Inline(), toy.evaluate) == "interrupted"
    resumed.close()
    again = toy.resume(path, 12)
    assert again.suspects == {2}  # not yet told
    assert run_study(again, Inline(), toy.evaluate) == "finished"
    again.close()
    last = toy.resume(path, 12)
    assert last.suspects == frozenset()
    last.close()


def test_what_an_interrupted_run_left_is_not_suspect(tmp_path: Path, toy: ModuleType) -> None:
    path = tmp_path / "journal.jsonl"
    study = toy.create(path, 12)
    study.ask(2)
    study.stop()
    assert run_study(study, Inline(), toy.evaluate) == "interrupted"
    study.close()
    resumed = toy.resume(path, 12)
    assert resumed.suspects == frozenset()
    resumed.close()
