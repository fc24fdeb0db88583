"""The report answers when it is touched: what one figure selects, all others show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tuner.report.review import read_review
from tuner.report.study_data import study_data

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ATTACK = "</script><img src=x onerror=\"window.hostile = 'image'\">{{7*7}}%{x}"


@pytest.fixture(scope="module")
def run_dir(make_report) -> Path:
    """The report of 33 trials, of which two failed and three were stopped early."""
    return make_report(failing=2, stopped=3)


@pytest.fixture(scope="module")
def data(run_dir):
    return study_data(read_review(run_dir))


class Report:
    """The page of a study in a browser."""

    def __init__(self, browser, run_dir):
        self.browser = browser
        browser.open(run_dir / "report.html")
        browser.until("figures", lambda: browser.find("html[data-figures]"))
        self.script = browser.script
        self.script("document.documentElement.style.scrollBehavior = 'auto'")

    def drag(self, figure, begin, end):
        """Drag over a figure, from one place to another as shares of its width and height."""
        from selenium.webdriver import ActionChains

        area = self.browser.see(f"#plot-{figure} .nsewdrag")
        self.script("arguments[0].scrollIntoView({block: 'center'})", area)
        size = area.rect
        steps = [(x * size["width"], y * size["height"]) for x, y in (begin, end)]
        (x0, y0), (x1, y1) = steps
        chain = ActionChains(self.browser.driver, duration=20)
        chain.move_to_element_with_offset(
            area, int(x0 - size["width"] / 2), int(y0 - size["height"] / 2)
        )
        chain.click_and_hold()
        for _ in range(2):
            chain.move_by_offset(int((x1 - x0) / 2), int((y1 - y0) / 2))
        chain.release().perform()
        self.browser.until("a selection", lambda: self.selected() is not None)

    def selected(self):
        return self.script("return study.selected && [...study.selected]")

    def choose(self, home, label, text):
        from selenium.webdriver.support.select import Select

        (found,) = self.browser.find(f"{home} select[aria-label='{label}']")
        Select(found).select_by_visible_text(text)

    def rows(self):
        """The numbers of the trials in the table, in its order."""
        return self.script(
            "return [...document.querySelectorAll('#table tbody th button')]"
            ".map(one => Number(one.textContent.slice(1)))"
        )

    def bright(self, figure):
        """The trials that a figure shows as selected."""
        self.script(f"document.getElementById('plot-{figure}').scrollIntoView()")
        self.browser.until(
            "the figure anew", lambda: not self.script(f"return {self._plot(figure)}.isStale")
        )
        return self.script(
            f"return {self._plot(figure)}.data.filter(t => t.selectedpoints)"
            ".flatMap(t => t.selectedpoints.map(at => t.customdata[at]))"
        )

    @staticmethod
    def _plot(figure):
        return f"document.getElementById('plot-{figure}')"


@pytest.fixture
def report(browser, run_dir):
    return Report(browser, run_dir)


def values(data, key):
    return data["columns"][key]


def test_listeners_hear_what_is_selected_opened_and_replaced(report):
    heard = report.script(
        """
        const heard = [];
        for (const what of ['data', 'selection', 'trial'])
            study.on(what, value => heard.push([what, value ?? null]));
        study.select([3, 4], 'a test');
        study.open(3);
        study.replace(study.data);
        study.select(null);
        heard.push(study.isSelected(5), study.size, study.arm(0), study.shown('objective', 0));
        return heard;
        """
    )
    # The first "data" comes at once; after new ones what is selected is made out anew.
    assert heard[:3] == [["data", None], ["selection", "a test"], ["trial", 3]]
    assert sorted(what for what, _ in heard[3:-4]) == ["data", "selection", "selection"]
    assert heard[-4:-1] == [True, 33, "baseline"]
    assert 0.0 < float(heard[-1]) < 1.0


def test_a_box_in_one_figure_is_followed_by_all_others_and_the_table(report, data):
    report.drag("slice-graph_weight", (0.5, 0.02), (0.98, 0.98))
    chosen = set(report.selected())
    weights, worth = values(data, "param:graph_weight"), values(data, "objective")
    # Half of the axis lies near 0.5, and what failed has no objective.
    assert {n for n, w in enumerate(weights) if w > 0.55 and worth[n] is not None} <= chosen
    assert all(weights[n] > 0.45 and worth[n] is not None for n in chosen)
    report.browser.until("the table", lambda: set(report.rows()) == chosen)
    drawn = {n for n in chosen if n != 0}  # the baseline is a mark that stays
    for figure in ("slice-max_hops", "scatter", "surface"):
        assert drawn <= set(report.bright(figure)) <= chosen
    assert set(report.bright("quality-by-tokens")) <= chosen
    (said,) = report.browser.find("#selection [aria-live=polite]")
    assert said.text == f"{len(chosen)} of 33 trials selected"
    report.browser.find("#selection .chips button")[0].click()
    assert report.selected() is None
    report.browser.until("all rows", lambda: len(report.rows()) == 25)


def test_boxes_of_two_figures_hold_together_and_all_come_back_at_once(report, data):
    report.drag("slice-graph_weight", (0.5, 0.02), (0.98, 0.98))
    first = set(report.selected())
    report.drag("scatter", (0.02, 0.02), (0.5, 0.98))
    report.browser.until("less", lambda: set(report.selected()) < first)
    assert len(report.browser.find("#selection .chips li")) == 2
    report.browser.find("#selection > button")[0].click()
    assert report.selected() is None


def test_a_drag_along_an_axis_of_the_parallel_coordinates_keeps_that_range(report, data):
    # Five axes: the second, max_hops, lies a quarter to the right.
    report.drag("parallel", (0.22, 0.02), (0.32, 0.45))
    hops = values(data, "param:max_hops")
    kept = set(report.selected())
    assert kept == {n for n, at in enumerate(hops) if at >= 3}
    assert "max_hops 3 to 4" in report.browser.see("#selection").text
    drawn = report.script(
        "return document.getElementById('plot-parallel').data"
        ".filter(t => t.name.startsWith('part')).flatMap(t => t.customdata).filter(n => n !== null)"
    )
    worth = values(data, "objective")
    assert set(drawn) == {n for n in kept if worth[n] is not None}


def test_ranges_and_choices_are_set_by_keyboard(report, data):
    from selenium.webdriver.common.keys import Keys

    report.script("document.querySelector('#ranges summary').scrollIntoView()")
    report.browser.find("#ranges summary")[0].send_keys(Keys.ENTER)
    low = report.browser.see("input[aria-label='temperature from']")
    low.send_keys("0.1", Keys.TAB)
    heat, mode = values(data, "param:temperature"), values(data, "param:mode")
    assert set(report.selected()) == {n for n, at in enumerate(heat) if at >= 0.1}
    boxes = report.browser.find("//fieldset[legend='mode']//input")
    boxes[0].send_keys(Keys.SPACE)
    assert set(report.selected()) == {
        n for n, (at, of) in enumerate(zip(heat, mode, strict=True)) if at >= 0.1 and of == 1
    }
    assert "temperature from 0.1" in report.browser.see("#selection").text
    # A click elsewhere takes it back, and the fields follow.
    report.browser.find("#selection > button")[0].click()
    assert low.get_attribute("value") == ""
    assert boxes[0].is_selected()


def cells_of(report):
    return report.script("return document.getElementById('plot-surface').data[0].z")


def test_the_surface_in_the_page_is_that_of_the_pictures(report, run_dir):
    text = (run_dir / "report.html").read_text(encoding="utf-8")
    written = json.loads(text.split('id="data-surface">')[1].split("</script>")[0])["data"][0]["z"]
    shown = cells_of(report)
    for mine, theirs in zip(shown, written, strict=True):
        assert [z is None for z in mine] == [z is None for z in theirs]
        pairs = [(a, b) for a, b in zip(mine, theirs, strict=True) if a is not None]
        assert all(abs(a - b) < 1e-5 for a, b in pairs)


def test_the_surface_is_of_any_two_parameters_and_any_metric(report, data):
    report.choose("#surface-axes", "Across", "temperature")
    report.choose("#surface-axes", "Up", "mode")
    report.choose("#surface-axes", "Colour", "context_tokens")
    heading = report.browser.find("#title-surface")[0].text
    assert heading == "Least context_tokens over temperature and mode"
    rows = cells_of(report)
    modes, tokens = values(data, "param:mode"), values(data, "metric:context_tokens")
    for mode in (0, 1):
        least = min(t for m, t in zip(modes, tokens, strict=True) if m == mode and t is not None)
        assert min(z for z in rows[mode] if z is not None) == least
    report.choose("#surface-axes", "Across", "mode")  # they change places
    assert report.browser.find("#title-surface")[0].text.endswith("over mode and graph_weight")


def test_the_slices_show_any_metric(report, data):
    report.choose("#slices-axis", "Slices show", "recall@10")
    plot = "document.getElementById('plot-slice-max_hops')"
    report.script(f"{plot}.scrollIntoView()")
    report.browser.until(
        "the metric", lambda: "recall" in report.script(f"return {plot}.layout.yaxis.title.text")
    )
    recall = values(data, "metric:recall@10")
    for trace in report.script(
        f"return {plot}.data.map(t => ({{n: [...t.customdata], y: [...t.y]}}))"
    ):
        assert trace["y"] == [recall[n] for n in trace["n"]]


def test_a_click_on_a_point_shows_its_trial_beside_the_baseline(report, data):
    from selenium.webdriver import ActionChains

    plot = report.browser.see("#plot-scatter")
    report.script("arguments[0].scrollIntoView({block: 'center'})", plot)
    star = report.browser.find("#plot-scatter .trace path.point")[-1]
    ActionChains(report.browser.driver).move_to_element(star).click().perform()
    panel = report.browser.see("#trial")
    number = report.script("return study.opened")
    assert number == data["chosen"]
    assert f"#{number}" in panel.text
    assert "baseline" in panel.text
    cells = report.script(
        "return [...document.querySelectorAll('#trial tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent))"
    )
    hops = values(data, "param:max_hops")
    assert ["max_hops", str(hops[number]), str(hops[0])] in cells
    gain = values(data, "objective")[number] - values(data, "objective")[0]
    (objective,) = [row for row in cells if row[0] == "objective"]
    assert objective[3] == f"+{gain:.4f}"


def test_the_panel_names_the_queries_that_differ_most_from_the_baseline(report, data):
    number = data["chosen"]
    report.script(f"study.open({number})")
    report.browser.see("#trial")
    caption = "Queries that differ most from the baseline, of the tune queries"
    rows = report.script(
        f"return [...document.querySelectorAll('#trial table[aria-label=\"{caption}\"] tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.textContent))"
    )
    kept = data["differing"]
    expected = kept["trials"][str(number)]
    assert [row[0] for row in rows] == [kept["queries"][place][0] for place, _, _ in expected]
    assert [row[3] for row in rows] == [f"{mine - base:+.4f}" for _, mine, base in expected]


def test_the_panel_leads_to_the_queries_that_differ_most(report, data):
    number = data["chosen"]
    query = data["differing"]["trials"][str(number)][1][0]
    text, id_ = data["differing"]["queries"][query]
    report.browser.until("all queries", lambda: report.browser.find("#query-list[data-ready]"))
    opened = (
        "return [...document.querySelectorAll('.query-detail')].map("
        "one => one.parentElement.querySelector('button.query span').textContent)"
    )
    for _ in range(2):  # the second time the address stays the same
        report.script(f"study.open({number})")
        panel = report.browser.see("#trial")
        report.browser.click(f"//aside[@id='trial']//a[.='{text}']")
        report.browser.until("the query", lambda: report.script(opened) == [text])
        assert report.script("return location.hash") == f"#query={id_}"
        # The panel makes room; the trial stays beside the query.
        assert not panel.is_displayed()
        report.browser.until(
            "the trial beside it",
            lambda: f"Trial {number}" in report.browser.see(".query-detail .trial-line").text,
        )
        row = "document.activeElement"
        assert report.script(f"return {row}.querySelector('span').textContent") == text
        report.script("document.activeElement.click()")


def test_a_trial_is_opened_and_closed_by_keyboard(report):
    from selenium.webdriver.common.keys import Keys

    button = report.browser.find("#table tbody th button")[2]
    number = int(button.text[1:])
    button.send_keys(Keys.ENTER)
    report.browser.see("#trial")
    assert report.script("return study.opened") == number
    report.browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert report.script("return [study.opened, document.getElementById('trial').hidden]") == [
        None,
        True,
    ]


def test_the_table_is_sorted_and_goes_on(report, data):
    worth = values(data, "objective")
    order = sorted(range(33), key=lambda n: (worth[n] is None, -(worth[n] or 0.0), n))
    assert report.rows() == order[:25]
    report.browser.find("#table .pages button")[1].click()
    assert report.rows() == order[25:]
    (head,) = report.browser.find("//div[@id='table']//th[contains(., 'context_tokens')]/button")
    head.click()
    tokens = values(data, "metric:context_tokens")
    assert (
        report.rows()[:3]
        == sorted((n for n in range(33) if tokens[n] is not None), key=lambda n: (tokens[n], n))[:3]
    )
    sorted_by = report.browser.find("#table th[aria-sort]")
    assert [one.get_attribute("aria-sort") for one in sorted_by] == ["ascending"]


def test_texts_of_the_study_stay_texts_wherever_they_are_shown(browser, make_report):
    space = {
        "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
        "mode": {"type": "categorical", "choices": ["plain", ATTACK]},
    }
    page = Report(browser, make_report(texts=ATTACK, space=space, failing=2))
    page.choose("#figure-scatter", "Up", "mode")
    page.choose("#surface-axes", "Across", "mode")
    page.script("document.getElementById('ranges').open = true")
    page.drag("parallel", (0.4, 0.02), (0.6, 0.5))
    for number in (0, 1):
        page.script(f"study.open({number})")
        browser.see("#trial")
    assert page.script("return window.hostile === undefined")
    assert browser.find("img") == []
    assert ATTACK[:20] in browser.see("#selection").text


def test_the_page_fits_a_phone_with_all_open(browser, run_dir):
    browser.resize(390, 844)
    page = Report(browser, run_dir)
    page.script("document.getElementById('ranges').open = true; study.select([1, 2, 3], 'a test')")
    page.script("study.open(3)")
    browser.see("#trial")
    browser.shot("phone")
    assert page.script("return document.documentElement.scrollWidth") <= 390
    assert browser.see("#trial").rect["width"] <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_opened_is_legible(browser, run_dir, scheme):
    browser.prefer(scheme)
    page = Report(browser, run_dir)
    page.script("document.getElementById('ranges').open = true; study.select([1, 2, 3], 'a test')")
    page.script("study.open(3)")
    browser.see("#trial")
    assert [text for text in browser.contrasts()["texts"] if text[0] < 4.5] == []


def test_what_is_printed_is_no_wider_than_the_paper(browser, run_dir):
    browser.resize(690, 1000)  # A4 less its margins
    page = Report(browser, run_dir)
    page.script("study.select([0, 3, 4], 'a test'); study.open(3)")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        page.script("window.dispatchEvent(new Event('beforeprint'))")
        assert page.script("return document.documentElement.scrollWidth") <= 690
        shown = "return getComputedStyle(document.querySelector(arguments[0])).display"
        gone = {page.script(shown, one) for one in ("#trial", "#selection", "#ranges")}
        assert gone == {"none"}
        assert len(page.rows()) == 3
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_ten_times_the_trials_take_no_more_than_in_proportion(browser, make_report):
    """A selection is made, told and listed at once; figures follow one after the other."""
    took = {}
    for trials in (500, 5_000):
        arms = (("random", trials // 2), ("tpe", trials // 2))
        page = Report(browser, make_report(arms=arms, queries=4, keeps_values=False))
        took[trials] = page.script(
            """
            let least = Infinity;
            for (let turn = 0; turn < 7; turn += 1) {
                const begun = performance.now();
                study.select([...Array(study.size).keys()].filter(n => n % 7 !== turn), 'a test');
                least = Math.min(least, performance.now() - begun);
            }
            return least;
            """
        )
    # What does not grow with the trials would make this less than 10; a busy machine makes it more.
    assert took[5_000] < 40 * max(took[500], 0.5)
