"""Charts as pictures, for places that show images only, such as MLflow's list of artifacts."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

from tuner.report.chart import LIGHT, Axis, Chart, Series, color_name, dash, symbol
from tuner.report.parts import Charts

PANEL_WIDTH, LINE_HEIGHT = 7.0, 0.17  # inches
SMALL_WIDTH, SMALL_COLUMNS = 4.2, 3
DPI = 110


def write_png(group: Charts, path: Path) -> None:
    """Draw the charts of a group side by side into one picture, without any global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(len(group.charts), SMALL_COLUMNS if group.is_small else 2)
    rows = math.ceil(len(group.charts) / columns)
    width = SMALL_WIDTH if group.is_small else PANEL_WIDTH
    height = max(chart.height for chart in group.charts) * LINE_HEIGHT + 0.8
    figure = Figure(figsize=(columns * width, rows * height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    for number, chart in enumerate(group.charts, start=1):
        _draw(figure, figure.add_subplot(rows, columns, number), chart)
    if group.legend:
        _legend(figure)
    with warnings.catch_warnings():
        # A letter that the font lacks, such as an emoji, becomes a box; the page shows it.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(path, format="png", metadata={"Software": None})


def _draw(figure: Any, axes: Any, chart: Chart) -> None:
    axes.set_title(_plain(chart.title), loc="left", fontsize="medium", color=LIGHT["ink"])
    if chart.cells is not None:
        _draw_cells(figure, axes, chart)
    for series in chart.series:
        _draw_series(axes, series)
    for axis, view in ((chart.x, axes.xaxis), (chart.y, axes.yaxis)):
        _dress(axis, view)
    if chart.x.span is not None:
        axes.set_xlim(*chart.x.span)
    if chart.y.span is not None:
        axes.set_ylim(*chart.y.span)
    if chart.x.zero:
        axes.axvline(0.0, color=LIGHT["ink"], linewidth=1.0)
    axes.grid(color=LIGHT["grid"], linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if chart.has_legend and chart.series:
        axes.legend(fontsize="small", frameon=False, loc="best")


def _legend(figure: Any) -> None:
    """Name each mark of all panels once, below them."""
    marks: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            marks.setdefault(label, handle)
    figure.legend(
        list(marks.values()),
        list(marks),
        loc="outside lower center",
        ncols=min(len(marks), 6),
        fontsize="small",
        frameon=False,
    )


def _draw_series(axes: Any, series: Series) -> None:
    color = LIGHT[color_name(series.role, series.place)]
    marker = symbol(series.role, series.place)[1]
    line = dash(series.role, series.place)[1]
    label = _plain(series.name)
    if series.form in ("bars", "intervals"):
        below = [x - low for x, low in zip(series.x, series.low, strict=True)]
        above = [high - x for x, high in zip(series.x, series.high, strict=True)]
        is_bar = series.form == "bars"
        if is_bar:
            axes.barh(series.y, series.x, height=0.6, color=color, label=label)
        axes.errorbar(
            series.x,
            series.y,
            xerr=(below, above),
            fmt="none" if is_bar else marker,
            color=LIGHT["ink"] if is_bar else color,
            capsize=3,
        )
        return
    match series.form:
        case "steps":
            axes.step(series.x, series.y, where="post", color=color, linestyle=line, label=label)
        case "band":
            axes.fill_between(
                series.x, series.low, series.high, color=color, alpha=0.2, linewidth=0, label=label
            )
        case "line":
            axes.plot(series.x, series.y, color=color, linestyle=line, label=label)
        case "points":
            is_mark = series.role in ("chosen", "baseline")
            is_cross = series.role == "failed"  # which has no edge beside its face
            size = (
                130.0
                if series.role == "chosen"
                else 60.0
                if is_mark
                else 20.0
                if is_cross
                else 14.0
            )
            face = "none" if series.role == "stopped" else color
            edge = None if is_cross else LIGHT["paper"] if is_mark else color
            axes.scatter(
                series.x,
                series.y,
                s=size,
                marker=marker,
                facecolors=face,
                edgecolors=edge,
                linewidths=1.5 if is_cross else 0.8,
                alpha=1.0 if is_mark or is_cross else 0.7,
                zorder=4 if is_mark else 2,
                clip_on=not is_cross,
                label=label,
            )


def _draw_cells(figure: Any, axes: Any, chart: Chart) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    cells = chart.cells
    assert cells is not None
    colors = LinearSegmentedColormap.from_list(
        "objective", [LIGHT[name] for name in ("low", "middle", "high")]
    )
    values = [[math.nan if value is None else value for value in row] for row in cells.values]
    mesh = axes.pcolormesh(cells.x_edges, cells.y_edges, values, cmap=colors)
    if any(value == value for row in values for value in row):
        figure.colorbar(mesh, ax=axes, label=cells.title)


def _dress(axis: Axis, view: Any) -> None:
    view.set_label_text(_plain(axis.title), fontsize="small", color=LIGHT["muted"])
    if axis.ticks:
        view.set_ticks([position for position, _ in axis.ticks])
        view.set_ticklabels([_plain(label) for _, label in axis.ticks])
    view.set_tick_params(labelsize="small", labelcolor=LIGHT["muted"])


def _plain(text: str) -> str:
    """Keep matplotlib from reading a formula, and a name from hiding a legend's entry."""
    return text.replace("$", r"\$").lstrip("_") or text
