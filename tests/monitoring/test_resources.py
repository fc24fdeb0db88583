"""Resources: the machine and the process tree, sampled in the background."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import psutil
import pytest

from tuner.core.errors import InputError
from tuner.monitoring import ResourceMonitor, ResourceSample
from tuner.monitoring.resources import ProcessTree, machine_gauges, nvml_gauges

MACHINE = {
    "cpu_utilization_percentage",
    "system_memory_usage_megabytes",
    "system_memory_usage_percentage",
    "disk_usage_percentage",
    "disk_usage_megabytes",
    "disk_available_megabytes",
}


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


class Process:
    """What psutil tells of a process."""

    def __init__(self, pid: int, cpu_s: float, *, created: float = 0.0, memory: float = 1e6):
        self.pid, self.cpu_s, self.created, self.memory = pid, cpu_s, created, memory
        self.read, self.is_gone = 0.0, False

    def oneshot(self):
        return contextlib.nullcontext()

    def create_time(self):
        return self.created

    def memory_info(self):
        if self.is_gone:
            raise psutil.NoSuchProcess(self.pid)
        return SimpleNamespace(rss=self.memory)

    def cpu_times(self):
        return SimpleNamespace(user=self.cpu_s / 2, system=self.cpu_s / 2)

    def io_counters(self):
        return SimpleNamespace(read_bytes=self.read, write_bytes=0.0)


def test_names_of_the_machine_are_mlflows_own():
    from mlflow.system_metrics.metrics.cpu_monitor import CPUMonitor
    from mlflow.system_metrics.metrics.disk_monitor import DiskMonitor

    theirs = set()
    for monitor in (CPUMonitor(), DiskMonitor()):
        monitor.collect_metrics()
        theirs |= monitor.aggregate_metrics().keys()
    ours = machine_gauges(os.sep)()
    assert ours.keys() == theirs == MACHINE
    assert 0.0 < ours["system_memory_usage_percentage"] < 100.0
    sample = ResourceSample(0.0, {"cpu_utilization_percentage": 7.0})
    assert sample.system_metrics() == {"system/cpu_utilization_percentage": 7.0}


def test_the_tree_adds_up_what_its_processes_did_since_the_last_look():
    clock, root, child = Clock(), Process(1, 100.0), Process(2, 7.0, memory=3e6)
    processes = [root, child]
    tree = ProcessTree(clock=clock, look=lambda: processes)
    first = tree.gauges()
    # nothing that was done before the first look is this monitor's time
    assert first.get("process_cpu_utilization_percentage", 0.0) == 0.0
    assert first["process_memory_megabytes"] == 4.0
    clock.now += 10.0
    root.cpu_s += 2.0
    child.cpu_s += 13.0
    child.read += 5e6
    second = tree.gauges()
    # (2 + 13) s of processor in 10 s: one and a half cores
    assert second["process_cpu_utilization_percentage"] == pytest.approx(150.0)
    assert second["process_disk_read_megabytes"] == 5.0
    assert second["process_count"] == 2


def test_processes_come_and_go_and_a_process_id_may_come_back():
    clock, root, child = Clock(), Process(1, 0.0), Process(2, 50.0)
    processes = [root, child]
    tree = ProcessTree(clock=clock, look=lambda: processes)
    tree.gauges()
    clock.now += 10.0
    processes[1] = Process(2, 3.0, created=55.0)  # another one with the same id: counted whole
    figures = tree.gauges()
    assert figures["process_cpu_utilization_percentage"] == pytest.approx(30.0)
    clock.now += 10.0
    processes[1].is_gone = True
    root.cpu_s += 1.0
    figures = tree.gauges()
    assert figures["process_cpu_utilization_percentage"] == pytest.approx(10.0)
    assert figures["process_count"] == 1


def test_a_child_process_is_part_of_the_tree():
    child = subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdout.readline()
        alone = ProcessTree(child.pid).gauges()
        together = ProcessTree().gauges()
    finally:
        child.communicate(b"\n")
    assert alone["process_count"] == 1
    assert together["process_count"] >= 2
    assert together["process_memory_megabytes"] > alone["process_memory_megabytes"] > 1.0


def test_samples_come_in_the_background_and_a_last_one_at_the_end():
    seen: list[ResourceSample] = []
    three = threading.Event()

    def listen(sample: ResourceSample) -> None:
        seen.append(sample)
        if len(seen) == 3:
            three.set()
        raise RuntimeError("a broken listener")

    with ResourceMonitor(interval_s=0.001, on_sample=listen) as monitor:
        assert three.wait(900)
    assert len(seen) >= 4
    assert list(monitor.samples) == seen
    assert seen[-1].values.keys() >= MACHINE | {
        "process_memory_megabytes",
        "process_cpu_utilization_percentage",
    }
    assert all(math.isfinite(value) for value in seen[-1].values.values())
    assert [sample.at for sample in seen] == sorted(sample.at for sample in seen)


def test_a_short_run_has_a_sample_too():
    with ResourceMonitor(interval_s=3600.0) as monitor:
        assert monitor.samples == ()
    assert len(monitor.samples) == 1
    monitor.stop()  # again: nothing
    assert len(monitor.samples) == 1


def test_a_monitor_runs_once_at_a_time():
    with ResourceMonitor() as monitor, pytest.raises(InputError, match="runs already"):
        monitor.start()
    with pytest.raises(InputError, match="interval_s"):
        ResourceMonitor(interval_s=0.0)


def test_a_figure_that_cannot_be_had_is_left_out():
    with ResourceMonitor(disk_path="/no/such/folder") as monitor:
        pass
    values = monitor.samples[0].values
    assert "disk_usage_percentage" not in values
    assert "process_memory_megabytes" in values


def test_gpus_are_named_as_mlflow_names_them():
    class Refused(Exception):
        pass

    def power(handle):
        raise Refused  # not every card tells

    nvml = SimpleNamespace(
        NVMLError=Refused,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=2e9, total=8e9),
        nvmlDeviceGetUtilizationRates=lambda handle: SimpleNamespace(gpu=10 * handle),
        nvmlDeviceGetPowerUsage=power,
    )
    assert nvml_gauges(nvml)() == {
        "gpu_0_memory_usage_percentage": 25.0,
        "gpu_0_memory_usage_megabytes": 2000.0,
        "gpu_0_utilization_percentage": 0.0,
        "gpu_1_memory_usage_percentage": 25.0,
        "gpu_1_memory_usage_megabytes": 2000.0,
        "gpu_1_utilization_percentage": 10.0,
    }
