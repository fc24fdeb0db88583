"""tuner resume --trials: a study that is given more, as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml


@pytest.fixture
def tuner(tuner_here):
    return tuner_here


def told(run_dir: Path, arm: str) -> list[tuple[dict, float]]:
    lines = (run_dir / "journal.jsonl").read_text().splitlines()
    events = [event for event in map(json.loads, lines) if event["event"] == "told"]
    return [(event["params"], event["objective"]) for event in events if event["arm"] == arm]


def only_random(tuner, trials: int) -> None:
    tuner.edit("  - {kind: grid, trials: 6}\n", "")
    tuner.edit("trials: 6", f"trials: {trials}")


def test_a_finished_study_goes_on_as_one_that_was_long_at_once(tuner):
    only_random(tuner, 4)
    first = json.loads(tuner("run", "config.yaml", "--json").stdout)
    run_dir = tuner.folder / first["run_dir"]
    assert first["verdict"] is not None
    done = tuner("resume", str(run_dir), "--trials", "random=+8")
    assert "random goes on to 12 trials, 8 more" in done.stderr
    assert "random 12 trials" in done.stderr
    tuner.edit("trials: 4", "trials: 12")
    whole = json.loads(tuner("run", "config.yaml", "--json").stdout)
    assert told(run_dir, "random") == told(tuner.folder / whole["run_dir"], "random")
    # It is resumed with what it has by now, and nothing is asked.
    again = json.loads(tuner("resume", str(run_dir), "--json").stdout)
    assert again["finished_trials"] + again["shared_trials"] == 13
    assert again["winner"]["params"] == whole["winner"]["params"]
    assert yaml.safe_load((run_dir / "config.yaml").read_text())["backends"][0]["trials"] == 12
    best = yaml.safe_load((run_dir / "best.yaml").read_text())
    assert best["trial"] == again["winner"]["trial"]


def test_another_winner_after_more_trials_is_a_further_look(tuner):
    only_random(tuner, 2)
    first = json.loads(tuner("run", "config.yaml", "--json").stdout)
    run_dir = tuner.folder / first["run_dir"]
    looks = run_dir.parent / "holdouts.jsonl"
    assert len(looks.read_text().splitlines()) == 1
    assert first["winner"]["arm"] == "random"
    second = json.loads(tuner("resume", str(run_dir), "--trials", "+15", "--json").stdout)
    assert second["winner"]["params"] != first["winner"]["params"]
    assert len(looks.read_text().splitlines()) == 2
    assert (first["verdict"]["looks"], second["verdict"]["looks"]) == (0, 1)
    # The same winner on the same queries tells nothing new.
    third = json.loads(tuner("resume", str(run_dir), "--trials", "+1", "--json").stdout)
    assert third["winner"]["params"] == second["winner"]["params"]
    assert len(looks.read_text().splitlines()) == 2


@pytest.mark.slow
def test_a_further_arm_by_the_command_or_in_the_configuration(tuner):
    only_random(tuner, 4)
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    before = told(run_dir, "random")
    done = tuner("resume", str(run_dir), "--trials", "tpe=3")
    assert "tpe is a further arm, of 3 trials" in done.stderr
    assert len(told(run_dir, "tpe")) == 3
    path = run_dir / "config.yaml"
    record = yaml.safe_load(path.read_text())
    record["backends"].append({"kind": "tpe", "name": "second", "trials": 2, "initial": 2})
    path.write_text(yaml.safe_dump(record, sort_keys=False))
    tuner("resume", str(run_dir))
    assert len(told(run_dir, "second")) == 2
    assert told(run_dir, "random") == before
    # The journal knows, where the file beside it was left as it was.
    record["backends"] = record["backends"][:1]
    path.write_text(yaml.safe_dump(record, sort_keys=False))
    done = json.loads(tuner("resume", str(run_dir), "--json").stdout)
    assert sorted(done["arms"]) == ["random", "second", "tpe"]
    page = tuner("report", str(run_dir))
    assert page.returncode == 0
    assert "second" in (run_dir / "report.html").read_text()


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("rnadom=+3", "the study has no arm 'rnadom'; did you mean 'random'?"),
        ("random=3", "the arm has 4 trials, and can be given more, not fewer"),
        ("random", "write tpe=+40 for 40 more trials of the arm tpe"),
        ("random=-3", "write tpe=+40"),
        ("tpe=+0", "the arm has 0 trials"),
        ("random=+1000000", "are more than the 1000000 that can be"),
    ],
)
def test_a_wish_that_means_nothing_is_refused_and_changes_nothing(tuner, wish, message):
    only_random(tuner, 4)
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    before = {path: path.read_bytes() for path in run_dir.iterdir() if path.is_file()}
    done = tuner("resume", str(run_dir), "--trials", wish, code=2)
    assert message in done.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_a_study_that_is_refused_is_given_nothing(tuner):
    only_random(tuner, 4)
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    with (tuner.folder / "data" / "corpus.jsonl").open("a") as corpus:
        corpus.write(json.dumps({"_id": "new", "title": "new", "text": "new"}) + "\n")
    before = [(run_dir / name).read_text() for name in ("config.yaml", "journal.jsonl")]
    tuner("resume", str(run_dir), "--trials", "+3", code=2)
    assert before == [(run_dir / name).read_text() for name in ("config.yaml", "journal.jsonl")]


def test_a_study_whose_time_was_up_goes_on_with_more_minutes(tuner):
    only_random(tuner, 6)
    tuner.edit("tracking:", "budget: {minutes: 0.0001}\ntracking:")
    first = json.loads(tuner("run", "config.yaml", "--json").stdout)
    run_dir = tuner.folder / first["run_dir"]
    assert told(run_dir, "random") == []
    for wish, message in (
        ("0.00001", "the study has 0.0001 minutes, and can be given more, not less"),
        ("soon", "write +30 for so many more, or 90 for so many in all"),
    ):
        assert message in tuner("resume", str(run_dir), "--minutes", wish, code=2).stderr
    done = tuner("resume", str(run_dir), "--minutes", "+9.9999")
    assert "the study goes on to 10 minutes in all, 9.9999 more" in done.stderr
    assert len(told(run_dir, "random")) == 6
    path = run_dir / "config.yaml"
    record = yaml.safe_load(path.read_text())
    assert record["budget"]["minutes"] == 10
    tuner("resume", str(run_dir), "--trials", "+2")
    assert len(told(run_dir, "random")) == 8


@pytest.mark.parametrize(
    ("lines", "option", "said", "has"),
    [
        # 30 are kept for the verdict: there is room for the baseline and two trials of 10.
        (
            "budget: {query_evaluations: 60}",
            ("--query-evaluations", "+40"),
            "the study goes on to 100 query evaluations in all, 40 more",
            100,
        ),
        (
            "budget: {money: 1.5}\ncost: {per_query: 0.025}",
            ("--money", "2.5"),
            "the study goes on to money 2.5 in all, 1 more",
            2.5,
        ),
    ],
)
def test_a_study_whose_queries_or_money_are_used_up_goes_on_with_more(
    tuner, lines, option, said, has
):
    only_random(tuner, 20)
    tuner.edit("tracking:", f"{lines}\ntracking:")
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    before = len(told(run_dir, "random"))
    assert before < 20
    done = tuner("resume", str(run_dir), *option)
    assert said in done.stderr
    assert before < len(told(run_dir, "random")) < 20
    name = option[0][2:].replace("-", "_")
    assert yaml.safe_load((run_dir / "config.yaml").read_text())["budget"][name] == has


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("+2.5", "write +2000 for so many more, or 8000 for so many in all"),
        ("-5", "write +2000 for so many more"),
        ("+0", "write +2000 for so many more"),
        ("60", "the study has 70 query evaluations, and can be given more, not less"),
        ("+999999999999999", "are more than the 1,000,000,000,000 that can be"),
    ],
)
def test_more_queries_that_mean_nothing_are_refused(tuner, written, said):
    only_random(tuner, 2)
    tuner.edit("tracking:", "budget: {query_evaluations: 70}\ntracking:")
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    before = (run_dir / "journal.jsonl").read_bytes()
    refused = tuner("resume", str(run_dir), f"--query-evaluations={written}", code=2).stderr
    assert said in refused
    assert (run_dir / "journal.jsonl").read_bytes() == before


def test_minutes_need_a_budget_of_minutes(tuner):
    only_random(tuner, 2)
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    refused = tuner("resume", str(run_dir), "--minutes", "+5", code=2).stderr
    assert "the study has no budget of minutes, so there is nothing to add to" in refused


def test_a_search_that_gains_nothing_more_ends_and_everybody_is_told(tuner):
    only_random(tuner, 80)
    tuner.edit("tracking:", "stop: {gain_below: 0.9}\ntracking:")
    done = tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    asked = len(told(run_dir, "random"))
    assert 61 <= asked < 80
    why = f"{80 - asked} more trials would hardly gain 0.9 (stop.gain_below)"
    assert why in done.stdout + done.stderr
    assert json.loads(tuner("resume", str(run_dir), "--json").stdout)["ended_by"] == why


def test_a_front_has_no_single_gain(tuner):
    goals = "stop: {gain_below: 0.1}\nobjective:\n  pareto: [composite, context_tokens]\n"
    tuner.edit("objective:\n", goals)
    refused = tuner("check", "config.yaml", code=2).stderr
    assert "stop: a gain is told by one objective, and there are several goals" in refused


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "budget: {query_evaluations: 52}",
            # 20 in two trials, 30 at most for the verdict of the first, 20 of them asked.
            "budget.query_evaluations: used up: with one more trial and its verdict it would come",
        ),
        ("budget: {money: 5.2}\ncost: {per_query: 0.1}", "budget.money: used up: with one more"),
        ("budget: {minutes: 0.001}", "or add --minutes +N"),
        ("budget: {trials: 0}", "budget.trials: it is 0, so no trial is asked: leave it out in"),
    ],
)
def test_more_trials_than_the_budget_reaches_to_are_refused_before_they_are_written(
    tuner, lines, said
):
    only_random(tuner, 4)
    tuner.edit("tracking:", f"{lines}\ntracking:")
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    before = {path: path.read_bytes() for path in run_dir.iterdir() if path.is_file()}
    refused = tuner("resume", str(run_dir), "--trials", "random=+8", code=2).stderr
    assert said in refused
    assert "config.yaml:" in refused
    assert {path: path.read_bytes() for path in before} == before
    # Without more, it is what it was.
    tuner("resume", str(run_dir))


def test_what_is_to_be_raised_is_enough(tuner):
    only_random(tuner, 4)
    tuner.edit("tracking:", "budget: {query_evaluations: 52}\ntracking:")
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    told_before = len(told(run_dir, "random"))
    refused = tuner("resume", str(run_dir), "--trials", "+4", code=2).stderr
    least = refused.split("raise it to ")[1].split(" ")[0]
    path = run_dir / "config.yaml"
    text = path.read_text()
    path.write_text(text.replace("query_evaluations: 52", f"query_evaluations: {int(least) - 1}"))
    tuner("resume", str(run_dir), "--trials", "+4", code=2)
    path.write_text(text.replace("query_evaluations: 52", f"query_evaluations: {least}"))
    tuner("resume", str(run_dir), "--trials", "+4")
    assert len(told(run_dir, "random")) > told_before


def test_a_study_is_given_no_more_minutes_than_there_can_be(tuner):
    only_random(tuner, 2)
    tuner.edit("tracking:", "budget: {minutes: 9999999}\ntracking:")
    tuner("run", "config.yaml")
    (run_dir,) = tuner.runs()
    refused = tuner("resume", str(run_dir), "--minutes", "+9999999", code=2).stderr
    assert "more than the 10,000,000 that can be" in refused
    tuner("resume", str(run_dir))
