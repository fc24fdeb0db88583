"""Thousands of trials make a page that still opens."""

from __future__ import annotations

import csv

import pytest

from tuner.report.places import MOST_POINTS
from tuner.report.writing import write_report

pytestmark = pytest.mark.slow

TRIALS = 5_000
# Plotly, packed, is 0.7 MB of it; what is stored beside the page does not count.
MOST_BYTES = 1_500_000
MOST_DRAWN = 6_000


def drawn(value):
    """How many points a figure draws."""
    return sum(len(trace["x"]) for trace in value["data"] if trace["type"] == "scatter")


def test_a_study_of_thousands_of_trials(report, study):
    options = {
        "arms": (("random", TRIALS // 2), ("tpe", TRIALS // 2)),
        "queries": 4,
        "keeps_values": False,
    }
    page = report(**options)
    assert len(page.raw) < MOST_BYTES
    figures = page.figures
    assert sum(map(drawn, figures.values())) < MOST_DRAWN
    for name in ("slice-graph_weight", "quality-by-tokens", "surface"):
        assert MOST_POINTS // 2 < drawn(figures[name]) <= MOST_POINTS + 100
    assert f"Shown are {MOST_POINTS} of 5,001 trials" in page.text


def test_the_numbers_of_all_trials_are_kept(study):
    run_dir = study(arms=(("random", 1500),), queries=4, keeps_values=False)
    write_report(run_dir, with_plots=False)
    with (run_dir / "figures" / "slice-max_hops.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 1501
