"""Tells of a night: a command with the summary on its input, or a web hook."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from urllib.parse import urlsplit

from tuner.config.model import NotifySection

Say = Callable[[str], None]

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def notify(section: NotifySection, summary: str, *, say: Say) -> None:
    """Hand over a summary, JSON; what goes wrong is said, and changes nothing else."""
    try:
        if section.command is not None:
            _run(section.command, summary, float(section.timeout_s))
        elif section.webhook is not None:
            _post(section.webhook, summary, float(section.timeout_s))
    except _Failed as failure:
        say(f"nobody was told: {failure}")


class _Failed(Exception):
    """Says why, without any secret."""


def _run(command: list[str], summary: str, timeout_s: float) -> None:
    try:
        done = subprocess.run(
            command,
            input=summary,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _Failed(f"{command[0]} did not end in {timeout_s:g} s") from error
    except OSError as error:
        raise _Failed(f"{command[0]}: {error.strerror or error}") from error
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise _Failed(": ".join([f"{command[0]} left with exit code {done.returncode}", *last]))


def _post(webhook: str, summary: str, timeout_s: float) -> None:
    missing = [name for name in _VARIABLE.findall(webhook) if not os.environ.get(name)]
    if missing:
        raise _Failed(f"the environment variable {missing[0]} is not set, or empty")
    url = _VARIABLE.sub(lambda match: os.environ[match[1]], webhook)

    import httpx

    try:
        headers = {"Content-Type": "application/json"}
        # The status tells all: a body that never comes to its end keeps no night waiting.
        with httpx.stream(
            "POST", url, content=summary.encode(), headers=headers, timeout=timeout_s
        ) as answer:
            is_told, status = answer.is_success, answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # Errors may quote the address, and whoever knows that can post.
        raise _Failed(f"{_host(url)}: {type(error).__name__}") from error
    if not is_told:
        raise _Failed(f"{_host(url)} answered {status}")


def _host(url: str) -> str:
    """Return what may be shown of an address: who is asked, not the secret in its path.

    >>> _host("https://user:pass@hooks.example.org:8443/services/T00/B00?token=1")
    'https://hooks.example.org'
    """
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}" if parts.hostname else "the web hook"
    except ValueError:
        return "the web hook"
