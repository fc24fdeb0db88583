"""Names and values as MLflow takes them: what it would refuse or mangle never reaches it."""

from __future__ import annotations

import html
import json
import math
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tuner.core.checks import is_number
from tuner.core.study_record import StudyHeader
from tuner.tracking.uri import holds_password, mask, masked

# MLflow's own limits: a name has 250 characters, a param value 6,000 (cut silently beyond), and
# some stores cut tags at 5,000.
_NAME_LIMIT = 250
_PARAM_LIMIT = 6000
_TAG_LIMIT = 5000
_REFUSED_CHARACTERS = re.compile(r"[^A-Za-z0-9_\-.: /]")


def clean_name(name: str) -> str:
    """Return a name that MLflow takes for a param or metric.

    >>> clean_name("recall@10")
    'recall_at_10'
    """
    clean = _REFUSED_CHARACTERS.sub("_", name.replace("@", "_at_"))[:_NAME_LIMIT]
    # MLflow refuses names that are not their own normal form as a path, such as "a//b" or "../a".
    if clean in {"", "."} or posixpath.normpath(clean) != clean or clean.startswith(("/", "..")):
        clean = clean.replace("/", "_").lstrip(".") or "_"
    return clean


def metrics_and_rest(values: Mapping[str, float | None]) -> tuple[dict[str, float], str]:
    """Return the metrics that are finite, and the names of those that are not."""
    # MLflow stores NaN and turns infinity into 1.8e308: both would be invented scores.
    known = {name: value for name, value in _unique(values).items() if value is not None}
    finite = {name: float(value) for name, value in known.items() if math.isfinite(value)}
    return finite, ", ".join(sorted(known.keys() - finite.keys()))


def params_and_long(values: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return params as texts, and in full those that had to be cut."""
    texts = {name: str(value) for name, value in _unique(values).items()}
    long_texts = {name: text for name, text in texts.items() if len(text) > _PARAM_LIMIT}
    cut = {
        name: f"{text[:200]}… ({len(text)} characters: see long_params.json)"
        for name, text in long_texts.items()
    }
    return {**texts, **cut}, long_texts


def logarithms(space: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, float]:
    """Return log10 of the parameters that are searched on a logarithmic scale.

    MLflow's parallel coordinates and contours have linear axes only. A parameter's own value is
    logged as it is, to be filtered by; this one is for the plots.
    """
    return {
        f"log10_{name}": round(math.log10(params[name]), 6)
        for name, parameter in space.items()
        if parameter.get("scale") == "log" and _is_positive(params.get(name))
    }


def _is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


def tags_of(values: Mapping[str, str]) -> dict[str, str]:
    """Return tags with names that MLflow takes, cut where stores would cut them."""
    return {clean_name(name): value[:_TAG_LIMIT] for name, value in values.items()}


def _unique(values: Mapping[str, Any]) -> dict[str, Any]:
    """Rename as MLflow needs it; names that become equal get a number."""
    renamed: dict[str, Any] = {}
    for name, value in values.items():
        clean = clean_name(name)
        unique, count = clean, 2
        while unique in renamed:
            unique, count = f"{clean[: _NAME_LIMIT - 6]}_{count}", count + 1
        renamed[unique] = value
    return renamed


def configured_uri(config: Mapping[str, Any]) -> str:
    """Return the tracking URI of a configuration, or nothing where it names none."""
    tracking = config.get("tracking")
    return str(tracking.get("uri", "")) if isinstance(tracking, Mapping) else ""


def masked_header(header: StudyHeader) -> dict[str, Any]:
    """Return a header's record without the password."""
    return {
        name: masked(value, configured_uri(header.config))
        for name, value in header.to_record().items()
    }


@contextmanager
def uploadable(path: Path, header: StudyHeader) -> Iterator[Path]:
    """Give the file itself, or a copy of the same name where it holds a URI with a password."""
    uri = configured_uri(header.config)
    if not holds_password(uri) or path.suffix not in _WITHOUT:
        yield path
        return
    with TemporaryDirectory(prefix="tuner-mlflow-") as folder:
        copy = Path(folder, path.name)
        _WITHOUT[path.suffix](path, copy, uri)
        yield copy


def _copy_yaml(path: Path, copy: Path, uri: str) -> None:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if isinstance(content, dict):  # its URI may have been edited since the study began
        content = masked(content, configured_uri(content) or uri)
    text = yaml.safe_dump(masked(content, uri), sort_keys=False, allow_unicode=True)
    copy.write_text(text, encoding="utf-8")


def _copy_text(path: Path, copy: Path, uri: str) -> None:
    as_written = {json.dumps(uri, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    as_written |= {html.escape(text) for text in as_written}
    shown = json.dumps(mask(uri))[1:-1]
    with path.open(encoding="utf-8") as lines, copy.open("w", encoding="utf-8") as out:
        for line in lines:
            for text in as_written:
                line = line.replace(text, shown)
            out.write(line)


_WITHOUT = {".yaml": _copy_yaml, ".jsonl": _copy_text, ".html": _copy_text}
