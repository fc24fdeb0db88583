"""What people see and press where they grade: with a mouse, by keys alone, on a phone, by ear."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tuner.core.files import write_whole
from tuner.evalset.grading.given import Grading
from tuner.evalset.grading.page import make_page
from tuner.evalset.grading.scale import meanings
from tuner.evalset.grading.server import Server
from tuner.evalset.sheets import Row, write_sheet

# A chromium on a busy machine takes its time; each wait has its own bound.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

HOSTILE = (
    "<script>window.hostile = 'script'; alert(1)</script>",
    "</script><script>window.hostile = 'closed'</script>",
    "<img src=x onerror=\"window.hostile = 'image'\">",
    '"><svg onload="window.hostile = \'svg\'">',
    "{{ 7 * 7 }} ${window.hostile = 'template'} </title></style>",
)
ROWS = [
    Row("q1", "Where was Ada Lovelace born?", "d1", "Ada Lovelace", "Ada was born in London."),
    Row("q1", "Where was Ada Lovelace born?", "d2", "London", "London lies on the Thames. " * 12),
    Row("q1", "Where was Ada Lovelace born?", "d3", "", "Nothing of the kind."),
    Row("q2", "阿达在哪里出生？", "d4", "阿达", "阿达出生于伦敦。"),
    Row("q2", "阿达在哪里出生？", "d5", "كتاب", "هذا كتاب عن آدا."),
]
Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serve a sheet in this process; what was served before has ended then."""
    with ExitStack() as stack:

        def begin(file: Path | None = None, **options: Any) -> Server:
            stack.close()
            if file is None:
                file = tmp_path / "sheet.csv"
                if not file.exists():
                    write_sheet(file, ROWS)
            grading = stack.enter_context(Grading.open(file))
            page = make_page(str(file), meanings(grading.grades), **options)
            server = stack.enter_context(Server(grading, page, 0))
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            return server

        yield begin


def given(server: Server, name: str) -> list[int | None]:
    grades = server.grading.person(name).given
    return [grades[row.key].grade if row.key in grades else None for row in server.grading.rows]


def press(browser: Any, *keys: str) -> None:
    """Press keys where the focus is, one after the other as the page is ready."""
    from selenium.webdriver.common.action_chains import ActionChains

    for key in keys:
        browser.until("a page that is not at work", lambda: not browser.find("[aria-busy]"))
        ActionChains(browser.driver).send_keys(key).perform()
    browser.until("a page that is not at work", lambda: not browser.find("[aria-busy]"))


def begin_as(browser: Any, name: str) -> None:
    browser.see("#naming-name").send_keys(name + "\n")
    browser.see("#passage")
    browser.until("a passage", lambda: browser.find("#text")[0].text)


def focus(browser: Any) -> str:
    return str(browser.script("return document.activeElement.id"))


def test_a_sheet_is_graded_by_keys_alone(browser, serve):
    server = serve()
    browser.open(server.address)
    browser.see("#naming-name")
    assert focus(browser) == "naming-name"
    press(browser, *"anna", "\n")
    browser.read("Query 1 of 2", "Passage 1 of 3", "Where was Ada Lovelace born?", "born in London")
    assert [one.text for one in browser.find("#passage mark")] == ["Ada Lovelace", "Ada", "born"]
    assert focus(browser) == "passage"
    press(browser, "3")
    browser.read("Saved: 3, perfectly relevant. 4 left.", within="[role=status]")
    browser.read("Passage 2 of 3", "1 of 5 graded")
    assert given(server, "anna") == [3, None, None, None, None]
    assert focus(browser) == "passage"
    press(browser, "7", "x")  # no grades
    press(browser, "0")
    browser.read("Passage 3 of 3")
    press(browser, "\ue012")  # the arrow to the left
    browser.read("Passage 2 of 3", "✓ 0, not relevant")
    press(browser, "1")
    browser.read("Passage 3 of 3")
    press(browser, "u")
    browser.read("Taken back: it has 0, not relevant now.", "Passage 2 of 3")
    assert given(server, "anna") == [3, 0, None, None, None]
    press(browser, "g")
    browser.read("Passage 3 of 3")
    press(browser, "n")
    browser.read("Query 2 of 2")
    press(browser, "2", "1")
    # From the end to what was passed over.
    browser.read("Passage 3 of 3", "4 of 5 graded")
    press(browser, "0")
    browser.read("All 5 passages are graded: thank you.", within="[role=status]")
    assert given(server, "anna") == [3, 0, 0, 2, 1]
    assert browser.complaints() == []
    token = f"/{server.token}/"
    assert [one for one in browser.requests() if token not in one] == []


def test_a_comment_is_saved_with_the_grade_and_by_itself(browser, serve):
    server = serve()
    browser.open(server.address)
    begin_as(browser, "anna")
    press(browser, "c", *"1 of 2", "\ue00c")  # escape; what is typed there grades nothing
    browser.until("a comment", lambda: server.grading.person("anna").given)
    press(browser, "2")
    browser.read("Passage 2 of 3")
    kept = server.grading.person("anna").given["q1", "d1"]
    assert (kept.grade, kept.comment) == (2, "1 of 2")
    browser.see("#comment").send_keys("by mouse")
    browser.click("[data-grade='1']")
    browser.read("Passage 3 of 3")
    kept = server.grading.person("anna").given["q1", "d2"]
    assert (kept.grade, kept.comment) == (1, "by mouse")
    press(browser, "p")
    browser.until("it again", lambda: browser.find("#comment")[0].get_property("value"))
    assert browser.find("#comment")[0].get_property("value") == "by mouse"


def test_two_people_in_two_windows_see_kappa_and_settle(browser, serve):
    server = serve()
    browser.open(server.address)
    begin_as(browser, "anna")
    press(browser, *"3102")
    browser.read("4 of 5 graded")
    anna = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    try:
        browser.driver.get(server.address)
        browser.read("Go on as", "anna 4 of 5")
        begin_as(browser, "ben")
        browser.read("0 of 5 graded")
        press(browser, *"3003")
        browser.read("anna and ben: kappa 0.857 (quadratic weights) over 4 passages, 50 %")
        assert given(server, "anna") == [3, 1, 0, 2, None]
        press(browser, "s")
        browser.read("Graded differently: 1 of 2", "anna: 1, related", "ben: 0, not relevant")
        browser.read("0 of 2 settled")
        press(browser, "1")
        browser.read("Graded differently: 2 of 2", "1 of 2 settled")
        press(browser, "u")
        browser.read("Graded differently: 1 of 2", "0 of 2 settled", "Taken back.")
        press(browser, "1", "3")
        browser.read("All of them are settled.", "Settled by ben")
        press(browser, "s")
        browser.read("Query 2 of 2", "4 of 5 graded")
    finally:
        browser.driver.close()
        browser.driver.switch_to.window(anna)
    browser.read("anna and ben: kappa 0.857")  # seen as soon as one looks again
    settled = server.grading.settled.given
    assert {key[1]: (one.grade, one.by) for key, one in settled.items()} == {
        "d2": (1, "ben"), "d4": (3, "ben"),
    }  # fmt: skip


def test_a_program_that_has_ended_is_said_and_the_next_goes_on(browser, serve):
    server = serve(annotator="anna")
    browser.open(server.address)
    browser.read("Passage 1 of 3")  # nobody is asked for a name
    press(browser, "3")
    browser.read("Passage 2 of 3")
    address = serve().address
    press(browser, "2")
    browser.read("does not answer", "What was saved is on the disk", within="[role=alert]")
    browser.read("Passage 2 of 3", "1 of 5 graded")  # what was not saved does not look so
    browser.open(address)
    browser.click("#people button")
    browser.read("Passage 2 of 3", "1 of 5 graded")


def test_what_is_not_saved_is_said_and_can_be_tried_again(browser, serve, tmp_path):
    server = serve(annotator="anna")
    browser.open(server.address)
    browser.read("Passage 1 of 3")
    server.grading.journal.mkdir()  # nothing can be written
    press(browser, "3")
    browser.read("cannot be written", "sheet.grades.jsonl", within="[role=alert]")
    browser.read("Passage 1 of 3", "0 of 5 graded")
    server.grading.journal.rmdir()
    press(browser, "3")
    browser.read("Passage 2 of 3", "1 of 5 graded")
    assert browser.find("[role=alert]:not([hidden])")[0].text == ""


def test_texts_that_are_code_are_shown_as_text(browser, serve, tmp_path):
    """An open dialog would fail the next command, too."""
    file = tmp_path / "<img src=x>.csv"
    rows = [Row(code, code, f"{code}{n}", code, f"{code} \x1b[2J \u202e{code}")
            for n, code in enumerate(HOSTILE)]  # fmt: skip
    write_sheet(file, rows)
    server = serve(file)
    browser.open(server.address)
    browser.read("<img src=x>.csv")
    browser.see("#naming-name").send_keys("<b>anna</b>\n")
    browser.read("the name '<b>anna</b>'")
    browser.find("#naming-name")[0].clear()
    begin_as(browser, "anna")
    for code in HOSTILE:
        browser.read(code, "\\u001b[2J \\u202e", within="#text")
        browser.read(code, within="#query")
        press(browser, "1")
    assert browser.script("return window.hostile === undefined")
    assert browser.find("#work img, #work svg, #work script, h1 img") == []
    # Of the name that was refused, and of nothing that the page's policy held back.
    assert [one for one in browser.complaints() if "open?by=" not in one] == []


def test_a_very_long_passage_is_shown_whole_when_it_is_asked_for(browser, serve, tmp_path):
    file = tmp_path / "long.csv"
    text = "word " * 4_000
    write_whole(file, f"query_id,query,document_id,title,passage,grade\nq,word?,d,,{text}end,\n")
    server = serve(file, annotator="anna")
    browser.open(server.address)
    browser.read("Show all: 14,003 more characters")
    # The grades can be reached all the same.
    box = browser.see("[data-grade='0']").rect
    assert box["y"] + box["height"] <= 1200 + browser.script("return window.scrollY")
    # What has the focus is not hidden behind them.
    assert browser.script(
        "const more = document.getElementById('more'); more.focus();"
        "const box = more.getBoundingClientRect();"
        "return document.elementFromPoint(box.x + 5, box.y + box.height / 2) === more"
    )
    press(browser, "\n")
    browser.read("word end", within="#text")


def test_right_to_left_stands_so(browser, serve):
    server = serve(annotator="anna")
    browser.open(server.address)
    browser.read("Passage 1 of 3")
    press(browser, *"nnnn")
    browser.read("هذا كتاب", within="#text")
    directions = browser.script(
        "return ['query', 'title', 'text'].map("
        "  id => getComputedStyle(document.getElementById(id)).direction)"
    )
    assert directions == ["ltr", "rtl", "rtl"]


def test_it_can_be_used_on_a_phone(browser, serve):
    server = serve()
    browser.resize(390, 844)
    browser.open(server.address)
    begin_as(browser, "anna")
    browser.shot("phone")
    assert browser.script("return document.documentElement.scrollWidth") <= 390
    # Passage and grades are seen together, and a finger meets each.
    boxes = [button.rect for button in browser.find("#grades button")]
    assert max(box["y"] + box["height"] for box in boxes) <= 844
    assert min(min(box["height"], box["width"]) for box in boxes) >= 44
    assert browser.see("#text").rect["y"] < min(box["y"] for box in boxes)
    small = browser.script(
        "return [...document.querySelectorAll('button, input, textarea, summary, label.check')]"
        ".filter(e => e.offsetParent && (e.offsetHeight < 24 || e.offsetWidth < 24))"
        ".map(e => e.outerHTML)"
    )
    assert small == []
    browser.click("[data-grade='2']")
    browser.read("Passage 2 of 3")
    assert browser.script("return window.scrollY") == 0
    assert given(server, "anna")[0] == 2


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_legible(browser, serve, scheme, width):
    server = serve()
    for name, grades in {"ben": [0, 0, 1], "carla": [3, 0, 1]}.items():
        for at, grade in enumerate(grades):
            server.grading.give(name, at, grade, "why not")
    browser.prefer(scheme)
    browser.resize(width, 900)
    browser.open(server.address)
    browser.read("Go on as")

    def check(name: str) -> None:
        browser.shot(f"{scheme} {width} {name}")
        seen = browser.contrasts()
        assert len(seen["texts"]) > 4
        assert [text for text in seen["texts"] if text[0] < 4.5] == []
        assert (seen["paper"] < 0.1) == (scheme == "dark")

    check("start")
    begin_as(browser, "anna")
    browser.script("document.getElementById('help').open = true")
    browser.read("kappa")
    press(browser, "3", "p")
    browser.read("✓ 3, perfectly relevant")
    check("grade")
    press(browser, "s")
    browser.read("How it was graded")
    check("settle")
    # The edges of what can be pressed are seen as well: 3 to 1 is asked of them.
    assert browser.script("return getComputedStyle(document.querySelector('#grades b')).fontSize")


def accessible(browser: Any) -> list[tuple[str, str]]:
    """Return what a screen reader finds on the page: (role, name)."""
    tree = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})
    return [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree["nodes"]
        if not node.get("ignored")
    ]


def test_a_screen_reader_finds_its_way(browser, serve):
    server = serve()
    for at, grade in enumerate([0, 1]):
        server.grading.give("ben", at, grade)
        server.grading.give("carla", at, grade + 1)
    browser.open(server.address)
    browser.read("Go on as")
    found = accessible(browser)
    assert ("textbox", "Your name") in found
    assert ("button", "Start") in found
    begin_as(browser, "anna")
    browser.read("Settle 2")
    found = accessible(browser)
    for wanted in [
        ("heading", "sheet.csv"), ("heading", "Where was Ada Lovelace born?"),
        ("article", "Passage 1 of 3 Ada Lovelace"), ("progressbar", "0 of 5 graded"),
        ("group", "Grade of this passage"), ("group", "Move"),
        ("navigation", "Passages of this query"), ("button", "Passage 1: no grade"),
        ("button", "You are anna"), ("heading", "How far you agree"),
        ("button", "Settle 2 passages that were graded differently"),
    ]:  # fmt: skip
        assert wanted in found, wanted
    grades = [name for role, name in found if role == "button" and name[:1].isdigit()]
    assert [name.split()[0] for name in grades] == ["0", "1", "2", "3"]
    assert all("relevant" in name.lower() or "Related" in name for name in grades)
    assert {"status", "banner", "main"} <= {role for role, _ in found}
    # Whatever can be pressed or written in has a name.
    unnamed = [role for role, name in found
               if role in {"button", "textbox", "checkbox", "link", "article", "region"}
               and not name.strip()]  # fmt: skip
    assert unnamed == []
    levels = browser.script(
        "return [...document.querySelectorAll('h1, h2, h3')].filter(e => e.offsetParent)"
        ".map(e => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    press(browser, "3", "p")
    browser.read("✓ 3")
    assert ("button", "Passage 1: 3, perfectly relevant") in accessible(browser)
    pressed = browser.find("#grades [aria-pressed=true]")
    assert [one.get_attribute("data-grade") for one in pressed] == ["3"]


def test_the_focus_goes_from_the_passage_to_its_grades(browser, serve):
    server = serve(annotator="anna")
    browser.open(server.address)
    browser.read("Passage 1 of 3")
    press(browser, "\ue004")  # tab
    order = []
    for _ in range(7):
        order.append(
            browser.script(
                "return document.activeElement.dataset.grade || document.activeElement.id"
            )
        )
        assert browser.script(
            "return getComputedStyle(document.activeElement).outlineStyle !== 'none'"
        )
        press(browser, "\ue004")
    assert order == ["0", "1", "2", "3", "undo", "open", "next"]  # there is no previous one
    browser.script("document.querySelector('[data-grade=\"1\"]').focus()")
    press(browser, " ")
    browser.read("Passage 2 of 3")
    assert given(server, "anna")[0] == 1
    assert focus(browser) == "passage"
    # Keys can be turned off, for those whose speech or hands would press them.
    browser.script("document.getElementById('help').open = true")
    browser.click("#has-keys")
    press(browser, "3")
    browser.read("Passage 2 of 3")
    assert given(server, "anna")[1] is None


def test_a_sheet_of_ten_thousand_passages_opens_and_moves(browser, serve, tmp_path):
    file = tmp_path / "large.csv"
    rows = [
        Row(f"q{n // 100}", f"what is word {n // 100}?", f"d{n}", "", f"word {n} " * 60)
        for n in range(10_000)
    ]
    write_sheet(file, rows)
    server = serve(file)
    for at in range(9_000):
        key = server.grading.rows[at].key
        from tuner.evalset.grading.given import Given

        server.grading.person("anna").given[key] = Given(1)
    browser.open(server.address)
    browser.click("#people button")
    browser.read("Query 91 of 100", "9,000 of 10,000 graded")
    press(browser, "2", "0")
    browser.read("Passage 3 of 100", "9,002 of 10,000 graded")
    asked = [json.dumps(one) for one in browser.requests() if "passages?" in one]
    assert len(asked) <= 3
    assert len(browser.find("#strip button")) <= 60
