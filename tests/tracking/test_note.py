"""The description of a study's run: what it says, in what order, and what cannot break it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.study_record import ArmRecord
from tuner.tracking.mlflow.note import arm_note, study_note

SENTENCE = "Deploy: the winner is better by +0.200 in the composite on 160 held-out queries."
COUNTS = "150 queries to tune on, 160 held out"
BY_TYPE = [
    {
        "group": "bridge2",
        "adjusted_p": 0.001,
        "comparison": {"n": 37, "mean_difference": 0.268, "wins": 31, "losses": 0},
    },
    {
        "group": "plain",
        "adjusted_p": 0.4,
        "comparison": {"n": 36, "mean_difference": -0.02, "wins": 3, "losses": 7},
    },
    {
        "group": "rare",
        "adjusted_p": None,
        "comparison": {"n": 1, "mean_difference": None, "wins": 0, "losses": 0},
    },
]


@pytest.fixture
def judged(study):
    """The study with a verdict and a remark."""
    verdict = {"outcome": "deploy", "sentence": SENTENCE, "by_type": BY_TYPE}
    summary = replace(study.summary, verdict=verdict, remarks=("max_hops changes nothing",))
    return study.header, summary


def test_a_study_is_described_from_the_verdict_to_what_next(judged):
    header, summary = judged
    note = study_note(
        header,
        summary,
        files=["best.yaml", "plots"],
        links={"all trials": "#/experiments/1/runs"},
        run_dir=Path("/runs/a b"),
    )
    assert (
        note
        == f"""**{SENTENCE}**

3 trials evaluated, 1 shared with an equal one, 1 failed (20 %), in 61.5 s, on atlas: {COUNTS}.

| measured | baseline | winner (tpe #5) | change |
| --- | ---: | ---: | ---: |
| objective, held out | 0.4500 | **0.6500** | +0.2000 |
| recall@10, held out | – | **0.6500** | – |
| objective, tune | 0.4000 | **0.7000** | +0.3000 |

| parameter | baseline | winner |
| --- | ---: | ---: |
| `graph_weight` | – | **0.25** |
| `max_hops` | 2 | 2 |
| `mode` | – | **hybrid** |
| `deep` | – | **True** |

| query type | queries | change (bold: clear) | better | worse |
| --- | ---: | ---: | ---: | ---: |
| bridge2 | 37 | **+0.268** | 31 | 0 |
| plain | 36 | -0.020 | 3 | 7 |

| arm | search | budget | best objective, tune | trial |
| --- | ---: | ---: | ---: | ---: |
| tpe | tpe | 4 | 0.7000 | #5 |
| wide | random | 3 | 0.6000 | #1 |

- max\\_hops changes nothing

**What next**

- Put the winner into service: its parameters are in `best.yaml`.
- To evaluate the failed trials again: `tuner resume '/runs/a b' --retry-failed`.
- In MLflow: [all trials](#/experiments/1/runs).
- `plots` (artifact): the figures.
- `best.yaml` (artifact): the winner, ready for `tuner compare` and for a service.
- On the machine that ran it: `tuner report '/runs/a b'`."""
    )


def test_what_an_answer_costs_stands_beside_what_it_is_worth(judged):
    header, summary = judged
    sides = [
        replace(one, holdout_metrics={**one.holdout_metrics, "context_tokens": tokens})
        for one, tokens in ((summary.chosen, 1032.0), (summary.baseline, 570.0))
    ]
    field = "best" if summary.winner is None else "winner"
    note = study_note(header, replace(summary, **{field: sides[0], "baseline": sides[1]}))
    assert "| context\\_tokens, held out | 570.0 | **1,032.0** | +462.0 |" in note


def test_what_is_missing_is_left_out_and_said(study, summarize):
    none = replace(summarize([study.trials[2]]), baseline=None)
    assert study_note(study.header, none).startswith(
        "**No result: none of 5 trials could be scored.**"
    )
    alone = study_note(study.header, replace(study.summary, baseline=None))
    assert alone.startswith("**No verdict: the configuration names no baseline to compare with.**")
    assert "| measured | winner (tpe #5) |" in alone
    interrupted = study_note(study.header, summarize(study.trials, "interrupted"))
    assert "Go on with `tuner resume RUN_DIR`." in interrupted
    header = replace(study.header, dataset={}, arms=())
    assert (
        "3 trials evaluated, 1 shared with an equal one, 1 failed (20 %), in 61.5 s.\n"
        in study_note(header, study.summary)
    )


@pytest.mark.parametrize(
    ("outcome", "advice"),
    [("keep the baseline", "Leave the service as it is."), ("not enough queries", "Label more")],
)
def test_the_advice_is_that_of_the_verdict(study, outcome, advice):
    verdict = {"outcome": outcome, "sentence": "So it is."}
    assert advice in study_note(study.header, replace(study.summary, verdict=verdict))


def test_an_arm_is_described_and_one_without_a_result_is_not(judged):
    header, summary = judged
    assert arm_note(header, summary, "tpe") == (
        "Best of **tpe** in graphrag-atlas: trial #5, 0.7000 on the tune queries, 0.6500 on the "
        "held-out ones – the winner of the study.\n\n"
        "`graph_weight` 0.25, `max_hops` 2, `mode` hybrid, `deep` True"
    )
    assert arm_note(header, summary, "none") == ""


@given(text=st.text(max_size=200), many=st.integers(0, 60))
def test_no_text_from_elsewhere_breaks_it(make_parts, text, many):
    header, summary = make_parts
    best = replace(summary.chosen, params={f"{text}{n}": text for n in range(many)})
    summary = replace(summary, winner=best, remarks=(text,) * many)
    arms = tuple(ArmRecord(f"{text}{number}", text, 1) for number in range(many))
    note = study_note(replace(header, arms=arms, dataset={"name": text}), summary)
    assert len(note) <= 4900
    assert "<" not in re.sub("`[^`\n]*`", "", note)
    assert "**What next**" in note
    for table in re.findall(r"(?:^\|.*\|$\n?)+", note, re.MULTILINE):
        assert len({line.count("|") for line in table.strip().split("\n")}) == 1, table


@pytest.fixture(scope="module")
def make_parts(make_study, tmp_path_factory):
    study = make_study(tmp_path_factory.mktemp("note"))
    return study.header, study.summary


def test_what_became_of_each_goal_stands_after_the_verdict(study):
    sentence = "latency_p95_ms 22.9 against 10, +129 %: worse"
    why = "The winner, tpe #5, is the knee of the front; it was chosen because of <b>*that*</b>."
    summary = replace(study.summary, goals=({"sentence": sentence},), front_notes=(why,))
    note = study_note(study.header, summary)
    assert "- latency\\_p95\\_ms 22.9 against 10, +129 %: worse\n- The winner, tpe \\#5" in note
    assert "because of &lt;b&gt;\\*that\\*&lt;/b&gt;." in note
    assert note.index("latency\\_p95\\_ms 22.9") < note.index("| measured |")


def test_how_long_all_sessions_took_stands_beside_the_last_one(judged):
    header, summary = judged
    alone = replace(summary, seconds_in_all=summary.seconds)
    assert "in 61.5 s, on atlas" in study_note(header, alone, files=(), links={})
    resumed = replace(summary, seconds_in_all=106.0)
    shown = "in 61.5 s (1 min 46 s with the sessions before), on atlas"
    assert shown in study_note(header, resumed, files=(), links={})


def test_failed_trials_are_worth_another_try_only_where_there_are_many(judged):
    header, summary = judged
    few = replace(summary, finished_trials=30)
    assert "--retry-failed" not in study_note(header, few, files=(), links={})
    without = replace(header, config={})  # a study of a function from Python
    assert "--retry-failed" not in study_note(without, summary, files=(), links={})
