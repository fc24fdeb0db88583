"""A run directory's files as they may be uploaded: without the tracking URI's password."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tuner.core.study_record import StudyHeader
from tuner.tracking.uri import holds_password, mask, masked


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
