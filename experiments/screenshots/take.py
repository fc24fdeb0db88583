"""Take the screenshots of the documents: a study in MLflow's pages, and its report.

    pip install '.[browser]' && python experiments/screenshots/take.py [FOLDER]

Runs configs/graphrag.yaml against a real `mlflow server`, opens the pages in chromium, and writes
PNGs of few colours, each of at most 200 kB, to docs/images or to FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from pages import chromium, mlflow_server, reads, wait_for

PROJECT = Path(__file__).resolve().parents[2]
SHOWN_IN_PAGES = PROJECT / "docs" / "images"
LARGEST_BYTES = 200_000
WORKFLOW = "workflowType=machine_learning"


def run_study(folder: Path, address: str) -> dict[str, Any]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tuner", "run", str(PROJECT / "configs" / "graphrag.yaml")),
            # In one process a busy machine changes no order: the documents' figures come out.
            *("--quiet", "--json", "--set", "execution.kind=inline"),
            *("--set", f"tracking.uri={address}"),
        ],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def save(window: Any, path: Path) -> None:
    """Keep what the window shows, in as many colours as the file may have."""
    from PIL import Image

    picture = Image.open(BytesIO(window.get_screenshot_as_png())).convert("RGB")
    for colours in (256, 128, 64, 32):
        picture.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size <= LARGEST_BYTES:
            break
    else:
        raise SystemExit(f"{path}: {path.stat().st_size:,} bytes are too many: make it smaller")
    print(f"{path}  {path.stat().st_size / 1000:.0f} kB, {colours} colours")


def click(window: Any, xpath: str) -> None:
    def clicked() -> bool:
        found = window.find_elements("xpath", xpath)
        if found:
            found[0].click()
        return bool(found)

    wait_for(window, xpath, clicked)


def take_trials(window: Any, experiment: str) -> None:
    """Show the view of the latest study's trials, best first."""
    window.get(f"{experiment}/runs?viewStateShareKey=tuner-trials&{WORKFLOW}")
    column = "metrics.`objective`"
    wait_for(window, "the trials", lambda: reads(window, f".ag-row [col-id='{column}']", "0."))
    click(window, "//button[contains(., 'Exit shared view')]/following-sibling::*[1]")


def take_run(window: Any, experiment: str, run_id: str) -> None:
    """Show the study's run with all of its description."""
    window.get(f"{experiment}/runs/{run_id}?{WORKFLOW}")
    click(window, "//button[contains(., 'Show more')]")
    wait_for(window, "the query types", lambda: reads(window, "td, th", "bridge2"))


def take_report(window: Any, page: Path, *, heading: str | None) -> None:
    """Show the report from its top, or from one of its headings."""
    window.get(page.as_uri())
    wait_for(window, "figures", lambda: window.find_elements("css selector", ".main-svg"))
    if heading is not None:
        found = window.find_elements("xpath", f"//h2[contains(., '{heading}')]")[0]
        window.execute_script(
            "document.documentElement.style.scrollBehavior = 'auto';"
            "scrollTo(0, arguments[0].getBoundingClientRect().top + scrollY - 24)",
            found,
        )


def take_trials_of_report(window: Any, page: Path) -> None:
    """Show all trials, with those selected that found more than the baseline."""
    take_report(window, page, heading="All trials")
    window.execute_script(
        "const worth = study.column('objective'), least = worth[study.data.baseline];"
        "study.select([...worth.keys()].filter(n => worth[n] > least), 'above the baseline');"
    )
    drawn = "return [...document.querySelectorAll('#explore .plot')].some(one => one.isStale)"
    wait_for(window, "the selection", lambda: not window.execute_script(drawn))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=SHOWN_IN_PAGES)
    target: Path = parser.parse_args().folder.absolute()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        store = folder / "mlflow.db"
        with mlflow_server(store) as address:
            record = run_study(folder, address)
            experiment, run_id = record["mlflow_url"].split("?")[0].split("/runs/")
            report = folder / record["run_dir"] / "report.html"
            pictures: dict[str, tuple[int, int, Callable[[Any], None]]] = {
                "mlflow-trials": (1600, 760, lambda w: take_trials(w, experiment)),
                "mlflow-run": (1500, 930, lambda w: take_run(w, experiment, run_id)),
                "report-top": (1100, 1120, lambda w: take_report(w, report, heading=None)),
                "report-trials": (1100, 1250, lambda w: take_trials_of_report(w, report)),
                "report-queries": (
                    *(1100, 1180),
                    lambda w: take_report(w, report, heading="wins and loses"),
                ),
            }
            for picture, (width, height, take) in pictures.items():
                with chromium(width=width, height=height) as window:
                    take(window)
                    save(window, target / f"{picture}.png")


if __name__ == "__main__":
    main()
