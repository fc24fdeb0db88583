"""The surface of two parameters that the reader chose shows what the first drawing shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuner.report.review import read_review
from tuner.report.study_data import study_data

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PLOT = "document.getElementById('plot-surface')"


@pytest.fixture(scope="module")
def run_dir(make_report) -> Path:
    """The report of 33 trials, of which six failed and three were stopped early."""
    return make_report(failing=6, stopped=3)


def opened(browser, run_dir):
    browser.open(run_dir / "report.html")
    browser.until("figures", lambda: browser.find("html[data-figures]"))
    browser.script("document.documentElement.style.scrollBehavior = 'auto'")
    return study_data(read_review(run_dir))


def choose(browser, **chosen):
    from selenium.webdriver.support.select import Select

    for label, text in chosen.items():
        (found,) = browser.find(f"#surface-axes select[aria-label='{label}']")
        Select(found).select_by_visible_text(text)


def drawn(browser):
    """What is drawn over the cells, by name, once it is drawn anew."""
    browser.script(f"{PLOT}.scrollIntoView()")
    browser.until("the surface", lambda: not browser.script(f"return {PLOT}.isStale"))
    return browser.script(
        f"return Object.fromEntries({PLOT}.data.slice(1).map(t => [t.name, "
        "{symbol: t.marker.symbol, color: t.marker.color, size: t.marker.size,"
        " trials: t.customdata, x: t.x, y: t.y}]))"
    )


def caption(browser):
    return browser.find("figure:has(#plot-surface) figcaption")[0].text


def legend(browser):
    return browser.script(
        f"return [...{PLOT}.querySelectorAll('.legendtext')].map(one => one.textContent)"
    )


def test_other_parameters_have_the_marks_and_the_legend_of_the_first_drawing(browser, run_dir):
    data = opened(browser, run_dir)
    first, names = drawn(browser), legend(browser)
    assert first["failed"]["trials"] == [1, 2, 3, 4, 5, 6]
    choose(browser, Across="temperature", Up="mode")
    second = drawn(browser)
    assert legend(browser) == names == ["trials", "failed", "baseline", "winner"]
    for name in names:
        mine, theirs = second[name], first[name]
        assert [mine[key] for key in ("symbol", "color", "size")] == [
            theirs[key] for key in ("symbol", "color", "size")
        ]
        assert sorted(mine["trials"]) == sorted(theirs["trials"])
    modes = data["columns"]["param:mode"]
    assert second["failed"]["y"] == [modes[n] for n in second["failed"]["trials"]]
    choose(browser, Across="graph_weight", Up="max_hops")
    assert drawn(browser) == first


def test_failed_trials_are_crosses_over_any_two_parameters(browser, run_dir):
    from selenium.webdriver.support.select import Select

    opened(browser, run_dir)
    for label, text in (("Across", "temperature"), ("Up", "graph_weight")):
        (found,) = browser.find(f"#figure-scatter select[aria-label='{label}']")
        Select(found).select_by_visible_text(text)
    plot = "document.getElementById('plot-scatter')"
    browser.script(f"{plot}.scrollIntoView()")
    browser.until("the figure", lambda: not browser.script(f"return {plot}.isStale"))
    found = browser.script(
        f"return Object.fromEntries({plot}.data.map("
        "t => [t.name, [t.marker.symbol, t.customdata]]))"
    )
    assert found.pop("failed") == ["x-thin-open", [1, 2, 3, 4, 5, 6]]
    assert not {1, 2, 3, 4, 5, 6} & {n for _, trials in found.values() for n in trials}


def cells(data, x, y, holds):
    """In which cells of two parameters a trial lies for which ``holds``."""
    fields = {field["key"]: field for field in data["fields"]}
    found = set()
    for n in range(len(data["state"])):
        if holds(n):
            place = []
            for key in (x, y):
                at = data["columns"][key][n]
                edges = fields[key]["edges"]
                # The last edge belongs to the last cell.
                place.append(min(sum(edge <= at for edge in edges), len(edges) - 1) - 1)
            found.add(tuple(place))
    return found


def test_empty_cells_are_said_to_be_what_they_are(browser, run_dir):
    data = opened(browser, run_dir)
    written = caption(browser)
    worth = data["columns"]["objective"]
    choose(browser, Across="graph_weight", Up="mode")
    drawn(browser)
    pair = ("param:graph_weight", "param:mode")
    tried = cells(data, *pair, lambda n: True)
    known = cells(data, *pair, lambda n: worth[n] is not None)
    without = len(tried - known)
    assert without > 0, "a cell in which all trials failed"
    assert "dots are trials, crosses failed ones." in caption(browser)
    some = "1 of the empty cells" if without == 1 else f"{without} of the empty cells"
    expected = (
        "Every trial in an empty cell failed or broke a constraint."
        if len(tried) == 20
        else f"Every trial in {some} failed or broke a constraint; the others were not tried."
    )
    assert expected in caption(browser)
    about = browser.script("return document.getElementById('about-surface').textContent")
    assert about == f"{len(known)} of 20 cells have a value"
    # Three were stopped early, and have an estimate of the objective alone.
    choose(browser, Colour="recall@10")
    drawn(browser)
    assert "failed, broke a constraint, or has no recall@10" in caption(browser)
    # Of a selection nothing is said of the other trials.
    choose(browser, Colour="objective")
    scored = [n for n, at in enumerate(worth) if at is not None]
    browser.script("study.select(arguments[0], 'a test')", scored)
    drawn(browser)
    assert "Empty cells hold no selected trial." in caption(browser)
    choose(browser, Up="max_hops")
    browser.script("study.select(null)")
    drawn(browser)
    assert caption(browser) == written


def test_of_many_failed_trials_the_selected_ones_lie_at_their_own_place(browser, make_report):
    many = make_report(arms=(("random", 1300),), failing=1200, queries=4, keeps_values=False)
    data = opened(browser, many)
    shown = drawn(browser)["failed"]["trials"]
    assert len(shown) == 500
    missing = next(n for n in range(1, 1201) if n not in shown)
    browser.script("study.select([arguments[0]], 'a test')", missing)
    failed = drawn(browser)["failed"]
    at = failed["trials"].index(missing)
    assert failed["y"][at] == data["columns"]["param:max_hops"][missing]
