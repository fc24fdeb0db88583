"""MLflow's own server as a child process, ended in good order; and where to look in its pages."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from tuner.core.ending import ended_by_signals
from tuner.core.errors import TunerError
from tuner.core.steps import Say
from tuner.tracking.mlflow.quiet import quiet
from tuner.tracking.mlflow.records import ROLE, STUDY_ID
from tuner.tracking.mlflow.saved_views import WORKFLOW
from tuner.tracking.uri import absolute, check_uri, mask, without_password

_POLL_S = 0.1
_GRACE_S = 5.0
_LINES_KEPT = 12


def ui_command(uri: str, *, host: str = "127.0.0.1", port: int = 5000) -> list[str]:
    """Return the command that serves MLflow's UI, with this Python; ``ui_environment`` has the URI.

    Raises:
        InputError: a URI that MLflow would refuse.
    """
    check_uri(uri)
    options = ["--workers", "1", "--uvicorn-opts", "--log-level warning"]
    return [sys.executable, "-m", "mlflow", "ui", "--host", host, "--port", str(port), *options]


def ui_environment(uri: str) -> dict[str, str]:
    """Return the environment of ``ui_command``: commands are seen by everyone, environments not."""
    return {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # nothing here is a job; it starts sooner
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "PYTHONWARNINGS": "ignore",
        "PYTHONSAFEPATH": "1",  # a numpy.py in the working folder is not run for numpy
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": absolute(uri),
    }


def serve_ui(
    uri: str,
    *,
    host: str,
    port: int,
    say: Say,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve MLflow's pages until Ctrl-C or SIGTERM; say the address once it answers.

    ``on_ready`` gets the address at which the server is reached from here.

    Raises:
        InputError: a URI that MLflow would refuse.
        TunerError: the port is taken, or the server does not start or ends by itself; with its
            last words.
    """
    command = ui_command(uri, host=host, port=port)
    _check_port(host, port)
    say(f"starting MLflow on {mask(uri)} …")
    with ended_by_signals(), suppress(KeyboardInterrupt):
        process = subprocess.Popen(
            command,
            env=ui_environment(uri),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C ends it through us, without its traceback
        )
        last_lines: deque[str] = deque(maxlen=_LINES_KEPT)
        reader = threading.Thread(
            target=lambda: last_lines.extend(process.stdout or ()), daemon=True
        )
        reader.start()
        try:
            address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            while process.poll() is None and not _answers(_reached(address)):
                time.sleep(_POLL_S)
            if process.poll() is None:
                say(f"MLflow is at {address}  (Ctrl-C ends it)")
                if on_ready is not None:
                    on_ready(_reached(address))
                process.wait()
        finally:
            _end(process)
        reader.join(_GRACE_S)
        # What is indented is a traceback's.
        plain = [line for line in last_lines if not line[:1].isspace()]
        words = without_password("".join(plain), uri).strip()
        raise TunerError(f"MLflow's server ended with exit code {process.returncode}:\n{words}")


def places(uri: str, experiment: str, study_id: str | None = None) -> dict[str, str]:
    """Return addresses within the pages of a store, by what they show; ``{}`` before any study.

    For MLflow itself opens on pages for language models, which are empty.

    Raises whatever MLflow or the network raise.
    """
    with quiet():
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=uri)
        found = client.get_experiment_by_name(experiment)
        if found is None:
            return {}
        runs = f"#/experiments/{found.experiment_id}/runs"
        shown = {}
        if study_id is not None:
            wanted = f"tags.`{STUDY_ID}` = '{study_id}' and tags.`{ROLE}` = 'study'"
            for run in client.search_runs([found.experiment_id], wanted, max_results=1):
                shown["the study"] = f"{runs}/{run.info.run_id}?{WORKFLOW}"
        shown["all studies"] = f"{runs}?viewStateShareKey=tuner-studies&{WORKFLOW}"
        return shown


def _reached(address: str) -> str:
    """Return the address from here: a server on every interface is on loopback too."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _answers(address: str) -> bool:
    # Without the proxies of the environment, which do not know this machine's loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def _check_port(host: str, port: int) -> None:
    """Find out before the seconds that MLflow takes to start, and not mistake another for it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise TunerError(
                f"cannot serve on {host}, port {port}: {error.strerror or error}; "
                "choose another: --port"
            ) from error


def _end(process: subprocess.Popen[str]) -> None:
    """End the server and its workers: politely, and what is left then at once."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
