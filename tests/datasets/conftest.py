"""Small folders in the BEIR layout, made for one test each."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "../shared/data"

Lines = list[dict[str, object] | str | bytes]


@pytest.fixture
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data sets are not beside this checkout (../shared/data)")
    return SHARED_DATA


@pytest.fixture
def write_lines() -> Callable[[Path, Lines], None]:
    """Write one line for each item: a dict as JSON, a string or bytes as it is; .gz by name."""

    def write(file: Path, lines: Lines) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        content = b"".join(
            line + b"\n"
            if isinstance(line, bytes)
            else (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n"
            for line in lines
        )
        file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)

    return write


@pytest.fixture
def folder(tmp_path: Path, write_lines: Callable[[Path, Lines], None]) -> Path:
    """Return a good folder: three documents, two judged queries; tests then break parts of it."""
    place = tmp_path / "small"
    write_lines(
        place / "corpus.jsonl",
        [
            {"_id": "00123", "title": "Ada Lovelace", "text": "Ada wrote a program."},
            {"_id": "405e34", "title": "Analytical Engine", "text": "Babbage designed it."},
            {"_id": "d3", "text": "巴黎是法国的首都。"},
        ],
    )
    write_lines(
        place / "queries.jsonl",
        [
            {"_id": "q1", "text": "Who wrote it?", "query_type": "bridge", "difficulty": "hard"},
            {"_id": "q2", "text": "Which engine?", "group": "engines", "hops": 2},
        ],
    )
    write_lines(
        place / "qrels/test.tsv",
        ["query-id\tcorpus-id\tscore", "q1\t00123\t2", "q1\t405e34\t0", "q2\t405e34\t1"],
    )
    return place
