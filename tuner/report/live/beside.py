"""The page of a study that this process runs: served by another one, as long as the run wants."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tuner.core.ending import ended_by_signals
from tuner.core.steps import Say


@dataclass(frozen=True)
class PageBeside:
    """A page that another process serves at an address."""

    address: str
    process: subprocess.Popen[str]

    def stay(self, say: Say) -> None:
        """Say that the page is still there to be looked at, and wait until Ctrl-C or SIGTERM."""
        with ended_by_signals(), suppress(KeyboardInterrupt):
            say(f"the page stays at {self.address}  (Ctrl-C ends it)")
            self.process.wait()


@contextmanager
def page_beside(run_dir: Path) -> Iterator[PageBeside | None]:
    """Serve the page of a study that this process runs, to the end of the block.

    Another process makes it: made here, it would slow down what the study measures. None where
    that process cannot serve; a study goes on without a page.
    """
    with subprocess.Popen(
        [sys.executable, "-P", "-c", f"from {__name__} import main; main()", str(run_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # The same modules as here, also where the package is not installed.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        start_new_session=True,  # Ctrl-C is the run's; the page ends with the block
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            yield PageBeside(address, process) if address else None
        finally:
            process.kill()


def main() -> None:
    """Be the process that serves: until standard input ends, as it does when the run is killed."""
    from tuner.report.live.serving import POLL_S, server_of

    with server_of(Path(sys.argv[1]), port=0) as server:
        print(server.address, flush=True)

        def end_with_input() -> None:
            sys.stdin.read()  # nothing is ever written there
            server.shutdown()

        threading.Thread(target=end_with_input, daemon=True).start()
        server.serve_forever(POLL_S)
