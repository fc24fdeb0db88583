"""What `tuner ask` prints: the passages of one answer or two, the names, the paths, the metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

from rich.table import Table

from tuner.cli.console import Tables, console, new_table
from tuner.cli.out import echo
from tuner.cli.tables import shown_params
from tuner.core.account import Start, Walk
from tuner.core.policy import Policy
from tuner.core.rankings import RelationPath
from tuner.core.shown import as_percent, counted, figure, shortened
from tuner.scoring.asked import Asked, Found, Moved, Question, moved, number

# Columns that a terminal must have for each leg's part beside its score, and for its scores.
WITH_PARTS, WITH_LEGS = 100, 64
LONGEST_TITLE = 48
SHOWN_PATHS = 2
# Names that count less than this, and what other ways give a passage, are not worth a line.
LEAST = 0.005
RELEVANT = "✓"


def print_answers(
    asked: Question, answers: Sequence[Asked], count: int, params: Sequence[str]
) -> None:
    """Print a question and one answer, or two side by side; ``params`` are the ones to show."""
    tables = console()
    echo(asked.query.text, bold=True)
    echo(_told(asked))
    labels = "AB" if len(answers) > 1 else " "
    for label, answer in zip(labels, answers, strict=True):
        echo(f"{label}  {_params(answer, params)}".strip())
    echo()
    if len(answers) > 1:
        _print_two(tables, answers[0], answers[1], count)
    else:
        _print_one(tables, answers[0], count)
    for label, answer in zip(labels, answers, strict=True):
        _print_missed(asked, answer, label)
    for label, answer in zip(labels, answers, strict=True):
        _print_graph(answer, label, count)
    if asked.is_labelled:
        echo()
        _print_metrics(tables, answers)
    echo()
    for label, answer in zip(labels, answers, strict=True):
        echo(f"{label}  {_took(answer)}".strip())
        for remark in answer.account.remarks:
            echo(f"{label}  {remark}".strip())


def _told(asked: Question) -> str:
    if not asked.is_labelled:
        return "no query of the data set: nobody said which passages are relevant"
    query, part = asked.query, "held out" if asked.part == "holdout" else "tuned on"
    kind = f", {query.query_type}" if query.query_type else ""
    many = counted(len(asked.relevant), "passage")
    return f"query {query.id}{kind}, {part}: {many} relevant {RELEVANT}"


def _params(answer: Asked, names: Sequence[str]) -> str:
    told = f"{answer.choice.told}: " if isinstance(answer.choice, Policy) else ""
    return f"{told}{shown_params({n: answer.params[n] for n in names if n in answer.params})}"


def _print_one(tables: Tables, answer: Asked, count: int) -> None:
    width = tables.console.width
    legs = answer.account.legs if width >= WITH_LEGS else {}
    has_parts = width >= WITH_PARTS
    columns = ["", "", "passage"]
    has_scores = any(one.score is not None for one in answer.found)
    has_tokens = any(one.tokens is not None for one in answer.found)
    mixed = answer.account.mixed
    columns += ["score"] * has_scores + ["mixed"] * (mixed is not None)
    for name, leg in legs.items():
        columns += [name] + [f"{name} part"] * (has_parts and leg.parts is not None)
    columns += ["tokens"] * has_tokens
    table = _table(columns)
    for place, one in enumerate(answer.found[:count]):
        row = [str(place + 1), _mark(one), _title(one)]
        row += [figure(one.score)] * has_scores
        row += [] if mixed is None else [figure(float(mixed[place]))]
        for leg in legs.values():
            row.append(figure(number(leg.scores, place)))
            if has_parts and leg.parts is not None:
                row.append(figure(number(leg.parts, place)))
        row += [figure(one.tokens, ",.0f")] * has_tokens
        table.add_row(*row)
    if answer.found:
        tables.print(table)
    _print_rest(answer, count, "")


def _print_two(tables: Tables, a: Asked, b: Asked, count: int) -> None:
    both = (a, b)
    names = list(dict.fromkeys(name for one in both for name in one.account.legs))
    legs = names if tables.console.width >= WITH_PARTS else []
    has_scores = any(one.score is not None for side in both for one in side.found)
    columns = ["A", "B", "change", "", "passage"]
    columns += ["score A", "score B"] * has_scores
    columns += [f"{name} {label}" for name in legs for label in "AB"]
    table = _table(columns)
    for move in moved(a, b, count):
        one = _found(both, move)
        row = [_rank(move.a), _rank(move.b), _change(move), _mark(one), _title(one)]
        if has_scores:
            row += [_score(side, move.id) for side in both]
        row += [_leg(side, name, move.id) for name in legs for side in both]
        table.add_row(*row)
    if a.found or b.found:
        tables.print(table)
    for label, side in zip("AB", both, strict=True):
        _print_rest(side, count, f"{label}  ")


def _table(columns: Sequence[str]) -> Table:
    return new_table(*columns, words=("", "passage", "change"))


def _print_rest(answer: Asked, count: int, label: str) -> None:
    if not answer.found:
        echo(f"{label}no passage was retrieved")
    elif (left := len(answer.found) - count) > 0:
        echo(f"{label}{counted(left, 'more passage')}: --k {len(answer.found)}")


def _found(both: Sequence[Asked], move: Moved) -> Found:
    side, rank = (both[1], move.b) if move.b is not None else (both[0], move.a)
    return side.found[(rank or 1) - 1]


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _change(move: Moved) -> str:
    if move.a is None or move.b is None or move.a == move.b:
        return "" if move.change == "same" else move.change
    return f"{move.change} {abs(move.a - move.b)}"


def _score(side: Asked, id_: str) -> str:
    rank = side.ranks.get(id_)
    return figure(None if rank is None else side.found[rank - 1].score)


def _leg(side: Asked, name: str, id_: str) -> str:
    rank, leg = side.ranks.get(id_), side.account.legs.get(name)
    return figure(None if rank is None or leg is None else number(leg.scores, rank - 1))


def _mark(one: Found) -> str:
    return RELEVANT if one.relevant else ""


def _title(one: Found) -> str:
    return _titled(one.title or one.text, one.id)


def _titled(title: str, id_: str) -> str:
    title = " ".join(title.split())
    return id_ if title in ("", id_) else f"{shortened(title, LONGEST_TITLE)} ({id_})"


def _print_missed(asked: Question, answer: Asked, label: str) -> None:
    hits = {one.id for one in answer.found if one.relevant}
    missed = [_titled(answer.titles.get(id_, ""), id_) for id_ in asked.relevant if id_ not in hits]
    if missed:
        echo(f"{label}  relevant, not retrieved: {', '.join(missed)}".strip())


def _print_graph(answer: Asked, label: str, count: int) -> None:
    account, begin = answer.account, f"{label}  ".lstrip()
    if account.starts is not None:
        told = [_start(answer, one) for one in account.starts if one.weight >= LEAST]
        left = len(account.starts) - len(told)
        told += [f"{left} more below {LEAST:g}"] if left else []
        echo(f"\n{begin}names  {', '.join(told) or 'none recognised'}")
    elif account.names is not None:
        echo(f"\n{begin}names  {', '.join(account.names) or 'none'}")
    if account.walks is not None:
        shown = zip(answer.found[:count], account.walks, strict=False)
        for rank, (one, walks) in enumerate(shown, start=1):
            if walks:
                echo(f"{begin}{rank}  {_title(one)}")
                for line in _ways(answer, walks):
                    echo(f"{begin}   {line}")
    elif account.paths is not None:
        for path in account.paths[:count]:
            echo(f"{begin}path  {_path(path)}")


def _start(answer: Asked, start: Start) -> str:
    name = start.name or f"the names of {_named(answer, start.passage)}"
    return f"{name} {start.weight:.2f}"


def _ways(answer: Asked, walks: Sequence[Walk]) -> Iterator[str]:
    shown = [walk for walk in walks[:SHOWN_PATHS] if walk.share >= LEAST]
    for walk in shown:
        yield f"{as_percent(walk.share):>5}  {_walk(answer, walk)}"
    rest = 1.0 - sum(walk.share for walk in shown)
    if rest >= LEAST:
        yield f"{as_percent(rest):>5}  by ways that turn back, and others"


def _walk(answer: Asked, walk: Walk) -> str:
    told = [walk.names[0]]
    for (first, second), step in zip_longest(pairwise(walk.names), walk.relations):
        if step is None:
            told.append(f"– {second}")
        elif step[0] == first:
            told.append(f"–{step[1]}→ {second}")
        else:
            told.append(f"←{step[1]}– {second}")
    start = f"the names of {_named(answer, walk.start)}: " if walk.start else ""
    through = ", ".join(_named(answer, id_) for id_ in walk.passages[:-1])
    return f"{start}{' '.join(told)}" + (f"  (through {through})" if through else "")


def _named(answer: Asked, id_: str) -> str:
    return shortened(answer.titles.get(id_) or id_, LONGEST_TITLE)


def _path(path: RelationPath) -> str:
    if not path:
        return "–"
    told = [path[0][0]]
    for _, relation, second in path:
        told.append(f"–{relation}→ {second}" if relation else f"– {second}")
    return " ".join(told)


def _print_metrics(tables: Tables, answers: Sequence[Asked]) -> None:
    if len(answers) == 1:
        table = new_table("metric", "value", words=("metric",))
        for name, value in answers[0].metrics.items():
            table.add_row(name, figure(value))
    else:
        a, b = (answer.metrics for answer in answers[:2])
        table = new_table("metric", "A", "B", "B less A", words=("metric",))
        for name in a:
            first, second = a[name], b.get(name)
            less = None if first is None or second is None else second - first
            table.add_row(name, figure(first), figure(second), figure(less, "+.4f"))
    tables.print(table)


def _took(answer: Asked) -> str:
    told = [counted(len(answer.found), "passage")]
    if answer.tokens is not None:
        told.append(f"{answer.tokens:,.0f} tokens")
    if answer.seconds is None:
        told.append("an answer that was kept")
    else:
        told.append(f"{1000 * answer.seconds:,.1f} ms")
    return ", ".join(told)
