"""Indexes that a program builds: a folder that it writes, or a name that it prints."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError, TunerError
from tuner.core.space import Categorical, Integer, SearchSpace
from tuner.retrieval.adapters.command import Command
from tuner.retrieval.indexes import IndexLimits
from tuner.testing import IndexCase
from tuner.testing.indexes import CHECKS

DOCUMENTS = tuple(Document(f"d{n}", city, "") for n, city in enumerate(["lima", "cairo", "paris"]))
CORPUS = Corpus(DOCUMENTS, fingerprint="three-cities")
QUERIES = (Query("q0", "lima"), Query("q1", "cairo"))
SPACE = SearchSpace({"field": Categorical(("title", "turned")), "top_k": Integer(1, 3)})
SEARCH = """
import json, pathlib, sys

for line in sys.stdin:
    asked = json.loads(line)
    index = pathlib.Path(asked["index"])
    field = (index / "field").read_text() if index.is_dir() else asked["index"].split()[-1]
    ids = ["d0", "d1", "d2"] if field == "title" else ["d2", "d1", "d0"]
    top_k = asked["params"].pop("top_k")
    assert not asked["params"], asked
    print(json.dumps({"id": asked["id"], "results": ids[:top_k]}), flush=True)
"""
BUILD = """
import pathlib, sys

field, folder = sys.argv[1:]
print("building", field)
(pathlib.Path(folder) / "field").write_text(field)
"""
PRINT = """
import pathlib, sys

with pathlib.Path("log").open("a") as log:
    log.write(sys.argv[1] + "\\n")
print("working")
print("index", sys.argv[1])
"""
POLL = """
import json, pathlib, sys

polls = pathlib.Path("polls")
polls.write_text((polls.read_text() if polls.exists() else "") + sys.argv[1] + "\\n")
print(json.dumps({"ready": len(polls.read_text().splitlines()) > 2}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, code in {"search": SEARCH, "build": BUILD, "print": PRINT, "poll": POLL}.items():
        (folder / f"{name}_it.py").write_text(code, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def options(folder: Path) -> Callable[..., dict[str, Any]]:
    def write(*words: str, **index: Any) -> dict[str, Any]:
        return {
            "command": [sys.executable, "search_it.py"],
            "working_dir": str(folder),
            "index": {"command": [sys.executable, *words], **index},
        }

    return write


@pytest.fixture
def built(options: Callable[..., dict[str, Any]], tmp_path: Path) -> Callable[..., Command]:
    def build(*words: str, timeout_s: float | None = None, **index: Any) -> Command:
        given = {"space": SPACE, "baseline": {"top_k": 1}, "cache_dir": tmp_path}
        return Command.build(CORPUS, **options(*words, **index), **given, index_timeout_s=timeout_s)

    return build


FORMS = {
    "a folder": ("build_it.py", "{field}", "{folder}"),
    "a name": ("print_it.py", "{field}"),
}


@pytest.fixture(scope="module", params=FORMS.values(), ids=FORMS.keys())
def case(request: pytest.FixtureRequest, options: Callable[..., dict[str, Any]]) -> IndexCase:
    return IndexCase(
        Command,
        CORPUS,
        QUERIES,
        first={"field": "title"},
        other={"field": "turned"},
        options=options(*request.param),
        space=SPACE,
    )


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[IndexCase], None], case: IndexCase) -> None:
    check(case)


@pytest.mark.parametrize("words", FORMS.values(), ids=FORMS.keys())
def test_an_index_is_built_and_stands_beside_each_query(
    built: Callable[..., Command], words: tuple[str, ...]
) -> None:
    found = built(*words).retrieve(QUERIES, {})
    assert [found.ids(row) for row in range(2)] == [["d0"], ["d0"]]


def test_places_are_the_parameters_of_the_index(options: Callable[..., dict[str, Any]]) -> None:
    poll = {"command": "see {index} {field} {depth}", "ready_when": "ready"}
    declared = Command.declare_knobs(
        **options("x", "{folder}", poll=poll), space=SPACE, baseline={"depth": 3, "top_k": 1}
    )
    assert [(knob.name, knob.stage) for knob in declared] == [
        ("field", "index"),
        ("depth", "index"),
    ]


def test_an_index_is_built_once_and_polled_until_it_is_ready(
    built: Callable[..., Command], folder: Path
) -> None:
    poll = {"command": [sys.executable, "poll_it.py", "{index}"], "ready_when": "ready"}
    for _ in range(2):
        command = built("print_it.py", "{field}", poll={**poll, "interval_s": 0.01})
        assert command.index == "index title"
    # Three times until it was ready, and once whether it is still there.
    assert (folder / "polls").read_text() == "index title\n" * 4


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit('no model')", r"ended with exit code 1; its standard error: no model"),
        ("import os; os.kill(os.getpid(), 9)", r"the command ended by SIGKILL"),
        ("pass", r"the command printed no name of an index"),
        ("import time; time.sleep(60)", r"not built within 2 s \(index\.timeout_s\)"),
    ],
)
def test_what_goes_wrong_says_why(
    built: Callable[..., Command], tmp_path: Path, code: str, reason: str
) -> None:
    begin = time.monotonic()
    with pytest.raises(TunerError, match=reason):
        built("-c", textwrap.dedent(code), timeout_s=2.0 if "60" in code else None)
    assert time.monotonic() - begin < 55
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_folder_that_nothing_was_written_to_is_no_index(built: Callable[..., Command]) -> None:
    with pytest.raises(TunerError, match=r"the command wrote nothing to \{folder\}"):
        built("-c", "", "{folder}")


@pytest.mark.parametrize(
    ("index", "key", "reason"),
    [
        ({"command": 3}, "index.command", "must be a program and its arguments"),
        ({"comand": "x"}, "index.comand", "unknown key; did you mean 'command'?"),
        ({"poll": {"command": "x"}}, "index.poll.ready_when", "this key is required"),
        ({"command": "x {dim}"}, "index", "{dim} is neither in the space nor in the baseline"),
    ],
)
def test_a_section_that_is_wrong_is_refused_by_its_key(
    built: Callable[..., Command], index: dict[str, Any], key: str, reason: str
) -> None:
    with pytest.raises(InputError) as caught:
        built(**{"command": "true", **index})
    told = {".".join(map(str, problem.key)): problem.message for problem in caught.value.problems}
    assert reason in told[key]


HANG = """
import os, pathlib, sys, time

if sys.argv[2] == "turned":
    pathlib.Path("pid").write_text(str(os.getpid()))
    time.sleep(60)
(pathlib.Path(sys.argv[1]) / "field").write_text(sys.argv[2])
"""


@pytest.mark.slow
def test_a_command_that_takes_too_long_ends_with_its_builder(
    options: Callable[..., dict[str, Any]], folder: Path, tmp_path: Path
) -> None:
    (folder / "hang_it.py").write_text(HANG, encoding="utf-8")
    case = IndexCase(
        Command,
        CORPUS,
        QUERIES,
        first={"field": "title"},
        other={"field": "turned"},
        options=options("hang_it.py", "{folder}", "{field}"),
        space=SPACE,
    )
    indexed = case.opened(tmp_path, case.first, IndexLimits(timeout_s=3.0))
    with pytest.raises(TunerError, match=r"not built within 3 s \(index\.timeout_s\)"):
        indexed.ready(case.other)
    hung = int((folder / "pid").read_text())
    while _is_alive(hung):
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


KNOWN = """
import pathlib, sys

known = pathlib.Path("known").read_text().splitlines()
if sys.argv[1] not in known:
    sys.exit(f"no index called {sys.argv[1]}")
print('{"state": "ready"}')
"""


def test_a_name_that_the_system_has_lost_is_built_again(
    built: Callable[..., Command], folder: Path
) -> None:
    (folder / "known_it.py").write_text(KNOWN, encoding="utf-8")
    (folder / "known").write_text("index title\n", encoding="utf-8")
    (folder / "log").unlink(missing_ok=True)
    status = [sys.executable, "known_it.py", "{index}"]
    poll = {"command": status, "ready_when": "state == 'ready'", "interval_s": 0.01}
    for _ in range(2):
        assert built("print_it.py", "{field}", poll=poll).is_there()
    assert (folder / "log").read_text() == "title\n"
    command = built("print_it.py", "{field}", poll=poll)
    (folder / "known").write_text("", encoding="utf-8")
    assert not command.is_there()
    with pytest.raises(TunerError, match="no index called index title"):  # once it was built again
        built("print_it.py", "{field}", poll=poll)
    assert (folder / "log").read_text() == "title\ntitle\n"


def test_an_answer_that_says_so_and_a_folder_that_is_gone_are_losses_too(
    built: Callable[..., Command], folder: Path
) -> None:
    code = "print(open('state').read())"
    poll = {"command": [sys.executable, "-c", code], "ready_when": "@ == 'ready'"}
    (folder / "state").write_text("ready", encoding="utf-8")
    command = built("print_it.py", "{field}", poll={**poll, "failed_when": "@ == 'gone'"})
    for state, is_there in (("ready", True), ("busy", True), ("gone", False)):
        (folder / "state").write_text(state, encoding="utf-8")
        assert command.is_there() is is_there
    written = built(*FORMS["a folder"])
    assert written.is_there()
    assert written.kept is not None
    shutil.rmtree(written.kept / "folder")
    assert not written.is_there()
