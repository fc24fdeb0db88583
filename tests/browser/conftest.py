"""A headless chromium that reaches nothing but loopback, and a finished study to look at in it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tuner.report.review import Review, read_review
from tuner.report.writing import write_report

PROJECT = Path(__file__).resolve().parents[2]
# Ends a test that would never end; nothing is expected to take this long.
PATIENCE_S = 900.0
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# The contrast of each text with the nearest background behind it, as WCAG 2 defines it.
CONTRASTS = """
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgba(color) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}
function luminance([r, g, b]) {
  const parts = [r, g, b].map(v => v / 255).map(
    v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}
function background(element) {
  for (let one = element; one; one = one.parentElement) {
    const color = rgba(getComputedStyle(one).backgroundColor);
    if (color[3] > 250) return color;
  }
  return matchMedia('(prefers-color-scheme: dark)').matches
    && getComputedStyle(document.documentElement).colorScheme.includes('dark')
    ? [18, 18, 18] : [255, 255, 255];
}
const found = [];
for (const element of document.body.querySelectorAll('*')) {
  const own = [...element.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join(' ');
  const box = element.getBoundingClientRect();
  if (!/[\\p{L}\\p{N}]/u.test(own) || !box.width || !box.height) continue;
  if (element.closest('script, style, noscript')) continue;
  const style = getComputedStyle(element);
  if (style.visibility === 'hidden') continue;
  const text = rgba(element instanceof SVGElement ? style.fill : style.color);
  const [low, high] = [luminance(text), luminance(background(element))].sort((a, b) => a - b);
  found.push([(high + 0.05) / (low + 0.05), own.trim().slice(0, 60)]);
}
return {paper: luminance(background(document.body)), texts: found};
"""


def _fixtures_of(room: str) -> ModuleType:
    """Load the conftest of another folder: what its tests stand on is looked at here."""
    path = PROJECT / "tests" / room / "conftest.py"
    spec = importlib.util.spec_from_file_location(f"{room}_conftest", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# The same real server serves the pages here.
_tracking = _fixtures_of("tracking")
server = _tracking.server


@pytest.fixture(scope="module")
def make_report(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a study of any state, without running one, and its report; return its run directory."""
    studies = _fixtures_of("report")

    def make(**options: Any) -> Path:
        folder = tmp_path_factory.mktemp("report") / "run"
        run_dir: Path = studies.write_study(folder, studies.StudyPlan(**options))
        write_report(run_dir, with_plots=False)
        return run_dir

    return make


@pytest.fixture(scope="module")
def make_studies(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Review]]:
    """Write a study for each of some options, begun a day after the one before it; read them."""
    studies = _fixtures_of("report")

    def make(*options: dict[str, Any]) -> list[Review]:
        folder, found = tmp_path_factory.mktemp("studies"), []
        for day, one in enumerate(options):
            written = studies.write_study(folder / f"study-{day}", studies.StudyPlan(**one))
            header = (review := read_review(written)).header
            header = replace(header, created_at=header.created_at + 86_400.0 * day)
            found.append(replace(review, header=header))
        return found

    return make


# What an A4 sheet has between the margins of the pages' print style, at 96 pixels an inch.
PAPER_PX = 687
# Words that are cut in two in a table; longer ones, such as the names of parameters, may be.
TORN_WORDS = """
const torn = [];
for (const cell of document.querySelectorAll('th, td')) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const word of node.data.matchAll(/[\\p{L}\\p{N}._]+/gu)) {
      if (word[0].length > 10) continue;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
      if (lines.size > 1) torn.push(word[0]);
    }
  }
}
return torn;
"""


class Browser:
    """One chromium window; every wait ends in a message with the path of a screenshot."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver = driver
        self.folder = folder
        self._shots = 0

    def open(self, address: str | Path) -> None:
        """Open an address, or a file, as a new visitor who has seen no other page."""
        self.driver.get("about:blank")
        if not isinstance(address, Path):
            origin = "/".join(address.split("/")[:3])
            forgotten = {"origin": origin, "storageTypes": "all"}
            self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", forgotten)
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(address.as_uri() if isinstance(address, Path) else address)

    def find(self, selector: str) -> list[Any]:
        """Find elements by CSS, or by XPath where the selector begins with two slashes."""
        by = "xpath" if selector.startswith("//") else "css selector"
        return list(self.driver.find_elements(by, selector))

    def until(self, what: str, found: Callable[[], Any]) -> Any:
        """Wait until something is found, whatever a page that is still being drawn does."""
        from selenium.common.exceptions import TimeoutException, WebDriverException
        from selenium.webdriver.support.wait import WebDriverWait

        wait = WebDriverWait(
            self.driver,
            PATIENCE_S,
            poll_frequency=0.1,
            ignored_exceptions=[WebDriverException, LookupError, ValueError],
        )
        try:
            return wait.until(lambda _: found())
        except TimeoutException:
            shot = self.shot("not found")
            pytest.fail(f"the page never showed {what}: see {shot}\n{self.text()[:1500]}")

    def see(self, selector: str) -> Any:
        """Wait for an element that can be seen, and return it."""
        return self.until(
            f"an element {selector}",
            lambda: next((one for one in self.find(selector) if one.is_displayed()), None),
        )

    def click(self, selector: str) -> None:
        """Click an element as soon as it takes a click."""

        def clicked() -> bool:
            element = next((one for one in self.find(selector) if one.is_displayed()), None)
            if element is None:
                return False
            element.click()
            return True

        self.until(f"{selector} to be clicked", clicked)

    def read(self, *texts: str, within: str = "body") -> str:
        """Wait until a part of the page reads all of the texts, and return what it reads."""

        def whole() -> str:
            said = "\n".join(one.text for one in self.find(within))
            return said if all(text in said for text in texts) else ""

        return str(self.until(f"{' and '.join(map(repr, texts))} within {within}", whole))

    def text(self) -> str:
        """Return all that can be read on the page."""
        return "\n".join(one.text for one in self.find("body"))

    def script(self, code: str, *arguments: Any) -> Any:
        """Run JavaScript in the page and return what it returns."""
        return self.driver.execute_script(code, *arguments)

    def resize(self, width: int, height: int) -> None:
        """Set the page's own size, which a window's frame would take from."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        """Prefer light or dark pages."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        settings = {"media": "", "features": features}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", settings)

    def contrasts(self) -> dict[str, Any]:
        """Return how light the page is, and each text that is seen with its contrast."""
        found: dict[str, Any] = self.script(CONTRASTS)
        return found

    def print_pdf(self) -> bytes:
        """Print the page."""
        import base64

        options = {"printBackground": True, "paperWidth": 8.27, "paperHeight": 11.69}
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", options)["data"])

    def lay_out_for_paper(self) -> None:
        """Show the page as it is laid out for A4, to be looked into."""
        self.resize(PAPER_PX, 1000)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})

    def torn_words(self) -> list[str]:
        """Return the words of tables that stand on two lines."""
        return list(self.script(TORN_WORDS))

    def requests(self) -> list[str]:
        """Return the addresses that the page has asked for since it was opened."""
        messages = (
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        )
        asked = (
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        )
        return [address for address in asked if not address.startswith(("data:", "blob:"))]

    def complaints(self) -> list[str]:
        """Return what the console says is wrong."""
        entries = self.driver.get_log("browser")
        return [entry["message"] for entry in entries if entry["level"] in {"SEVERE", "WARNING"}]

    def shot(self, name: str) -> Path:
        """Keep what is seen."""
        self._shots += 1
        path = self.folder / f"{self._shots} {name}.png"
        self.driver.save_screenshot(str(path))
        return path


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    """One chromium for the session; a machine without it skips these tests."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs '.[browser]'")
    from selenium.webdriver.chrome.service import Service

    binary = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    chromedriver = shutil.which("chromedriver")
    if binary is None or chromedriver is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--disable-background-networking", "--no-first-run", "--hide-scrollbars"),
        "--window-size=1900,1200",
        # Whatever a page may want from elsewhere, it does not get it here.
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(chromedriver))
    running.set_page_load_timeout(PATIENCE_S)
    # MLflow opens its assistant over a third of the window on a first visit.
    closed = (
        "try { localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true');"
        " localStorage.setItem('mlflow.assistant.panelOpen_v1', 'false') } catch {}"
    )
    running.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": closed})
    yield running
    running.quit()


@pytest.fixture
def browser(driver: Any, tmp_path: Path) -> Browser:
    """The window, light and wide, with a folder of its own for screenshots."""
    window = Browser(driver, tmp_path)
    window.resize(1900, 1200)
    window.prefer("light")
    return window


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[pytest.TestReport]:
    """Keep a screenshot of a page at which a test failed, and name it in the report."""
    report: pytest.TestReport = yield
    window = getattr(item, "funcargs", {}).get("browser")
    if call.when == "call" and report.failed and isinstance(window, Browser):
        report.sections.append(("screenshot", str(window.shot("failed"))))
    return report


@dataclass(frozen=True)
class AtlasStudy:
    """A finished study of the built-in data set, as a user would have made it."""

    run_dir: Path
    record: dict[str, Any]
    tracking_uri: str | None


@pytest.fixture(scope="session")
def make_atlas_study() -> Callable[..., AtlasStudy]:
    def make(folder: Path, tracking_uri: str | None = None) -> AtlasStudy:
        tracking = f"{{uri: '{tracking_uri}', experiment: atlas}}" if tracking_uri else "null"
        settings = {
            # From today's setting on few hops, so that the winner is clear after few trials.
            "baseline": "{graph_weight: 0.1, max_hops: 1, top_k: 20, temperature: 0.5}",
            "backends": "[{kind: grid, trials: 12}, {kind: tpe, trials: 10}]",
            "execution": "{kind: inline}",
            "objective.constraints": "{}",
            # The trials that pages show and filter are many of each parameter.
            "free": "off",
            "tracking": tracking,
        }
        options = [part for key in settings for part in ("--set", f"{key}={settings[key]}")]
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tuner", "run", str(PROJECT / "configs/graphrag.yaml")),
                *("--quiet", "--json", *options),
            ],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MLFLOW_DISABLE_TELEMETRY": "true"},
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        record = json.loads(done.stdout)
        return AtlasStudy(folder / record["run_dir"], record, tracking_uri)

    return make
