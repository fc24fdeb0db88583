"""What a Dask and a Ray cluster do alike: a study when its cluster is lost, wrong, or not there."""

from __future__ import annotations

import socket
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tuner.core import registry
from tuner.core.errors import InputError, TunerError
from tuner.core.trial import Outcome, Params, Trial

EVERY_X = set(range(24))
QUICK = Path(__file__).resolve().parents[2] / "configs" / "quick.yaml"
FEW = ("tracking=null", "backends=[{kind: random, trials: 4}, {kind: tpe, trials: 4}]")
ENTRIES = {
    "dask": ("tcp://127.0.0.1:{}", "no Dask scheduler answers at tcp://", "dask scheduler"),
    "ray": ("127.0.0.1:{}", "no Ray head node answers at ", "ray start --head"),
}
MODULES = {"dask": "distributed", "ray": "ray"}

needs_its_package = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind,
            marks=pytest.mark.skipif(
                find_spec(module) is None,
                reason=f"{module} is not installed: pip install '.[{kind}]'",
            ),
        )
        for kind, module in MODULES.items()
    ],
)


@pytest.mark.slow
@needs_its_package
def test_a_run_whose_cluster_dies_ends_in_words_and_can_be_resumed(
    project: Any,
    kind: str,
    restart: Callable[[Any], Any],
    request: pytest.FixtureRequest,
) -> None:
    cluster = request.getfixturevalue(f"{kind}_cluster")
    cluster.add_workers(2)
    project.configure(kind, cluster.address)
    project.order(9, "wait")
    run = project.start("run", "far.yaml")
    project.wait(run, lambda: len(project.events("told")) >= 8, "eight results")
    cluster.lose_head()
    said = project.end(run, 130)  # interrupted: it can go on
    assert f"at {cluster.address} is gone" in said
    before = project.told()
    (project.folder / "go").touch()

    restart(cluster).add_workers(1)
    project.end(project.start("resume", project.run_dir), 0)
    told = project.told()
    assert told.keys() == EVERY_X
    assert all(event["state"] == "finished" for event in told.values())
    assert {x: told[x] for x in before} == before
    assert all(project.evaluations()[x] == 1 for x in before)


@pytest.mark.slow
@needs_its_package
def test_what_is_free_is_computed_on_a_cluster_as_it_is_here(
    project: Any, kind: str, request: pytest.FixtureRequest
) -> None:
    cluster = request.getfixturevalue(f"{kind}_cluster")
    cluster.add_workers(2)
    told = []
    for settings in (["kind=inline"], [f"address={cluster.address}", f"kind={kind}"]):
        arguments = [f"execution.{setting}" for setting in settings]
        run = project.start(
            "run", str(QUICK), *(w for a in (*FEW, *arguments) for w in ("--set", a))
        )
        project.end(run, 0)
        (journal,) = project.folder.glob("runs/*/journal.jsonl")
        trials = {event["trial"]: event for event in project.events("told")}
        journal.unlink()
        same = ("arm", "state", "params", "objective", "metrics", "profile")
        told.append({n: {key: e.get(key) for key in same} for n, e in trials.items()})
    here, far = told
    assert far == here
    assert [n for n, trial in sorted(here.items()) if trial["profile"] is None] == [0]
    assert all("graph_weight" in trial["params"] for trial in here.values())


@needs_its_package
def test_without_a_cluster_nothing_begins(
    project: Any, kind: str, refused: Callable[..., str]
) -> None:
    address, reason, remedy = ENTRIES[kind]
    with socket.socket() as nobody:  # bound, but it does not listen
        nobody.bind(("127.0.0.1", 0))
        project.configure(kind, address.format(nobody.getsockname()[1]))
        for command in ("run", "check"):
            said = refused(command, "far.yaml")
            assert f"far.yaml:9: execution.address: {reason}" in said
            assert remedy in said
    assert not (project.folder / "runs").exists()


@pytest.mark.parametrize("kind", [*MODULES])
def test_the_address_is_required(project: Any, kind: str, refused: Callable[..., str]) -> None:
    project.configure(kind, "x:1")
    path = project.folder / "far.yaml"
    path.write_text(path.read_text().replace('address: "x:1", ', ""))
    assert "execution.address: this option is required" in refused("run", "far.yaml")


@pytest.fixture
def refused(
    project: Any, run_here: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Run a command that refuses its input; return why."""
    monkeypatch.setenv("TUNER_CACHE_DIR", str(project.folder / "cache"))

    def run(*arguments: str) -> str:
        done = run_here(project.folder, *arguments)
        assert done.returncode == 2, done
        return str(done.stderr)

    return run


@pytest.mark.parametrize(
    ("kind", "addresses", "example"),
    [
        ("dask", ["", "10.0.0.1:8786", "http://10.0.0.1", 5, None], "write tcp://host:8786"),
        (
            "ray",
            ["", "10.0.0.1", "ray://10.0.0.1:10001", "auto", 5, None],
            "write host:6379",
        ),
    ],
)
def test_a_wrong_address_is_refused(kind: str, addresses: list[Any], example: str) -> None:
    for address in addresses:
        with pytest.raises(InputError, match=example) as caught:
            registry.load("execution", kind)(address=address)
        assert caught.value.problems[0].key == ("address",)


@pytest.mark.slow
@needs_its_package
def test_a_function_that_no_worker_can_load_ends_the_run(
    kind: str, request: pytest.FixtureRequest
) -> None:
    address = request.getfixturevalue(f"{kind}_address")
    execution = registry.load("execution", kind)(2, address=address)
    with pytest.raises(TunerError, match=r"ImportError: no module.*\(on .*install there"):
        list(execution.run(Unloadable(), [Trial(number, "arm", {}) for number in range(4)]))


class Unloadable:
    """Travels to another process, but cannot be unpickled there."""

    def __call__(self, params: Params) -> Outcome:
        return Outcome({"a": 1.0})

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise ImportError('no module named nowhere')",)
