"""What an analysis says, as a JSON record, as rows of a table, as one HTML file, and in MLflow."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
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
from tuner.core.json_text import json_text
from tuner.core.shown import as_percent, figure, shown_p

NOT_TESTED = "not tested"
MLFLOW_EXPERIMENT = "graphrag-abtest"
# MLflow cuts longer ones itself, or refuses them, as the store has it.
_PARAM_LIMIT = 6000
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


def log_run(uri: str, analysis: Analysis, decision: Decision, page: str) -> str:
    """Write the analysis as a run into MLflow, with its record and ``page``; return the run's id.

    Raises:
        TunerError: the store cannot be reached, or refuses what it is given.
    """
    from tuner.tracking.history import log_single_run

    config = analysis.config
    metrics: dict[str, float] = {"sample_ratio_p": analysis.sample_ratio.p_value}
    metrics |= {f"units.{arm}": float(count) for arm, count in analysis.counts.items()}
    for treatment, results in analysis.results.items():
        for one in results:
            figures = {
                "control": one.comparison.control,
                "treatment": one.comparison.treatment,
                "difference": one.comparison.difference,
                "p": one.comparison.p_value,
                "always_valid_p": one.comparison.always_valid_p,
            }
            metrics |= {
                f"{treatment}.{one.metric}.{name}": value
                for name, value in figures.items()
                if value is not None
            }
    params = {
        f"{arm}.{name}": str(value)[:_PARAM_LIMIT]
        for arm, values in config.arms.items()
        for name, value in values.items()
    }
    with TemporaryDirectory(prefix="tuner-abtest-") as folder:
        files = [Path(folder, "abtest.html"), Path(folder, "abtest.json")]
        files[0].write_text(page, encoding="utf-8")
        files[1].write_text(json_text(to_record(analysis, decision), indent=2), encoding="utf-8")
        return log_single_run(
            uri,
            MLFLOW_EXPERIMENT,
            config.name,
            params=params,
            metrics=metrics,
            tags={
                "tuner.role": "abtest",
                "tuner.abtest.experiment": config.name,
                "tuner.abtest.outcome": decision.outcome,
                "tuner.abtest.recommendation": decision.sentence,
            },
            files=files,
        )


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
    from jinja2 import Environment, StrictUndefined

    config = analysis.config
    text = Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.from_string(text).render(
        config=config,
        decision=decision,
        ratio=analysis.sample_ratio,
        columns=COLUMNS,
        treatments={
            treatment: ([table_row(config, one) for one in results], _intervals(config, results))
            for treatment, results in analysis.results.items()
        },
        legend=legend(config),
        shown_p=shown_p,
        as_percent=as_percent,
    )


def _intervals(
    config: ExperimentConfig, results: tuple[MetricResult, ...]
) -> list[tuple[str, float, float, float]]:
    """Return what is drawn of each metric: name, low end, change and high end, as shares."""
    return [
        (one.metric, shares[0], one.comparison.relative, shares[1])
        for one in results
        if (shares := deciding_shares(config, one)) is not None
        and one.comparison.relative is not None
    ]


def _change(value: float | None, scale: float | None) -> str:
    if value is None or scale is None:
        return figure(value, "+.4g")
    return as_percent(value / scale, "+.2%")
