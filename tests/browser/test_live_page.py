"""A study is watched in a browser while it runs: trials appear, it is killed, resumed, and ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tuner.core.journal import read_journal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

PROJECT = Path(__file__).resolve().parents[2]
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]+/")
# Trials ask for another weight each, and wait until a file says that so many may: so the test says
# how far the study is.
SEARCH = """
import time
from pathlib import Path

GATE = Path(__file__).parent / "gate"
seen = set()


def search(query, weight=1.0, top_k=10):
    seen.add(weight)
    while int(GATE.read_text()) < len(seen):
        time.sleep(0.02)
    word = query.split()[-1].strip("?")
    found = [f"{word}-{n}" for n in range(4)]
    return (found if weight > 2.0 else found[::-1])[:top_k]
"""
CONFIG = """
study: {name: watched, seed: 3}
dataset: {path: data, split: {holdout: 0.5}}
retriever: {kind: function, function: "my_search:search"}
space:
  weight: {type: real, low: 0.0, high: 4.0}
objective: {maximize: {mrr@10: 1.0}}
baseline: {weight: 1.0, top_k: 10}
backends: [{kind: random, trials: 12}]
execution: {kind: inline}
inspection: off
free: off
tracking: null
"""
WORDS = [f"word{n}" for n in range(24)]


class Work:
    """A folder with a study that goes as far as it is let, and what watches it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []
        data = folder / "data"
        (data / "qrels").mkdir(parents=True)
        corpus = [f'{{"_id": "{w}-{n}", "text": "{w} {n}"}}' for w in WORDS for n in range(4)]
        queries = [f'{{"_id": "q-{w}", "text": "What is {w}?"}}' for w in WORDS]
        judged = ["query-id\tcorpus-id\tscore", *(f"q-{w}\t{w}-0\t1" for w in WORDS)]
        for name, lines in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
            (data / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        (data / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n", encoding="utf-8")
        (folder / "my_search.py").write_text(SEARCH, encoding="utf-8")
        (folder / "study.yaml").write_text(CONFIG, encoding="utf-8")

    def let(self, trials: int) -> None:
        """Let so many trials be evaluated, the baseline's among them."""
        beside = self.folder / "gate.new"
        beside.write_text(str(trials), encoding="utf-8")
        beside.replace(self.folder / "gate")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tuner", *arguments],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(self.folder), str(PROJECT)]),
                "TUNER_CACHE_DIR": str(self.folder / "cache"),
                "OMP_NUM_THREADS": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def address(self, process: subprocess.Popen[str]) -> str:
        said = ""
        assert process.stderr is not None
        while (found := ADDRESS.search(said)) is None:
            line = process.stderr.readline()
            if not line:
                pytest.fail(f"no address: {said}")
            said += line
        return found[0]

    @property
    def run_dirs(self) -> list[Path]:
        return [path.parent for path in self.folder.glob("runs/*/journal.jsonl")]

    @property
    def run_dir(self) -> Path:
        (found,) = self.run_dirs
        return found

    def told(self) -> int:
        trials = read_journal(self.run_dir / "journal.jsonl").trials.values()
        return sum(trial.is_told for trial in trials)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    made = Work(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def state(browser: Any) -> str:
    return str(browser.find("#live-state")[0].text)


def told_on_page(browser: Any) -> int:
    return int(
        browser.script(
            "return study.data ? study.data.state.filter("
            "s => study.data.states[s] !== 'running').length : 0"
        )
    )


def test_a_study_is_watched_from_its_first_trials_to_its_end(browser: Any, work: Work) -> None:
    work.let(3)
    study = work.start("run", "study.yaml", "--quiet")
    browser.until("three trials", lambda: next(iter(work.run_dirs), None) and work.told() == 3)
    watcher = work.start("watch", str(work.run_dir), "--no-open")
    browser.open(work.address(watcher))
    browser.until("three trials", lambda: told_on_page(browser) == 3)
    assert "The study runs: 3 of about 12 trials told" in state(browser)
    assert "Still searching" in browser.find(".verdict")[0].text
    # What is not seen is drawn anew when it is scrolled to.
    browser.script(
        "window.isStillThere = true;"
        "document.getElementById('plot-convergence').scrollIntoView({behavior: 'instant'})"
    )

    work.let(6)
    browser.until("six trials", lambda: told_on_page(browser) == 6)
    browser.until("six in words", lambda: "6 of about 12" in state(browser))
    browser.until("the figure beside", lambda: "6" in browser.find(".facts")[0].text)
    # Convergence is one of the figures that are made of all trials.
    browser.until(
        "the curve of six trials",
        lambda: (
            browser.script(
                "return Math.max(...document.getElementById('plot-convergence').data[0].x)"
            )
            >= 5
        ),
    )
    assert browser.script("return window.isStillThere")  # nothing was loaded again
    shown = browser.script("return study.data.state.map((_, n) => study.shown('param:weight', n))")
    trials = read_journal(work.run_dir / "journal.jsonl").trials
    for number, text in enumerate(shown):
        assert float(text) == pytest.approx(trials[number].params["weight"], abs=6e-3)

    browser.script(
        "const box = document.querySelector(\"[data-of='param:weight'] input\");"
        "box.value = '1.5'; box.dispatchEvent(new Event('change'));"
    )
    chips = "return [...document.querySelectorAll('#selection .chips li')].map(e => e.innerText)"
    assert browser.script(chips) == ["weight from 1.5 ✕"]
    study.kill()
    study.wait()
    browser.until("that the process is gone", lambda: "is gone without an end" in state(browser))
    again = work.start("resume", str(work.run_dir), "--quiet")
    browser.until("that it runs again", lambda: "The study runs" in state(browser))
    work.let(1_000_000)
    browser.until("the end", lambda: "The study has ended: 13 trials told." in state(browser))
    browser.until("the verdict", lambda: "Deploy" in browser.find(".outcome")[0].text)
    assert again.wait() == 0
    # The page was loaded again, and what was selected is selected as before.
    assert not browser.script("return window.isStillThere")
    browser.until("the chip", lambda: browser.script(chips) == ["weight from 1.5 ✕"])
    browser.until(
        "new trials among the selected",
        lambda: browser.script(
            "return study.data.columns['param:weight'].every("
            "(weight, n) => study.isSelected(n) === (weight >= 1.5))"
        ),
    )
    assert browser.find("#queries details")
    # A query that is opened loads its file from the watcher.
    browser.until("the list of queries", lambda: browser.find("#query-list[data-ready]"))
    browser.script("document.querySelector('.query-rows button').click()")
    browser.until("its passages", lambda: browser.find(".query-rows ol li"))
    # No complaint but of what the page asked while it was loaded again.
    assert not [one for one in browser.complaints() if "Content Security Policy" in one]
    assert all(address.startswith("http://127.0.0.1:") for address in browser.requests())


def test_a_watcher_that_ends_is_said_and_the_page_stays(browser: Any, work: Work) -> None:
    work.let(1_000_000)
    study = work.start("run", "study.yaml", "--quiet")
    _, said = study.communicate()
    assert study.returncode == 0, said
    watcher = work.start("watch", str(work.run_dir), "--no-open")
    browser.open(work.address(watcher))
    browser.until("the end", lambda: "The study has ended" in state(browser))
    verdict = browser.find(".verdict")[0].text
    watcher.terminate()
    assert watcher.wait() == 0
    browser.until("that it is gone", lambda: "does not answer" in state(browser))
    assert browser.find(".verdict")[0].text == verdict
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        ratios = [ratio for ratio, text in browser.contrasts()["texts"] if "watcher" in text]
        assert ratios
        assert min(ratios) >= 4.5
