"""A page as one HTML file that needs nothing else: escaped, and closed to the network.

Its charts are plotly's data and layout; colours are names of the palette, filled in by the page.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from pathlib import Path
from typing import Any

from tuner.report.chart import DARK, LIGHT, LOOK, Axis, Chart, Series, color_name, dash, symbol
from tuner.report.parts import Page

LINE_PX = 15


def figure(chart: Chart) -> dict[str, Any]:
    """Return ``{"data": …, "layout": …}`` as plotly takes it, JSON-ready."""
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
    return {"data": data, "layout": layout}


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
        "x": list(series.x),
        "y": list(series.y),
        "hovertext": texts,
        "hoverinfo": "text" if texts else "skip",
    }
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
        "z": [list(row) for row in cells.values],
        "hovertext": [[wrapped(text) for text in row] for row in cells.texts],
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
        view["ticktext"] = [safe(label) for _, label in axis.ticks]
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


_FOLDER = Path(__file__).with_name("page")
# Plotly's bundle of flat figures, as npm's plotly.js-cartesian-dist-min ships it: a third of the
# whole of plotly, and packed a seventh; the page's script unpacks it.
_PLOTLY = _FOLDER / "plotly-cartesian.min.js"


def to_html(page: Page) -> str:
    """Return the page as HTML.

    Every text is escaped by the template, and within data by ``script_json``. The policy in the
    page's head lets only its own scripts run, by their hashes, and nothing be fetched.
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
    plotly, script = _PLOTLY.read_bytes(), (_FOLDER / "figures.js").read_bytes()
    scripts = (plotly, script) if page.groups else ()
    # No time in it: the same study gives the same page.
    packed = base64.b64encode(gzip.compress(plotly, mtime=0)).decode()
    allowed = " ".join(f"'sha256-{_digest(one)}'" for one in scripts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )

    def figure_json(chart: Chart) -> Markup:
        return Markup(script_json(figure(chart)))

    return environment.get_template("report.html.j2").render(
        page=page,
        policy=Markup(policy),
        style=Markup((_FOLDER / "style.css").read_text(encoding="utf-8")),
        plotly=Markup(packed),
        script=Markup(script.decode()),
        light=LIGHT,
        dark=DARK,
        palettes_json=Markup(script_json({"light": LIGHT, "dark": DARK})),
        figure_json=figure_json,
        charts_folder=page.charts_folder,
        color_name=color_name,
        symbol=symbol,
    )


def script_json(value: Any) -> str:
    """Return JSON that can stand in a script element: no text in it can end the element.

    >>> script_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(script: bytes) -> str:
    return base64.b64encode(hashlib.sha256(script).digest()).decode()
