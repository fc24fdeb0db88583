"""The page of several studies, or of nights: champions, winners, what changed, figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tuner.core.run_files import FIGURES_DIR
from tuner.core.shown import counted
from tuner.report.across import beside, changed, timeline, winners
from tuner.report.parts import Headline, Page, Section, shown, signed
from tuner.report.review import Review
from tuner.report.writing import write_page

STUDIES_FILE = "studies.html"
NIGHTS_FILE = "nights.html"
# More searches than this lie over each other unreadably; the latest are drawn.
MOST_BESIDE = 10


@dataclass(frozen=True)
class Nights:
    """What is known of a study's nights besides the studies themselves."""

    study: str
    steps: tuple[timeline.Step, ...]
    moves: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def write_across(
    studies: Sequence[Review], *, nights: Nights | None = None, output: Path | None = None
) -> Path:
    """Write the page of several studies, and return its path; their CSV files lie beside it.

    ``nights`` are those that the studies belong to. Without ``output`` the page goes into this
    folder, as ``studies.html`` or ``nights.html``.

    Raises:
        InputError: a place that cannot be written.
    """
    target = output or Path(STUDIES_FILE if nights is None else NIGHTS_FILE)
    figures = target.parent / f"{target.stem}-{FIGURES_DIR}"
    return write_page(make_page(studies, nights), target, figures)


def make_page(studies: Sequence[Review], nights: Nights | None = None) -> Page:
    """Return the page of studies in the order in which they were begun."""
    ordered = sorted(studies, key=lambda review: review.header.created_at)
    labels = beside.labels_of(ordered)
    found = winners.duels(ordered, labels)
    steps = timeline.steps_of(ordered, labels) if nights is None else nights.steps
    moves = () if nights is None else (*nights.moves, *nights.notes)
    called = "study" if nights is None else "night"
    sections: list[Section] = [timeline.section(steps, moves, called=called)]
    if len(ordered) > 1:
        sections += [winners.section(found, ordered), changed.section(ordered, labels)]
        sections.append(beside.section(ordered[-MOST_BESIDE:], labels[-MOST_BESIDE:]))
    names = dict.fromkeys(review.header.name for review in ordered)
    title = ", ".join(names) if nights is None else f"Nights of {nights.study}"
    count = counted(len(ordered), "study", "studies")
    about = count if nights is None else f"{counted(len(steps), 'night')}, {count} still kept"
    dates = [timeline.begun(review) for review in (*ordered[:1], *ordered[-1:])]
    since = f", begun from {dates[0]} to {dates[-1]}" if dates else ""
    version = ordered[-1].header.versions.get("graphrag-tuner", "") if ordered else ""
    return Page(
        title=title,
        subtitle=f"{about}{since}",
        headline=_headline(found, steps, called),
        sections=tuple(sections),
        footer=f"Made by graphrag-tuner {version} from the studies' journals.".replace("  ", " "),
    )


def _headline(
    found: Sequence[winners.Duel], steps: Sequence[timeline.Step], called: str
) -> Headline | None:
    """Say whether the last winner is better than the first, and how many were promoted."""
    if not found:
        return None
    duel = found[-1]
    better = sum(step.is_promoted for step in steps)
    plural = {"study": "studies", "night": "nights"}[called]
    fact = f"{plural} with a better challenger"
    facts = ((fact, f"{better:,}", f"of {len(steps):,}"),)
    if duel.paired is None or duel.paired.mean_difference is None:
        return Headline(
            "none", "–", "Cannot be compared", f"{duel.called}: {duel.reading}.", facts=facts
        )
    paired, flattered = duel.paired, duel.common.tuned_on
    queries = counted(paired.n, "common query", "common queries")
    part = (
        f"{queries}, {flattered:,} of which were tuned on" if flattered else f"{queries} held out"
    )
    difference = signed(paired.mean_difference)
    interval = "no interval"
    if paired.interval is not None:
        interval = f"95 % interval {signed(paired.interval[0])} to {signed(paired.interval[1])}"
    sentence = (
        f"The winner of {duel.now} has {shown(paired.treatment_mean)} in the composite, that of "
        f"{duel.before} {shown(paired.control_mean)}: {difference} on {part} ({interval})."
    )
    kind = duel.reading.partition(";")[0]
    tone, mark, outcome = {
        "better": ("deploy", "✓", "The last winner is better than the first"),
        "worse": ("mixed", "±", "The last winner is worse than the first"),
        "the same": ("keep", "=", "The last winner is as good as the first"),
    }.get(kind, ("open", "?", "No clear difference between the last winner and the first"))
    headline = Headline(tone, mark, outcome, sentence, facts=facts)
    if flattered and tone == "deploy":
        return replace(
            headline, tone="open", mark="?", outcome=f"{outcome}, on queries it may know"
        )
    return headline
