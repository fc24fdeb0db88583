"""A real MLflow server on loopback and a headless chromium, for scripts that look at pages."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE_S = 900.0
NAME_LINKS = ".ag-pinned-left-cols-container .ag-row a[href*='/runs/']"


@contextmanager
def mlflow_server(store: Path) -> Iterator[str]:
    """Serve a sqlite store, and yield the server's address; artifacts lie beside the store."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    environment = {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    with (store.parent / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "mlflow", "server", "--workers", "1"),
                *("--backend-store-uri", f"sqlite:///{store}"),
                *("--artifacts-destination", str(store.parent / "artifacts")),
                *("--host", "127.0.0.1", "--port", str(port)),
            ],
            cwd=store.parent,
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _answers(address):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"mlflow server did not start: see {store.parent / 'server.log'}")
            time.sleep(0.1)
        yield address
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait(30)


@contextmanager
def chromium(*, width: int = 1500, height: int = 900) -> Iterator[Any]:
    """Open a window whose page has that size; MLflow's assistant stays closed in it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        raise SystemExit("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        "--hide-scrollbars",
    ):
        options.add_argument(flag)
    window = webdriver.Chrome(options=options, service=Service(driver))
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    closed = (
        "try { localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true');"
        " localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false') } catch {}"
    )
    window.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": closed})
    try:
        yield window
    finally:
        window.quit()


def wait_for(window: Any, what: str, found: Callable[[], Any]) -> Any:
    """Wait until something is found on a page that may still be drawn.

    Raises:
        SystemExit: it is never found.
    """
    from selenium.common.exceptions import TimeoutException, WebDriverException
    from selenium.webdriver.support.wait import WebDriverWait

    wait = WebDriverWait(
        window, PATIENCE_S, poll_frequency=0.05, ignored_exceptions=[WebDriverException]
    )
    try:
        return wait.until(lambda _: found())
    except TimeoutException:
        raise SystemExit(f"the page {window.current_url} never showed {what}") from None


def reads(window: Any, selector: str, text: str) -> bool:
    """Say whether an element that a CSS selector finds holds the text."""
    return any(text in one.text for one in window.find_elements("css selector", selector))


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
