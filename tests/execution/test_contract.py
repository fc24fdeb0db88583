"""What every execution promises, checked over every kind that is registered."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib.externals.loky.backend import get_context

from tuner.core import registry
from tuner.core.errors import InputError
from tuner.core.trial import Outcome, Params, Trial
from tuner.execution.base import Execution
from tuner.execution.local.pool import CannotSendError, ProcessPool, _death
from tuner.testing import ExecutionCase
from tuner.testing.executions import CHECKS

KINDS = registry.kinds("execution")
# Evaluations in the process itself share its fate, as their documentation says.
CONTAINED = [kind for kind in KINDS if kind in ("auto", "dask", "processes", "ray")]
CLUSTERS = ("dask", "ray")
WAIT_S = 900.0
# Of the clusters that this file's tests use, by kind.
ADDRESSES: dict[str, str] = {}


def each(*kinds: str, workers: tuple[int, ...] = ()) -> pytest.MarkDecorator:
    """Try each kind, with each number of workers where such are given.

    A cluster is slow: it is tried with the most workers only, and not by default.
    """
    cases: list[Any] = []
    for kind in kinds:
        marks = [pytest.mark.slow] if kind in CLUSTERS else []
        for count in workers[-1:] if kind in CLUSTERS else workers:
            cases.append(pytest.param(kind, count, marks=marks))
        if not workers:
            cases.append(pytest.param(kind, marks=marks))
    return pytest.mark.parametrize(("kind", "workers") if workers else "kind", cases)


@pytest.fixture(autouse=True)
def _cluster(request: pytest.FixtureRequest) -> None:
    """Start what a kind needs beyond this machine's Python, or skip."""
    kind = getattr(request.node, "callspec", None) and request.node.callspec.params.get("kind")
    if kind in CLUSTERS:
        ADDRESSES[kind] = request.getfixturevalue(f"{kind}_address")


def trials(*values: object) -> list[Trial]:
    return [Trial(i, "arm", {"x": value}) for i, value in enumerate(values)]  # type: ignore[dict-item]


def make(kind: str, workers: int = 2, **options: Any) -> Execution:
    return registry.load("execution", kind)(workers=workers, **address(kind), **options)  # type: ignore[no-any-return]


def address(kind: str) -> dict[str, str]:
    return {"address": ADDRESSES[kind]} if kind in ADDRESSES else {}


# Functions within functions travel to workers by value: those cannot import this file.


def make_double(sleep_s: float = 0.0) -> Callable[[Params], Outcome]:
    import os
    import time

    from tuner.core.trial import Outcome

    def evaluate(params: Any) -> Outcome:
        time.sleep(sleep_s)
        return Outcome({"double": 2.0 * params["x"], "pid": float(os.getpid())})

    return evaluate


def make_misbehaving(release: str) -> Callable[[Params], Outcome]:
    """Do what the params say; ``hang`` hangs until there is a file called ``release``."""
    import os
    import sys
    import time

    from tuner.core.trial import Outcome

    def evaluate(params: Any) -> Any:
        match params["x"]:
            case "raise":
                raise ValueError("bad\nnews")
            case "exit":
                sys.exit(3)
            case "dict":
                return {"double": 1.0}
            case "die":
                os._exit(7)
            case "kill":
                os.kill(os.getpid(), 9)
            case "hang":
                while not os.path.exists(release):  # fewer things to pickle
                    time.sleep(0.01)
            case "slow":
                time.sleep(0.07)
        return Outcome({"double": 2.0})

    return evaluate


def errors(results: list[tuple[Trial, Outcome]]) -> dict[Any, str | None]:
    return {trial.params["x"]: outcome.error for trial, outcome in results}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # A process that nobody has waited for yet is there, but has ended.
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # a system without /proc tells no more than this


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} did not end"
        time.sleep(0.01)


@each(*KINDS, workers=(1, 2))
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_the_shipped_contract(kind: str, workers: int, check: Any) -> None:
    check(ExecutionCase(partial(make, kind), workers=workers))


def test_a_failure_is_told_in_words() -> None:
    given = trials("raise", "exit", "dict")
    assert errors(list(make("inline").run(make_misbehaving(""), given))) == {
        "raise": "ValueError: bad news",
        "exit": "SystemExit: 3",
        "dict": "evaluate returned dict; it must return an Outcome",
    }


@each(*KINDS, workers=(3,))
def test_a_trial_is_pulled_only_when_a_worker_is_free(kind: str, workers: int) -> None:
    # Staleness: at each pull, all results but those of the other workers have been consumed.
    consumed = 0
    behind: list[int] = []
    pulling = threading.Lock()

    def pull() -> Iterator[Trial]:
        for number, trial in enumerate(trials(*range(20))):
            assert pulling.acquire(blocking=False), "pulled from two threads at once"
            behind.append(number - consumed)
            pulling.release()
            yield trial

    execution = make(kind, workers)
    for _ in execution.run(make_double(0.06), pull()):
        time.sleep(0.002)  # a consumer that is slower than it could be
        consumed += 1
    assert max(behind) <= execution.slots - 1


@each(*KINDS, workers=(1, 3))
def test_a_pull_may_wait_until_outcomes_are_consumed(kind: str, workers: int) -> None:
    consumer = threading.get_ident()
    consumed: set[int] = set()
    changed = threading.Condition()

    def pull() -> Iterator[Trial]:
        for trial in trials(*range(12)):
            needed = set(range(trial.number - 1))
            with changed:
                is_waiting = not needed <= consumed
                assert not (is_waiting and threading.get_ident() == consumer), "waits for itself"
                assert changed.wait_for(lambda needed=needed: needed <= consumed, WAIT_S)
            yield trial

    for trial, _ in make(kind, workers).run(make_double(0.06), pull()):
        with changed:
            consumed.add(trial.number)
            changed.notify_all()
    assert consumed == set(range(12))


@each(*KINDS)
def test_closing_does_not_wait_for_a_pull_that_waits(kind: str) -> None:
    release = threading.Event()
    waited: list[bool] = []

    def pull() -> Iterator[Trial]:
        yield from trials(*range(4))
        waited.append(release.wait(WAIT_S))

    results = make(kind, 3).run(make_double(0.06), pull())
    for _ in range(2):
        next(results)
    results.close()  # type: ignore[attr-defined]  # a generator
    assert waited == []
    release.set()


@each(*CONTAINED, workers=(1, 2))
def test_a_worker_that_dies_costs_its_own_trial(kind: str, workers: int, tmp_path: Path) -> None:
    evaluate = make_misbehaving(str(tmp_path / "release"))
    given = trials(*(["slow"] * 3), "die", "ok1", "kill", "ok2", "slow")  # auto has moved by then
    results = list(make(kind, workers).run(evaluate, given))
    assert len(results) == len(given)
    found = errors(results)
    assert str(found.pop("die")).endswith("died while it evaluated this trial: exit code 7")
    assert str(found.pop("kill")).endswith("died while it evaluated this trial: SIGKILL")
    assert found == {"slow": None, "ok1": None, "ok2": None}


def test_a_worker_that_is_still_ending_is_waited_for() -> None:
    # A result that breaks off is seen before the system tells how its worker ended.
    process = get_context("loky").Process(target=time.sleep, args=(WAIT_S,))
    process.start()
    ending = threading.Timer(0.2, os.kill, (process.pid, signal.SIGTERM))
    ending.start()
    assert _death(BrokenProcessPool("a result broke off"), process) == "SIGTERM"
    ending.join()


@each(*CONTAINED)
def test_an_idle_worker_that_is_killed_costs_nothing(kind: str) -> None:
    pids: list[int] = []

    def pull() -> Iterator[Trial]:
        for trial in trials(*range(8)):
            if len(pids) >= 5:
                os.kill(pids[-1], signal.SIGKILL)
            yield trial

    for _, outcome in make(kind, 1).run(make_double(0.06), pull()):
        assert outcome.error is None
        pids.append(int(outcome.metrics["pid"]))
    assert len(set(pids[4:])) == 4  # a new process after every kill


@pytest.mark.slow
@each(*CONTAINED)
def test_a_worker_whose_memory_grows_stays(kind: str) -> None:
    def evaluate(params: Any) -> Outcome:
        import os
        import sys
        import time

        from joblib.externals.loky import process_executor

        from tuner.core.trial import Outcome

        time.sleep(0.06)  # long enough for `auto` to use workers
        # loky's own limits are 300 MB and a second; a system's index soon takes more.
        limits = ("_MAX_MEMORY_LEAK_SIZE", "_MEMORY_LEAK_CHECK_DELAY")
        assert all(hasattr(process_executor, name) for name in limits)
        process_executor._MAX_MEMORY_LEAK_SIZE = 1_000_000
        process_executor._MEMORY_LEAK_CHECK_DELAY = 0.0
        vars(sys).setdefault("kept", []).append(bytes(5_000_000).replace(b"\0", b"x"))
        return Outcome({"pid": float(os.getpid())})

    results = list(make(kind, 1).run(evaluate, trials(*range(12))))
    assert [outcome.error for _, outcome in results] == [None] * 12
    assert len({outcome.metrics["pid"] for _, outcome in results[-4:]}) == 1


@each(*KINDS)
def test_closing_early_ends_what_is_under_way(kind: str) -> None:
    given = iter(trials(*range(1000)))
    results = make(kind).run(make_double(0.06), given)
    pids = {int(next(results)[1].metrics["pid"]) for _ in range(5)}
    results.close()  # type: ignore[attr-defined]  # a generator
    for pid in pids - {os.getpid()}:
        wait_for_end(pid)
    assert next(given).number < 20


@each(*CONTAINED)
def test_workers_have_one_blas_thread(kind: str) -> None:
    from tuner.core.trial import Outcome

    def evaluate(params: Any) -> Outcome:
        import time

        import numpy  # noqa: F401  # loads the library that is asked below
        import threadpoolctl

        time.sleep(0.06)
        threads = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
        return Outcome({"threads": float(max(threads, default=1))})

    results = list(make(kind).run(evaluate, trials(*range(8))))
    assert [outcome.error for _, outcome in results] == [None] * 8
    assert results[-1][1].metrics["threads"] == 1.0


def test_joblib_still_works_afterwards() -> None:
    from joblib import Parallel, delayed

    list(make("processes").run(make_double(), trials(1, 2)))
    with warnings.catch_warnings():
        # joblib starts its processes by forking where it likes to; that is not ours to judge.
        warnings.simplefilter("ignore")
        assert Parallel(n_jobs=2)(delayed(abs)(-i) for i in range(4)) == [0, 1, 2, 3]


def test_what_cannot_be_pickled_is_refused_by_processes() -> None:
    lock = threading.Lock()

    def evaluate(params: Params) -> Outcome:
        with lock:
            return Outcome({"a": 1.0})

    with pytest.raises(InputError, match=r"cannot be pickled: TypeError.*use threads"):
        list(make("processes").run(evaluate, trials(1)))


class Unloadable:
    """Travels to a worker process, but cannot be unpickled there."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def __call__(self, params: Params) -> Outcome:
        time.sleep(0.06)
        return Outcome({"a": 1.0})

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise ImportError('no module named nowhere')",)


def test_what_cannot_be_loaded_fails_its_trials() -> None:
    results = list(make("processes").run(Unloadable(), trials(1, 2)))
    for _, outcome in results:
        assert outcome.error is not None
        assert "cannot be loaded in a worker process: ImportError: no module" in outcome.error


def test_auto_keeps_short_evaluations_in_the_process() -> None:
    execution = make("auto")
    results = list(execution.run(make_double(), trials(*range(30))))
    # A stall of the machine may make three in a row long and move the rest.
    assert results[0][1].metrics["pid"] == os.getpid()
    assert sum(outcome.metrics["pid"] == os.getpid() for _, outcome in results) >= 3
    if all(outcome.metrics["pid"] == os.getpid() for _, outcome in results):
        assert "in this process: they take less than 50 ms" in execution.choice


def test_auto_moves_long_evaluations_to_workers() -> None:
    execution = make("auto")
    results = list(execution.run(make_double(0.06), trials(*range(8))))
    pids = [int(outcome.metrics["pid"]) for _, outcome in results]
    assert pids[:3] == [os.getpid()] * 3
    assert os.getpid() not in pids[3:]
    assert execution.choice.startswith("evaluations run in 2 worker processes: they take more")


def test_auto_moves_at_once_after_a_timeout(tmp_path: Path) -> None:
    release = tmp_path / "release"
    execution = make("auto", trial_timeout_s=1.0)
    results = list(execution.run(make_misbehaving(str(release)), trials("hang", "die", "ok")))
    release.touch()
    found = errors(results)
    assert "no result within 1 s" in str(found["hang"])
    assert "exit code 7" in str(found["die"])
    assert found["ok"] is None


@pytest.mark.parametrize("way", ["pickle", "load"])
def test_auto_falls_back_to_threads(way: str) -> None:
    lock = threading.Lock()

    def unpicklable(params: Params) -> Outcome:
        time.sleep(0.06)
        return Outcome({"a": 1.0, "locked": float(lock.locked())})

    execution = make("auto")
    evaluate = unpicklable if way == "pickle" else Unloadable()
    results = list(execution.run(evaluate, trials(*range(8))))
    assert [outcome.error for _, outcome in results] == [None] * 8
    assert execution.choice.startswith("evaluations run in 2 threads: they take more than 50 ms, ")
    assert ("pickled" if way == "pickle" else "ImportError") in execution.choice


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are of POSIX")
def test_workers_end_when_the_run_is_killed(tmp_path: Path) -> None:
    import subprocess

    import tuner

    script = tmp_path / "run.py"
    script.write_text(
        "import os, time\n"
        "from tuner.core.trial import Outcome, Trial\n"
        "from tuner.execution.local.processes import Processes\n"
        "def evaluate(params):\n"
        "    os.write(1, f'{os.getpid()}\\n'.encode())  # whole, as the other process writes too\n"
        "    time.sleep(1000)\n"
        "if __name__ == '__main__':\n"
        "    list(Processes(2).run(evaluate, [Trial(0, 'a', {}), Trial(1, 'a', {})]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(tuner.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        pids = [int(process.stdout.readline()) for _ in range(2)]
        assert all(map(is_running, pids))
        process.kill()
        for pid in pids:
            wait_for_end(pid)


def make_forking(where: str) -> Callable[[Params], Outcome]:
    """Fork in trial 3; the child ends as ``where`` says, and its parent reports its exit code."""
    import os
    import sys

    from tuner.core.trial import Outcome

    def evaluate(params: Any) -> Outcome:
        code = -1
        if params["x"] == 3:
            child = os.fork()
            if child == 0:
                if where == "exit":
                    sys.exit(5)
                if where == "raise":
                    raise ValueError("in the child")
                return Outcome({"code": 99.0})
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return Outcome({"code": float(code)})

    return evaluate


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is of POSIX")
@pytest.mark.parametrize(("where", "code"), [("exit", 5), ("raise", 1), ("return", 0)])
@pytest.mark.parametrize("kind", ["inline", "threads", "processes"])
def test_a_forked_child_does_not_go_on_with_the_study(
    kind: str, where: str, code: int, tmp_path: Path
) -> None:
    pulled = tmp_path / "pulled"

    def pull() -> Iterator[Trial]:
        for trial in trials(*range(6)):
            with pulled.open("a") as stream:
                stream.write(f"{os.getpid()}\n")
            yield trial

    parent = os.getpid()
    try:
        results = list(make(kind, 1).run(make_forking(where), pull()))
    finally:
        if os.getpid() != parent:  # the child must not go on with these tests either
            os._exit(77)
    assert set(pulled.read_text().split()) == {str(parent)}
    codes = {trial.params["x"]: outcome.metrics["code"] for trial, outcome in results}
    assert codes == {0: -1, 1: -1, 2: -1, 3: code, 4: -1, 5: -1}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_keyboard_interrupt_of_an_evaluation_in_a_worker_is_its_own(workers: int) -> None:
    def evaluate(params: Any) -> Outcome:
        from tuner.core.trial import Outcome

        if params["x"] == 1:
            raise KeyboardInterrupt
        return Outcome({"a": 1.0})

    found = errors(list(make("processes", workers).run(evaluate, trials(0, 1, 2, 3))))
    assert found == {0: None, 1: "KeyboardInterrupt", 2: None, 3: None}


def test_a_thread_left_behind_does_not_keep_a_worker(tmp_path: Path) -> None:
    release = str(tmp_path / "release")

    def evaluate(params: Any) -> Outcome:
        import os
        import threading
        import time

        from tuner.core.trial import Outcome

        def stay() -> None:
            while not os.path.exists(release):  # fewer things to pickle
                time.sleep(0.01)

        threading.Thread(target=stay).start()
        return Outcome({"pid": float(os.getpid())})

    pool = ProcessPool(evaluate, 2, close_grace_s=0.2)
    outcomes = [pool.evaluate(trial, None) for trial in trials(0, 1)]
    closing = threading.Thread(target=pool.close, daemon=True)
    closing.start()
    closing.join(WAIT_S)
    is_stuck = closing.is_alive()
    Path(release).touch()
    closing.join(WAIT_S)
    assert not is_stuck
    for outcome in outcomes:
        wait_for_end(int(outcome.metrics["pid"]))


def test_a_closed_pool_starts_no_worker() -> None:
    pool = ProcessPool(make_double(), 1)
    pool.close()
    with pytest.raises(CannotSendError, match="told to end"):
        pool.check()
    assert pool.evaluate(trials(1)[0], None).error is not None


@pytest.mark.parametrize("crashes", [True, False])
def test_auto_evaluates_suspects_in_a_worker_first(crashes: bool, tmp_path: Path) -> None:
    evaluate = make_double()
    misbehave = make_misbehaving(str(tmp_path / "release"))

    def either(params: Any) -> Outcome:
        return misbehave(params) if params["x"] == "die" else evaluate(params)

    first: object = "die" if crashes else 5
    execution = make("auto")
    results = list(execution.run(either, trials(first, 1, 2), suspects={0}))
    assert results[0][0].number == 0
    pids = [outcome.metrics.get("pid") for _, outcome in results]
    assert pids[0] != os.getpid()
    if crashes:
        assert str(results[0][1].error).endswith("exit code 7")
        assert os.getpid() not in pids
        assert execution.choice == (
            "evaluations run in 2 worker processes: one of them crashes its process"
        )
    else:
        assert results[0][1].error is None
        assert pids[1:] == [os.getpid()] * 2


def test_auto_evaluates_suspects_here_where_nothing_else_can() -> None:
    lock = threading.Lock()

    def evaluate(params: Params) -> Outcome:
        with lock:
            return Outcome({"a": 1.0})

    for function in (evaluate, Unloadable()):
        results = list(make("auto").run(function, trials(1), suspects={0}))
        assert results[0][1].error is None


class ExitsWhenShown(Exception):
    def __str__(self) -> str:
        sys.exit(1)


def bad_outcomes() -> dict[str, tuple[Outcome, str]]:
    ragged: Any = {"m": [[1.0], [1.0, 2.0]]}
    nothing: Any = None
    return {
        "seconds": (Outcome(seconds={"a": "b"}), "stage 'a' is a str, not a number"),  # type: ignore[dict-item]
        "no seconds": (Outcome(seconds=nothing), "a mapping from each stage to its value"),
        "error": (Outcome(error=ValueError("x")), "ValueError: x"),  # type: ignore[arg-type]
        "shown": (Outcome(error=ExitsWhenShown()), "(its message cannot be shown)"),  # type: ignore[arg-type]
        "number": (Outcome(error=3), "the outcome's error is a int"),  # type: ignore[arg-type]
        "ragged": (Outcome(per_query=ragged), "per-query metric 'm': ValueError"),
        "objects": (Outcome(per_query={"m": np.array([object()])}), "object of shape (1,)"),
        "matrix": (Outcome(per_query={"m": np.ones((2, 2))}), "shape (2, 2)"),
        "name": (Outcome(per_query={"a\0b": np.ones(2)}), "is no name"),
        "long name": (Outcome({"n" * 10**6: 1.0}), "… is no name"),
        "long error": (Outcome(error="y" * 10**6), "yyy…"),
        "metric": (Outcome({"m": "good"}), "metric 'm' is a str"),  # type: ignore[dict-item]
    }


@pytest.mark.parametrize("name", bad_outcomes())
def test_a_bad_outcome_is_an_error_of_its_trial(name: str) -> None:
    bad, reason = bad_outcomes()[name]
    ((_, outcome),) = make("inline").run(lambda params: bad, trials(1))
    assert outcome.error is not None
    assert reason in outcome.error
    assert len(outcome.error) <= 500
    assert outcome.seconds.keys() == {"total"}


def test_a_metric_without_a_value_is_undefined_and_no_failure() -> None:
    outcome: Any = Outcome({"quality": 0.5, "cost": None})  # type: ignore[dict-item]
    ((_, told),) = make("inline").run(lambda params: outcome, trials(1))
    assert told.error is None
    assert told.metrics["quality"] == 0.5
    assert np.isnan(told.metrics["cost"])


def test_an_exception_that_cannot_be_shown_costs_its_own_trial() -> None:
    def evaluate(params: Params) -> Outcome:
        raise ExitsWhenShown

    ((_, outcome),) = make("inline").run(evaluate, trials(1))
    assert outcome.error == "ExitsWhenShown: (its message cannot be shown)"


@pytest.mark.parametrize("kind", ["inline", "threads", "processes", "auto"])
def test_a_rival_reaches_the_evaluation_and_only_where_there_is_one(kind: str) -> None:
    def evaluate(params: Any, **rival: Any) -> Outcome:
        from tuner.core.trial import Outcome

        return Outcome({"rivals": float(len(rival)), "worth": sum(rival.get("rival", [0.0]))})

    racing = [
        replace(trial, rival=np.array([1.0, 2.0]) if trial.number == 1 else None)
        for trial in trials(0, 1, 2)
    ]
    results = {t.number: o.metrics for t, o in make(kind).run(evaluate, racing)}
    assert results == {
        0: {"rivals": 0.0, "worth": 0.0},
        1: {"rivals": 1.0, "worth": 3.0},
        2: {"rivals": 0.0, "worth": 0.0},
    }
