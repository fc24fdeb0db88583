"""One night after the other, without MLflow: what is decided, kept, resumed, and left alone."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import tuner.nightly
from tuner.config import load_config
from tuner.core.errors import InputError
from tuner.nightly.champion import record_promotion
from tuner.nightly.deciding import promote
from tuner.nightly.night import run_night
from tuner.nightly.pruning import Locked, only_one
from tuner.nightly.records import Champion
from tuner.stats import alpha_of_look
from tuner.verdict.ruling import confidence


def test_a_bad_champion_makes_room_and_the_night_is_done_once(nights: Any) -> None:
    first = nights("2026-03-01")
    assert (first["outcome"], first["exit_code"]) == ("promoted", 10)
    assert first["champion"]["source"] == "config"
    assert first["verdict"]["outcome"] == "deploy"
    assert first["verdict"]["look"] == 1
    assert first["challenger"]["score"] > first["champion"]["score"] + 0.02
    assert first["drift"]["status"] == "insufficient data"
    again = nights("2026-03-01")
    assert (again["outcome"], again["exit_code"]) == ("nothing to do", 0)
    assert len(nights.events("begun")) == 1

    second = nights("2026-03-02")
    assert second["champion"]["params"] == first["challenger"]["params"]
    assert second["champion"]["source"] == "nights"
    assert second["champion"]["score"] == first["challenger"]["score"]
    assert any("earlier nights: 8 trials of 1 earlier night" in note for note in second["notes"])
    assert Path(second["run_dir"]).is_dir()
    assert json.loads(json.dumps(second)) == nights.records.nights[-1].summary


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "outcome", "code"), [("ask", "waiting for approval", 10), ("never", "kept", 0)]
)
def test_the_policy_decides_what_follows_a_deploy(
    nights: Any, policy: str, outcome: str, code: int
) -> None:
    summary = nights("2026-03-01", f"nightly.promote={policy}")
    assert summary["verdict"]["outcome"] == "deploy"
    assert (summary["outcome"], summary["exit_code"]) == (outcome, code)
    assert nights.records.champion is None
    assert nights("2026-03-02")["champion"]["source"] == "config"


def test_a_guard_rail_keeps_the_champion(nights: Any) -> None:
    # Only deeper rankings are in reach, and these cost more tokens.
    summary = nights(
        "2026-03-01",
        "space.top_k={type: integer, low: 11, high: 20}",
        "verdict.guardrails={context_tokens: {max_increase: 0.0}}",
    )
    assert summary["verdict"]["outcome"] == "keep the baseline"
    assert (summary["outcome"], summary["exit_code"]) == ("kept", 0)
    assert "guard-rail" in summary["sentence"]


@pytest.mark.slow
def test_nights_compute_what_is_free(nights: Any) -> None:
    nights("2026-03-01")  # of a time when every value was asked
    nights.configure(free="on")
    second = nights("2026-03-02")
    assert any("earlier nights: 8 trials of 1 earlier night" in note for note in second["notes"])
    assert any(note.startswith("free: graph_weight: every value") for note in second["notes"])
    assert second["challenger"]["score"] >= second["champion"]["score"]
    assert not any("changed" in note for note in second["notes"])
    third = nights("2026-03-03")
    assert third["champion"]["source"] == "nights"


def test_a_night_that_was_begun_before_parameters_were_free_goes_on(nights: Any) -> None:
    def crash(told: int) -> None:
        if told == 4:
            raise RuntimeError("the power went")

    with pytest.raises(RuntimeError):
        nights("2026-03-01", on_told=crash)
    nights.configure(free="on")
    summary = nights("2026-03-01")
    assert any("was begun before: its study in" in note for note in summary["notes"])
    assert not any("free" in note for note in summary["notes"])


def test_with_no_trials_only_drift_is_looked_for(nights: Any) -> None:
    nights.configure(budget={"trials": 0}, nightly={"promote": "auto"})
    nights("2026-02-01")
    nights.repeat_the_score(days=13)
    summary = nights("2026-02-02")
    assert summary["notes"] == []
    assert summary["trials"]["evaluated"] == 1
    assert summary["verdict"] is None
    assert summary["challenger"] is None
    assert (summary["outcome"], summary["exit_code"]) == ("kept", 0)
    assert summary["drift"]["status"] == "no alarm"
    assert nights.events("look") == []


def test_the_budget_is_shared_and_the_clock_ends_the_night(nights: Any) -> None:
    few = nights("2026-03-01", "budget.trials=4")
    # random 3 : tpe 5 of 4 trials is 1.5 : 2.5, the first of equal remainders gets one more
    assert [trial["budget"] for trial in _header(few)["arms"]] == [2, 2]
    assert few["trials"]["evaluated"] == 5
    late = nights("2026-03-02", "budget.minutes=1e-9")
    assert late["trials"]["evaluated"] == 1
    assert late["outcome"] == "kept"


@pytest.mark.slow
def test_the_same_pair_is_judged_at_the_same_level_and_another_has_a_lower_share(
    nights: Any,
) -> None:
    levels = []
    for day in range(1, 5):
        summary = nights(f"2026-03-0{day}", "nightly.promote=never")
        levels.append((summary["challenger"]["params"], summary["verdict"]))
    looks = nights.events("look")
    assert [look["number"] for look in looks] == list(range(1, len(looks) + 1))
    assert len({look["pair"] for look in looks}) == len(looks)
    shares = [look["share"] for look in looks]
    assert shares == [alpha_of_look(look["number"], alpha=0.05) for look in looks]
    assert shares == sorted(shares, reverse=True)
    assert all(look["share"] <= look["alpha"] < 0.05 for look in looks)
    for params, verdict in levels:
        same = [other["look"] for there, other in levels if there == params]
        assert set(same) == {verdict["look"]}
    assert len(looks) == len({json.dumps(params) for params, _ in levels})


class Crash(Exception):
    pass


def crash_after(count: int) -> Callable[[int], None]:
    def crash(told: int) -> None:
        if told >= count:
            raise Crash

    return crash


def test_a_night_that_crashed_goes_on_with_its_study(nights: Any) -> None:
    with pytest.raises(Crash):
        nights("2026-03-01", on_told=crash_after(4))
    summary = nights("2026-03-01")
    assert summary["is_resumed"]
    assert len(nights.events("begun")) == 1
    assert summary["trials"]["evaluated"] == 9
    assert summary["outcome"] == "promoted"


def test_a_night_that_crashed_helps_the_next_one_and_stays_as_it_is(nights: Any) -> None:
    with pytest.raises(Crash):
        nights("2026-03-01", on_told=crash_after(4))
    summary = nights("2026-03-02")
    assert not summary["is_resumed"]
    assert any("2026-03-01 was not finished" in note for note in summary["notes"])
    assert any("earlier nights: 3 trials of 1" in note for note in summary["notes"])
    assert nights.records.nights[0].summary is None


def test_a_night_that_was_killed_after_its_promotion_says_that_it_promoted(nights: Any) -> None:
    first = nights("2026-03-01")
    file = nights.runs_dir / "nights.jsonl"
    *before, ended = file.read_text(encoding="utf-8").splitlines(keepends=True)
    assert json.loads(ended)["event"] == "ended"
    file.write_text("".join(before), encoding="utf-8")
    again = nights("2026-03-01")
    assert again["is_resumed"]
    assert (again["outcome"], again["exit_code"]) == ("promoted", 10)
    assert again["champion"] == first["champion"]
    assert again["challenger"] == first["challenger"]
    assert len(nights.events("champion")) == len(nights.events("begun")) == 1


@pytest.mark.slow
def test_a_night_is_begun_anew_where_its_champion_is_another_one_now(nights: Any) -> None:
    with pytest.raises(Crash):
        nights("2026-03-01", on_told=crash_after(4))
    nights.configure(baseline={**nights.config["baseline"], "max_hops": 2})
    summary = nights("2026-03-01")
    assert not summary["is_resumed"]
    assert any("begun anew: the champion is another one" in note for note in summary["notes"])


def test_the_second_of_two_jobs_leaves(nights: Any) -> None:
    with only_one(nights.runs_dir, "small"), pytest.raises(Locked, match="done nothing") as caught:
        nights("2026-03-01")
    assert caught.value.exit_code == 3
    assert not (nights.runs_dir / "nights.jsonl").exists()


@pytest.mark.slow
def test_nights_go_forward_only(nights: Any) -> None:
    first, third = nights("2026-03-01"), nights("2026-03-03")
    before = nights.path.parent.joinpath("runs", "nights.jsonl").read_bytes()
    with pytest.raises(
        InputError, match=r"--date 2026-03-02: the last night was that of 2026-03-03"
    ):
        nights("2026-03-02")
    assert nights("2026-03-01")["outcome"] == "nothing to do"  # it is done, and stays so
    assert nights.path.parent.joinpath("runs", "nights.jsonl").read_bytes() == before
    assert third["champion"]["params"] == first["challenger"]["params"]


def test_nights_of_two_studies_in_one_folder_are_apart(nights: Any) -> None:
    nights("2026-03-01")
    other = nights("2026-03-01", "study.name=other", "nightly.promote=never")
    assert other["champion"]["source"] == "config"
    assert other["verdict"]["look"] == 1
    assert [night.run_dir.startswith("small-") for night in nights.records.nights] == [True]


@pytest.mark.slow
def test_broken_lines_are_counted_and_a_torn_one_is_not(nights: Any) -> None:
    first = nights("2026-03-01")
    path = nights.runs_dir / "nights.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write('not JSON\n{"event": "begun", "study": "small", "night": "x"}\n')
        # No line of ours, however deep it is, or whatever a field of it holds.
        file.write(f"{'[' * 100_000}\n")
        ended = {"event": "ended", "study": "small", "study_id": nights.records.nights[0].study_id}
        file.write(json.dumps({**ended, "summary": "lost"}) + '\n{"event": "en')
    records = nights.records
    assert records.unreadable == 4
    summary = nights("2026-03-02")
    assert "4 lines of nights.jsonl cannot be read and are left out" in summary["notes"]
    assert summary["champion"]["params"] == first["challenger"]["params"]
    assert [night.night.day for night in nights.records.nights] == [1, 2]


def test_without_a_baseline_there_is_nothing_to_test_against(nights: Any) -> None:
    del nights.config["baseline"]
    nights.configure()
    with pytest.raises(InputError, match=r"config\.yaml:1: baseline: .*write down its parameters"):
        nights("2026-03-01")


def test_with_nothing_held_out_the_level_is_shared_too(nights: Any) -> None:
    summary = nights("2026-03-01", "dataset.split.holdout=0.0")
    assert summary["verdict"]["look"] == 1
    assert summary["verdict"]["difference"] is not None
    (look,) = nights.events("look")
    assert summary["verdict"]["alpha"] == look["alpha"] < 0.05
    assert look["composite"] == []
    assert confidence(look["alpha"]) in summary["verdict"]["sentence"]


def measure_itself(nights: Any, monkeypatch: pytest.MonkeyPatch, module: str, score: str) -> None:
    """Put a system without queries, one expression of x, in the retriever's place."""
    text = f"def score(params):\n    return {score}\n"
    (nights.folder / f"{module}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(nights.folder))
    for section in ("dataset", "metrics"):
        del nights.config[section]
    nights.configure(
        retriever={"kind": "function", "function": f"{module}:score"},
        space={"x": {"type": "real", "low": 0.0, "high": 1.0}},
        objective={"maximize": {"objective": 1.0}},
        baseline={"x": 0.0},
    )


def test_a_system_that_measures_itself_has_no_verdict_and_promotes_nothing(
    nights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure_itself(nights, monkeypatch, "measured_by_itself", "params['x']")
    summary = nights("2026-03-01")
    assert (summary["outcome"], summary["verdict"]) == ("kept", None)
    assert summary["challenger"]["score"] > summary["champion"]["score"] == 0.0
    assert "there is no verdict on the challenger, so nothing is promoted" in summary["notes"]
    assert nights.records.scores[-1].mean == 0.0


def test_a_champion_that_cannot_be_evaluated_is_a_failed_night_that_may_be_repeated(
    nights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure_itself(nights, monkeypatch, "broken_at_zero", "1 / params['x']")
    summary = nights("2026-03-01")
    assert (summary["outcome"], summary["exit_code"]) == ("failed", 1)
    assert nights("2026-03-01")["outcome"] == "failed"
    assert len(nights.events("begun")) == 2


@pytest.mark.slow
def test_the_champion_may_be_a_policy(nights: Any) -> None:
    plain = {"graph_weight": 0.0, "max_hops": 1, "top_k": 10, "temperature": 0.05}
    policy = {
        "default": plain,
        "types": {"bridge2": {**plain, "max_hops": 2}},
        "rule": {"start": {"bridge2": 0.0, "direct": 0.1}, "weights": {}},
    }
    nights.configure(baseline=policy)
    summary = nights("2026-03-01")
    assert summary["outcome"] == "promoted"
    assert summary["champion"]["params"]["types"].keys() == {"bridge2"}
    assert "types" not in summary["challenger"]["params"]
    assert nights("2026-03-02")["champion"]["params"] == summary["challenger"]["params"]


def _header(summary: dict[str, Any]) -> dict[str, Any]:
    with (Path(summary["run_dir"]) / "journal.jsonl").open(encoding="utf-8") as lines:
        return dict(json.loads(next(lines)))


def test_a_champion_that_was_moved_while_the_night_ran_stays(nights: Any) -> None:
    config, _ = load_config(nights.path)

    def move(told: int) -> None:
        if told == 3:
            promote(config, "baseline", why="to be sure", say=pytest.fail)

    summary = nights("2026-03-01", on_told=move)
    assert summary["verdict"]["outcome"] == "deploy"
    assert (summary["outcome"], summary["exit_code"]) == ("kept", 0)
    assert any("was moved while the night ran" in note for note in summary["notes"])
    assert [move.why for move in nights.records.promotions] == ["to be sure"]


def test_a_champion_that_fits_no_knob_is_named(nights: Any) -> None:
    nights.runs_dir.mkdir()
    champion = Champion({"max_hopps": 2}, 4, "gone", "registry")
    record_promotion(nights.records, champion, before=None, who="anna", why="")
    with pytest.raises(InputError, match="the champion, version 4, does not fit") as caught:
        nights("2026-03-01")
    assert "did you mean 'max_hops'" in str(caught.value)


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(tuner.nightly.__path__)])
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"tuner.nightly.{name}")).failed == 0


def test_what_a_night_has_spent_is_told_while_it_runs(nights: Any) -> None:
    nights.configure(budget={"query_evaluations": 100_000})
    config, source = load_config(nights.path)
    tells: list[Callable[[], str]] = []
    seen: list[str] = []
    run_night(
        config,
        source,
        night=date(2026, 3, 1),
        say=lambda message: None,
        follow=lambda session: lambda event: seen.append(tells[0]()),
        watch=tells.append,
    )
    assert any(line.startswith("spent ") and " left)" in line for line in seen)
