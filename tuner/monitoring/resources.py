"""What the machine and this process tree use, sampled in the background."""

from __future__ import annotations

import importlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Any

import psutil

from tuner.core.errors import InputError

# MLflow's own interval.
INTERVAL_S = 10.0
# Ten hours of samples at that interval, about 3 MB.
_KEPT = 3600

Gauges = Callable[[], dict[str, float]]


@dataclass(frozen=True)
class ResourceSample:
    """Figures by name, at ``at`` seconds since the epoch."""

    at: float
    values: Mapping[str, float]

    def system_metrics(self) -> dict[str, float]:
        """Return the figures under the names by which MLflow shows them as system metrics."""
        return {f"system/{name}": value for name, value in self.values.items()}


class ResourceMonitor:
    """Samples CPU, memory and disk in a thread of its own, from ``start`` to ``stop``.

    Of the machine, named and meant as MLflow does: ``cpu_utilization_percentage`` (since the sample
    before), ``system_memory_usage_megabytes`` and ``…_percentage``, ``disk_usage_percentage``,
    ``disk_usage_megabytes``, ``disk_available_megabytes``, and where nvidia-ml-py is installed
    ``gpu_0_utilization_percentage``, ``gpu_0_memory_usage_megabytes``, ….

    Of a process and all of its descendants: ``process_cpu_utilization_percentage`` (100 is one
    core, so 8 busy workers are 800), ``process_memory_megabytes`` (resident; a page that several
    processes share counts in each of them), ``process_count``, and where the system tells,
    ``process_disk_read_megabytes`` and ``process_disk_write_megabytes`` since the start.

    ``on_sample`` gets each sample, from the monitor's thread; what it raises is ignored. The newest
    3,600 samples are kept. A last sample is taken by ``stop``, so that a short run has one too.

    >>> with ResourceMonitor() as monitor:
    ...     total = sum(range(100_000))
    >>> monitor.samples[-1].values["process_memory_megabytes"] > 1
    True
    """

    def __init__(
        self,
        *,
        interval_s: float = INTERVAL_S,
        on_sample: Callable[[ResourceSample], None] | None = None,
        process_id: int | None = None,
        disk_path: str = os.sep,
    ) -> None:
        if not interval_s > 0:
            raise InputError(f"interval_s={interval_s}: must be seconds above 0")
        self._interval_s = interval_s
        self._on_sample = on_sample
        self._process_id = process_id
        self._disk_path = disk_path
        self._samples: deque[ResourceSample] = deque(maxlen=_KEPT)
        self._sources: tuple[Gauges, ...] = ()
        self._is_over = Event()
        self._lock = Lock()
        self._thread: Thread | None = None

    @property
    def samples(self) -> tuple[ResourceSample, ...]:
        """Return the samples so far, oldest first."""
        with self._lock:
            return tuple(self._samples)

    def start(self) -> None:
        """Begin to sample, in the background.

        Raises:
            InputError: it runs already.
        """
        if self._thread is not None:
            raise InputError("the monitor runs already; stop it first, or make another one")
        self._sources = (
            machine_gauges(self._disk_path),
            ProcessTree(self._process_id).gauges,
            *gpu_gauges(),
        )
        for gauges in self._sources:
            _values(gauges)  # what is told since the sample before begins here
        self._is_over.clear()
        self._thread = Thread(target=self._run, name="tuner-resources", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take a last sample and end; nothing where it does not run."""
        if self._thread is None:
            return
        self._is_over.set()
        self._thread.join()
        self._thread = None
        self._sample()

    def __enter__(self) -> ResourceMonitor:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._is_over.wait(self._interval_s):
            self._sample()

    def _sample(self) -> None:
        values: dict[str, float] = {}
        for gauges in self._sources:
            values |= _values(gauges)
        sample = ResourceSample(time.time(), values)
        with self._lock:
            self._samples.append(sample)
        if self._on_sample is not None:
            with suppress(Exception):  # a listener that fails is no reason to stop looking
                self._on_sample(sample)


def _values(gauges: Gauges) -> dict[str, float]:
    # A figure that cannot be had (a container without /proc, a device that went away) is left out.
    try:
        return gauges()
    except Exception:
        return {}


def machine_gauges(disk_path: str) -> Gauges:
    """Return what reads the machine's figures; its disk is the one that holds ``disk_path``."""

    def gauges() -> dict[str, float]:
        memory, disk = psutil.virtual_memory(), psutil.disk_usage(disk_path)
        return {
            "cpu_utilization_percentage": psutil.cpu_percent(),
            "system_memory_usage_megabytes": memory.used / 1e6,
            "system_memory_usage_percentage": memory.used / memory.total * 100,
            "disk_usage_percentage": disk.percent,
            "disk_usage_megabytes": disk.used / 1e6,
            "disk_available_megabytes": disk.free / 1e6,
        }

    return gauges


class ProcessTree:
    """A process and all of its descendants, as they are at each look.

    What a process did between the last look and its end is not seen.
    """

    def __init__(
        self,
        process_id: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        look: Callable[[], Iterable[Any]] | None = None,
    ) -> None:
        self._root = psutil.Process(process_id)
        self._clock = clock
        self._look = look or (lambda: (self._root, *self._root.children(recursive=True)))
        self._is_first = True
        self._seen: dict[tuple[int, float], Mapping[str, float]] = {}
        self._disk_mb = {"read": 0.0, "write": 0.0}
        self._looked_at = clock()

    def gauges(self) -> dict[str, float]:
        """Return the tree's figures; see ``ResourceMonitor``."""
        now = self._clock()
        seen: dict[tuple[int, float], Mapping[str, float]] = {}
        used = dict.fromkeys(("cpu_s", "read", "write"), 0.0)
        memory = 0.0
        has_disk = False
        for process in self._look():
            with suppress(psutil.Error):  # it ended meanwhile, or is not ours to look at
                with process.oneshot():
                    key = (process.pid, process.create_time())
                    memory += process.memory_info().rss
                    counters = _counters(process)
                has_disk |= "read" in counters
                seen[key] = counters
                # A process that was born since is counted whole; those of the first look are not:
                # what they did before is not this monitor's time.
                before = self._seen.get(key, counters if self._is_first else {})
                for name, value in counters.items():
                    used[name] += value - before.get(name, 0.0)
        elapsed_s = now - self._looked_at
        self._seen, self._looked_at, self._is_first = seen, now, False
        figures = {"process_memory_megabytes": memory / 1e6, "process_count": float(len(seen))}
        if elapsed_s > 0:
            figures["process_cpu_utilization_percentage"] = used["cpu_s"] / elapsed_s * 100
        if has_disk:
            for name in self._disk_mb:
                self._disk_mb[name] += used[name] / 1e6
                figures[f"process_disk_{name}_megabytes"] = self._disk_mb[name]
        return figures


def _counters(process: Any) -> dict[str, float]:
    times = process.cpu_times()
    counters = {"cpu_s": times.user + times.system}
    with suppress(psutil.Error, AttributeError):  # macOS does not tell
        disk = process.io_counters()
        counters |= {"read": float(disk.read_bytes), "write": float(disk.write_bytes)}
    return counters


def gpu_gauges() -> tuple[Gauges, ...]:
    """Return what reads the GPUs; nothing without nvidia-ml-py or without a GPU."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:
        return ()
    return (nvml_gauges(nvml),)


def nvml_gauges(nvml: Any) -> Gauges:
    """Return what reads the GPUs through an initialised ``pynvml``, named as MLflow does."""
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]

    def gauges() -> dict[str, float]:
        figures: dict[str, float] = {}
        for number, handle in enumerate(handles):
            gpu = f"gpu_{number}"
            with suppress(nvml.NVMLError):
                memory = nvml.nvmlDeviceGetMemoryInfo(handle)
                figures[f"{gpu}_memory_usage_percentage"] = memory.used / memory.total * 100
                figures[f"{gpu}_memory_usage_megabytes"] = memory.used / 1e6
            with suppress(nvml.NVMLError):
                rates = nvml.nvmlDeviceGetUtilizationRates(handle)
                figures[f"{gpu}_utilization_percentage"] = float(rates.gpu)
            with suppress(nvml.NVMLError):
                figures[f"{gpu}_power_usage_watts"] = nvml.nvmlDeviceGetPowerUsage(handle) / 1000
        return figures

    return gauges
