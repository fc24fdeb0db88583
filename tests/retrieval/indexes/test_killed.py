"""A builder that dies at any moment, or finds no room, leaves nothing that passes for an index."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Query
from tuner.core.errors import NotBuiltError
from tuner.retrieval.indexes import Indexed
from tuner.retrieval.indexes.opened import OPENED
from tuner.retrieval.indexes.record import RECORD, files_of, read_record

pytestmark = pytest.mark.slow
QUERIES = (Query("q", "which?"), Query("r", "what?"))


@pytest.fixture
def dying(make: Callable[..., Indexed], tmp_path: Path) -> Callable[[str], Indexed]:
    """Return what makes a retriever whose second index dies once, in one moment."""

    def made(moment: str) -> Indexed:
        from toy_indexes import Dying

        return make(make=Dying(str(tmp_path / "log"), moment))

    return made


@pytest.mark.parametrize("moment", ["begun", "built", "prepared", "pickled", "recorded"])
def test_what_a_builder_left_that_was_killed_is_built_anew(
    dying: Callable[[str], Indexed], tmp_path: Path, moment: str
) -> None:
    with pytest.raises(NotBuiltError, match="ended by SIGKILL"):
        dying(moment).ready({"size": 3})
    again = dying(moment)  # as a study does that is resumed
    use = again.ready({"size": 3})
    assert use.is_new
    assert again.retrieve(QUERIES, {"size": 3, "top_k": 9}).ids(0) == ["0", "1", "2"]
    folder = tmp_path / "indexes" / use.name
    record = read_record(folder)
    assert record is not None
    assert record.files == files_of(folder)  # and nothing of before lies there


def test_an_index_that_was_whole_when_its_builder_died_is_found(
    dying: Callable[[str], Indexed],
) -> None:
    with pytest.raises(NotBuiltError, match="ended by SIGKILL"):
        dying("over").ready({"size": 3})
    again = dying("over")
    assert not again.ready({"size": 3}).is_new
    assert again.retrieve(QUERIES, {"size": 3, "top_k": 9}).ids(0) == ["0", "1", "2"]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of files can be set there")
def test_an_index_without_room_says_where_and_is_built_once_there_is_some(
    dying: Callable[[str], Indexed], tmp_path: Path
) -> None:
    with pytest.raises(NotBuiltError, match=r"size=3 could not be built: .*TUNER_CACHE_DIR"):
        dying("full").ready({"size": 3})
    (whole,) = [p.parent for p in (tmp_path / "indexes").glob(f"*/{RECORD}")]
    assert [p for p in (tmp_path / "indexes").iterdir() if p.is_dir()] == [whole]
    OPENED.forget(whole)
    assert dying("full").ready({"size": 3}).is_new


def test_who_waited_for_a_builder_that_was_killed_builds_it(
    dying: Callable[[str], Indexed], tmp_path: Path
) -> None:
    from test_indexed import wanted_elsewhere

    indexed = dying("prepared")
    both: list[Any] = [wanted_elsewhere(indexed, {"size": 3}, tmp_path) for _ in range(2)]
    ended = sorted((process.communicate()[0].strip(), process.returncode) for process in both)
    assert ended == [("", 1), ("True", 0)]
    assert not dying("prepared").ready({"size": 3}).is_new
