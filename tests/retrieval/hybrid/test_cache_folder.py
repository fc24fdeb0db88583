"""The cache folder: what is wrong with it is said in one message, and mended where it can be."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tuner
from tuner.core.corpus import Corpus
from tuner.core.errors import TunerError
from tuner.retrieval.hybrid import Hybrid
from tuner.retrieval.hybrid.cache import ensure, is_whole


def test_a_file_where_the_folder_should_be(tmp_path, corpus):
    cache = tmp_path / "cache"
    cache.write_text("")
    with pytest.raises(TunerError, match=r"Not a directory.*TUNER_CACHE_DIR") as caught:
        Hybrid.build(corpus, cache_dir=cache)
    assert f"the cache folder {cache}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_where_the_index_of_this_corpus_should_be(tmp_path, corpus):
    engine = Hybrid.build(corpus, cache_dir=tmp_path / "one")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / engine.directory.parent.name).write_text("")
    with pytest.raises(TunerError, match=r"two.*File exists.*TUNER_CACHE_DIR"):
        Hybrid.build(corpus, cache_dir=tmp_path / "two")


def test_a_folder_where_the_lock_should_be(tmp_path, corpus):
    engine = Hybrid.build(corpus, cache_dir=tmp_path / "one")
    (tmp_path / "two" / engine.directory.parent.name / "index.lock").mkdir(parents=True)
    with pytest.raises(TunerError, match=r"two.*TUNER_CACHE_DIR"):
        Hybrid.build(corpus, cache_dir=tmp_path / "two")


@pytest.mark.parametrize("part", ["index", "queries"])
@pytest.mark.parametrize("kind", ["file", "dangling link", "link to a file"])
def test_what_is_no_directory_gives_way(tmp_path, corpus, queries, part, kind):
    engine = Hybrid.build(corpus, cache_dir=tmp_path / "cache")
    engine.prepare(queries)
    (directory,) = engine.directory.parent.glob(f"{part}*/")
    directory.rename(tmp_path / "old")
    target = tmp_path / "target"
    if kind == "file":
        directory.write_text("not an index")
    else:
        directory.symlink_to(target)
    if kind == "link to a file":
        target.write_text("kept")
    Hybrid.build(corpus, cache_dir=tmp_path / "cache").prepare(queries)
    assert is_whole(directory)
    assert not directory.is_symlink()
    assert target.exists() == (kind == "link to a file")  # a link goes, what it points at stays


def test_a_folder_without_write_permission(tmp_path, corpus, queries):
    cache = tmp_path / "cache"
    engine = Hybrid.build(corpus, cache_dir=cache)
    folders = [cache, engine.directory.parent]
    for folder in folders:
        folder.chmod(0o500)
    try:
        if os.access(cache, os.W_OK):
            pytest.skip("permissions do not bind the superuser")
        again = Hybrid.build(corpus, cache_dir=cache)  # nothing to write: the index is there
        assert again.retrieve(queries, {}).ids(0)
        with pytest.raises(TunerError, match=r"Permission denied.*TUNER_CACHE_DIR"):
            again.prepare(queries)
        with pytest.raises(TunerError, match=r"Permission denied.*TUNER_CACHE_DIR"):
            Hybrid.build(Corpus(corpus.documents[:2]), cache_dir=cache)
    finally:
        for folder in folders:
            folder.chmod(0o700)


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    def write(directory: Path) -> None:
        (directory / "half.npy").write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(TunerError, match=r"No space left on device.*TUNER_CACHE_DIR"):
        ensure(tmp_path / "index", write)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


WITH_A_LIMIT = """
import resource, sys
from pathlib import Path
from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import TunerError
from tuner.retrieval.hybrid import Hybrid
documents = tuple(Document(str(i), f"Town {i}", f"Town {i} is by Town {i + 1}.") for i in range(99))
limits = (int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_FSIZE)[1])
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
try:
    engine = Hybrid.build(Corpus(documents), cache_dir=Path(sys.argv[1]))
    print("built")
    engine.prepare([Query(str(i), f"Town {i}?") for i in range(99)])
except TunerError as error:
    print(error)
"""


@pytest.mark.parametrize(("most_bytes", "built"), [(1_000, False), (60_000, True)])
def test_the_system_refuses_to_write_more(tmp_path, most_bytes, built):
    environment = {**os.environ, "PYTHONPATH": str(Path(tuner.__file__).parents[1])}
    command = [sys.executable, "-c", WITH_A_LIMIT, str(tmp_path / "cache"), str(most_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    *before, message = done.stdout.splitlines()
    assert before == ["built"] * built
    assert message.startswith(f"the cache folder {tmp_path / 'cache'}")
    assert "TUNER_CACHE_DIR" in message
    (root,) = (tmp_path / "cache").iterdir()
    assert [path.name for path in root.iterdir() if path.is_dir()] == ["index"] * built
