"""An index in a folder of the cache is made once, and anew where it is not whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tuner.core.brought import here, name_of
from tuner.core.corpus import Corpus
from tuner.core.errors import TunerError
from tuner.retrieval.adapters.own_index import made_once, place_of


@pytest.fixture
def making(tmp_path: Path) -> Callable[..., str]:
    def make(made_from: str = "code 1") -> str:
        def fill() -> str:
            (tmp_path / "cache" / "index" / "ids.txt").write_text(made_from)
            return f"made of {made_from}"

        return made_once(tmp_path / "cache" / "index", made_from, fill)

    return make


def test_it_is_made_once_of_the_same(making: Callable[..., str], tmp_path: Path) -> None:
    making()
    (tmp_path / "cache" / "index" / "ids.txt").write_text("as it was")
    assert making() == "made of code 1"
    assert (tmp_path / "cache" / "index" / "ids.txt").read_text() == "as it was"
    assert making("code 2") == "made of code 2"
    assert (tmp_path / "cache" / "index" / "ids.txt").read_text() == "code 2"


def test_what_a_killed_builder_left_is_cleared(making: Callable[..., str], tmp_path: Path) -> None:
    half = tmp_path / "cache" / "index" / "half"
    half.mkdir(parents=True)
    making()
    assert not half.exists()


def test_what_fails_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    def make() -> str:
        (tmp_path / "index" / "large").write_text("x" * 1000)
        raise ValueError("no room for more")

    with pytest.raises(ValueError, match="no room"):
        made_once(tmp_path / "index", "code", make)
    assert not (tmp_path / "index").exists()


def test_another_machine_finds_it_by_its_manifest(
    making: Callable[..., str], tmp_path: Path
) -> None:
    folder = tmp_path / "cache" / "index"
    making()
    name = name_of(folder)
    assert name is not None
    assert here(name, str(folder)) == folder
    making("code 2")
    assert name_of(folder) != name


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TunerError, match=r"cannot be kept in .*TUNER_CACHE_DIR"):
        made_once(tmp_path / "file" / "index", "code", lambda: "")


def test_each_setting_and_corpus_has_a_folder_of_its_own(tmp_path: Path) -> None:
    corpora = Corpus((), fingerprint="one"), Corpus((), fingerprint="other")
    places = {
        place_of(tmp_path, "function", "app:Engine", corpus, params)
        for corpus in corpora
        for params in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2, "b": 1})
    }
    assert len(places) == 4
