"""Each index is built once, by whoever needs it first; what goes wrong costs nothing else."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuner.core.brought import name_of
from tuner.core.corpus import Query
from tuner.core.errors import InputError, NotBuiltError, OutageError, Problem, TunerError
from tuner.execution.cluster.folders import archive, unpack
from tuner.retrieval.indexes import Indexed, IndexLimits
from tuner.retrieval.indexes.opened import OPENED
from tuner.retrieval.indexes.record import read_record

HERE = Path(__file__).parent
QUERIES = (Query("q", "which?"), Query("r", "what?"))


def builds(tmp_path: Path) -> list[str]:
    """Return what was built after the first, as ``"size how"``."""
    lines = (tmp_path / "log").read_text().splitlines()
    return [line.rpartition(" ")[0] for line in lines]


def wanted_elsewhere(
    indexed: Indexed, params: dict[str, Any], folder: Path
) -> subprocess.Popen[str]:
    """Start a process that wants an index, and prints whether it was built for it."""
    from joblib.externals.loky.backend.reduction import dumps

    travelling = folder / f"{uuid.uuid4().hex}.pickle"
    travelling.write_bytes(dumps(indexed))
    program = (
        "import json, pathlib, pickle, sys; "
        "indexed = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes()); "
        "print(indexed.ready(json.loads(sys.argv[2])).is_new)"
    )
    path = os.pathsep.join([str(HERE), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", program, str(travelling), json.dumps(params)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )


def ids(indexed: Indexed, **params: Any) -> list[str]:
    return indexed.retrieve(QUERIES, params).ids(0)


def test_each_setting_is_answered_from_its_own_index(make: Callable[..., Indexed]) -> None:
    indexed = make()
    assert ids(indexed) == ["0"]
    assert ids(indexed, size=3, top_k=5) == ["0", "1", "2"]
    assert ids(indexed, size=1, top_k=5) == ["0"]
    assert indexed.serve(QUERIES[0], {"size": 2}).ids(0) == ["0", "1"]


def test_an_index_is_built_once_in_a_process_of_its_own(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    indexed = make()
    for _ in range(2):
        ids(indexed, size=3)
    again = make()
    ids(again, size=3, top_k=1)
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["1", "3", "1"]
    assert lines[1].split()[-1] != str(os.getpid())


def test_a_trial_is_told_what_its_index_took_and_whether_it_is_new(
    make: Callable[..., Indexed],
) -> None:
    indexed = make()
    assert [indexed.ready({}).is_new for _ in range(2)] == [True, False]
    first, again = indexed.ready({"size": 3, "top_k": 2}), indexed.ready({"size": 3})
    assert (first.is_new, again.is_new) == (True, False)
    assert first.name == again.name != indexed.ready({}).name
    assert first.seconds > 0
    assert first.megabytes > 0
    assert (first.documents, first.tokens, first.money) == (10, 30, None)


def test_queries_are_prepared_where_the_index_is_built(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    use = make().ready({"size": 2})
    assert (tmp_path / "indexes" / use.name / "prepared.txt").read_text() == "2"


def test_threads_that_want_one_index_build_it_once(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    indexed, found = make(), []
    threads = [
        threading.Thread(target=lambda: found.append(indexed.ready({"size": 4}).is_new))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [False, False, False, True]
    assert builds(tmp_path).count("4 well") == 1


def test_processes_that_want_one_index_build_it_once(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    indexed = make()
    both = [wanted_elsewhere(indexed, {"size": 5}, tmp_path) for _ in range(2)]
    assert sorted(process.communicate()[0].strip() for process in both) == ["False", "True"]
    assert builds(tmp_path).count("5 well") == 1


def test_a_copy_that_travelled_builds_without_the_corpus_in_memory(
    make: Callable[..., Indexed],
) -> None:
    indexed = make()
    copy: Indexed = pickle.loads(pickle.dumps(indexed))
    assert len(pickle.dumps(copy)) < 20_000
    assert ids(copy, size=2) == ["0", "1"]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", "ValueError: no such model"),
        ("die", "ended by SIGKILL"),
        ("exit", "SystemExit: 3"),
    ],
)
def test_what_fails_says_why_and_is_not_built_again(
    make: Callable[..., Indexed], tmp_path: Path, how: str, reason: str
) -> None:
    indexed = make()
    for _ in range(2):
        with pytest.raises(TunerError, match=reason) as caught:
            indexed.ready({"how": how})
        assert f"the index with how={how} could not be built" in str(caught.value)
    assert builds(tmp_path).count(f"1 {how}") == 1
    assert len([path for path in (tmp_path / "indexes").iterdir() if path.is_dir()]) == 1
    assert ids(indexed, size=2) == ["0", "1"]


def test_a_system_that_does_not_answer_is_asked_again(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    indexed = make()
    for _ in range(2):
        with pytest.raises(OutageError, match="nobody listens"):
            indexed.ready({"how": "outage"})
    assert builds(tmp_path).count("1 outage") == 2


@pytest.mark.slow
def test_an_index_that_takes_too_long_is_stopped(make: Callable[..., Indexed]) -> None:
    begin = time.monotonic()
    with pytest.raises(TunerError, match=r"not built within 0\.2 s \(index\.timeout_s\)"):
        make(limits=IndexLimits(timeout_s=0.2)).ready({"how": "wait"})
    assert time.monotonic() - begin < 55


@pytest.mark.slow
def test_the_first_index_is_stopped_too_and_found_where_it_was_built_in_time(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    begin = time.monotonic()
    with pytest.raises(TunerError, match=r"^the baseline's index could not be built: .* 0\.2 s"):
        make(limits=IndexLimits(timeout_s=0.2), first={"how": "wait"})
    assert time.monotonic() - begin < 55
    for is_new in (True, False):
        indexed = make(limits=IndexLimits(timeout_s=50), first={"size": 3})
        assert ids(indexed, top_k=5) == ["0", "1", "2"]
        assert indexed.ready({}).is_new is is_new
    # A kind that looks at the clock itself is built in this process, as without a limit.
    make(limits=IndexLimits(timeout_s=0.01), first={"size": 4}, keeps_time=True)
    processes = dict(line.rsplit(" ", 1) for line in (tmp_path / "log").read_text().splitlines())
    assert processes["4 well"] == str(os.getpid()) != processes["3 well"]


@pytest.mark.slow
def test_the_limit_holds_for_preparing_the_queries_of_the_first_index_too(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    for _ in range(2):  # it is not taken for whole the second time
        with pytest.raises(TunerError, match=r"^the baseline's index could not be built: .* 2 s"):
            make(limits=IndexLimits(timeout_s=2), first={"how": "prepare"})
    assert builds(tmp_path) == ["1 prepare", "1 prepare"]
    indexed = make(limits=IndexLimits(timeout_s=50), first={"size": 2})
    prepared = next((tmp_path / "indexes").glob("*/prepared.txt"))
    assert "prepared.txt" in json.loads((prepared.parent / "manifest.json").read_text())["files"]
    assert ids(indexed, top_k=5) == ["0", "1"]


def test_what_is_wrong_with_the_options_of_the_first_index_is_told_with_its_key(
    make: Callable[..., Indexed],
) -> None:
    with pytest.raises(InputError) as refused:
        make(limits=IndexLimits(timeout_s=50), first={"how": "refuse"})
    assert refused.value.problems == (Problem("no such folder", key=("folder",)),)


def test_a_process_is_started_to_know_how_long_that_takes(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    before = time.perf_counter()
    assert 0.0 < make().starting_s() < time.perf_counter() - before
    assert builds(tmp_path) == ["1 well"]


def test_an_index_says_what_it_is_made_from(make: Callable[..., Indexed]) -> None:
    code = "code 1"
    indexed = make(identify=lambda settings: f"{code} {settings['how']}")
    one, other = (indexed.identity({"size": size, "top_k": 3}) for size in (1, 2))
    assert one != other
    assert indexed.identity({"size": 2}) == other
    code = "code 2"
    assert make(identify=lambda settings: code).identity({"size": 2}) not in (other, "")


def test_what_was_built_for_a_trial_that_was_never_told_is_new_once(
    make: Callable[..., Indexed],
) -> None:
    name = make().ready({"size": 2}).name
    indexed = make()
    indexed.remember_built([name])
    assert [indexed.ready({"size": 2}).is_new for _ in range(2)] == [True, False]


def test_the_corpus_is_written_only_for_those_who_may_build(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    indexed = make()
    indexed.may_build = False
    copy: Indexed = pickle.loads(pickle.dumps(indexed))
    assert ids(copy) == ["0"]
    assert not (tmp_path / "corpora").exists()
    assert indexed.ready({"size": 2}).is_new
    assert (tmp_path / "corpora").exists()


def test_what_a_builder_prints_is_no_news(make: Callable[..., Indexed]) -> None:
    assert make().ready({"how": "loud"}).is_new


def test_unknown_values_are_refused_before_anything_is_built(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="outside what 'size' can be"):
        make().ready({"size": 11})
    assert builds(tmp_path) == ["1 well"]


@pytest.mark.parametrize("damage", ["no record", "cut short", "half made"])
def test_what_is_not_whole_is_built_again(
    make: Callable[..., Indexed], tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "indexes" / make().ready({"size": 3}).name
    if damage == "no record":
        (folder / "manifest.json").unlink()
    elif damage == "cut short":
        (folder / "ids.txt").write_text("0")
    else:
        for path in folder.iterdir():
            path.unlink()
        (folder / "ids.txt").write_text("9\n9\n9")
    OPENED.forget(folder)
    assert ids(make(), size=3, top_k=3) == ["0", "1", "2"]
    assert builds(tmp_path).count("3 well") == 2


def test_a_builder_ends_with_the_process_that_wanted_it(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    process = wanted_elsewhere(make(), {"how": "wait"}, tmp_path)
    while "1 wait" not in builds(tmp_path):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    builder = int((tmp_path / "log").read_text().splitlines()[-1].split()[-1])
    while _is_alive(builder):
        time.sleep(0.05)
    (folder,) = [p for p in (tmp_path / "indexes").iterdir() if p.is_dir() and not _is_whole(p)]
    assert not (folder / "manifest.json").exists()
    assert not list((tmp_path / "indexes").glob("*.log"))


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _is_whole(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / "manifest.json").read_text())["files"])
    except (OSError, ValueError):
        return False


def test_an_index_is_found_where_it_was_brought_to(
    make: Callable[..., Indexed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed = make()
    use = indexed.ready({"size": 3})
    name = name_of(Path(use.folder))
    assert name is not None
    elsewhere = tmp_path / "another machine"
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    unpack(name, archive(use.folder))
    for folder in (Path(use.folder), tmp_path / "corpora"):
        folder.rename(tmp_path / f"not here {folder.name}")
    OPENED.forget(Path(use.folder))
    assert ids(indexed, size=3, top_k=9) == ["0", "1", "2"]
    assert indexed.ready({"size": 3}).folder.startswith(str(elsewhere))
    assert builds(tmp_path).count("3 well") == 1


def test_what_needs_no_building_is_known_without_building(make: Callable[..., Indexed]) -> None:
    indexed = make()
    assert [indexed.is_there(params) for params in ({}, {"size": 1}, {"size": 3})] == [
        True, True, False,
    ]  # fmt: skip
    indexed.ready({"size": 3})
    assert indexed.is_there({"size": 3, "top_k": 1})


def test_what_failed_in_an_earlier_run_is_not_built_again(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    indexed = make()
    indexed.remember_failed({"size": 3}, "no such model")
    for copy in (indexed, pickle.loads(pickle.dumps(indexed))):
        with pytest.raises(NotBuiltError, match="no such model"):
            copy.ready({"size": 3, "top_k": 1})
    assert builds(tmp_path) == ["1 well"]


def test_the_first_index_has_the_time_and_room_of_its_prepared_queries(
    make: Callable[..., Indexed], tmp_path: Path
) -> None:
    use = make().ready({})
    record = read_record(tmp_path / "indexes" / use.name)
    assert record is not None
    assert "prepared.txt" in record.files
    assert (record.seconds, record.size / 1e6) == (use.seconds, pytest.approx(use.megabytes))


def test_who_listens_hears_what_is_built_beside_the_first(make: Callable[..., Indexed]) -> None:
    indexed, heard = make(), []
    indexed.tell = heard.append
    name = indexed.ready({"size": 3}).name
    indexed.ready({"size": 3})
    assert {(told.name, *told.settings.items()) for told in heard} == {(name, ("size", 3))}
    assert [told.is_over for told in heard] == [False] * (len(heard) - 1) + [True]
