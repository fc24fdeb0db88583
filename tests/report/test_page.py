"""The page needs nothing else, lets nothing in, and can be read by those who cannot see."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import json
import re

import pytest

from tuner.report.chart import DARK, LIGHT
from tuner.report.page_view import page_script
from tuner.report.writing import write_report

ATTACK = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}%{x}"
FETCHING = {"link", "img", "iframe", "object", "embed", "audio", "video", "source", "base", "form"}


@pytest.fixture
def attacked(study):
    """A study whose data set, queries, ids, titles, errors and parameter values are hostile."""
    space = {
        "graph_weight": {"type": "real", "low": 0.0, "high": 1.0},
        "mode": {"type": "categorical", "choices": ["plain", ATTACK]},
    }
    return study(texts=ATTACK, space=space, failing=2, has_baseline=True)


def parsed(path):
    from html.parser import HTMLParser

    class Tags(HTMLParser):
        def __init__(self):
            super().__init__(convert_charrefs=True)
            self.found, self.texts = [], []

        def handle_starttag(self, tag, attrs):
            self.found.append((tag, dict(attrs)))

        def handle_data(self, data):
            self.texts.append(data)

    page = Tags()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def test_hostile_texts_stay_texts(attacked):
    page = parsed(write_report(attacked))
    assert {tag for tag, _ in page.found}.isdisjoint(FETCHING)
    assert not [a for _, a in page.found for name in a if name.startswith("on")]
    assert not [a for _, a in page.found if (a.get("href") or "").startswith("javascript")]
    scripts = [a for tag, a in page.found if tag == "script"]
    assert sum("type" not in a for a in scripts) == 1  # plotly is data until that unpacks it
    shown = "".join(page.texts)
    assert "49%{x}" not in shown  # nothing was evaluated as a template
    for part in ("What is", "Title", "the index is on fire", "data", "study", "bridge"):
        assert part in shown
    assert shown.count("<script>alert(1)</script>") > 20


def test_hostile_texts_are_no_markup_for_plotly_either(attacked):
    page = parsed(write_report(attacked))
    figures = [text for text in page.texts if text.startswith('{"data":')]
    assert figures
    texts = []
    for figure in map(json.loads, figures):
        texts += strings_of(figure)
    hostile = [text for text in texts if "alert(1)" in text]
    assert hostile
    # Plotly reads tags in texts: what is left of them are the line breaks of this project.
    assert {tag for text in texts for tag in re.findall(r"<[^>]*>?", text)} <= {"<br>"}


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from strings_of(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings_of(one)


def test_pictures_and_tables_take_hostile_texts_too(attacked):
    write_report(attacked)
    pictures = sorted(path.name for path in (attacked / "plots").glob("*.png"))
    assert {"convergence.png", "slices.png", "surface.png", "types.png"} <= set(pictures)
    for name in pictures:
        assert (attacked / "plots" / name).read_bytes().startswith(b"\x89PNG")
    with (attacked / "figures" / "queries.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40
    assert rows[0]["query"] == f"What is 0?{ATTACK}"


def test_nothing_is_fetched(report):
    page = report()
    assert {tag for tag, _ in page.elements}.isdisjoint(FETCHING)
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert "srcset" not in attributes
        target = attributes.get("href") or "#"
        assert target.startswith(("#", "figures/")), target
    styles = re.findall(r"<style>(.*?)</style>", page.raw, flags=re.DOTALL)
    assert len(styles) == 1
    assert "url(" not in styles[0]
    assert "@import" not in styles[0]


def test_the_policy_lets_only_the_scripts_of_the_page_run(report):
    page = report()
    (policy,) = [a["content"] for tag, a in page.elements if "http-equiv" in a]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    code = [plotly_of(page)]
    code += [text.encode() for attributes, text in page.scripts if "type" not in attributes]
    digests = [base64.b64encode(hashlib.sha256(one).digest()).decode() for one in code]
    # Strict: what these scripts load from the folder beside the page, and nothing in a text.
    assert rules["script-src"].split() == [
        *(f"'sha256-{digest}'" for digest in digests),
        "'strict-dynamic'",
    ]
    assert "eval" not in policy


def plotly_of(page):
    (packed,) = [text for a, text in page.scripts if a.get("id") == "plotly"]
    return gzip.decompress(base64.b64decode(packed))


def test_pictures_and_page_hold_each_figure_once(study):
    """Each night's files go to MLflow: a second copy of the figures would be most of them."""
    run_dir = study()
    write_report(run_dir)
    files = [path for path in run_dir.rglob("*") if path.is_file()]
    assert [path.name for path in files if path.suffix == ".html"] == ["report.html"]


def test_plotly_is_there_once_and_not_where_nothing_is_drawn(report):
    page = report()
    assert sum(len(text) > 300_000 for _, text in page.scripts) == 1
    assert plotly_of(page).startswith(b"/**\n* plotly.js")
    assert b"MIT" in plotly_of(page)[:300]
    assert len(page.raw) < 900_000
    empty = report(arms=(("grid", 1),), has_baseline=False, state=None)
    assert empty.figures == {}
    assert len(empty.raw) < 150_000  # its own script and style; plotly is four times as much


def test_every_figure_is_one_that_plotly_knows(report):
    import plotly.graph_objects as go

    for palette in (LIGHT, DARK):
        for name, figure in report(stopped=3).figures.items():
            go.Figure(colored(figure, "", palette)), name


def colored(value, key, palette):
    """Fill in the colours as the page's script does."""
    if isinstance(value, str):
        return palette.get(value, value) if "color" in key else value
    if isinstance(value, list):
        return [colored(one, key, palette) for one in value]
    if isinstance(value, dict):
        return {k: colored(v, key if key == "colorscale" else k, palette) for k, v in value.items()}
    return value


def test_every_figure_is_described_and_every_table_named(report):
    page = report()
    ids = {a["id"] for _, a in page.elements if "id" in a}
    plots = [a for _, a in page.elements if a.get("class") == "plot"]
    assert len(plots) == len(page.figures)
    for plot in plots:
        assert plot["role"] == "img"
        assert {plot["aria-labelledby"], plot["aria-describedby"], plot["data-figure"]} <= ids
    for tag, attributes in page.elements:
        if tag == "table":
            assert attributes["aria-label"]
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
    assert len(ids) == len([a for _, a in page.elements if "id" in a])  # each id once


def test_every_figure_has_its_numbers_beside_the_page(study, tmp_path):
    run_dir = study()
    page = parsed(write_report(run_dir, with_plots=False))
    linked = {a["href"] for tag, a in page.found if tag == "a" and "figures/" in a["href"]}
    files = {f"figures/{path.name}" for path in (run_dir / "figures").glob("*.csv")}
    assert linked
    assert linked | {"figures/queries.csv"} == files
    output = tmp_path / "elsewhere.html"
    assert write_report(run_dir, output=output) == output
    linked = {a["href"] for tag, a in parsed(output).found if tag == "a" and "/" in a["href"]}
    assert linked
    for target in linked:
        assert target.startswith("elsewhere-figures/")
        assert (tmp_path / target).is_file()


def test_the_page_is_for_phones_paper_and_dark_screens(report):
    raw = report().raw
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in raw
    assert "@media print" in raw
    assert "@media (prefers-color-scheme: dark)" in raw


def test_a_password_in_the_address_of_the_store_is_not_shown(study):
    run_dir = study()
    (run_dir / "config.yaml").write_text('tracking: {uri: "http://me:hunter2@host"}\n')
    text = write_report(run_dir, with_plots=False).read_text()
    assert "hunter2" not in text
    assert f"tuner run {run_dir}/config.yaml" in text


def test_the_same_study_gives_the_same_page(study):
    run_dir = study()
    first = write_report(run_dir, with_plots=False).read_bytes()
    assert write_report(run_dir, with_plots=False).read_bytes() == first
    assert not list(run_dir.glob(".report*"))


def test_no_two_parts_of_the_script_declare_the_same_name():
    """They stand in one function: the later one would take the place of the first, unseen."""
    names = re.findall(r"^(?:async )?(?:function\*?|const|let) (\w+)", page_script(), re.MULTILINE)
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))
