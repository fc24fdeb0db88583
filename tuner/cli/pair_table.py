"""What `tuner compare` prints: A against B, a row a metric, and the queries that changed most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tuner.cli.console import console, new_table
from tuner.cli.out import echo
from tuner.cli.tables import print_guardrails, print_types, shown_params
from tuner.core.corpus import Query
from tuner.core.shown import figure, shown_p
from tuner.run.duel import Duel
from tuner.scoring.answers import AnswerDuel
from tuner.stats import PairedComparison

_COLUMNS = (
    "",
    "A",
    "B",
    "B less A",
    "95 % interval",
    "d_z",
    "p",
    "p (Holm)",
    "queries",
    "better",
    "worse",
)

_EFFECT_SIZE = (
    "d_z: Cohen's d of paired values, the mean difference in standard deviations of the differences"
)
# Shown of those that gained and of those that lost most.
_CHANGED_QUERIES = 5


def _print_pairs(metrics: Mapping[str, tuple[PairedComparison, float | None]]) -> None:
    """Print each metric's comparison; with it stands its p after Holm's correction."""
    table = new_table(*_COLUMNS)
    for name, (comparison, adjusted) in metrics.items():
        low, high = comparison.interval or (None, None)
        table.add_row(
            name,
            figure(comparison.control_mean),
            figure(comparison.treatment_mean),
            figure(comparison.mean_difference, "+.4f"),
            "–" if low is None else f"{low:+.4f} to {high:+.4f}",
            figure(comparison.effect_size, "+.2f"),
            shown_p(comparison.p_value),
            shown_p(adjusted),
            str(comparison.n),
            str(comparison.wins),
            str(comparison.losses),
        )
    console().print(table)
    echo(_EFFECT_SIZE)


def _print_changes(
    changes: Sequence[tuple[int, float]], told: Callable[[int], str], *, title: str
) -> None:
    """Print the first of the rows, each with its change, and with what is told of its query."""
    if changes:
        echo(f"\n{title}")
    for row, change in changes[:_CHANGED_QUERIES]:
        echo(f"  {change:+.3f}  {told(row)}")


def print_duel(result: Duel, queries: Sequence[Query]) -> None:
    """Print both configurations, the figures, the verdict, and the queries that changed most."""
    verdict = result.verdict
    echo(f"A  {shown_params(verdict.baseline)}")
    echo(f"B  {shown_params(verdict.winner)}")
    _print_pairs(result.metrics)
    echo(
        "p: paired t-test with degrees of freedom by the kurtosis of the differences; p (Holm): "
        f"corrected for {len(result.metrics)} metrics."
    )
    for remark in result.remarks:
        echo(f"\n{remark[0].upper()}{remark[1:]}", bold=True)
    echo(f"\n{verdict.sentence}", bold=True)
    print_types(verdict.to_record())
    print_guardrails(verdict.to_record()["guardrails"])

    def told(row: int) -> str:
        return f"{queries[row].id}  {queries[row].text}"

    _print_changes(result.gained, told, title="gained most")
    _print_changes(result.lost, told, title="lost most")


def print_answer_duel(duel: AnswerDuel) -> None:
    """Print the figures, the sentence, and the queries that changed most."""
    _print_pairs(duel.metrics)
    echo(f"\n{duel.sentence}", bold=True)
    print_types(duel.to_record())

    def told(row: int) -> str:
        query = duel.queries[row]
        a, b = (side.texts.get(query.id, "") for side in duel.answers)
        return f"{query.id}  {query.text}  A: {a[:60]}  B: {b[:60]}"

    changes = duel.changes
    _print_changes([one for one in reversed(changes) if one[1] > 0], told, title="gained most")
    _print_changes([one for one in changes if one[1] < 0], told, title="lost most")
