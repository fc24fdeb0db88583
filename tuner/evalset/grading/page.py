"""The page as one HTML file: its own script and style, known by their hashes, and nothing else."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from tuner.core.shown import shown
from tuner.evalset.grading.scale import Meaning
from tuner.report.chart import DARK, LIGHT

_FOLDER = Path(__file__).with_name("page")


@dataclass(frozen=True)
class Page:
    """What a browser is given, and the policy that it has to keep."""

    html: str
    policy: str


def make_page(sheet: str, scale: list[Meaning], *, annotator: str = "") -> Page:
    """Return the page of a sheet; ``annotator`` is who grades, where that is not to be asked.

    No text of the sheet but its name is part of it: the script asks for passages and shows them as
    text.
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
    script, style = ((_FOLDER / name).read_text("utf-8") for name in ("grading.js", "style.css"))
    colours = environment.get_template("colours.css.j2").render(light=LIGHT, dark=DARK)
    style = f"{colours}\n{style}"
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    html = environment.get_template("grading.html.j2").render(
        sheet=shown(Path(sheet).name),
        scale=scale,
        annotator=annotator,
        script=Markup(script),
        style=Markup(style),
    )
    return Page(html, policy)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
