"""Evaluations on the nodes of a Ray cluster.

joblib's ray backend takes lists only, so a study would run in rounds, and when one evaluation kills
its worker the whole round is lost with an ActorDiedError. So joblib runs the slots, as it does for
threads and processes, and each slot calls an actor, of which joblib's backend is made as well.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from tuner.core.errors import InputError, OutageError, TunerError, one_line
from tuner.execution.cluster.base import ClusterExecution, System
from tuner.execution.cluster.folders import Package, archive
from tuner.execution.cluster.pool import ANSWER_GRACE_S, Cluster, LostError, knock
from tuner.execution.cluster.slot import FarSlot, Slot
from tuner.execution.local.pool import START_TIMEOUT_S, CannotSendError
from tuner.execution.slots import LONGEST_WAIT_S

CLOSE_TIMEOUT_S = 5.0
# A driver whose head node is gone is ended by Ray itself after a minute. This many looks in a row,
# a second apart, tell that the head is gone before that, and not just busy.
LOOKS = 3
LOOK_EVERY_S = 1.0

Answer = TypeVar("Answer")


class Ray(ClusterExecution):
    """Evaluates on the Ray cluster whose head is at ``address``, such as host:6379.

    This machine must be part of the cluster. ``workers`` is the largest number of evaluations at
    once; None: as many as the cluster has CPUs when the run begins. Each evaluation has a process
    of its own below a Ray actor of one CPU, with one BLAS thread, as with ``processes``: a crash,
    or a kill at ``trial_timeout_s``, costs its trial and nothing else. A trial whose actor is lost
    is evaluated once more, alone on a node. The evaluate function reaches a node once, however many
    trials it evaluates.
    """

    system = System(
        name="Ray",
        package="ray",
        extra="ray",
        entry="head node",
        address=r"[^:/\s]+:\d+",
        example="host:6379",
        start_worker="ray start --address={address}",
    )

    def check(self) -> None:
        """See whether a head node answers.

        Raises:
            InputError: none does.
        """
        try:
            knock(self.address)
        except OSError as error:
            message = (
                f"no Ray head node answers at {self.address} ({one_line(error)}); start one: "
                "ray start --head"
            )
            raise InputError(message, key=("execution", "address")) from error

    @contextmanager
    def _join(self, package: Package) -> Iterator[Cluster]:
        self.check()
        with closing(RayCluster(self.address, package)) as cluster:
            yield cluster


class RayCluster:
    """A connection to a cluster, with an evaluate function to bring to the nodes."""

    def __init__(self, address: str, package: Package) -> None:
        import ray

        self._address = address
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            try:
                with _same_signal_handlers():
                    ray.init(address=address, log_to_driver=False, configure_logging=False)
            except Exception as error:
                message = f"cannot join the Ray cluster at {address}: {one_line(error)}"
                raise InputError(message, key=("execution", "address")) from error
        elif (other := ray.get_runtime_context().gcs_address) not in _same_addresses(address):
            message = f"this process has joined the Ray cluster at {other}; write that address"
            raise InputError(message, key=("execution", "address"))
        self._speak = _silence()
        self._package = package
        self._sending = threading.Lock()
        self._sent = {"": ray.put(package.payload)}
        self.actors: set[Any] = set()
        self._is_closed = threading.Event()
        self._is_gone = False
        threading.Thread(target=self._watch, name="ray-head", daemon=True).start()

    def workers(self) -> Mapping[str, int]:
        """Return each living node's id and CPUs."""
        import ray

        self.check()
        return {
            node["NodeID"]: int(node["Resources"]["CPU"])
            for node in self._in_time(ray.nodes)
            if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
        }

    def slot(self, worker: str) -> _Slot:
        """Make a slot on a node, which fetches the evaluate function unless it has it."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(worker, soft=False)
        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}
        kind = ray.remote(Slot).options(scheduling_strategy=there, **options)
        actor = self._in_time(partial(kind.remote, self._sent[""]))
        self.actors.add(actor)
        slot = _Slot(self, worker, actor)

        def bring(name: str, path: str) -> None:
            slot.ask("unpack", name, self._there(name, path), lasts_s=START_TIMEOUT_S)

        slot.prepare(self._package.folders, bring)
        return slot

    def _there(self, name: str, path: str) -> Any:
        """Return a folder as it lies on this node, for others to fetch."""
        import ray

        with self._sending:
            if name not in self._sent:
                self._sent[name] = ray.put(archive(path))
            return self._sent[name]

    def ask(self, answer: Any, timeout_s: float) -> Any:
        """Wait for an answer, but no longer than there is hope.

        Raises:
            LostError: no answer within the time, or it is an error.
            TunerError: the cluster is gone.
            CannotSendError: that is the answer.
        """
        import ray

        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self.check()
            try:
                return ray.get(answer, timeout=LONGEST_WAIT_S)
            except ray.exceptions.GetTimeoutError:
                continue
            except CannotSendError as error:
                raise CannotSendError(str(error.args[0])) from error
            except Exception as error:
                self.check()
                raise LostError(one_line(error)) from error
        raise LostError("it does not answer")

    def check(self) -> None:
        """See whether the head node is there.

        Raises:
            TunerError: it is not.
        """
        if self._is_gone:
            raise OutageError(
                f"the Ray cluster at {self._address} is gone; what has been evaluated is kept: "
                "start it again and resume the study"
            )

    def close(self) -> None:
        """End what is under way, and leave the cluster."""
        self._is_closed.set()
        with suppress(TunerError):
            self._in_time(self._leave)
        self._speak()

    def _leave(self) -> None:
        import ray

        with suppress(Exception):  # some may be dead
            ends = [actor.close.remote() for actor in list(self.actors)]
            ray.wait(ends, num_returns=len(ends), timeout=CLOSE_TIMEOUT_S)
        for actor in list(self.actors):
            with suppress(Exception):
                ray.kill(actor)
        self.actors.clear()
        if self._is_ours:
            ray.shutdown()

    def _in_time(self, call: Callable[[], Answer]) -> Answer:
        """Return what a call returns that would wait for a minute for a head node that is gone.

        Raises:
            TunerError: the cluster is gone.
        """
        answer: Future[Answer] = Future()

        def work() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=work, name="ray-call", daemon=True).start()
        while not answer.done():
            self.check()
            wait([answer], LONGEST_WAIT_S)
        return answer.result()

    def _watch(self) -> None:
        failures = 0
        while not self._is_closed.wait(LOOK_EVERY_S):
            try:
                knock(self._address)
                failures = 0
            except OSError:
                failures += 1
            if failures == LOOKS:
                self._is_gone = True
                return


class _Slot(FarSlot):
    """An actor on a node."""

    def __init__(self, cluster: RayCluster, worker: str, actor: Any) -> None:
        self.actor = actor
        self._cluster = cluster
        self._worker = worker

    def ask(self, method: str, *arguments: Any, lasts_s: float, **named: Any) -> Any:
        answer = getattr(self.actor, method).remote(*arguments, **named)
        try:
            return self._cluster.ask(answer, lasts_s + ANSWER_GRACE_S)
        except LostError as error:
            raise LostError(f"node {self._worker[:8]}: {error}") from error

    def close(self) -> None:
        self._cluster.actors.discard(self.actor)
        self.actor = None  # Ray then ends it


def _same_addresses(address: str) -> set[str]:
    """Return the ways in which Ray may write the address of a head node."""
    import ray

    host, _, port = address.rpartition(":")
    hosts = {host, socket.gethostbyname(host)}
    if any(host.startswith("127.") for host in hosts):
        hosts.add(ray.util.get_node_ip_address())
    return {f"{host}:{port}" for host in hosts}


def _silence() -> Callable[[], None]:
    """Stop Ray's printing of lost workers to stdout, where a result may be read; return the end."""
    from ray._private import worker

    name = "print_to_stdstream"
    before = getattr(worker, name, None)
    if before is None:  # in another version of Ray
        return lambda: None
    setattr(worker, name, lambda *_, **__: None)
    return lambda: setattr(worker, name, before)


@contextmanager
def _same_signal_handlers() -> Iterator[None]:
    """Keep the handler of SIGTERM, which Ray replaces by one that ends the program at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
