"""tuner ask: one question, what one configuration or two retrieve for it, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.completion import parameters, queries
from tuner.cli.options import (
    BASELINE,
    baseline_is_default,
    config_argument,
    have_ready,
    load_shown,
    note,
    read_params,
    set_option,
    showing,
)
from tuner.cli.out import echo
from tuner.core.errors import InputError, did_you_mean
from tuner.core.json_text import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tuner.core.spent import Spent
    from tuner.run.assembly import Assembly
    from tuner.scoring.asked import Asked


@click.command("ask", short_help="Ask one question, and see what is retrieved and why.")
@config_argument
@click.argument("question", metavar="QUESTION", shell_complete=queries)
@click.option(
    "--params",
    metavar="JSON|FILE|RUN_DIR",
    shell_complete=parameters,
    callback=baseline_is_default,
    help="Parameters as JSON, a YAML file such as best.yaml, a run directory, or the word "
    "baseline, which is the default. What is left out is filled up as `tuner evaluate --params` "
    "does.",
)
@click.option(
    "--compare",
    metavar="JSON|FILE|RUN_DIR",
    shell_complete=parameters,
    help="A second set of parameters, written the same way: both answers side by side.",
)
@click.option(
    "--k",
    "count",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many passages of an answer are shown.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@set_option
def command(
    config: str,
    question: str,
    params: str | None,
    compare: str | None,
    count: int,
    as_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Ask the system of CONFIG a QUESTION: any text, or a query of the data set by id or words.

    Shows the passages, what each leg gave them, the names and paths that led there, tokens and
    time. Of a query of the data set also which passages are relevant, and its metrics. To ask a
    held-out query is a look at it, and is remembered.
    """
    given = None if params is None else read_params(params, "--params")
    other = None
    if compare is not None and compare.strip() != BASELINE:
        other = read_params(compare, "--compare")
    from tuner.run.folder import remembering_from
    from tuner.scoring import asked as asking

    assembly = load_shown(config, settings)
    wanted = asking.question(assembly, question)
    if not wanted.is_labelled and len(question.split()) == 1:
        meant = did_you_mean(question, [query.id for query in assembly.dataset.queries])
        meant = "" if "; did you mean" not in meant else meant
        note(f"note: no query is called {question!r}, so it is asked as a text{meant}")
    choices = [_choice(assembly, given, "--params")]
    if compare is not None:
        choices.append(_choice(assembly, other, "--compare"))
    assembly = remembering_from(assembly, (params, compare if other else None))
    have_ready(assembly, *choices)
    with showing("question"):
        answers = asking.ask(assembly, wanted, choices)
    looks = asking.remember_look(assembly, wanted, choices)
    if looks is not None:
        for remark in looks.remarks(Path(assembly.config.study.runs_dir)):
            note(f"note: {remark}")
    spent = _spent(assembly)
    if as_json:
        record = asking.to_record(wanted, answers, count)
        echo(json_text({**record, **_accounts(spent, looks)}, indent=2))
        return
    from tuner.cli.ask_tables import print_answers

    print_answers(wanted, answers, count, _telling(assembly, answers))
    if spent.queries:
        note(f"asked: {spent.in_all()}")
    if spent.saved:
        note(spent.saved)


def _choice(assembly: Assembly, given: dict[str, Any] | None, option: str) -> Any:
    params = assembly.baseline if given is None else given
    if params is None:
        raise InputError(f"give {option}, or a `baseline:` section in the configuration")
    return assembly.choice(params)


def _telling(assembly: Assembly, answers: Sequence[Asked]) -> list[str]:
    """Return the parameters that are worth showing: those searched, and what is no default."""
    names = set(assembly.plan.space.names)
    for knob in assembly.retriever.knobs:
        if any(one.params.get(knob.name, knob.default) != knob.default for one in answers):
            names.add(knob.name)
    every = dict.fromkeys(name for one in answers for name in one.params)
    return [name for name in every if name in names]


def _spent(assembly: Assembly) -> Spent:
    """Return what was asked, and what that costs, where the system is not the engine itself."""
    from tuner.core.spent import Spent, SpentOn
    from tuner.retrieval.wrapped.around import is_engine

    total, section = assembly.ledger.total, assembly.config.cost
    money = None if section is None else section.cost.of(total)
    if is_engine(assembly.retriever) and money is None:
        return Spent()
    return Spent((SpentOn("question", total.sent, total.tokens, money),), total.kept, money=money)


def _accounts(spent: Spent, looks: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "queries_asked": spent.queries,
        "kept_answers": spent.kept,
        **({} if spent.money is None else {"money": spent.money}),
        "holdout_looks": None if looks is None else asdict(looks),
    }
