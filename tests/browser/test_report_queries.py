"""All queries of a report: found, opened, handed on, printed; from a disk, from a server, alone."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from pathlib import Path

import pytest

from tuner.core.run_files import BEST_FILE, CONFIG_FILE, TUNE_QUERIES_FILE
from tuner.report import query_data
from tuner.report.writing import write_report
from tuner.run.side_by_side import Side, read_side_by_side, write_side_by_side

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ATTACK = "</script><img src=x onerror=\"window.hostile = 'image'\">');window.hostile='text';('\\"


@pytest.fixture(scope="module")
def run_dir(make_report) -> Path:
    """A report with queries that gained, lost, stayed, failed and have no value."""
    from dataclasses import replace

    found = make_report(failing=1)
    rows = list(read_side_by_side(found, name=TUNE_QUERIES_FILE))
    nothing = Side(None, {"recall@10": None, "ndcg@10": None}, ())
    rows[0] = replace(rows[0], relevant=(), winner=nothing, baseline=nothing)
    rows[1] = replace(rows[1], winner=replace(rows[1].winner, composite=0.0, found={}))
    rows[2] = replace(rows[2], winner=rows[2].baseline)
    rows[3] = replace(
        rows[3], winner=replace(rows[3].winner, retrieved=(), found={}, is_kept=False)
    )
    write_side_by_side(found, rows, name=TUNE_QUERIES_FILE)
    for name in (CONFIG_FILE, BEST_FILE):
        (found / name).write_text("")
    write_report(found, with_plots=False)
    return found


class List:
    """The list of queries on an open page."""

    def __init__(self, browser, address):
        self.browser = browser
        browser.open(address)
        browser.until("the list", lambda: browser.find("#query-list[data-ready]"))
        browser.script("document.documentElement.style.scrollBehavior = 'auto'")

    @property
    def ids(self):
        return self.browser.script(
            "return [...document.querySelectorAll('.query-rows button small')]"
            ".map(one => one.textContent.split(/[,;]/)[0])"
        )

    @property
    def status(self):
        return self.browser.script("return document.querySelector('.query-status').textContent")

    @property
    def focused(self):
        return self.browser.script("return document.activeElement.textContent")

    def set(self, name, value):
        self.browser.script(
            "const one = document.querySelector(`.query-tools [name=${arguments[0]}]`);"
            "one.value = arguments[1];"
            "for (const kind of ['input', 'change']) one.dispatchEvent(new Event(kind));",
            name,
            value,
        )

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.browser.driver).send_keys(*keys).perform()

    def focus(self, at=0):
        self.browser.script("document.querySelectorAll('button.query')[arguments[0]].focus()", at)

    def open(self, at=0):
        self.browser.script("document.querySelectorAll('button.query')[arguments[0]].click()", at)
        return self.browser.until(
            "both answers", lambda: self.browser.find(".query-detail .answers")
        )


@pytest.fixture
def page(browser, run_dir):
    return List(browser, run_dir / "report.html")


@pytest.fixture
def served(run_dir):
    """The run directory on a server of its own."""
    handler = functools.partial(_Quiet, directory=str(run_dir))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


def test_a_query_that_is_opened_shows_both_answers_with_texts_ranks_and_scores_by_leg(page):
    page.set("words", "q13")
    page.open()
    text = page.browser.read("Passage 1 says much.", "✓ relevant", "graph", within=".query-detail")
    for part in ("Title 1 (d1)", "score 0.9000 · graph 0.1000 · text 0.5000", "text not found"):
        assert part in text
    # d1 is second of the winner's, and ninth of the baseline's.
    rows = page.browser.script(
        "return [...document.querySelectorAll('.query-ranks tbody tr')].map(one => one.innerText)"
    )
    assert [row.split("\t") for row in rows] == [["Title 1 (d1)", "2", "9"]]
    assert page.browser.find(".answers li.relevant")
    assert page.browser.complaints() == []


def test_a_query_that_is_opened_begins_with_why_it_changed(page):
    page.set("words", "q13")
    page.open()
    # d9 to d2 stand before d1 in the baseline's answer alone, with n / 10 of the graph.
    first = page.browser.script("return document.querySelector('.query-detail p').textContent")
    assert first == (
        "“Title 1” rose from rank 9 to 2. Before it with the baseline by graph: “Title 9” 0.9, "
        "“Title 8” 0.8, “Title 7” 0.7, “Title 6” 0.6 (it had 0.1) and 4 more."
    )
    page.set("words", "")
    page.set("change", "same")  # t2: both answered the same
    page.open()
    assert page.browser.find(".query-why") == []


def test_a_query_that_is_opened_has_a_line_to_copy_that_asks_it(page, run_dir):
    page.set("words", "q13")
    page.open()
    config, best = run_dir / CONFIG_FILE, run_dir / BEST_FILE
    page.browser.read(
        f"tuner ask {config} q13 --params {best} --compare baseline", within=".query-ask"
    )


def test_the_passages_come_from_a_server_too(browser, served, run_dir):
    page = List(browser, f"{served}/report.html")
    page.open()
    browser.read("Passage 1 says much.")
    assert browser.complaints() == []
    asked = [address.removeprefix(served) for address in browser.requests()]
    assert [one for one in asked if one != "/favicon.ico"] == [
        "/report.html",
        "/report-data/queries-0001.js",
    ]


def test_a_page_alone_says_where_the_passages_are_and_shows_all_else(browser, run_dir, tmp_path):
    shutil.copy(run_dir / "report.html", tmp_path / "mailed.html")
    page = List(browser, tmp_path / "mailed.html")
    browser.script("document.querySelector('button.query').click()")
    text = browser.read("stands alone", "report-data/queries-0001.js", within=".query-detail")
    for part in ("recall@10", "composite", "d1", "2", "9"):
        assert part in text
    assert page.status.startswith("80 of 80")


def test_a_page_within_another_page_stands_alone(browser, run_dir, tmp_path):
    """As a tracking server shows artifacts: from a blob, in a sandbox."""
    import json

    text = json.dumps((run_dir / "report.html").read_text()).replace("</", "<\\/")
    outer = tmp_path / "outer.html"
    outer.write_text(
        "<!DOCTYPE html><meta charset=utf-8><iframe sandbox='allow-scripts' width=900 height=900>"
        f"</iframe><script>const text = {text};"
        "document.querySelector('iframe').src = URL.createObjectURL("
        "new Blob([text], {type: 'text/html'}));</script>",
        encoding="utf-8",
    )
    browser.open(outer)
    browser.driver.switch_to.frame(browser.see("iframe"))
    try:
        browser.until("the list", lambda: browser.find("#query-list[data-ready]"))
        browser.script("document.querySelector('button.query').click()")
        browser.read("stands alone", "recall@10", within=".query-detail")
    finally:
        browser.driver.switch_to.default_content()


def test_files_of_another_report_are_not_taken_for_those_of_this_one(browser, run_dir, tmp_path):
    shutil.copy(run_dir / "report.html", tmp_path / "report.html")
    folder = shutil.copytree(run_dir / "report-data", tmp_path / "report-data")
    chunk = folder / "queries-0001.js"
    name, _, rest = chunk.read_text().split(", ", 2)
    chunk.write_text(f"{name}, '{'0' * 16}', {rest}")
    List(browser, tmp_path / "report.html")
    browser.script("document.querySelector('button.query').click()")
    browser.read("stands alone, or is of another time", within=".query-detail")


def test_filters_leave_what_they_say(page):
    assert page.status == "80 of 80 queries; page 1 of 4"
    page.set("words", "is 13?")
    assert sorted(page.ids) == ["q13", "t13"]
    page.set("part", "holdout")
    assert page.ids == ["q13"]
    page.set("words", "")
    page.set("type", "1")  # comparison: the odd ones
    assert page.status.startswith("20 of 80")
    assert {int(id_[1:]) % 2 for id_ in page.ids} == {1}
    page.set("type", "-1")
    page.set("part", "")
    for change, ids in (("failed", ["t1"]), ("same", ["t2"]), ("undefined", ["t0"])):
        page.set("change", change)
        assert page.ids == ids
    page.set("change", "lost")
    assert page.ids == ["t1"]
    page.set("change", "gained")
    assert page.status.startswith("77 of 80")
    page.set("words", "no such words")
    assert page.status == "0 of 80 queries"
    assert page.ids == []


def test_the_order_is_what_is_asked_for(page):
    def values():
        texts = page.browser.script(
            "return [...document.querySelectorAll('button.query b')].map(one => one.textContent)"
        )
        return [float(text.replace("−", "-").replace("+", "")) for text in texts]

    page.set("order", "gained")
    assert values() == sorted(values(), reverse=True)
    page.set("order", "lost")
    assert values() == sorted(values())
    assert page.ids[0] == "t1"
    page.set("order", "changed")
    assert [abs(v) for v in values()] == sorted(map(abs, values()), reverse=True)


def test_undefined_values_and_answers_that_were_not_kept_are_named(page):
    page.set("words", "t0")
    page.browser.script("document.querySelector('button.query').click()")
    text = page.browser.read("no composite", "Nothing was retrieved", within=".query-rows")
    assert "no value" in text
    assert "undefined" not in page.browser.text()
    page.browser.script("location.hash = '#query=t3'")
    page.browser.read("This answer was not kept", "not kept", within=".query-detail")


def test_another_trial_stands_beside_winner_and_baseline(page):
    page.set("trial", "4")
    page.browser.read("Trial 4 is shown", within=".query-tools")
    page.set("part", "tune")
    page.browser.read("trial 4 9 (1 of 1)", within=".query-rows")
    page.browser.script("location.hash = '#query=t7'")
    text = page.browser.read("Trial 4 has relevant passages at rank 9", within=".query-detail")
    assert "trial 4" in text.split("composite")[0]
    page.browser.script("location.hash = '#query=q7'")
    page.browser.read("was not asked this query: it is held out", within=".query-detail")
    page.set("trial", "1")  # failed
    page.browser.read("What trial 1 answered was not kept", within=".query-tools")


def test_a_trial_that_is_opened_anywhere_on_the_page_stands_in_the_list(page):
    page.browser.script("window.study.open(5)")
    page.browser.read("trial 5 2 (1 of 1)", within=".query-rows")
    page.browser.script("window.study.open(null)")
    page.browser.until(
        "the list without it", lambda: "trial 5" not in page.browser.find(".query-rows")[0].text
    )


def test_an_address_names_a_query(browser, run_dir):
    page = List(browser, (run_dir / "report.html").as_uri() + "#query=t13")
    browser.read("Passage 1 says much.", within=".query-detail")
    assert "t13" in page.focused
    browser.script("location.hash = '#query=q2'")
    browser.until("the other query", lambda: "q2," in page.focused)
    page.open(3)
    opened = page.ids[3]
    assert browser.script("return location.hash") == f"#query={opened}"
    link = browser.script("return document.querySelector('.query-detail a').getAttribute('href')")
    assert link.startswith("#query=")
    browser.script("location.hash = '#query=gone'")
    browser.read("There is no query “gone” in this report", within="#query-list")
    browser.script("location.hash = '#query=%E0%A4%A'")
    browser.read("There is no query “%E0%A4%A”", within="#query-list")


def test_keys_move_open_and_close(page):
    from selenium.webdriver.common.keys import Keys

    ids = page.ids
    page.focus()
    page.press("j")
    assert ids[1] in page.focused
    page.press(Keys.ARROW_DOWN)
    assert ids[2] in page.focused
    page.press("k")
    page.press(Keys.ENTER)
    page.browser.until("an open query", lambda: page.browser.find(".query-detail"))
    assert page.browser.script("return document.activeElement.getAttribute('aria-expanded')") == (
        "true"
    )
    page.press(Keys.ESCAPE)
    assert page.browser.find(".query-detail") == []
    assert ids[1] in page.focused
    page.focus(19)
    page.press("j")  # on to the next page
    assert page.status.endswith("page 2 of 4")
    assert page.ids[0] in page.focused
    page.press("k")
    assert page.status.endswith("page 1 of 4")
    # In a field, letters are letters.
    page.browser.script("document.querySelector('[name=words]').focus()")
    page.press("j", "k")
    assert page.browser.script("return document.querySelector('[name=words]').value") == "jk"


def test_a_screen_reader_is_told_names_states_and_results(page):
    page.open()
    tree = page.browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})
    nodes = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree["nodes"]
        if not node["ignored"]
    ]
    roles = {role for role, _ in nodes}
    assert {"search", "searchbox", "combobox", "spinbutton", "status"} <= roles
    for role in ("searchbox", "combobox", "spinbutton", "navigation", "table"):
        assert all(name for kind, name in nodes if kind == role), role
    named = {name for _, name in nodes}
    assert {"Search", "Difference", "Order", "Beside trial", "Pages of queries"} <= named


def test_code_in_texts_is_text(browser, make_report):
    page = List(browser, make_report(texts=ATTACK) / "report.html")
    page.open()
    browser.read("Passage 1 says much.", "window.hostile", within=".query-detail")
    browser.read("onerror", within=".query-why")
    for more in browser.find(".query-detail .more"):
        browser.script("arguments[0].click()", more)
    page.set("trial", "4")
    browser.read("Trial 4 is shown")
    assert browser.script("return window.hostile === undefined")
    assert browser.find("#query-list img") == []
    link = browser.script("return document.querySelector('.query-detail a').getAttribute('href')")
    page = List(browser, browser.driver.current_url.split("#")[0] + link)
    browser.read("Passage 1 says much.", within=".query-detail")


def test_no_script_of_a_text_is_loaded_even_by_name(browser, run_dir, tmp_path):
    """The policy takes files from the page's script alone, not from markup."""
    text = (run_dir / "report.html").read_text(encoding="utf-8")
    (tmp_path / "evil.js").write_text("window.hostile = 'file';")
    for inject in ('<script src="evil.js"></script>', "<script>window.hostile = 1</script>"):
        page = tmp_path / "report.html"
        page.write_text(text.replace('<main id="main">', f'<main id="main">{inject}'))
        List(browser, page)
        assert browser.script("return window.hostile === undefined")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1300])
def test_the_list_is_legible_and_fits(browser, run_dir, scheme, width):
    browser.prefer(scheme)
    browser.resize(width, 844)
    page = List(browser, run_dir / "report.html")
    page.set("trial", "4")
    page.open()
    browser.script("document.getElementById('all-queries').scrollIntoView()")
    browser.shot(f"list {width} {scheme}")
    browser.script("document.querySelector('.answers').scrollIntoView()")
    browser.shot(f"answers {width} {scheme}")
    assert browser.script("return document.documentElement.scrollWidth") <= width
    assert [text for text in browser.contrasts()["texts"] if text[0] < 4.5] == []
    if width == 390:
        heights = browser.script(
            "return [...document.querySelectorAll('.query-tools input, .query-tools select, "
            ".query-pages button')].map(one => one.getBoundingClientRect().height)"
        )
        assert min(heights) >= 24  # a finger finds it: WCAG 2.5.8


def test_what_is_shown_is_printed(page):
    page.set("words", "t7")
    page.open()
    page.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = page.browser.script(
            "return [...document.querySelectorAll('.query-tools, .query-pages, .more')]"
            ".every(one => one.getClientRects().length === 0)"
        )
        kept = page.browser.script(
            "return [...document.querySelectorAll('button.query, .query-detail li, "
            ".query-detail tr')].map(one => getComputedStyle(one).breakInside)"
        )
        assert hidden
        assert set(kept) == {"avoid"}
        page.browser.read("Passage 1 says much.", within=".query-detail")
    finally:
        page.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert page.browser.print_pdf().startswith(b"%PDF")


def test_ten_thousand_queries_are_searched_in_place_and_the_page_stays_small(
    browser, make_report, monkeypatch
):
    run_dir = make_report(queries=5_000, arms=(("grid", 3),))
    assert (run_dir / "report.html").stat().st_size < 1_500_000
    # Longer texts would not all fit into the page: less room brings the same with these.
    monkeypatch.setattr(query_data, "MOST_IN_PAGE", 20_000)
    write_report(run_dir, with_plots=False)
    page = List(browser, run_dir / "report.html")
    browser.until("all queries", lambda: page.status.startswith("10,000 of 10,000"))
    assert len(browser.find(".query-rows > li")) == 20
    page.set("words", "is 4999?")
    assert sorted(page.ids) == ["q4999", "t4999"]
    page.open()
    browser.read("Passage 1 says much.", within=".query-detail")
    # A search takes no more than what can be called at once, on any machine: it looks at each once.
    assert query_data.BLOCK < 5_000
    shutil.rmtree(run_dir / "report-data")
    List(browser, run_dir / "report.html")
    browser.read("This page alone holds the", "which is not beside it", within="#query-list")
