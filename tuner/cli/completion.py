"""What a shell offers for a word that is being typed: files, run directories, kinds, queries.

Each is quick: nothing is built, and of a configuration only its file is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from tuner.core.run_files import JOURNAL_FILE

RUNS = "runs"
# A file of queries that is larger is not read while somebody waits.
LARGEST_BYTES = 4_000_000
_BUILTIN = "builtin:"
Items = list[CompletionItem]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG001
    """Offer files and folders."""
    return [CompletionItem(incomplete, type="file")]


def data_sets(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Offer files, folders, and the data set that ships."""
    return [*files(ctx, param, incomplete), *_beginning([f"{_BUILTIN}atlas"], incomplete)]


def run_dirs(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG001
    """Offer the run directories below ``runs``, the latest first, and else any folder."""
    return [CompletionItem(incomplete, type="dir"), *_beginning(_runs(), incomplete)]


def configs_and_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Offer files and run directories."""
    return [*files(ctx, param, incomplete), *_beginning(_runs(), incomplete)]


def parameters(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Offer the word ``baseline``, run directories and files."""
    return [*files(ctx, param, incomplete), *_beginning(["baseline", *_runs()], incomplete)]


def retrievers(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG001
    """Offer the kinds of retrievers."""
    from tuner.core.registry import kinds

    return _beginning(kinds("retrieval"), incomplete)


def queries(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG001
    """Offer the ids of the queries of the configuration's data set, where they are quick to read.

    That is, where they stand in a ``queries.jsonl`` of moderate size.
    """
    try:
        return _beginning(_query_ids(str(ctx.params.get("config") or "")), incomplete)
    except Exception:  # of whatever an unfinished configuration holds nothing is offered
        return []


def _beginning(values: list[str], incomplete: str) -> Items:
    # A value with a line's end in it would be several to a shell.
    return [
        CompletionItem(value)
        for value in values
        if value.startswith(incomplete) and value.isprintable()
    ]


def _runs() -> list[str]:
    journals = list(Path(RUNS).glob(f"*/{JOURNAL_FILE}"))
    journals.sort(key=lambda path: -path.stat().st_mtime)
    return [path.parent.as_posix() for path in journals]


def _query_ids(config: str) -> list[str]:
    import yaml

    section: Any = yaml.safe_load(Path(config).expanduser().read_text(encoding="utf-8"))["dataset"]
    path = section if isinstance(section, str) else str(section["path"])
    folder = Path(path).expanduser()
    if path.startswith(_BUILTIN):
        folder = Path(__file__).parents[1] / "datasets" / path.removeprefix(_BUILTIN)
    file = folder / "queries.jsonl"
    if file.stat().st_size > LARGEST_BYTES:
        return []
    return list(_ids(file))


def _ids(file: Path) -> Iterator[str]:
    for line in file.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield str(json.loads(line)["_id"])
