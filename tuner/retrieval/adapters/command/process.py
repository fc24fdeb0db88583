"""One running command: a line in, a line out, each within a time limit, and a sure end."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import IO

from tuner.core.errors import OutageError

# Longer lines, and more than so many of the last characters of an error, are of no use.
LONGEST_LINE = 64_000_000
STDERR_TAIL = 300
# How long a command may take to end by itself once its input is closed.
GRACE_S = 1.0
# How long it takes at most from a closed output to the exit code, on a busy machine.
EXIT_S = 3.0
# Waits for a pipe to close and kills a process group then: where this process is killed, so that
# nothing in it can clean up, the command does not outlive it, even if it hangs.
_WATCH = 'read -r _; kill -s KILL -- "-$0" 2>/dev/null'


class Process:
    """A command with its standard input and output; killed with all that it started."""

    def __init__(self, command: Sequence[str], working_dir: str) -> None:
        """Start the command.

        Raises:
            OutageError: it cannot be started.
        """
        try:
            self._process = subprocess.Popen(
                command,
                cwd=working_dir,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise OutageError(f"the command {command[0]!r} cannot be started: {reason}") from error
        self._watcher = _watch(self._process.pid)
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._stderr: deque[bytes] = deque(maxlen=50)
        self._stderr_reader = threading.Thread(target=self._read_stderr, daemon=True)
        self._stderr_reader.start()
        for work in (self._write, self._read):
            threading.Thread(target=work, daemon=True).start()
        self.has_answered = False
        self.is_in_step = True

    @property
    def is_running(self) -> bool:
        """Say whether the command has not ended."""
        return self._process.poll() is None

    def ask(self, line: bytes, timeout_s: float) -> bytes:
        """Send a line and return the next line that comes back.

        From here on the process is out of step, until the caller knows that this is the answer.

        Raises:
            OutageError: none came in time, or the command ended.
        """
        self.is_in_step = False
        self._requests.put(line)
        try:
            answer = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise OutageError(f"no answer within {timeout_s:g} s{self.stderr_tail()}") from None
        if not answer:
            raise OutageError(f"the command ended{self._exit()}{self.stderr_tail()}")
        self.has_answered = True
        return answer

    def end_input(self) -> None:
        """Close the command's input: there is nothing more to say to it."""
        self._requests.put(None)

    def next_line(self, timeout_s: float | None) -> bytes | None:
        """Return the next line of its output, empty at its end; None where none came in time."""
        try:
            return self._lines.get(timeout=None if timeout_s is None else max(0.0, timeout_s))
        except queue.Empty:
            return None

    def wait(self, timeout_s: float | None) -> str | None:
        """Wait for its end, and say how it failed, if it did; None where it is late."""
        try:
            code = self._process.wait(None if timeout_s is None else max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return None
        self._stderr_reader.join(EXIT_S)
        return "" if code == 0 else f"the command ended{_ended(code)}"

    def stderr_tail(self) -> str:
        """Return the end of what the command wrote to standard error, to append to a reason."""
        text = b"".join(self._stderr).decode("utf-8", errors="replace")
        text = " ".join(text.split())
        if not text:
            return ""
        return f"; its standard error: {'…' * (len(text) > STDERR_TAIL)}{text[-STDERR_TAIL:]}"

    def close(self, grace_s: float = GRACE_S) -> None:
        """Close the command's input, give it a moment to end, and kill what is left of it."""
        self._requests.put(None)
        if grace_s > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        if self._watcher is not None:  # before the group's number can be anybody else's
            self._watcher.kill()
            self._watcher.communicate()
        _kill_group(self._process)
        self._process.wait()

    def _exit(self) -> str:
        """Say how the command ended; its output is closed, so its end is near."""
        try:
            code = self._process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            return ", or closed its standard output"
        self._stderr_reader.join(EXIT_S)
        return _ended(code)

    def _write(self) -> None:
        stdin: IO[bytes] = self._process.stdin  # type: ignore[assignment]  # a pipe, as asked for
        with contextlib.suppress(OSError, ValueError):  # the reader notices that the command ended
            while (line := self._requests.get()) is not None:
                stdin.write(line)
                stdin.flush()
        with contextlib.suppress(OSError):
            stdin.close()

    def _read(self) -> None:
        stdout: IO[bytes] = self._process.stdout  # type: ignore[assignment]  # a pipe
        with stdout:
            while line := stdout.readline(LONGEST_LINE):
                self._lines.put(line)
        self._lines.put(b"")

    def _read_stderr(self) -> None:
        stderr: IO[bytes] = self._process.stderr  # type: ignore[assignment]  # a pipe
        with stderr:
            while line := stderr.readline(10_000):
                self._stderr.append(line)


@dataclass(frozen=True)
class Done:
    """What a command wrote to its standard output, and why it failed, if it did."""

    output: str
    problem: str = ""


def run_once(command: Sequence[str], working_dir: str, timeout_s: float | None) -> Done | None:
    """Run a command to its end; None where it took longer, and was killed.

    It is killed with all that it started, also where this process dies.

    Raises:
        OutageError: it cannot be started.
    """
    process = Process(command, working_dir)
    begin = time.monotonic()

    def left_s() -> float | None:
        return None if timeout_s is None else begin + timeout_s - time.monotonic()

    lines: list[bytes] = []
    try:
        process.end_input()
        while line := process.next_line(left_s()):
            lines.append(line)
        ended = None if line is None else process.wait(left_s())
        if ended is None:
            return None
        output = b"".join(lines).decode("utf-8", errors="replace")
        return Done(output, f"{ended}{process.stderr_tail()}" if ended else "")
    finally:
        process.close(grace_s=0)


class Idle:
    """Running commands that nobody asks at the moment; as many as there were trials at once."""

    def __init__(self, command: tuple[str, ...], working_dir: str) -> None:
        self._command, self._working_dir = command, working_dir
        self._idle: queue.LifoQueue[Process] = queue.LifoQueue()
        atexit.register(self.close)

    def take(self) -> Process:
        """Return a command that runs, started if none does.

        Raises:
            OutageError: it cannot be started.
        """
        while True:
            try:
                process = self._idle.get_nowait()
            except queue.Empty:
                return Process(self._command, self._working_dir)
            if process.is_running:
                return process
            process.close(grace_s=0)

    def give_back(self, process: Process) -> None:
        """Keep a command for the next trial."""
        self._idle.put(process)

    def close(self) -> None:
        """End all of them."""
        while True:
            try:
                process = self._idle.get_nowait()
            except queue.Empty:
                return
            process.close()


@lru_cache(maxsize=32)
def idle_processes(command: tuple[str, ...], working_dir: str, process_id: int) -> Idle:  # noqa: ARG001
    """Return this process's idle commands; a forked process has its own."""
    return Idle(command, working_dir)


def _ended(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f" by {signal.Signals(-code).name}"
    return f" with exit code {code}"


def _watch(process_group: int) -> subprocess.Popen[bytes] | None:
    if not hasattr(os, "killpg"):
        return None
    return subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, str(process_group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # or a kill of this process's whole group would take it along
    )


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if not hasattr(os, "killpg"):
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
