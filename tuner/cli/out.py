"""The one way out for text: whatever a command prints shows every character and does nothing."""

from __future__ import annotations

import click

from tuner.core.shown import shown


def echo(text: object = "", *, err: bool = False, bold: bool = False) -> None:
    """Print a text, on standard output or on standard error, and a line's end."""
    click.echo(click.style(shown(text), bold=True) if bold else shown(text), err=err)
