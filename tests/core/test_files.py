"""Files on a disk that is full, torn lines, and writers beside each other."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tuner.core.files import append_lines, whole, write_csv, write_whole


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file grow beyond a size: as on a full disk, a part is taken and the rest refused."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("before", ["", "first\n"])
def test_a_line_that_does_not_fit_leaves_the_file_as_it_was(tmp_path: Path, before: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(before)
    refused = pytest.raises(OSError, match=r"File too large: '.*events\.jsonl'")
    with room_for(len(before) + 40), refused:
        append_lines(path, "x" * 100)
    assert path.read_text() == before
    append_lines(path, "second")
    assert path.read_text() == f"{before}second\n"


def test_a_line_after_a_torn_one_stands_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "a"}\n{"event": "to')
    append_lines(path, '{"event": "b"}')
    append_lines(path, '{"event": "c"}\n{"event": "d"}\n')
    torn = '{"event": "to'
    assert path.read_text().splitlines() == [
        '{"event": "a"}', torn, *(f'{{"event": "{name}"}}' for name in "bcd")
    ]  # fmt: skip


def test_half_a_character_is_read_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    record = {"error": "half \ud83d, é whole"}
    append_lines(path, json.dumps(record, ensure_ascii=False))
    assert json.loads(path.read_text()) == record


WRITER = """
import resource, sys
from pathlib import Path
from tuner.core.files import append_lines
path, name, most = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
written = 0
for number in range(300):
    try:
        append_lines(path, f"{name} {number} " + "x" * 50)
        written += 1
    except OSError:
        pass
print(written)
"""


def test_a_writer_that_is_refused_undoes_nothing_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name, most],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        # The second has room for a part only, and is refused while the first goes on.
        for name, most in (("first", "1000000"), ("second", "9000"))
    ]
    written = [int(writer.communicate(timeout=900)[0]) for writer in writers]
    lines = path.read_text().splitlines()
    assert written[0] == 300
    assert all(line.endswith("x" * 50) for line in lines)
    assert [sum(line.startswith(name) for line in lines) for name in ("first", "second")] == written


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "best.yaml"
    write_whole(path, "old")
    with room_for(40), pytest.raises(OSError, match=r"File too large: '.*best\.yaml'"):
        write_whole(path, "new" * 100)
    with pytest.raises(TypeError), whole(path) as stream:
        stream.writelines([b"new", None])  # type: ignore[list-item]  # fails after a part
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_begun_or_put_in_place_is_named_too(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file or directory: '.*missing/best\.yaml'$"):
        write_whole(tmp_path / "missing" / "best.yaml", "text")
    path = tmp_path / "best.yaml"
    with pytest.raises(OSError, match=r"directory: '.*best\.yaml'$"), whole(path):
        path.mkdir()
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    write_whole(Path(os.devnull), "gone")
    assert not Path(os.devnull).is_file()


def test_a_secret_is_never_to_be_read_by_others(tmp_path: Path) -> None:
    write_whole(tmp_path / "config.yaml", "password", mode=0o600)
    assert (tmp_path / "config.yaml").stat().st_mode & 0o777 == 0o600


def test_the_longest_name_there_is(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_whole(path, "text")
    assert path.read_text() == "text"


def test_a_table_has_cells_that_a_spreadsheet_only_shows(tmp_path):
    path = tmp_path / "table.csv"
    write_csv(path, [("query", "recall@10"), ("=1+1", 0.5), ("Ada, Bo", None)])
    assert path.read_bytes() == b'query,recall@10\r\n\'=1+1,0.5\r\n"Ada, Bo",\r\n'
