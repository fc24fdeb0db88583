"""The HTML pages that the project writes, opened as files by a reader who is offline."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tuner.report.across.page import Nights, write_across
from tuner.report.across.timeline import Step

PROJECT = Path(__file__).resolve().parents[2]

# A chromium on a busy machine takes its time; each wait has its own bound.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

HOSTILE = (
    "<script>window.hostile = 'script'; alert(1)</script>",
    "</script><script>window.hostile = 'closed'</script>",
    "<img src=x onerror=\"window.hostile = 'image'\">",
    '"><svg onload="window.hostile = \'svg\'">',
    "{{ 7 * 7 }} ${window.hostile = 'template'} </title></style>",
)


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def study(make_atlas_study, tmp_path_factory):
    return make_atlas_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def report_page(study) -> Path:
    return study.run_dir / "report.html"


@pytest.fixture(scope="module")
def abtest_page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("abtest")
    run(folder, str(PROJECT / "experiments" / "abtest" / "users.py"))
    experiment = str(PROJECT / "configs" / "abtest" / "experiment.yaml")
    run(
        folder, "-m", "tuner", "abtest", "analyze", experiment, "results.csv", "--html", "page.html"
    )
    return folder / "page.html"


@pytest.fixture(scope="module")
def indexes_page(tmp_path_factory) -> Path:
    """The report of a study with parameters of the index."""
    folder = tmp_path_factory.mktemp("indexes")
    config = (
        "study: {name: indexes}\n"
        "dataset: {path: 'builtin:atlas'}\n"
        "space:\n"
        "  names: {type: categorical, choices: [titles, both]}\n"
        "  bm25_k1: {type: categorical, choices: [0.9, 1.5]}\n"
        "  graph_weight: {type: real, low: 0.0, high: 1.0}\n"
        "objective: {maximize: {recall@10: 1.0}}\n"
        "baseline: {names: both, bm25_k1: 1.5, graph_weight: 0.1}\n"
        "backends: [{kind: grid, trials: 8}]\n"
        "execution: {kind: inline}\n"
        "tracking: null\n"
    )
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    record = json.loads(run(folder, "-m", "tuner", "run", "config.yaml", "--quiet", "--json"))
    assert record["indexes"]["built"] + record["indexes"]["found"] == 4
    page: Path = folder / record["run_dir"] / "report.html"
    return page


@pytest.fixture(scope="module")
def studies(make_studies):
    """Three studies, each with a better winner; the last is of more documents."""
    *before, last = make_studies({"lift": 0.05}, {"failing": 2, "stopped": 3}, {"lift": 0.3})
    data = {**last.header.dataset, "documents": 12, "fingerprint": "beef"}
    return [*before, replace(last, header=replace(last.header, dataset=data))]


@pytest.fixture(scope="module")
def studies_page(studies, tmp_path_factory) -> Path:
    return write_across(studies, output=tmp_path_factory.mktemp("across") / "studies.html")


@pytest.fixture(scope="module")
def nights_page(studies, tmp_path_factory) -> Path:
    """Four weeks, of which most nights' studies are gone."""
    steps = tuple(
        Step(
            f"2026-11-{day:02}",
            "the baseline" if day < 4 else f"version {day // 4}",
            0.8 + day / 1000,
            f"version {day}",
            0.81 + day / 1000,
            0.01,
            (0.01, 0.03) if day % 4 == 0 else (-0.01, 0.03),
            "deploy" if day % 4 == 0 else "keep the baseline",
            "promoted" if day % 4 == 0 else "kept",
            "latency up by 40 %" if day % 7 == 0 else "none",
            is_promoted=day % 4 == 0,
        )
        for day in range(1, 29)
    )
    nights = Nights("small", steps, ("Champion: version 7, by a night",), ("A note.",))
    output = tmp_path_factory.mktemp("across") / "nights.html"
    return write_across(studies, nights=nights, output=output)


@pytest.fixture(params=["report", "abtest", "indexes", "studies", "nights"])
def page(request) -> Path:
    found: Path = request.getfixturevalue(f"{request.param}_page")
    return found


@pytest.fixture(scope="module")
def hostile_run_dir(tmp_path_factory) -> Path:
    """A study of data whose titles, queries and query types are code."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "data" / "qrels").mkdir(parents=True)
    documents, queries, judgements = [], [], ["query-id\tcorpus-id\tscore"]
    for number in range(24):
        code = HOSTILE[number % len(HOSTILE)]
        words = f"river number {number} of the country"
        documents.append({"_id": f"d{number}", "title": f"{code} {number}", "text": words})
        queries.append({"_id": f"q{number}", "text": f"{code} {words}", "query_type": code})
        judgements.append(f"q{number}\td{number}\t1")
    for name, records in (("corpus", documents), ("queries", queries)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / "data" / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "data" / "qrels" / "test.tsv").write_text("\n".join(judgements) + "\n")
    config = (
        "study: {name: hostile}\n"
        "dataset: {path: data}\n"
        "retriever: {kind: hybrid}\n"
        "space: {top_k: {type: integer, low: 1, high: 20}}\n"
        "objective: {maximize: {recall@10: 1.0}}\n"
        "baseline: {top_k: 1}\n"
        "backends: [{kind: random, trials: 6}]\n"
        "execution: {kind: inline}\n"
        "tracking: null\n"
    )
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    record = json.loads(run(folder, "-m", "tuner", "run", "config.yaml", "--quiet", "--json"))
    found: Path = folder / record["run_dir"]
    return found


def test_a_page_opens_without_complaint_and_asks_for_nothing(browser, page):
    browser.open(page)
    browser.see("h1")
    if browser.find(".plot"):
        browser.until("figures", lambda: browser.find("html[data-figures]"))
        assert not browser.find("#undrawn:not([hidden])")
    assert [one.text for one in browser.find("h2")] != []
    browser.shot("wide")
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def test_a_page_fits_a_phone(browser, page):
    browser.resize(390, 844)
    browser.open(page)
    browser.see("h1")
    browser.shot("phone")
    assert browser.script("return document.documentElement.scrollWidth") <= 390
    sizes = (
        "return [...document.querySelectorAll('p, td, li')].map(e => getComputedStyle(e).fontSize)"
    )
    assert min(float(size.removesuffix("px")) for size in browser.script(sizes)) >= 11


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_legible(browser, page, scheme):
    browser.prefer(scheme)
    browser.open(page)
    browser.see("h1")
    browser.shot(scheme)
    seen = browser.contrasts()
    assert len(seen["texts"]) > 20
    assert [text for text in seen["texts"] if text[0] < 4.5] == []
    assert (seen["paper"] < 0.1) == (scheme == "dark")


def test_a_page_prints(browser, page, tmp_path):
    browser.prefer("dark")  # the paper is white all the same
    browser.open(page)
    browser.see("h1")
    printed = browser.print_pdf()
    (tmp_path / "printed.pdf").write_bytes(printed)
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 1
    browser.lay_out_for_paper()
    browser.shot("paper")
    assert browser.torn_words() == []
    wide = (
        "return [...document.querySelectorAll('table')]"
        ".filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth)"
        ".map(one => one.getAttribute('aria-label'))"
    )
    assert browser.script(wide) == []


@pytest.mark.parametrize("name", ["report", "studies", "nights"])
def test_a_page_is_gone_through_by_keyboard(browser, request, name):
    from selenium.webdriver import ActionChains, Keys

    browser.resize(390, 844)  # where tables are wider than the page
    browser.open(request.getfixturevalue(f"{name}_page"))
    browser.see("h1")
    browser.until("figures", lambda: browser.find("html[data-figures]"))

    def press(key):
        ActionChains(browser.driver).send_keys(key).perform()
        return browser.driver.switch_to.active_element

    skip = press(Keys.TAB)
    assert skip.text == "Skip to the figures"
    assert skip.rect["x"] >= 0
    seen = []
    while (focused := press(Keys.TAB)).tag_name != "body" and focused not in seen:
        seen.append(focused)
        style = "return getComputedStyle(document.activeElement).outlineStyle"
        assert browser.script(style) != "none", focused.get_attribute("outerHTML")
    assert [one for one in browser.find("nav a") if one not in seen] == []
    scrolled = "return [...document.querySelectorAll('.scroll')].filter(e => e.offsetParent)"
    tables = [one for one in browser.script(scrolled) if one.is_displayed()]
    assert [one for one in tables if one not in seen] == []
    wide = [
        one
        for one in tables
        if browser.script("return arguments[0].scrollWidth > arguments[0].clientWidth + 80", one)
    ]
    assert wide
    browser.script("arguments[0].focus()", wide[0])
    press(Keys.ARROW_RIGHT)
    browser.until(
        "the table's right", lambda: browser.script("return arguments[0].scrollLeft", wide[0]) > 0
    )


def test_the_report_leads_with_the_verdict(browser, report_page, study):
    browser.open(report_page)
    sentence = study.record["verdict"]["sentence"].split(": ", 1)[1].split(" (")[0]
    headings = browser.script(
        "return [...document.querySelectorAll('h1, h2')].map(e => e.innerText)"
    )
    assert "Deploy" in browser.read("Deploy", sentence[1:])
    expected = ["baseline", "Convergence", "matters", "surface", "cost", "wins", "Provenance"]
    places = [
        next((i for i, heading in enumerate(headings) if word in heading), word)
        for word in expected
    ]
    assert places == sorted(places, key=str), headings
    # The verdict is seen without scrolling, on a phone too.
    browser.resize(390, 844)
    assert browser.see(".outcome").rect["y"] < 844


def test_the_report_lists_the_indexes_best_first(browser, indexes_page):
    browser.open(indexes_page)
    browser.see("#indexes h2")
    rows = browser.script(
        "return [...document.querySelectorAll('#indexes tbody tr')]"
        ".map(row => [...row.children].map(cell => cell.innerText))"
    )
    assert {row[0] for row in rows} == {
        f"names {names}, bm25_k1 {k1}" for names in ("titles", "both") for k1 in (0.9, 1.5)
    }
    best = [float(row[-1]) for row in rows]
    assert best == sorted(best, reverse=True)
    # Figures stand right, one below the other.
    aligned = browser.script(
        "return [...document.querySelectorAll('#indexes tbody tr td:last-child')]"
        ".map(cell => [getComputedStyle(cell).textAlign, cell.getBoundingClientRect().right])"
    )
    assert len(set(map(tuple, aligned))) == 1
    assert aligned[0][0] in ("right", "end")


def test_settings_of_the_index_are_groups(browser, indexes_page):
    browser.open(indexes_page)
    browser.until("figures", lambda: browser.find("html[data-figures]"))
    (button,) = browser.find("//section[@id='indexes']//th/button[contains(., 'titles')][1]")[:1]
    name = button.text
    browser.script("arguments[0].click()", button)
    counted = "return [...study.selected].map(n => study.index(n))"
    assert set(browser.script(counted)) == {name}
    assert f"index {name}" in browser.see("#selection").text
    browser.script("arguments[0].click()", button)
    assert browser.script("return study.selected") is None
    # As the colour of a figure, each index has its own.
    choice = "#figure-scatter select[aria-label='Colour']"
    browser.script(
        f"const list = document.querySelector(\"{choice}\"); list.value = 'index';"
        "list.dispatchEvent(new Event('change'));"
        "document.getElementById('figure-scatter').scrollIntoView()"
    )
    names = "return document.getElementById('plot-scatter').data.map(trace => trace.name)"
    groups = browser.script("return study.data.indexes")
    assert len(groups) == 4
    browser.until("a colour for each", lambda: set(groups) <= set(browser.script(names)))


def test_the_panel_of_a_trial_has_the_exact_curve_of_a_free_parameter(browser, indexes_page):
    browser.open(indexes_page)
    browser.until("figures", lambda: browser.find("html[data-figures]"))
    number = browser.script("return Number(Object.keys(study.data.curves).at(-1))")
    browser.script("study.open(arguments[0])", number)
    browser.read("Along graph_weight")
    drawn, told = browser.script(
        "const line = document.getElementById('plot-curve-0').data[1];"
        "const curve = study.data.curves[study.opened]['param:graph_weight'];"
        "return [[[...line.x], [...line.y]], [curve.at, curve.objective]]"
    )
    assert drawn == told
    assert len(drawn[0]) > 10
    browser.shot("curve")


def test_the_report_draws_its_figures(browser, report_page):
    browser.open(report_page)
    figures = browser.until("figures", lambda: browser.find(".js-plotly-plot .main-svg"))
    assert len(browser.find(".js-plotly-plot")) >= 5
    assert figures[0].size["height"] > 50


def test_a_browser_that_cannot_unpack_the_figures_says_where_their_numbers_are(
    browser, report_page, tmp_path
):
    text = report_page.read_text(encoding="utf-8")
    assert text.count('"gzip"') == 1
    old = tmp_path / "old.html"  # changed, its script is no longer one that the policy knows
    old.write_text(re.sub(r"<meta http-equiv[^>]*>", "", text).replace('"gzip"', '"unknown"'))
    browser.open(old)
    browser.read("too old to draw the figures", "CSV files")
    assert browser.find(".js-plotly-plot") == []


def test_code_in_the_data_is_text(browser, hostile_run_dir):
    """An open dialog would fail the next command, too."""
    browser.open(hostile_run_dir / "report.html")
    browser.until("figures", lambda: browser.find("html[data-figures]"))
    for closed in browser.find("details:not([open])"):
        browser.script("arguments[0].open = true", closed)
    browser.shot("report")
    assert browser.script("return window.hostile === undefined")
    assert browser.find("svg[onload], img[onerror]") == []
    browser.read(HOSTILE[0], HOSTILE[2])


def test_code_in_the_data_is_text_in_a_page_of_several_studies(browser, make_studies, tmp_path):
    for code in HOSTILE:
        studies = make_studies({"texts": code, "seed": 1}, {"texts": code, "seed": 2, "failing": 1})
        browser.open(write_across(studies, output=tmp_path / "studies.html"))
        browser.until("figures", lambda: browser.find("html[data-figures]"))
        browser.read(f"study{code}")
        assert browser.script("return window.hostile === undefined")
        assert browser.find("svg[onload], img[onerror]") == []


def test_code_in_the_data_is_text_in_an_experiment_page(browser, tmp_path):
    source = (PROJECT / "configs" / "abtest" / "experiment.yaml").read_text(encoding="utf-8")
    treatment = "treatment: {graph_weight: 0.6"
    assert treatment in source
    text = source.replace(treatment, f"treatment: {{prompt: {json.dumps(HOSTILE[0])}")
    (tmp_path / "experiment.yaml").write_text(text, encoding="utf-8")
    run(tmp_path, str(PROJECT / "experiments" / "abtest" / "users.py"))
    arguments = ("abtest", "analyze", "experiment.yaml", "results.csv", "--html", "page.html")
    run(tmp_path, "-m", "tuner", *arguments)
    browser.open(tmp_path / "page.html")
    browser.read(HOSTILE[0])
    assert browser.script("return window.hostile === undefined")
