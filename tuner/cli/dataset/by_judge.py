"""tuner dataset build judge --by, --url: a judge's options, its work, and what is told of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.options import FiniteRange, note, showing
from tuner.cli.out import echo
from tuner.core.errors import InputError
from tuner.core.json_text import json_text
from tuner.core.shown import as_percent

if TYPE_CHECKING:
    from tuner.evalset.judges import Judge
    from tuner.evalset.judging import Graded

RECORD = "judge.json"
_OPTIONS = (
    click.option(
        "--by",
        metavar="MODULE:FUNCTION",
        help="Have a function of yours grade: it takes a query and a list of passages, and returns "
        "a list of grades, or of scores (see --thresholds).",
    ),
    click.option(
        "--url",
        metavar="URL",
        help="Have a model grade, by an OpenAI-compatible service, such as "
        "http://localhost:8000/v1.",
    ),
    click.option("--model", metavar="NAME", help="The model at --url."),
    click.option(
        "--key",
        metavar="VARIABLE",
        help="The environment variable that holds the key for --url. Default: OPENAI_API_KEY, "
        "where it is set.",
    ),
    click.option(
        "--prompt",
        metavar="FILE",
        help="Your own prompt, with the places {query} and {passages}, and {grades} for what the "
        "grades mean.",
    ),
    click.option(
        "--thresholds",
        metavar="LIST",
        help="The judge returns scores, as a cross-encoder does: from which score on each grade "
        "but the lowest holds, such as 0.2,0.5,0.8.",
    ),
    click.option(
        "--batch",
        default=10,
        show_default=True,
        type=click.IntRange(min=1),
        help="How many passages of a query are asked for together.",
    ),
    click.option(
        "--twice",
        default=0.1,
        show_default=True,
        type=FiniteRange(0, 1),
        help="The share of the queries that are asked for a second time, in another order.",
    ),
    click.option(
        "--budget",
        type=FiniteRange(0, min_open=True),
        metavar="MONEY",
        help="Stop before the answers cost more than this, in the currency of the prices.",
    ),
    click.option(
        "--price",
        metavar="IN,OUT",
        help="What a million tokens cost at --url, read and written, such as 0.15,0.60.",
    ),
    click.option(
        "--retries",
        default=3,
        show_default=True,
        type=click.IntRange(min=0),
        help="How often what fails, or cannot be read, is asked for again.",
    ),
    click.option(
        "--seed", default=0, show_default=True, help="Draws the order in which passages are asked."
    ),
    click.option(
        "--answers",
        metavar="FILE",
        help="Where the answers are kept. Default: FOLDER.answers.jsonl, beside --out.",
    ),
)


def judge_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a judge to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_judge(grades: tuple[int, ...], **asked: Any) -> Judge | None:
    """Return the judge that the options name; None for people's grades.

    Raises:
        InputError: options that do not belong together, or a judge that does not exist.
    """
    from tuner.evalset.judges import KEY, ChatJudge, FunctionJudge, Scale, read_prompt

    of_url = ("model", "key", "prompt", "price")
    if asked["by"] is not None and asked["url"] is not None:
        raise InputError("give --by or --url, not both")
    if asked["url"] is None:
        for name in of_url:
            if asked[name] is not None:
                raise InputError(f"--{name} belongs to --url, which is missing")
    if asked["by"] is None and asked["url"] is None:
        for name in ("thresholds", "budget", "answers"):
            if asked[name] is not None:
                raise InputError(f"--{name} is for a judge: give --by or --url")
        return None
    scale = Scale(grades, _thresholds(asked["thresholds"], grades))
    if asked["by"] is not None:
        return FunctionJudge.load(asked["by"], scale, retries=asked["retries"])
    if asked["model"] is None:
        raise InputError("give --model: the name by which the service knows it")
    price = None if asked["price"] is None else _floats("--price", asked["price"])
    if price is not None and (len(price) != 2 or min(price) < 0):
        raise InputError(f"--price {asked['price']!r}: write two numbers, such as 0.15,0.60")
    key = asked["key"] or (KEY if os.environ.get(KEY) else None)
    if key is not None and not os.environ.get(key):
        raise InputError(f"--key {key}: this environment variable is not set, or empty")
    if asked["budget"] is not None and price is None:
        raise InputError("--budget needs --price: what a million tokens cost")
    return ChatJudge.build(
        asked["url"],
        asked["model"],
        scale,
        key=key,
        retries=asked["retries"],
        prompt=read_prompt(asked["prompt"]),
        price=None if price is None else (price[0], price[1]),
    )


def grade(sheet: str, judge: Judge, out: Path, asked: Mapping[str, Any]) -> Graded:
    """Have the judge grade a sheet, and say what came of it."""
    from tuner.evalset.judging import Plan, grade_sheet
    from tuner.evalset.sheets import read_sheet

    rows = [one.row for one in read_sheet(sheet, needs=("query", "passage")).rows.values()]
    plan = Plan(asked["batch"], asked["twice"], asked["seed"], asked["retries"], asked["budget"])
    with showing("grading") as advance:
        found = grade_sheet(
            rows, judge, judge.scale, plan, _answers(out, asked), say=note, advance=advance
        )
    cost = "" if found.money is None else f", {found.money:.4g} of money in all"
    note(f"asked: {found.asked} answers, {found.kept} were kept from before{cost}")
    if found.lacking:
        note(
            f"note: {len(found.lacking)} passages could not be graded and stay unjudged (first: "
            f"query {found.lacking[0][0]!r}, document {found.lacking[0][1]!r})"
        )
    note(_of_itself(found))
    return found


def write_record(
    out: Path, sheet: str, judge: Judge, graded: Graded, asked: Mapping[str, Any]
) -> None:
    """Write beside the data set who graded it, how it was asked, and how far it agrees with itself.

    Raises:
        InputError: the file cannot be written.
    """
    from tuner.core.files import write_whole

    record = {
        "judge": judge.record(),
        "grades": list(judge.scale.grades),
        "thresholds": list(judge.scale.thresholds),
        "sheet": sheet,
        "answers": str(_answers(out, asked)),
        **{name: asked[name] for name in ("batch", "twice", "seed")},
        **graded.to_record(),
    }
    try:
        write_whole(out / RECORD, json_text(record, indent=2))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(out / RECORD)) from error
    echo(f"who graded, and how it was asked: {out / RECORD}")


def _of_itself(found: Graded) -> str:
    twice = found.agreement
    if not twice.pairs:
        return "nothing was asked twice: how far the judge agrees with itself is unknown"
    same = f"{as_percent(twice.same)} of the {twice.pairs} passages asked twice got the same grade"
    if twice.kappa is None:
        return f"{same}; kappa is undefined: {twice.why_undefined}"
    return f"{same} (kappa {twice.kappa:.3f}, {twice.weights} weights)"


def _answers(out: Path, asked: Mapping[str, Any]) -> Path:
    return Path(asked["answers"] or f"{out}.answers.jsonl")


def _thresholds(written: str | None, grades: tuple[int, ...]) -> tuple[float, ...]:
    if written is None:
        return ()
    found = _floats("--thresholds", written)
    if len(found) != len(grades) - 1 or list(found) != sorted(set(found)):
        raise InputError(
            f"--thresholds {written!r}: write {len(grades) - 1} rising numbers, one for each grade "
            f"but the lowest of {', '.join(map(str, grades))}"
        )
    return found


def _floats(option: str, written: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in written.split(","))
    except ValueError as error:
        raise InputError(f"{option} {written!r}: write numbers, such as 0.2,0.5") from error
