"""The writer in a process of its own, fed through a pipe: its work costs the study nothing.

Measured on two cores with evaluations of 0 ms and TPE search: as a thread the writer adds 3.3 ms to
each trial of the loop, since both need Python's one lock; as a process it adds next to nothing, and
importing MLflow (seconds) does not slow the study's first trials either. A child that
hangs can be killed, and MLflow's settings, output and loggers are not the study's.

One JSON object a line each way. To the child: the target (first), ``trial``, ``system``,
``finish``. Back: ``say``, and how far the view is. When the study dies, the pipe ends, and so does
the child.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import IO, Any, TextIO

from tuner.core.steps import Say
from tuner.core.study_record import StudySummary
from tuner.core.trial import Trial
from tuner.tracking.mlflow.quiet import message_of
from tuner.tracking.mlflow.records import SystemSample
from tuner.tracking.mlflow.view import Target
from tuner.tracking.mlflow.writer import TrackingStatus, Writer

_PROGRESS_EVERY_S = 0.2
# The child keeps to the time it is given; this much longer, and it is killed.
_GRACE_S = 2.0


class ProcessWriter:
    """Hands trials to a ``Writer`` in a child process; the same methods, none of which waits."""

    def __init__(self, target: Target, *, say: Say) -> None:
        self.run_id: str | None = None
        self.experiment_id: str | None = None
        self._target = target
        self._say = say
        self._outbox: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._submitted: set[int] = set()
        self._status = TrackingStatus()
        self._is_killed = False
        self._is_lost = False
        self._process: subprocess.Popen[str] | None = None
        self._sender = threading.Thread(target=self._send, name="tuner-mlflow-out", daemon=True)
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Start the child, in the background."""
        self._sender.start()

    def add(self, trial: Trial) -> None:
        """Take one told trial; takes microseconds. A trial that is known already is left out."""
        if trial.number not in self._submitted:
            self._submitted.add(trial.number)
            self._outbox.put({"trial": trial.to_record()})

    def add_system(self, sample: SystemSample) -> None:
        """Take system metrics; takes microseconds."""
        self._outbox.put({"system": asdict(sample)})

    def status(self) -> TrackingStatus:
        """Return how far the view is."""
        return replace(self._status, pending=len(self._submitted) - self._status.written)

    def finish(self, summary: StudySummary) -> None:
        """Let the child write the rest and the study's end; wait for it as long as is given."""
        longest_s = self._target.timeouts.finish_s + _GRACE_S
        deadline = time.monotonic() + longest_s
        self._outbox.put({"finish": summary.to_record()})
        self._outbox.put(None)
        self._sender.join(longest_s)
        process, reader = self._process, self._reader
        if process is None or reader is None:
            return
        reader.join(max(0.0, deadline - time.monotonic()))
        self._is_killed = reader.is_alive()
        process.kill()
        self._sender.join()
        reader.join()

    def _send(self) -> None:
        try:
            self._process = process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {__name__} import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                # The same modules as here, also where the package is not installed.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                start_new_session=True,  # Ctrl-C is the study's: it ends the child in good order
            )
        except OSError as error:
            self._lose(f"its process cannot be started: {message_of(error)}")
            return
        reader = threading.Thread(
            target=self._read, args=[process], name="tuner-mlflow-in", daemon=True
        )
        reader.start()
        self._reader = reader
        message: dict[str, Any] | None = self._target.to_record()
        try:
            with _pipe(process.stdin) as lines:
                while message is not None:
                    lines.write(json.dumps(message) + "\n")
                    lines.flush()
                    message = self._outbox.get()
        except OSError:
            return  # the child has ended; the reader says why
        except (TypeError, ValueError) as error:
            self._lose(f"this cannot be sent to its process: {message_of(error)}")

    def _read(self, process: subprocess.Popen[str]) -> None:
        is_done = False
        with _pipe(process.stdout) as lines:
            for line in lines:
                message = json.loads(line)
                if "say" in message:
                    self._say(message["say"])
                    continue
                self.run_id, self.experiment_id = message["run_id"], message["experiment_id"]
                self._status = TrackingStatus(**message["status"])
                is_done = message["is_done"]
        code = process.wait()
        if not is_done and not self._is_killed:
            self._lose(f"its process ended with exit code {code}")

    def _lose(self, reason: str) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self._status = replace(self._status, error=reason)
        self._say(f"MLflow is not written any more ({reason}); the study goes on")


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:  # never, as both are asked for
        raise OSError("no pipe to the writer's process")
    return stream


def main() -> None:
    """Run the child: read trials from standard input until the study's end, or its death."""
    # Service managers signal every process; only the pipe counts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print is not ours to read
    child = _Child(channel, Target.from_record(json.loads(sys.stdin.readline())))
    exit_code = child.follow(sys.stdin)
    channel.flush()
    os._exit(exit_code)  # at once, even if the writer hangs in a request


class _Child:
    def __init__(self, channel: TextIO, target: Target) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._told_at = 0.0
        self._writer = Writer(target, say=self._say, on_progress=self._tell_progress)

    def follow(self, lines: TextIO) -> int:
        self._writer.start()
        for line in lines:
            message = json.loads(line)
            if "trial" in message:
                self._writer.add(Trial.from_record(message["trial"]))
            elif "system" in message:
                self._writer.add_system(SystemSample(**message["system"]))
            else:
                self._writer.finish(StudySummary.from_record(message["finish"]))
                self._tell(is_done=True)
                return 0
        return 1

    def _say(self, message: str) -> None:
        self._post({"say": message})

    def _tell_progress(self) -> None:
        if time.monotonic() - self._told_at >= _PROGRESS_EVERY_S:
            self._told_at = time.monotonic()
            self._tell(is_done=False)

    def _tell(self, *, is_done: bool) -> None:
        writer = self._writer
        self._post(
            {
                "status": asdict(writer.status()),
                "run_id": writer.run_id,
                "experiment_id": writer.experiment_id,
                "is_done": is_done,
            }
        )

    def _post(self, message: dict[str, Any]) -> None:
        with self._lock, suppress(OSError):
            self._channel.write(json.dumps(message) + "\n")
            self._channel.flush()
