"""What holds for every test: a slow or loaded machine turns none of them red."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import HealthCheck, settings

# What Hypothesis checks of itself says how fast and how lucky a run was, not whether it is right.
settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.large_base_example,
        HealthCheck.function_scoped_fixture,
    ],
)
settings.load_profile("any machine")


def in_memory() -> str | None:
    """Return where files lie in memory, if there is room for those of the tests.

    Journals and databases wait for the disk after every line; on a busy one that is half the time.
    """
    folder = Path("/dev/shm")
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return None
    may_run_programs = not os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0)
    has_room = shutil.disk_usage(folder).free > 4_000_000_000
    return str(folder) if may_run_programs and has_room else None


if (memory := in_memory()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's script starts what runs in the background so, and children inherit it: tests that
    # send them Ctrl-C would wait for ever. What is no SIG_IGN is the default in a child, and here
    # Ctrl-C still does nothing.
    signal.signal(signal.SIGINT, lambda number, frame: None)


OURS = Path(__file__).resolve().parent / "data"
SHARED = Path(__file__).resolve().parents[1] / "../shared/data"

_SAMPLES = {  # our name -> the true file's name
    "2wiki.json": "2wiki_20.json",
    "beir_qrels.tsv": "beir_qrels_2wiki_500.tsv",
    "hipporag_corpus.json": "hipporag_corpus_50.json",
    "hipporag_openie.json": "hipporag_openie_30.json",
    "hotpotqa.json": "hotpotqa_20.json",
    "hotpotqa_huggingface.json": "hotpotqa_huggingface_10.json",
    "multihop_rag_corpus.json": "multihop_rag_corpus_invented.json",
    "multihop_rag_queries.json": "multihop_rag_queries_invented.json",
    "musique.jsonl": "musique_20.jsonl",
    "trec_qrels.txt": "trec_qrels.txt",
    "trec_qrels_graded.txt": "trec_qrels_graded.txt",
    "trec_run.txt": "trec_run.txt",
}


@dataclass(frozen=True)
class Published:
    """A sample of every published layout, and whole sets of the same questions beside them."""

    folder: Path
    is_ours: bool

    def sample(self, name: str) -> Path:
        """Return the file that is called so in ``tests/data/formats``, ours or the true one."""
        return self.folder / "formats" / (name if self.is_ours else _SAMPLES[name])


@pytest.fixture(autouse=True)
def modules_of_its_own(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let no test find a module only because an earlier one had it, or its folder on the path."""
    before = list(sys.path)
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    sys.path[:] = before
    if folder is not None:
        for name, module in sys.modules.copy().items():  # in one step: threads import, too
            if str(getattr(module, "__file__", None)).startswith(f"{folder}{os.sep}"):
                del sys.modules[name]


@pytest.fixture(params=["invented", "true"] if SHARED.is_dir() else ["invented"])
def published(request: pytest.FixtureRequest) -> Published:
    """Return our invented samples, and where they lie beside the checkout, the true ones."""
    is_ours = request.param == "invented"
    return Published(OURS if is_ours else SHARED, is_ours)


@pytest.fixture(scope="session")
def shared_by_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of one run of the tests share, whichever fills it first."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def index_dir(shared_by_workers: Path) -> Path:
    """Where to keep the index of the built-in data set, for tests that only need that it is there.

    Making one takes seconds.
    """
    return shared_by_workers / "indexes"


@pytest.fixture(scope="session")
def fresh_store(shared_by_workers: Path) -> Path:
    """A migrated, empty MLflow store: copied by the tests, as making one takes seconds."""
    from filelock import FileLock
    from mlflow import MlflowClient

    path, made = (shared_by_workers / f"{name}_mlflow.db" for name in ("fresh", "making"))
    with FileLock(shared_by_workers / "fresh_mlflow.lock"):
        if not path.exists():
            MlflowClient(f"sqlite:///{made}").search_experiments(max_results=1)
            shutil.copy(made, path)
    return path


@pytest.fixture
def written_by_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a thread write what a study shows in MLflow: a process of its own imports MLflow anew.

    tests/tracking/test_process.py is about that process.
    """
    from tuner.tracking.mlflow.tracker import Mlflow

    monkeypatch.setitem(Mlflow.__init__.__kwdefaults__, "in_thread", True)


@pytest.fixture
def run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., CompletedProcess[str]]]:
    """Run ``tuner`` in a folder, but in this process, which need not import everything anew."""
    from tuner.cli import main

    folders: set[str] = set()

    def run(folder: Path, *arguments: str) -> CompletedProcess[str]:
        folders.add(str(folder))
        monkeypatch.chdir(folder)
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        written = capsys.readouterr()
        return CompletedProcess(arguments, int(left.value.code or 0), written.out, written.err)

    monkeypatch.setattr(sys, "path", list(sys.path))
    # On a busy machine anything may take long enough to be told.
    monkeypatch.setattr("tuner.run.how_far.Stand.is_long", lambda stand, now: False)
    yield run
    for (
        name,
        module,
    ) in (
        sys.modules.copy().items()
    ):  # in one step: threads import, too  # another test's may have the same name
        if str(getattr(module, "__file__", None)).startswith(tuple(folders)):
            del sys.modules[name]
