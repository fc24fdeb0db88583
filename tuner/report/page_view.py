"""A page as one HTML file that needs nothing else: escaped, and closed to the network.

Its charts are plotly's data and layout; colours are names of the palette, filled in by the page.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.report.chart import (
    ARMS,
    DARK,
    LIGHT,
    LOOK,
    Axis,
    Chart,
    Series,
    color_name,
    dash,
    symbol,
)
from tuner.report.parts import Page

LINE_PX = 15


def figure(chart: Chart) -> dict[str, Any]:
    """Return ``{"data": …, "layout": …}`` as plotly takes it, and ``links``, JSON-ready.

    ``links`` says which fields of a trial the axes show, and what each trace of ``data`` stands
    for. Where ``customdata`` are numbers of trials, the page says what to show of each.
    """
    data = [] if chart.cells is None else [_heatmap(chart)]
    data += [_trace(series) for series in chart.series]
    # Dragging scrolls the page, as it must on a phone.
    layout = {
        **LOOK["layout"],
        "height": chart.height * LINE_PX + 60,
        "xaxis": _axis(chart.x),
        "yaxis": _axis(chart.y),
        "showlegend": chart.has_legend,
    }
    roles = [] if chart.cells is None else ["cells"]
    roles += [series.role if series.form == "points" else series.form for series in chart.series]
    return {
        "data": data,
        "layout": layout,
        "links": {"x": chart.x.of, "y": chart.y.of, "roles": roles},
    }


def safe(text: str) -> str:
    """Escape a text of the study: plotly reads a few tags in texts, and shows entities as such.

    >>> safe("<b>a & b</b>")
    '&lt;b&gt;a &amp; b&lt;/b&gt;'
    """
    return html.escape(text, quote=False)


def _trace(series: Series) -> dict[str, Any]:
    color = color_name(series.role, series.place)
    texts = [wrapped(text) for text in series.texts]
    trace: dict[str, Any] = {
        "name": safe(series.name),
        "x": list(map(_short, series.x)),
        "y": list(map(_short, series.y)),
        "hoverinfo": "text" if texts or series.trials else "skip",
    }
    if texts:
        trace["hovertext"] = texts
    if series.trials:
        trace["customdata"] = list(series.trials)
    marker: dict[str, Any] = {
        "color": color,
        "symbol": symbol(series.role, series.place)[0],
        "size": LOOK["sizes"].get(series.role, 8),
    }
    line = {"color": color, "width": 2, "dash": dash(series.role, series.place)[0]}
    match series.form:
        case "bars":
            return {
                **trace,
                "type": "bar",
                "orientation": "h",
                "marker": {"color": color},
                "error_x": {**_ends(series), "color": "ink", "thickness": 1.5, "width": 5},
            }
        case "intervals":
            points = {"type": "scatter", "mode": "markers", "marker": {**marker, "size": 9}}
            return {**trace, **points, "error_x": {**_ends(series), "color": color, "thickness": 2}}
        case "steps":
            line["shape"] = "hv"
            mode = {"mode": "lines+markers", "marker": {**marker, "size": 5}}
            return {**trace, "type": "scatter", **mode, "line": line}
        case "band":
            around = {
                "x": [*series.x, *reversed(series.x)],
                "y": [*series.high, *reversed(series.low)],
            }
            filled = {"mode": "lines", "fill": "toself", "hoverinfo": "skip"}
            return {**trace, **around, **filled, "type": "scatter", "line": {**line, "width": 0}}
        case "line":
            return {**trace, "type": "scatter", "mode": "lines", "line": line}
        case "points":
            if series.role in ("chosen", "baseline"):
                marker["line"] = {"color": "paper", "width": 1.5}
            elif series.role == "trials":
                marker |= {"color": "paper", "line": {"color": "muted", "width": 1}, "size": 5}
            elif series.role == "failed":
                marker["line"] = {"color": color, "width": 2}
            else:
                marker |= {"opacity": 0.75}
            # What failed lies on the axis itself, and is not cut there.
            is_cut = series.role != "failed"
            points = {"type": "scatter", "mode": "markers", "marker": marker}
            return {**trace, **points, "cliponaxis": is_cut}


def _ends(series: Series) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - x for x, high in zip(series.x, series.high, strict=True)],
        "arrayminus": [x - low for x, low in zip(series.x, series.low, strict=True)],
    }


def _heatmap(chart: Chart) -> dict[str, Any]:
    cells = chart.cells
    assert cells is not None
    return {
        **LOOK["heatmap"],
        "x": list(cells.x_edges),
        "y": list(cells.y_edges),
        "z": [[None if z is None else _short(z) for z in row] for row in cells.values],
        "customdata": [list(row) for row in cells.trials],
        "colorbar": {
            "title": {"text": safe(cells.title), "side": "right"},
            "thickness": 12,
            "outlinewidth": 0,
        },
    }


def _axis(axis: Axis) -> dict[str, Any]:
    view: dict[str, Any] = {
        **LOOK["axis"],
        "title": {"text": safe(axis.title), "standoff": 8},
        "zeroline": axis.zero,
        "rangemode": "tozero" if axis.zero else "normal",
    }
    if axis.span is not None:
        view["range"] = list(axis.span)
    if axis.ticks:
        view["tickmode"] = "array"
        view["tickvals"] = [position for position, _ in axis.ticks]
        view["ticktext"] = [safe(label).replace("\n", "<br>") for _, label in axis.ticks]
    return view


def wrapped(text: str, width: int = 60) -> str:
    """Break a text into lines that fit beside a point, at its separators, and escape it."""
    lines, line = [], ""
    for part in text.replace("; ", ";\n").replace(", ", ",\n").split("\n"):
        if line and len(line) + len(part) > width:
            lines.append(line)
            line = part
        else:
            line = f"{line} {part}" if line else part
    return "<br>".join(safe(one) for one in [*lines, line])


def _short(position: float) -> float:
    """Return a position in as many digits as a figure can show."""
    return float(f"{position:.7g}")


_FOLDER = Path(__file__).with_name("page")
# Plotly's bundle of flat figures, as npm's plotly.js-cartesian-dist-min ships it: a third of the
# whole of plotly, and packed a seventh; the page's script unpacks it.
_PLOTLY = _FOLDER / "plotly-cartesian.min.js"
# The page's own script and style, in parts: each sees what those before it declare.
SCRIPTS = (
    *("store.js", "filters.js", "figures.js", "axes.js", "surface.js", "explore.js"),
    *("parallel.js", "table.js", "trial.js", "indexes.js"),
    *("beside.js", "queries.js", "query_detail.js", "query_tools.js", "query_list.js"),
)
STYLES = ("style.css", "explore.css", "queries.css")
# What a page has besides that is served while its study runs.
LIVE_SCRIPTS = ("live.js",)
LIVE_STYLES = ("live.css",)


@dataclass(frozen=True)
class Served:
    """What a page needs that is brought up to date: see ``tuner.report.live.watched``.

    ``trials`` is how many told ones it is made of, ``said`` how the study stands, in a sentence.
    """

    stage: str
    position: int
    trials: int
    said: str


def to_html(page: Page, served: Served | None = None) -> str:
    """Return the page as HTML, as a file or ``served``.

    Every text is escaped by the template, and within data by ``script_json``. The policy in the
    page's head lets only its own scripts run, by their hashes, with what these load from the folder
    beside the page, and nothing be fetched; a page that is served may ask where it came from.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    plotly, script = _PLOTLY.read_bytes(), page_script(is_served=served is not None)

    def figure_json(chart: Chart) -> Markup:
        return Markup(script_json(figure(chart)))

    return environment.get_template("report.html.j2").render(
        page=page,
        policy=Markup(policy_of(page, served)),
        served=served,
        style=Markup("".join(map(_text, STYLES if served is None else (*STYLES, *LIVE_STYLES)))),
        plotly=Markup(packed(plotly)),
        script=Markup(script),
        study=Markup(packed(_json(page.study).encode())) if page.study else None,
        queries=Markup(packed(_json(page.queries).encode())) if page.queries else None,
        light=LIGHT,
        dark=DARK,
        look_json=Markup(script_json(_look())),
        figure_json=figure_json,
        charts_folder=page.charts_folder,
        color_name=color_name,
        symbol=symbol,
    )


def _look() -> dict[str, Any]:
    """Return what the page's script needs to draw as this file does."""
    symbols = [symbol("arm", place)[0] for place in range(ARMS)]
    own = {name: LOOK[name] for name in ("layout", "axis", "heatmap", "light", "dark")}
    return {**own, "symbols": symbols}


def policy_of(page: Page, served: Served | None = None) -> str:
    """Return what a page may do: run its own scripts, and, ``served``, ask where it came from."""
    script = page_script(is_served=served is not None).encode()
    # The own script last: a page without figures needs no plotly, one without a study neither.
    has_script = page.has_script or served is not None
    scripts = ((_PLOTLY.read_bytes(),) if page.groups else ()) + ((script,) if has_script else ())
    allowed = " ".join(f"'sha256-{_digest(one)}'" for one in scripts) or "'none'"
    if page.queries:
        # What the page's script loads, and nothing that stands in a text: files have no hash where
        # the page was opened from a disk, as their integrity cannot be checked there.
        allowed += " 'strict-dynamic'"
    asking = "" if served is None else "connect-src 'self'; "
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; {asking}"
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def script_json(value: Any) -> str:
    """Return JSON that can stand in a script element: no text in it can end the element.

    >>> script_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    return _json(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(content: bytes) -> str:
    """Return bytes packed, as text that can stand in a script element; `unpacked` reads it there.

    No time is in it: the same study gives the same page.
    """
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def page_script(*, is_served: bool = False) -> str:
    """Return the page's script: its parts in one function, of which nothing is seen outside."""
    parts = (*SCRIPTS, *LIVE_SCRIPTS) if is_served else SCRIPTS
    return f'(function () {{\n"use strict";\n{"".join(map(_text, parts))}}})();\n'


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _digest(script: bytes) -> str:
    return base64.b64encode(hashlib.sha256(script).digest()).decode()
