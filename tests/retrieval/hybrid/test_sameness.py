"""The same input gives the same bytes in every process; other code gives another index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tuner

PACKAGE = Path(tuner.__file__).parent

BUILD = """
import sys
from pathlib import Path
import tuner
from tuner.core.corpus import Corpus, Document, Query, Triple
from tuner.retrieval.hybrid import Hybrid
assert Path(tuner.__file__).parent == Path(sys.argv[2]) / "tuner"
first = "Old New Upper Lower Great Little North South".split()
second = "Mill Lake Bridge Castle Harbour Market Forest".split()
ends = (" of the ".join(first[:2]), " of the ".join(second[:2]))
places = [f"{a} {b} of the {end}" for a in first for b in second for end in ends]
documents = tuple(
    Document(str(i), place, f"From {place} a road of {i % 9} miles leads to {places[i * 5 % 112]}.")
    for i, place in enumerate(places)
)
triples = tuple(Triple(str(i), places[i], "is near", places[i * 3]) for i in range(0, 30, 4))
corpus = Corpus(documents, triples, entities={"7": tuple(places[20:28])})
engine = Hybrid.build(corpus, cache_dir=Path(sys.argv[1]))
engine.prepare([Query(str(i), f"Where is the road to {place}?") for i, place in enumerate(places)])
print(engine.fingerprint)
"""


def built_files(cache: Path, *, package: Path = PACKAGE, hash_seed: str = "0") -> dict[str, bytes]:
    """Build in a process of its own; return the content of the cache by relative path."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "PYTHONHASHSEED": hash_seed,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", BUILD, str(cache), str(package.parent)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        cwd=cache.parent,  # not a checkout: its package would come first
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in cache.glob("hybrid-*")] == [f"hybrid-{done.stdout.strip()}"]
    files = [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {str(path.relative_to(cache)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_every_file_is_the_same_whatever_the_order_of_sets(tmp_path):
    one, *others = (built_files(tmp_path / seed, hash_seed=seed) for seed in ("1", "2", "3"))
    assert any(name.endswith("index/information.npy") for name in one)
    assert any(name.endswith("graph.npy") for name in one)
    for other in others:
        assert other.keys() == one.keys()
        assert [name for name in one if other[name] != one[name]] == []


@pytest.mark.slow
@pytest.mark.parametrize("source", ["retrieval/hybrid/seeds.py", "core/words.py"])
def test_other_code_does_not_take_up_the_index(tmp_path, source):
    copy = tmp_path / "copy" / "tuner"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    usual, same = built_files(tmp_path / "a"), built_files(tmp_path / "b", package=copy)
    assert same == usual  # where the code lies does not matter
    with (copy / source).open("a", encoding="utf-8") as file:
        file.write("\n# another version\n")
    assert not built_files(tmp_path / "c", package=copy).keys() & usual.keys()
