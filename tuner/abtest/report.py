"""What an analysis says, as a JSON record, as rows of a table, and as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from html import escape
from typing import Any

from tuner.abtest.analysis import Analysis, MetricResult
from tuner.abtest.decision import (
    Decision,
    decide_each,
    deciding_interval,
    deciding_shares,
    is_broken,
    is_kept,
)
from tuner.abtest.experiment import ExperimentConfig
from tuner.core.shown import as_percent, figure, shown_p

NOT_TESTED = "not tested"
COLUMNS = (
    "metric",
    "role",
    "control",
    "treatment",
    "change",
    "interval",
    "p",
    "p, any look",
    "",
)


def to_record(analysis: Analysis, decision: Decision) -> dict[str, Any]:
    """Return everything as a JSON-ready mapping; what was not tested has p null."""
    config = analysis.config
    return {
        "experiment": config.name,
        "decide": config.decide,
        "alpha": config.alpha,
        "alpha_each_treatment": config.alpha_each,
        "minimum_sample_size": config.minimum_sample_size,
        "rows": analysis.rows,
        "units": analysis.counts,
        "misplaced_units": analysis.misplaced,
        "sample_ratio": {**asdict(analysis.sample_ratio)},
        "treatments": {
            treatment: {
                "params": config.arms[treatment],
                "metrics": {one.metric: _metric(config, one) for one in results},
            }
            for treatment, results in analysis.results.items()
        },
        "decisions": [asdict(one) for one in decide_each(analysis)],
        "recommendation": asdict(decision),
    }


def _metric(config: ExperimentConfig, one: MetricResult) -> dict[str, Any]:
    comparison = asdict(one.comparison)
    guardrail = None
    if one.guardrail is not None:
        guardrail = {**asdict(one.guardrail), "is_kept": is_kept(config, one)}
    return {
        "role": one.role,
        "better": "higher" if one.is_higher_better else "lower",
        "is_tested": one.is_tested,
        **comparison,
        "adjusted_p": one.adjusted_p,
        "variance_reduction": one.variance_reduction,
        "guardrail": guardrail,
        "remark": one.remark,
    }


def table_row(config: ExperimentConfig, one: MetricResult) -> tuple[str, ...]:
    """Return one metric as the texts of ``COLUMNS``."""
    comparison = one.comparison
    interval = deciding_interval(config, one)
    shares = deciding_shares(config, one)
    scale = abs(comparison.control) if shares is not None and comparison.control else None
    p_value, any_look = comparison.p_value, comparison.always_valid_p
    if one.guardrail is not None:
        p_value, any_look = one.guardrail.p_value, one.guardrail.always_valid_p
    return (
        one.metric,
        one.role,
        figure(comparison.control, ".4g"),
        figure(comparison.treatment, ".4g"),
        _change(comparison.difference, scale),
        _shown_interval(interval, shares),
        NOT_TESTED if p_value is None else shown_p(p_value),
        NOT_TESTED if any_look is None else shown_p(any_look),
        _note(config, one),
    )


def _shown_interval(
    interval: tuple[float, float] | None, shares: tuple[float, float] | None
) -> str:
    if shares is not None:
        return f"{_change(shares[0], 1.0)} to {_change(shares[1], 1.0)}"
    if interval is None:
        return NOT_TESTED
    return f"{_change(interval[0], None)} to {_change(interval[1], None)}"


def _note(config: ExperimentConfig, one: MetricResult) -> str:
    notes = []
    if one.guardrail is not None:
        margin = config.guardrails[one.metric].margin
        state = "kept" if is_kept(config, one) else "not shown to be kept"
        state = "broken" if is_broken(config, one) else state
        notes.append(f"{state} (allowed {margin})")
    if one.adjusted_p is not None:
        notes.append(f"p (Holm) {shown_p(one.adjusted_p)}")
    if one.variance_reduction is not None:
        notes.append(f"CUPED -{as_percent(one.variance_reduction)} variance")
    if one.remark is not None:
        notes.append(one.remark)
    return "; ".join(notes)


def legend(config: ExperimentConfig) -> str:
    """Return what the figures mean."""
    level = f"{100 * (1 - config.alpha_each):.4g} %"
    if config.decide == "fixed_horizon":
        kind = (
            "The interval and `p` are for one look at the planned sample size; looking at them "
            "earlier and stopping makes them wrong."
        )
    else:
        kind = (
            f"The {level} interval and `p, any look` hold however often one looks; `p` is for a "
            "single look that was planned."
        )
    return (
        f"{kind} Of a guard-rail, p is that of a loss as large as allowed. Changes are shares of "
        "the control's value where that is not 0."
    )


def to_html(analysis: Analysis, decision: Decision) -> str:
    """Return one page without anything from elsewhere: the sentence, the units, each treatment."""
    config = analysis.config
    ratio = analysis.sample_ratio
    arms = "".join(
        _cells(
            "td",
            (arm, f"{count:,}", f"{ratio.expected[arm]:,.0f}", _params(config.arms[arm])),
        )
        for arm, count in ratio.observed.items()
    )
    parts = [
        f"<h1>{escape(config.name)}</h1>",
        f'<p class="{decision.outcome.replace(" ", "-")}">{escape(decision.sentence)}</p>',
        "<h2>Units</h2>",
        _table(("arm", "units", "expected", "parameters"), arms),
        f"<p>Sample ratio: p = {shown_p(ratio.p_value)}, "
        f"{'a mismatch' if ratio.is_mismatch else 'as configured'}.</p>",
    ]
    for treatment, results in analysis.results.items():
        rows = "".join(_cells("td", table_row(config, one)) for one in results)
        parts.append(f"<h2>{escape(treatment)} against control</h2>")
        parts.append(_table(COLUMNS, rows))
        parts.append(_forest(config, results))
    if analysis.results:
        parts.append(f"<p>{escape(legend(config))}</p>")
    return _PAGE.format(title=escape(config.name), body="\n".join(parts))


def _forest(config: ExperimentConfig, results: tuple[MetricResult, ...]) -> str:
    """Draw each interval as a share of the control, with no change in the middle."""
    drawn = [
        (one, shares[0], one.comparison.relative, shares[1])
        for one in results
        if (shares := deciding_shares(config, one)) is not None
        and one.comparison.relative is not None
    ]
    if not drawn:
        return ""
    reach = max(max(abs(low), abs(high)) for _, low, _, high in drawn) * 1.05
    scale = 260.0 / reach
    lines = []
    for number, (one, low, middle, high) in enumerate(drawn):
        y = 20 + 26 * number
        lines.append(
            f'<text x="190" y="{y + 4}" text-anchor="end">{escape(one.metric)}</text>'
            f'<line class="interval" x1="{470 + low * scale:.1f}" x2="{470 + high * scale:.1f}" '
            f'y1="{y}" y2="{y}"/><circle cx="{470 + middle * scale:.1f}" cy="{y}" r="5"/>'
        )
    height = 26 * len(drawn) + 34
    return (
        f'<div class="scroll"><svg width="760" height="{height}" role="img" '
        'aria-label="intervals">'
        f'<line x1="470" x2="470" y1="6" y2="{height - 22}" stroke-dasharray="3"/>'
        f'{"".join(lines)}<text x="470" y="{height - 6}" text-anchor="middle">no change</text>'
        f'<text x="210" y="{height - 6}" text-anchor="middle">{as_percent(-reach, "+.1%")}</text>'
        f'<text x="730" y="{height - 6}" text-anchor="middle">{as_percent(reach, "+.1%")}</text>'
        "</svg></div>"
    )


def _table(columns: tuple[str, ...], rows: str) -> str:
    """Wrap rows in a table that scrolls by itself where the page is narrower than it."""
    return f'<div class="scroll"><table>{_cells("th", columns)}{rows}</table></div>'


def _cells(tag: str, texts: tuple[str, ...]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts) + "</tr>"


def _params(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())


def _change(value: float | None, scale: float | None) -> str:
    if value is None or scale is None:
        return figure(value, "+.4g")
    return as_percent(value / scale, "+.2%")


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
:root {{ color-scheme: light dark; --paper: #fff; --ink: #223; --muted: #556; --line: #ddd;
  --good: #e3f4e6; --wait: #eef1f6; --bad: #fbeeda; --wrong: #fbe0de; }}
@media screen and (prefers-color-scheme: dark) {{
  :root {{ --paper: #12161c; --ink: #e6e9ef; --muted: #a5adba; --line: #343b46;
    --good: #173822; --wait: #232b38; --bad: #45331a; --wrong: #4a2422; }}
}}
@media print {{ :root {{ color-scheme: light; }} }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em;
  color: var(--ink); background: var(--paper); }}
table {{ border-collapse: collapse; }}
td, th {{ padding: .25em .8em .25em 0; text-align: left; border-bottom: 1px solid var(--line); }}
th {{ color: var(--muted); }}
.scroll {{ overflow-x: auto; }}
h1, p, td {{ overflow-wrap: anywhere; }}
.scroll td {{ overflow-wrap: normal; white-space: nowrap; }}
.ship, .keep-collecting, .do-not-ship, .stop {{ font-weight: bold; padding: .7em 1em; }}
.ship {{ background: var(--good); }} .keep-collecting {{ background: var(--wait); }}
.do-not-ship {{ background: var(--bad); }} .stop {{ background: var(--wrong); }}
svg text {{ font-size: 12px; fill: var(--ink); }}
svg line {{ stroke: var(--muted); }} svg circle {{ fill: var(--ink); }}
svg .interval {{ stroke: var(--ink); stroke-width: 3; }}
@media print {{
  .scroll {{ overflow: visible; }}
  .scroll td, .scroll th {{ padding-right: .4em; font-size: 8pt; white-space: normal; }}
}}
</style></head><body>
{body}
</body></html>
"""
