"""Write the report of a study: one page, its pictures, and the numbers of every figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tuner.core.errors import InputError
from tuner.core.files import write_csv, write_whole
from tuner.core.run_files import FIGURES_DIR, PLOTS_DIR, REPORT_DATA_DIR, REPORT_FILE
from tuner.core.steps import Advance, followed, portion, unheard
from tuner.report import (
    comparison,
    convergence,
    failures,
    importance,
    indexes,
    provenance,
    queries,
    slices,
    tradeoff,
)
from tuner.report.across import beside, changed, winners
from tuner.report.headline import headline
from tuner.report.page_view import to_html
from tuner.report.parts import Page, Section, Trials
from tuner.report.query_data import QueryData, query_data, write_files
from tuner.report.review import Review, read_review
from tuner.report.static_view import write_png
from tuner.report.study_data import study_data


def write_report(
    run_dir: Path,
    *,
    compare: Sequence[Path] = (),
    output: Path | None = None,
    with_plots: bool = True,
    advance: Advance = unheard,
) -> Path:
    """Write ``report.html`` of a study from its run directory alone, and return its path.

    Beside it: ``report-data/``, which the page loads when a query is opened, ``figures/*.csv`` and,
    ``with_plots``, the same figures as ``plots/*.png``. With ``output`` the page goes there, its
    data and CSV files into folders beside it, named after it, and no plots are made. ``compare``
    are run directories of other studies to show beside this one. ``advance`` is told how far it is.

    Raises:
        InputError: not a run directory, a broken one, or a place that cannot be written.
    """
    review = read_review(run_dir)
    read = [read_review(other) for other in compare]
    return report_on(review, compare=read, output=output, with_plots=with_plots, advance=advance)


def report_on(
    review: Review,
    *,
    compare: Sequence[Review] = (),
    output: Path | None = None,
    with_plots: bool = True,
    advance: Advance = unheard,
) -> Path:
    """Write the report of a study that was read; see ``write_report``."""
    target = review.run_dir / REPORT_FILE if output is None else output
    figures = target.parent / (FIGURES_DIR if output is None else f"{target.stem}-{FIGURES_DIR}")
    data = target.parent / (REPORT_DATA_DIR if output is None else f"{target.stem}-data")
    listed = query_data(review)
    page = replace(make_page(review, compare, listed), data_folder=data.name)
    with _writing(target):
        write_files(data, () if listed is None else listed.files)
    write_page(page, target, figures)
    with _writing(target):
        if review.rows:
            write_csv(figures / "queries.csv", queries.changes(review).table)
        if output is None and with_plots:
            plots = review.run_dir / PLOTS_DIR
            plots.mkdir(exist_ok=True)
            # The pictures take most of the time.
            for group in followed(list(page.groups), portion(advance, 0.3, 1.0)):
                write_png(group, plots / f"{group.name}.png")
    return target


def write_page(page: Page, target: Path, figures: Path) -> Path:
    """Write a page, and the numbers of its charts into the folder ``figures`` beside it.

    Raises:
        InputError: a place that cannot be written.
    """
    with _writing(target):
        write_whole(target, to_html(replace(page, charts_folder=figures.name)))
        figures.mkdir(exist_ok=True)
        for chart in (chart for group in page.groups for chart in group.charts):
            write_csv(figures / f"{chart.name}.csv", chart.numbers.table)
    return target


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = error.filename or target
        message = f"cannot write the report to {str(place)!r}: {error.strerror}; give --output FILE"
        raise InputError(message) from error


def make_page(
    review: Review, compare: Sequence[Review] = (), listed: QueryData | None = None
) -> Page:
    """Return the whole report as a page; ``listed`` are the queries of its list."""
    index = {} if listed is None else listed.index
    shares, of_indexes = importance.shares(review), indexes.section(review)
    sections = [
        comparison.section(review),
        convergence.section(review),
        importance.section(review, shares),
        slices.section(review, shares),
        tradeoff.section(review),
        *([] if of_indexes is None else [of_indexes]),
        queries.section(review, index.get("count", 0)),
        failures.section(review),
        provenance.section(review),
    ]
    if compare:
        sections[1:1] = _beside(review, compare)
    header, data = review.header, review.header.dataset
    made = datetime.fromtimestamp(header.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    about = f"on {data.get('name')}, " if data else ""
    version = header.versions.get("graphrag-tuner", "")
    data_of_trials = study_data(review)
    if data_of_trials:
        lead = "Which trials are alike, what sets the good ones apart, and what did each find?"
        before = next(n for n, one in enumerate(sections) if one.id == "queries")
        sections.insert(before, Section("trials", "All trials", lead, (Trials(),)))
    return Page(
        title=header.name,
        subtitle=f"Tuning study {about}begun {made}; {review.source}",
        headline=headline(review),
        sections=tuple(sections),
        footer=f"Made by graphrag-tuner {version} from the study's journal.",
        study=data_of_trials,
        queries=index,
    )


def _beside(review: Review, compare: Sequence[Review]) -> list[Section]:
    """Show other studies beside this one: as each ended, which winner is better, what changed."""
    studies = [review, *compare]
    labels = beside.labels_of(studies)
    in_time = sorted(range(len(studies)), key=lambda n: studies[n].header.created_at)
    ordered, names = [studies[n] for n in in_time], [labels[n] for n in in_time]
    return [
        beside.section(studies, labels),
        winners.section(winners.duels(ordered, names), ordered),
        changed.section(ordered, names),
    ]
