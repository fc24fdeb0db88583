"""What is deleted to make room, and what never is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tuner.retrieval.indexes import Indexed, IndexLimits
from tuner.retrieval.indexes.keeping import held
from tuner.retrieval.indexes.record import read_record

TWO = IndexLimits(keep_count=2)


def sizes(tmp_path: Path) -> set[int]:
    """Return the ``size`` of the indexes that are there."""
    records = [read_record(folder) for folder in (tmp_path / "indexes").iterdir()]
    return {int(str(record.settings["size"])) for record in records if record is not None}


def age(tmp_path: Path) -> None:
    """Let all that was asked so far have been asked an hour earlier."""
    for path in (tmp_path / "indexes").glob("*/manifest.json"):
        then = path.stat().st_mtime - 3600
        os.utime(path, (then, then))


def ask(indexed: Indexed, tmp_path: Path, *asked: int) -> None:
    for size in asked:
        age(tmp_path)
        indexed.ready({"size": size})


def test_nothing_is_deleted_without_a_limit(make: Callable[..., Indexed], tmp_path: Path) -> None:
    ask(make(), tmp_path, 2, 3, 4)
    assert sizes(tmp_path) == {1, 2, 3, 4}


def test_what_was_asked_longest_ago_goes_first(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    indexed = make(limits=IndexLimits(keep_count=3))
    ask(indexed, tmp_path, 2, 3)
    assert sizes(tmp_path) == {1, 2, 3}
    ask(make(limits=IndexLimits(keep_count=3)), tmp_path, 2, 4)
    assert sizes(tmp_path) == {2, 3, 4}


def test_room_on_the_disk_is_a_limit_too(make: Callable[..., Indexed], tmp_path: Path) -> None:
    plain = make()
    one_gb = plain.ready({"size": 2}).megabytes / 1000
    ask(make(limits=IndexLimits(keep_gb=2.5 * one_gb)), tmp_path, 3, 4)
    assert 4 in sizes(tmp_path)
    assert len(sizes(tmp_path)) == 2


def test_what_was_deleted_is_built_again(make: Callable[..., Indexed], tmp_path: Path) -> None:
    indexed = make(limits=TWO)
    ask(indexed, tmp_path, 2, 3, 4, 2)
    assert [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()] == list(
        "12342"
    )


@pytest.mark.slow
def test_a_pinned_index_stays_as_long_as_its_holder(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    indexed = make(limits=TWO)
    ask(indexed, tmp_path, 2)
    indexed.pin({"size": 2}, holder=run_dir, why="best")
    ask(indexed, tmp_path, 3, 4)
    assert sizes(tmp_path) == {2, 4}
    shutil.rmtree(run_dir)
    ask(indexed, tmp_path, 5, 6)
    assert sizes(tmp_path) == {5, 6}


def test_a_later_pin_for_the_same_reason_lets_the_earlier_one_go(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    indexed = make(limits=TWO)
    for size in (2, 3):
        ask(indexed, tmp_path, size)
        indexed.pin({"size": size}, holder=tmp_path, why="best")
    ask(indexed, tmp_path, 4, 5)
    assert sizes(tmp_path) == {3, 5}


def test_what_an_evaluation_asks_is_not_deleted(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    indexed = make(limits=IndexLimits(keep_count=1))
    with indexed.holding({"size": 2}) as use:
        ask(indexed, tmp_path, 3)
        assert Path(use.folder).is_dir()
        assert sizes(tmp_path) == {2, 3}
    ask(indexed, tmp_path, 4)
    assert sizes(tmp_path) == {4}


@pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be deleted there")
def test_nor_is_what_another_process_asks(make: Callable[..., Indexed], tmp_path: Path) -> None:
    indexed = make(limits=IndexLimits(keep_count=1))
    folder = indexed.ready({"size": 2}).folder
    program = (
        "import sys; from pathlib import Path; from tuner.retrieval.indexes.keeping import held\n"
        "with held(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == b"held\n"
    ask(indexed, tmp_path, 3)
    assert 2 in sizes(tmp_path)
    other.stdin.close()
    other.wait()
    other.stdout.close()
    ask(indexed, tmp_path, 4)
    assert sizes(tmp_path) == {4}


def test_holding_is_shared(make: Callable[..., Indexed], tmp_path: Path) -> None:
    folder = Path(make().ready({"size": 2}).folder)
    with held(folder), held(folder):
        assert folder.is_dir()
