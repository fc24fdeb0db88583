"""A page as one HTML file that needs nothing else: escaped, and closed to the network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

from tuner.report.chart import Chart
from tuner.report.palette import DARK, LIGHT, color_name, symbol
from tuner.report.parts import Page
from tuner.report.plotly_view import figure

_FOLDER = Path(__file__).with_name("page")
# Plotly's bundle of flat figures, as npm's plotly.js-cartesian-dist-min ships it: a third of the
# whole of plotly, and packed a seventh; the page's script unpacks it.
_PLOTLY = _FOLDER / "plotly-cartesian.min.js"
# Colours of the page's own that no figure needs.
_LIGHT = {**LIGHT, "good": "#12783f", "keep": "#3f5675", "open": "#a45b00"}
_DARK = {**DARK, "good": "#4fce85", "keep": "#9db4d3", "open": "#f0a94b"}


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
        light=_LIGHT,
        dark=_DARK,
        palettes_json=Markup(script_json({"light": _LIGHT, "dark": _DARK})),
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
