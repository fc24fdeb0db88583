"""Who evaluates a trial a second time, and beside whom: on a cluster of plain objects."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from tuner.core.errors import TunerError
from tuner.core.trial import Outcome, Trial
from tuner.execution.cluster.pool import ClusterPool, LostError
from tuner.execution.local.pool import CannotSendError
from tuner.execution.slots import run_in_slots

Evaluate = Callable[["Machines", str, int], None]


@dataclass
class Machines:
    """Machines that are lost when an evaluation says so; a new one may come for each."""

    capacity: dict[str, int]
    evaluate: Evaluate
    spares: Iterator[str] = field(default_factory=lambda: iter(()))
    unable: Mapping[str, str] = field(default_factory=dict)
    evaluations: Counter[int] = field(default_factory=Counter)
    under_way: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    slots: int = 0
    closed: int = 0
    is_gone: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def workers(self) -> Mapping[str, int]:
        if self.is_gone:
            raise TunerError("the cluster is gone")
        with self.lock:
            return dict(self.capacity)

    def slot(self, worker: str) -> Place:
        if worker in self.unable:
            raise CannotSendError(self.unable[worker])
        if worker not in self.workers():
            raise LostError(f"{worker} is gone")
        self.slots += 1
        return Place(self, worker)

    def lose(self, worker: str) -> None:
        with self.lock:
            if self.capacity.pop(worker, 0):
                self.capacity |= {name: 2 for _, name in zip(range(1), self.spares, strict=False)}


@dataclass
class Place:
    machines: Machines
    worker: str

    def evaluate(self, trial: Trial, timeout_s: float | None, *, wait_s: float) -> Outcome | None:
        machines = self.machines
        with machines.lock:
            machines.evaluations[trial.number] += 1
            machines.under_way[self.worker] += 1
            machines.most[self.worker] = max(
                machines.most[self.worker], machines.under_way[self.worker]
            )
        machines.evaluate(machines, self.worker, trial.number)
        with machines.lock:
            machines.under_way[self.worker] -= 1
            if self.worker not in machines.capacity:
                raise LostError(f"{self.worker} is gone")
        return None  # not at once

    def fetch(self, folders: Mapping[str, str]) -> None:
        assert not folders

    def answer(self, *, wait_s: float) -> Outcome | None:
        return Outcome({"a": 1.0})

    def close(self) -> None:
        with self.machines.lock:
            self.machines.closed += 1


def pool_on(machines: Machines) -> ClusterPool:
    return ClusterPool(machines, look_s=0.01, workers_wait_s=0.1)


def run(machines: Machines, count: int, slots: int) -> dict[int, str | None]:
    pool = pool_on(machines)
    given = [Trial(number, "arm", {"x": number}) for number in range(count)]
    results = run_in_slots(lambda trial: pool.evaluate(trial, None), given, slots=slots, pool=pool)
    return {trial.number: outcome.error for trial, outcome in results}


def names() -> Iterator[str]:
    return (f"spare {n}" for n in range(1000))


def test_evaluations_are_spread_and_slots_kept() -> None:
    meet = threading.Barrier(4)

    def evaluate(machines: Machines, worker: str, number: int) -> None:
        meet.wait(60)

    machines = Machines({"a": 3, "b": 3}, evaluate)
    assert set(run(machines, 20, slots=4).values()) == {None}
    assert machines.most == {"a": 2, "b": 2}
    assert machines.slots == 4


def test_a_killer_fails_alone_after_two_evaluations() -> None:
    company = threading.Barrier(4)

    def evaluate(machines: Machines, worker: str, number: int) -> None:
        if machines.evaluations[number] == 1 and number < 4:
            company.wait(60)  # the killers' first evaluations have company on both machines
        if number in (1, 2):
            machines.lose(worker)

    machines = Machines({"a": 2, "b": 2}, evaluate, names())
    found = run(machines, 40, slots=4)
    for killer in (1, 2):
        assert "two workers of the cluster were lost" in str(found.pop(killer))
    assert set(found.values()) == {None}
    assert (machines.evaluations[1], machines.evaluations[2]) == (2, 2)
    assert max(machines.evaluations.values()) == 2


def test_a_second_evaluation_waits_for_the_worker_that_is_least_busy() -> None:
    begun, second = threading.Barrier(4), threading.Event()
    where: list[str] = []

    def evaluate(machines: Machines, worker: str, number: int) -> None:
        if machines.evaluations[number] == 2:
            where.append(worker)
            second.set()
            return
        begun.wait(60)
        if worker == "a":
            machines.lose(worker)
        if worker == "b":
            second.wait(5)  # two of them, until the second evaluation was somewhere else

    machines = Machines({"a": 1, "b": 2, "c": 1}, evaluate)
    assert set(run(machines, 4, slots=4).values()) == {None}
    assert machines.most == {"a": 1, "b": 2, "c": 1}
    assert where == ["c"]


def test_a_second_evaluation_has_its_turn_and_no_company() -> None:
    there: list[int] = []
    begun: list[int] = []
    nothing = threading.Event()

    def evaluate(machines: Machines, worker: str, number: int) -> None:
        if worker == "a":
            machines.lose(worker)
        elif machines.evaluations[number] == 2:
            begun.append(machines.evaluations.total())
            there.append(machines.under_way[worker])
            nothing.wait(0.2)  # meanwhile three other slots ask for a slot
            there.append(machines.under_way[worker])
        else:
            nothing.wait(0.02)

    machines = Machines({"a": 1, "b": 4}, evaluate)
    assert set(run(machines, 30, slots=4).values()) == {None}
    assert there == [1, 1]
    assert begun[0] < 30  # it had its turn, and did not wait for the end of all others
    assert machines.most["b"] >= 2


def test_without_the_cluster_no_trial_is_to_blame() -> None:
    def evaluate(machines: Machines, worker: str, number: int) -> None:
        if number == 5:
            machines.is_gone = True
            machines.lose(worker)

    machines = Machines({"a": 1}, evaluate)
    with pytest.raises(TunerError, match="the cluster is gone"):
        run(machines, 10, slots=1)
    assert machines.evaluations[5] == 1


def test_without_workers_the_run_ends() -> None:
    machines = Machines({"a": 1}, lambda machines, worker, number: machines.lose(worker))
    with pytest.raises(TunerError, match="no worker for"):
        run(machines, 10, slots=1)


def test_a_worker_that_cannot_load_is_left_out() -> None:
    meet = threading.Barrier(2)  # each evaluation waits for another, so both machines are asked
    machines = Machines(
        {"a": 2, "b": 2}, lambda *_: meet.wait(60) and None, unable={"a": "ImportError: no x"}
    )
    pool = pool_on(machines)
    given = [Trial(number, "arm", {}) for number in range(6)]
    results = list(run_in_slots(lambda trial: pool.evaluate(trial, None), given, slots=2))
    assert [outcome.error for _, outcome in results] == [None] * 6
    assert machines.most == {"b": 2}
    assert pool.remarks == ("without a: ImportError: no x; install there what is installed here")


def test_where_no_worker_can_load_the_run_ends() -> None:
    machines = Machines({"a": 1, "b": 1}, lambda *_: None, unable={"a": "no x", "b": "no x"})
    with pytest.raises(TunerError, match=r"no worker can load .* no x \(on .* install there"):
        run(machines, 6, slots=2)


def test_machines_that_come_late_are_used_and_nobody_is_asked_before_there_is_room() -> None:
    asked: list[int] = []
    seen: list[int] = []
    two = threading.Barrier(2, action=lambda: seen.append(len(asked)))
    four = threading.Barrier(4)

    def trials() -> Iterator[Trial]:
        for number in range(14):
            asked.append(number)
            yield Trial(number, "arm", {})

    def evaluate(machines: Machines, worker: str, number: int) -> None:
        if number < 2:
            two.wait(60)  # both places are taken
            if number == 0:
                with machines.lock:
                    machines.capacity["late"] = 2
        elif number < 6:
            four.wait(60)  # four at once: the machine that came late is used

    machines = Machines({"a": 2}, evaluate)
    pool = pool_on(machines)
    results = run_in_slots(lambda trial: pool.evaluate(trial, None), trials(), slots=8, pool=pool)
    assert [outcome.error for _, outcome in results] == [None] * 14
    assert seen == [2]
    assert pool.capacity == 4
    assert machines.most == {"a": 2, "late": 2}


def test_what_was_lost_and_what_was_evaluated_once_more_is_told() -> None:
    def evaluate(machines: Machines, worker: str, number: int) -> None:
        if number == 3 and machines.evaluations[3] == 1:
            machines.lose(worker)

    machines = Machines({"a": 1}, evaluate, names())
    pool = pool_on(machines)
    given = [Trial(number, "arm", {}) for number in range(6)]
    results = run_in_slots(lambda trial: pool.evaluate(trial, None), given, slots=1, pool=pool)
    assert [outcome.error for _, outcome in results] == [None] * 6
    assert pool.remarks == (
        "1 worker was lost (the last: a); 1 trial was evaluated once more (the last: trial 3)"
    )
