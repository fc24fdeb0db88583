"""A report is made of a study in any state, and says what it is."""

from __future__ import annotations

import json
import re

import pytest

from tuner.core.errors import InputError
from tuner.report.headline import _told
from tuner.report.writing import write_report

ORDER = [
    "Winner against baseline",
    "Convergence",
    "What matters",
    "Slices and surface",
    "Quality against cost",
    "All trials",
    "Where it wins and loses",
    "Failures",
    "Provenance",
]


def outcome(page):
    """The element that holds the verdict, by its class and its text."""
    classes = [a["class"].split() for _, a in page.elements if "verdict" in (a.get("class") or "")]
    (tone,) = [names[1] for names in classes if names[0] == "verdict"]
    return tone


def test_the_parts_stand_in_their_order_and_the_contents_lead_to_them(report):
    page = report()
    assert page.headings == ORDER
    ids = [a["id"] for tag, a in page.elements if tag == "section"]
    targets = [a["href"] for tag, a in page.elements if tag == "a" and a["href"].startswith("#")]
    assert targets == ["#main", *(f"#{id_}" for id_ in ids)]


def test_an_improvement_is_deployed_in_words_mark_and_tone(report):
    page = report()
    assert outcome(page) == "deploy"
    assert "✓ Deploy The winner is better by 0." in page.text
    assert "on 40 held-out queries" in page.text


def test_the_sentence_of_an_older_verdict_is_not_taken_apart():
    sentence = "Deploy: the winner is better by +0.1 on 9 queries (95 % interval …)."
    old = {"outcome": "deploy", "sentence": f"{sentence} (Few differ: so what.) (It moves.)"}
    # A sentence is for people: of before its parts were recorded, it stays whole.
    assert _told(old) == (old["sentence"], "")
    new = {**old, "finding": "It is.", "advice": "Do.", "caveats": [{"text": "A."}, {"text": "B."}]}
    assert _told(new) == ("It is. Do.", "A. B.")


def test_a_winner_that_is_no_better_keeps_the_baseline(report):
    page = report(lift=0.0)
    assert outcome(page) == "keep"
    assert "= Keep the baseline" in page.text
    assert "The winner is the baseline itself" in page.text
    assert "0 to 0 – 0 / 0 the same" in page.text


def test_too_few_queries_say_so(report):
    page = report(queries=2)
    assert outcome(page) == "open"
    assert "? Not enough queries" in page.text


def test_an_interrupted_study_says_how_to_go_on(study):
    run_dir = study(state="interrupted")
    text = write_report(run_dir, with_plots=False).read_text()
    assert "Interrupted" in text
    assert f"tuner resume {run_dir}" in text
    assert "which flatters it" in text  # the best so far is compared on the tune queries
    assert "the list of queries is made then" in text


def test_a_killed_study_says_what_was_under_way(report):
    page = report(state=None)
    assert "– Not finished" in page.text
    assert "not told 1 was under way when the study stopped" in page.text
    assert page.headings[0] == "Best so far against baseline"


def test_a_study_that_was_resumed_after_its_end_is_not_over(study):
    run_dir = study()
    with (run_dir / "journal.jsonl").open("a") as journal:
        journal.write(json.dumps({"event": "note", "kind": "resumed", "time": 0}) + "\n")
    assert "Not finished" in write_report(run_dir, with_plots=False).read_text()


def test_a_study_that_failed_names_its_reasons(report):
    page = report(state="failed", failing=5)
    assert "Why trials failed" in page.text
    assert "the index is on fire 5 grid #1" in page.text
    assert "failed 5 has a reason, and no score" in page.text


def test_a_study_in_which_everything_failed(report):
    page = report(arms=(("grid", 3),), has_baseline=False, failing=3, state="failed")
    # Without a baseline the numbers begin at 0, so that one of the three is scored.
    assert "the index is on fire 2" in page.text
    page = report(arms=(("grid", 1),), failing=1, state="failed")
    assert "the index is on fire 1" in page.text


def test_a_study_without_any_told_trial(study):
    run_dir = study(arms=(("grid", 1),), has_baseline=False, state=None)
    text = write_report(run_dir, with_plots=False).read_text()
    assert "No result yet" in text
    assert "No trial has ended so far." in text


def test_trials_that_were_stopped_early_are_shown_as_such(report):
    page = report(stopped=6)
    assert "stopped early 6 fell behind the best" in page.text
    # 6 trials were asked 8 of the 40 queries; baseline, grid and tpe are 1 + 12 + 20 trials
    assert "192 of 1,320 query evaluations (15 %) saved by racing." in page.text
    series = page.figures["slice-graph_weight"]["data"]
    (stopped,) = [one for one in series if one["name"] == "tpe, stopped early"]
    assert len(stopped["x"]) == 6
    assert stopped["marker"]["symbol"].endswith("-open")
    assert len(stopped["customdata"]) == 6  # of each the page's script says what it found


def test_a_front_is_tabulated_with_its_knee(report):
    page = report(pareto=("ndcg@10", "context_tokens"))
    assert "The Pareto front of the goals" in page.text
    assert page.text.count("(knee)") == 1


def test_a_goal_that_got_worse_is_in_the_box_and_takes_its_green(report):
    plain = report()
    assert outcome(plain) == "deploy"
    page = report(pareto=("ndcg@10", "context_tokens"))
    box = page.text[: page.text.index("objective of the winner")]
    # Four hops for two of the baseline: 200 tokens more for each query.
    assert "± Deploy, at a price: context_tokens got worse" in box
    assert re.search(r"context_tokens \d+\.?\d* against \d+\.?\d*, \+\d+ % \(.*\): worse", box)
    assert re.search(r"ndcg@10 0\.\d+ against 0\.\d+, \+0\.\d+ \(.*\): better", box)
    assert "it was chosen because it has the highest objective." in box
    assert outcome(page) == "mixed"
    assert "--tone: var(--open)" in page.raw.split(".verdict.mixed")[1][:40]
    # Nothing got worse where only the quality is a goal.
    assert outcome(report(pareto=("ndcg@10", "recall@10"))) == "deploy"


def test_types_of_few_queries_have_no_interval_and_say_so(report):
    page = report(queries=8)  # four of each type
    assert page.text.count("too few queries to tell") == 2
    assert "types" not in page.figures


def test_without_a_holdout_the_page_warns(report):
    page = report(has_holdout=False)
    assert "these are the queries that the search has seen" in page.text
    assert "No query was held out" in page.text
    assert "corrected for the search's luck, the winner " in page.text


def test_a_system_that_measures_itself_has_no_intervals_but_means(report):
    page = report(has_dataset=False)
    assert "No verdict" in page.text
    assert "the system measures itself" in page.text
    assert "without values by query there are no intervals" in page.text
    assert "Means metric winner baseline difference objective" in page.text
    assert "differences" not in page.figures
    assert {"convergence", "importance", "surface", "quality-by-tokens"} <= page.figures.keys()


def test_a_single_number_as_the_objective(study):
    run_dir = study(has_dataset=False, has_baseline=False)
    path = run_dir / "journal.jsonl"
    path.write_text(path.read_text().replace('"recall@10"', '"other"'))
    text = write_report(run_dir, with_plots=False).read_text()
    assert "names no baseline to compare with" in text


def test_without_a_baseline(report):
    page = report(has_baseline=False)
    assert "the configuration names no baseline to compare with" in page.text
    assert page.headings == ORDER
    assert "There is no baseline to compare with." in page.text


def test_with_one_trial(report):
    page = report(arms=(("grid", 1),), has_baseline=False)
    assert page.headings == ORDER
    assert "It cannot be said: that takes at least 10 different settings" in page.text
    page = report(arms=(("grid", 1),))
    assert page.headings == ORDER


def test_a_study_whose_values_by_query_were_not_kept(report):
    page = report(state="interrupted", keeps_values=False)
    assert "without values by query there are no intervals" in page.text


def test_without_tokens_and_latency(report):
    assert "Neither tokens of context nor latency were measured." in report(has_costs=False).text


def test_what_is_no_run_directory_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a run directory"):
        write_report(tmp_path)


def test_a_place_that_cannot_be_written_is_named(study, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write the report to .*give --output FILE"):
        write_report(study(), output=tmp_path / "file" / "report.html")
