"""A run directory that is read while others write it: its page, and what is new since then."""

from __future__ import annotations

import csv
import io
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from tuner.core.errors import InputError
from tuner.core.journal import AMENDED, ENDING, OPENINGS, JournalContent, JournalReader
from tuner.core.local_server import Answer, Asked
from tuner.core.run_files import FIGURES_DIR, REPORT_DATA_DIR
from tuner.core.shown import counted
from tuner.report.headline import headline
from tuner.report.page_view import Served, policy_of, to_html
from tuner.report.parts import Headline, Page
from tuner.report.query_data import QueryData, query_data
from tuner.report.review import Review, review_of
from tuner.report.study_data import study_data
from tuner.report.writing import make_page
from tuner.run.folder import SUMMARY_NOTE, journal_in

# Figures that are made of all trials are drawn anew when these have grown by this share, and when
# the last drawing took no more than this share of the time since: watching must cost little.
GROWN_BY = 0.1
SHARE_OF_TIME = 0.05


@dataclass(frozen=True)
class Made:
    """The whole page as it was made last: of which trials, in how many seconds, and when."""

    stage: str
    position: int
    trials: int
    page: Page
    html: str
    policy: str
    seconds: float
    at: float
    listed: QueryData | None

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Return what the page loads when a query is opened, by name."""
        return {} if self.listed is None else dict(self.listed.files)


class Watched:
    """A study that may be under way, in whatever process or machine; nothing is ever written.

    ``clock`` counts seconds. Several threads may ask at once.
    """

    def __init__(self, run_dir: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Open a run directory.

        Raises:
            InputError: not a run directory.
        """
        self.run_dir = run_dir
        self._reader = JournalReader(journal_in(run_dir))
        self._clock = clock
        self._reading = Lock()
        # Held while the page is made: of thousands of trials that takes long, and what is new is
        # told all the same.
        self._making = Lock()
        self._made: Made | None = None

    def answer(self, asked: Asked) -> Answer | None:
        """Answer the page: itself, what is new, or the numbers of a figure.

        Raises:
            InputError: the journal cannot be read, or what is asked for makes no sense.
        """
        if asked.body is not None:
            return None
        folder, _, file = asked.name.partition("/")
        if asked.name == "":
            made = self.page()
            return Answer(made.html, "text/html", made.policy)
        if asked.name == "new":
            since, drawn = _whole_number(asked, "since"), _whole_number(asked, "drawn")
            return Answer.of(self.news(asked.query.get("stage", ""), since, drawn))
        if folder == FIGURES_DIR:
            return self._numbers(file)
        if folder == REPORT_DATA_DIR:
            return self._queries(file)
        return None

    def page(self) -> Made:
        """Return the whole page, as the study is now.

        Raises:
            InputError: the journal holds no study, or cannot be read.
        """
        with self._making:
            return self._whole()

    def news(self, stage: str, since: int, drawn: int = 0) -> dict[str, Any]:
        """Return what a page does not know: of ``stage``, and up to position ``since``.

        ``drawn`` is of how many told trials its figures are made.

        Always: ``stage`` and ``position``, as they are now, and ``state``. Where another stage has
        begun, such as the end, no more: the page is to be loaded again. Where trials were asked or
        told since: ``numbers`` says which, ``study`` what there is of these alone (see
        ``study_data``), ``headline`` how the study stands. ``is_grown`` says that the figures
        that are made of all trials are worth drawing anew.
        """
        content, now, touched = self._read()
        position = len(touched)
        told = sum(trial.is_told for trial in content.trials.values())
        state = state_of(content, told)
        found: dict[str, Any] = {
            "stage": now,
            "position": position,
            "state": {"is_over": state.is_over, "said": state.said},
            "is_grown": self._is_grown(now, position, told, drawn),
        }
        if stage != now or since > position:
            return found
        numbers = sorted(set(touched[since:]))
        if not numbers:
            return found
        review = review_of(self.run_dir, content)
        return {
            **found,
            "numbers": numbers,
            "study": rows_of(review, numbers),
            "headline": asdict(top_of(review, state)),
        }

    def _read(self) -> tuple[JournalContent, str, Sequence[int]]:
        """Return the study as it is now, its stage, and which trials its lines were of."""
        with self._reading:
            self._reader.read()
            content = self._reader.content()
            return content, self._stage(content), tuple(self._reader.touched)

    def _whole(self) -> Made:
        content, stage, touched = self._read()
        position, made = len(touched), self._made
        if made is not None and (made.stage, made.position) == (stage, position):
            return made
        begun = self._clock()
        review = review_of(self.run_dir, content)
        listed = query_data(review)
        page = make_page(review, (), listed)
        told = sum(trial.is_told for trial in review.trials)
        state = state_of(content, told)
        page = replace(page, headline=top_of(review, state))
        served = Served(stage, position, told, state.said)
        html, policy = to_html(page, served), policy_of(page, served)
        ended = self._clock()
        self._made = Made(stage, position, told, page, html, policy, ended - begun, ended, listed)
        return self._made

    def _is_grown(self, stage: str, position: int, told: int, drawn: int) -> bool:
        made = self._made
        if self._making.locked():  # for another page: this one asks again
            return False
        if made is None or made.stage != stage or told < max(drawn * (1 + GROWN_BY), drawn + 1):
            return False
        # What was made for another page meanwhile costs nothing more.
        is_made = position == made.position
        return is_made or (self._clock() - made.at) * SHARE_OF_TIME >= made.seconds

    def _stage(self, content: JournalContent) -> str:
        """Name the part of its life that a study is in: another page belongs to each."""
        kinds = [note.get("kind") for note in content.notes]
        turns = sum(kind in (*OPENINGS, AMENDED, SUMMARY_NOTE) for kind in kinds)
        return f"{self._reader.beginnings}-{turns}"

    def _numbers(self, file: str) -> Answer | None:
        """Return the CSV file of a figure, as a report has it beside it."""
        page = self.page().page
        charts = {f"{chart.name}.csv": chart for group in page.groups for chart in group.charts}
        if file not in charts:
            return None
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(charts[file].numbers.table)
        return Answer(text.getvalue(), "text/csv")

    def _queries(self, file: str) -> Answer | None:
        """Return a file of the queries, as a report has it beside it."""
        found = self.page().files.get(file)
        return None if found is None else Answer(found, "text/javascript")


def _whole_number(asked: Asked, name: str) -> int:
    text = asked.query.get(name, "0" if name == "drawn" else "")
    if not (text.isascii() and text.isdigit()):
        raise InputError(f"{name}={text!r} is no whole number")
    return int(text)


def rows_of(review: Review, numbers: Sequence[int]) -> dict[str, Any]:
    """Return ``study_data`` of these trials alone: its size does not depend on the others."""
    some = replace(review, trials=tuple(review.trials[number] for number in numbers))
    found = study_data(some)
    # Which colour and symbol an arm has depends on which others there are.
    places = review.arm_places
    arms = [{"name": arm["name"], "place": places.get(arm["name"])} for arm in found["arms"]]
    return {**found, "arms": arms}


@dataclass(frozen=True)
class State:
    """How a study stands, ``said`` in a sentence: is it at work, or over, or neither."""

    said: str
    is_at_work: bool = False
    is_over: bool = False


def state_of(content: JournalContent, told: int) -> State:
    """Return how a study stands whose journal has so many told trials."""
    kinds = [note.get("kind") for note in content.notes]
    budget = sum(arm.budget for arm in content.header.arms)
    trials = f"{told:,} of about {counted(budget, 'trial')} told"
    last = max((n for n, kind in enumerate(kinds) if kind in OPENINGS), default=-1)
    since = kinds[last + 1 :]
    if SUMMARY_NOTE in since:
        return State(f"The study has ended: {counted(told, 'trial')} told.", is_over=True)
    if last >= 0 and _is_gone(content.notes[last]):
        pid, again = content.notes[last].get("pid"), f"tuner resume {Path(content.file).parent}"
        return State(
            f"The study's process ({pid}) is gone without an end; {trials}. To go on: {again}"
        )
    if ENDING in since:
        return State("The search has ended; its verdict is being reached.", is_at_work=True)
    under_way = len(content.trials) - told
    return State(f"The study runs: {trials}, {under_way:,} under way.", is_at_work=True)


def top_of(review: Review, state: State) -> Headline:
    """Return the head of the page; of a study at work it does not advise to go on with it."""
    found = headline(review)
    if not state.is_at_work:
        return found
    return replace(found, outcome="Still searching", next_step="")


def _is_gone(opening: Mapping[str, Any]) -> bool:
    """Say whether the process that runs a study has died; False where that cannot be seen."""
    pid = opening.get("pid")
    if os.name != "posix" or not isinstance(pid, int) or pid <= 0:
        return False
    if opening.get("host") != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
