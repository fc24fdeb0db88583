"""What people look at: a study as a page, as plots, and as Optuna shows it."""

from __future__ import annotations

from pathlib import Path

from tuner.core.steps import Advance


def write_study_report(run_dir: Path, *, with_plots: bool, advance: Advance) -> None:
    """Write the report of a study that has ended; what draws is imported only now."""
    from tuner.report.writing import write_report

    write_report(run_dir, with_plots=with_plots, advance=advance)
