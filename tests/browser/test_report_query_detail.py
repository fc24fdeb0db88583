"""An opened query says of another trial what is known of it, and nothing that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuner.report.review import read_review

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def run_dir(make_report) -> Path:
    return make_report()


def beside(browser, run_dir, query, trial):
    """Open a query with a trial beside it: the rows of its values by name, and the trial's line."""
    browser.open((run_dir / "report.html").as_uri() + f"#query={query}")
    browser.until("the list", lambda: browser.find("#query-list[data-ready]"))
    browser.script(
        "const one = document.querySelector('.query-tools [name=trial]');"
        "one.value = arguments[0]; one.dispatchEvent(new Event('change'));",
        trial,
    )
    browser.read(f"Trial {trial} is shown", within=".query-tools")
    line = browser.see(".query-detail .trial-line").text
    rows = browser.script(
        "return [...document.querySelectorAll("
        "'.query-detail [aria-label=\"Values of this query\"] tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent))"
    )
    assert not {"undefined", "NaN", "null"} & {cell for row in rows for cell in row}
    return {name: cells for name, *cells in rows}, line


def test_a_trial_that_was_not_asked_a_held_out_query_has_no_value_of_it(browser, run_dir):
    rows, line = beside(browser, run_dir, "q7", 4)
    assert {cells[-1] for cells in rows.values()} == {"not asked"}
    assert line == "Trial 4 was not asked this query: it is held out."
    rows, _ = beside(browser, run_dir, "t7", 4)
    assert 0.0 < float(rows["composite"][-1]) <= 1.0


def test_winner_and_baseline_were_asked_the_held_out_queries(browser, run_dir):
    review = read_review(run_dir)
    for trial, place, name in ((review.chosen.trial, 0, "winner"), (0, 1, "baseline")):
        rows, line = beside(browser, run_dir, "q7", trial)
        assert line == f"Trial {trial} is the {name} itself."
        assert {key: cells[-1] for key, cells in rows.items()} == {
            key: cells[place] for key, cells in rows.items()
        }


def test_values_of_a_trial_that_were_not_kept_are_said_to_be_so(browser, make_report):
    import numpy as np

    from tuner.core.found import FOUND
    from tuner.report.writing import write_report

    run_dir = make_report(arms=(("grid", 12),))
    path = run_dir / "trials" / "4.npz"
    with np.load(path) as kept:
        np.savez(path, **{FOUND: kept[FOUND], "recall@10": kept["recall@10"]})
    write_report(run_dir, with_plots=False)
    rows, line = beside(browser, run_dir, "t7", 4)
    assert rows["composite"][-1] == "not kept"
    assert "at rank 9" in line
