"""tuner answers, from the command line."""

from __future__ import annotations

import json

import pytest
import yaml

from tuner.core.journal import read_journal

# Answers well where the passage that names what is asked stands early.
ANSWERS = """
from pathlib import Path

def quality(query, passages):
    with Path("calls.txt").open("a") as file:
        file.write(f"{len(passages)}\\n")
    words = set(query.lower().strip("?").split())
    for rank, passage in enumerate(passages, start=1):
        title, _, text = passage.partition("\\n")
        if title.lower() in words and len(words & set(text.lower().split())) > 5:
            return {"quality": 1.0 / rank, "answer": title, "money": 0.01}
    return {"quality": 0.0, "money": 0.01}

def nothing(query, passages):
    return float("nan")

def raises(query, passages):
    raise ConnectionError("the model is away")

def deaf(query, passages):
    return 0.5
"""


@pytest.fixture
def here(tuner_here):
    (tuner_here.folder / "ans.py").write_text(ANSWERS, encoding="utf-8")
    # So that there are configurations which rank what is relevant late.
    retriever = tuner_here.folder / "word_overlap.py"
    retriever.write_text(retriever.read_text().replace('"real", 1.0, 0.0,', '"real", 1.0, -4.0,'))
    tuner_here.edit("title_weight: {type: real, low: 0.0", "title_weight: {type: real, low: -4.0")
    return tuner_here


@pytest.fixture
def run_dir(here):
    here("run", "config.yaml", "--quiet")
    (folder,) = here.runs()
    return folder


def calls(here):
    file = here.folder / "calls.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_metrics_of_a_study_are_compared_with_its_answers_which_are_paid_for_once(here, run_dir):
    asked = ("answers", "correlate", str(run_dir), "--answers", "ans:quality")
    done = here(*asked)
    paid = calls(here)
    assert 0 < paid <= 8 * 10
    assert (
        f"asked: {paid} answers, 0 were kept from before, {0.01 * paid:.4g} of money" in done.stderr
    )
    assert "metric" in done.stdout
    assert "position weighting: ndcg@10 explains" in done.stdout
    assert "No composite: 10 queries are too few" in done.stdout
    record = json.loads(here(*asked, "--json").stdout)
    assert calls(here) == paid
    assert record["answers"] == {
        "asked": 0,
        "kept": paid,
        "failed": 0,
        "reason": None,
        "money": pytest.approx(0.01 * paid),
    }
    assert record["queries"] == 10
    assert [one["name"] for one in record["configurations"]][:2] == ["baseline", "winner"]
    # The quality is 1 / rank of the relevant passage, which is what mrr@10 is.
    assert record["metrics"]["mrr@10"]["within"] == pytest.approx(1.0)
    assert record["metrics"]["mrr@10"]["explained"] > 0.99
    assert (run_dir / "replies.jsonl").is_file()


def test_a_budget_stops_and_a_larger_one_goes_on(here, run_dir):
    asked = ("answers", "correlate", str(run_dir), "--answers", "ans:quality", "--budget")
    done = here(*asked, "0.05", code=1)
    assert "the budget of 0.05 does not allow another answer" in done.stderr
    assert calls(here) == 5
    here(*asked, "9")
    again = calls(here)
    here(*asked, "9")
    assert calls(here) == again


@pytest.mark.slow
def test_qualities_from_a_file_and_what_is_wrong_with_one(here, run_dir):
    trials = [
        one for one in read_journal(run_dir / "journal.jsonl").trials.values() if one.is_scored
    ]
    record = json.loads(
        here("answers", "correlate", str(run_dir), "--answers", "ans:quality", "--json").stdout
    )
    kept = [json.loads(line) for line in (run_dir / "replies.jsonl").read_text().splitlines()]
    ids = sorted({line["query_id"] for line in kept})
    file = here.folder / "quality.jsonl"

    def write(*lines):
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return here(
            "answers", "correlate", str(run_dir), "--answers", "quality.jsonl", "--json", code=None
        )

    numbers = [trial.number for trial in trials[:5]]
    rows = [
        {"query_id": id_, "trial": number, "quality": (place * number) % 7}
        for number in numbers
        for place, id_ in enumerate(ids[:8])
    ]
    done = write(*rows)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["trial"] for one in found["configurations"]] == numbers
    assert (found["queries"], found["queries_without_quality"], found["answers"]) == (8, 2, None)
    assert found["metrics"].keys() == record["metrics"].keys()

    for changed, line, message in [
        ({"quality": float("nan")}, 1, "quality nan is no finite number; leave out a query"),
        ({"query_id": "q-none"}, 1, "unknown query 'q-none'"),
        ({"query_id": ids[1]}, 2, f"query '{ids[1]}' has a quality for trial {numbers[0]} already"),
        ({"trial": None}, 1, "needs query_id, quality, and trial or configuration"),
        ({"trial": 1.5}, 1, "1.5 is no configuration"),
    ]:
        done = write({**rows[0], **changed}, *rows[1:])
        assert done.returncode == 2
        assert f"quality.jsonl:{line}: {message}" in done.stderr
    done = write(*rows[:-1])
    assert f"query '{ids[7]}' has no quality for trial {numbers[-1]}" in done.stderr
    done = write(*rows, *({**row, "trial": 9999} for row in rows[:8]))
    assert "the study has no trial 9999; its trials are 0-" in done.stderr
    done = write(*rows, *({**row, "trial": "winer"} for row in rows[:8]))
    assert "unknown configuration 'winer'; did you mean 'winner'?" in done.stderr
    assert "1 configuration in quality.jsonl" in write(*rows[:8]).stderr
    assert (
        "--kept and --sample are for a function"
        in here(
            "answers",
            "correlate",
            str(run_dir),
            "--answers",
            "quality.jsonl",
            "--sample",
            "5",
            code=2,
        ).stderr
    )


def test_a_function_that_fails_interrupts_and_one_of_no_use_is_named(here):
    asked = ("answers", "correlate", "config.yaml", "--retries", "0", "--answers")
    done = here(*asked, "ans:raises", code=130)
    assert "ans:raises failed: ConnectionError: the model is away (5 in a row)" in done.stderr
    done = here(*asked, "ans:nothing", code=1)
    assert "ans:nothing returned nan, which is no quality" in done.stderr
    assert (
        "there is no such file; write FILE.jsonl, or module:function"
        in here(*asked, "none.jsonl", code=2).stderr
    )


def test_a_configuration_without_a_study_and_weights_that_can_be_pasted(here):
    here.edit("holdout: 0.5", "holdout: 0.0")
    done = here(
        *("answers", "correlate", "config.yaml", "--answers", "ans:quality", "--json"),
        *("--configurations", "6", "--passages", "8"),
    )
    record = json.loads(done.stdout)
    names = [one["name"] for one in record["configurations"]]
    assert names == ["baseline", *(f"point {number}" for number in range(1, 6))]
    assert record["queries"] == 20
    pasted = yaml.safe_load(record["composite"]["yaml"])["objective"]["maximize"]
    assert sum(pasted.values()) == pytest.approx(1.0)
    here("check", "config.yaml", "--set", f"objective.maximize={json.dumps(pasted)}")


def test_the_weights_of_ranks_are_fitted_written_and_taken_by_metrics(here):
    asked = ("answers", "positions", "config.yaml", "--answers", "ans:quality", "--passages", "4")
    done = here(*asked, "--twice", "0.5")
    assert "asked twice: 100 % of" in done.stdout
    written = yaml.safe_load((here.folder / "discount.yaml").read_text())
    # The quality is 1 / rank, and 0 without the passage.
    assert written == {"context": {"discount": [1.0, 0.5, 0.3333, 0.25]}}
    beside = json.loads((here.folder / "discount.json").read_text())
    assert beside["queries"] == 10
    assert [one["rank"] for one in beside["ranks"]] == [1, 2, 3, 4]
    assert beside["self_agreement"]["same"] == 1.0
    assert calls(here) == 10 * 5 + 25
    record = json.loads(here(*asked, "--twice", "0.5", "--ranks", "4,2", "--json").stdout)
    assert record["answers"]["asked"] <= 15  # of those asked twice alone: other ones are drawn
    assert record["tried"] == [1, 2, 4]
    discount = f"context.discount={json.dumps(written['context']['discount'])}"
    done = here(
        "evaluate", "config.yaml", "--set", discount, "--metric", "discounted_precision_fitted@4"
    )
    assert "discounted_precision_fitted@4" in done.stdout


def test_positions_that_cannot_be_tried_say_what_to_write(here):
    asked = ("answers", "positions", "config.yaml", "--answers")
    done = here(*asked, "ans:deaf", "--passages", "4", code=1)
    assert "with the relevant passage at rank 1 the answers are better by +0.000" in done.stderr
    done = here(*asked, "ans:quality", "--passages", "40", code=2)
    assert "0 queries of 10 has a relevant passage and 40 others" in done.stderr
    assert "--params '{\"top_k\": 30}'" in done.stderr
    done = here(*asked, "ans:quality", "--ranks", "11", code=2)
    assert "11 is no rank of a context of 10 passages" in done.stderr
