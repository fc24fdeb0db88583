"""`tuner compare --answers`: two context strategies by what is answered from their contexts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tuner.cli.options import load_shown, note
from tuner.cli.out import echo
from tuner.cli.params import read_params
from tuner.core.digests import digest_of
from tuner.core.errors import InputError
from tuner.core.json_text import json_text

if TYPE_CHECKING:
    from tuner.core.corpus import Query
    from tuner.run.assembly import Assembly
    from tuner.run.judge import Choice
    from tuner.scoring.answers import AnswerDuel, Answerer, Answers

DEFAULT_SIMILARITIES = ("token_f1", "exact_match")


def compare(
    config: str,
    sources: Sequence[str],
    *,
    first: str | None,
    second: str | None,
    part: str,
    similarities: Sequence[str],
    keep: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Answer every query from the contexts of A and of B, or read the answers, and compare.

    Raises:
        InputError: sources, similarities or parameters that do not fit.
    """
    from tuner.scoring.answer_files import read_answers
    from tuner.scoring.answer_metrics import find_similarity
    from tuner.scoring.answers import compare_answers

    if keep is not None and not any(":" in source for source in sources):
        raise InputError("--keep-answers writes what a function answers; these are files already")
    if keep is not None and keep.exists() and not keep.is_dir():
        raise InputError(f"--keep-answers {keep}: this is a file; name a folder")
    if len(sources) > 2:
        raise InputError("--answers names at most two: what answers for A, and for B")
    found = [find_similarity(name) for name in similarities or DEFAULT_SIMILARITIES]
    are_files = [_is_file(source) for source in sources]
    if all(are_files) and len(sources) == 1:
        raise InputError("give a second --answers: the answers of B")
    if not any(are_files) or not _is_dataset(config):
        assembly = load_shown(config, settings)
        dataset, queries, seed = assembly.dataset, assembly.part(part), assembly.config.study.seed
    elif not all(are_files):
        raise InputError(f"{config!r} is a data set; a function needs a configuration's retriever")
    else:
        from tuner.datasets import open_dataset

        assembly, dataset, seed = None, open_dataset(config), 0
        queries = dataset.queries
    queries = tuple(query for query in queries if any(dataset.answers.get(query.id, ())))
    if not queries:
        raise InputError(f"data set {dataset.name!r} has no expected answers for these queries")
    if all(are_files):
        first_file, second_file = (read_answers(Path(one), dataset, say=note) for one in sources)
        answers = (first_file, second_file)
        # What neither file holds was not asked; what one of them lacks, that side did not answer.
        asked = answers[0].texts.keys() | answers[1].texts.keys()
        queries = tuple(query for query in queries if query.id in asked)
        is_same = answers[0].texts == answers[1].texts
    elif assembly is None or any(are_files):
        raise InputError("--answers: give two files, or functions for both")
    else:
        choices = _choices(assembly, sources, first, second)
        answers = _ask(assembly, sources, choices, queries, keep)
        is_same = choices[0] == choices[1] and sources[0] == sources[-1]
    duel = compare_answers(answers, queries, dataset.answers, found, seed=seed)
    # Between what is the same nothing is decided, so that is no look at the held-out queries.
    remarks = [*duel.remarks, *([] if is_same else _looks(assembly, part, answers))]
    if as_json:
        record = {**duel.to_record(), "remarks": remarks}
        echo(json_text(record, indent=2))
        return
    for remark in remarks:
        note(f"note: {remark}")
    _print(duel)


def _choices(
    assembly: Assembly, sources: Sequence[str], first: str | None, second: str | None
) -> tuple[Choice, Choice]:
    a = assembly.baseline if first is None else assembly.choice(read_params(first, "--a"))
    if a is None:
        raise InputError("give --a, or a `baseline:` section in the configuration")
    b = a if second is None else assembly.choice(read_params(second, "--b"))
    if len(sources) == 1 and second is None:
        raise InputError("give --b, the other context, or a second --answers, the other function")
    return a, b


def _ask(
    assembly: Assembly,
    sources: Sequence[str],
    choices: tuple[Choice, Choice],
    queries: Sequence[Query],
    keep: Path | None,
) -> tuple[Answers, Answers]:
    from tuner.scoring.answer_files import keeping
    from tuner.scoring.answers import ask_by_turns, contexts_of

    documents = assembly.dataset.corpus.documents
    a, b = choices
    one = contexts_of(*assembly.answering(a), queries, documents)
    contexts = (one, one if a == b else contexts_of(*assembly.answering(b), queries, documents))
    sides = (_function(sources[0]), _function(sources[-1]))
    seed = assembly.config.study.seed
    with keeping(keep, say=note) as kept:
        return ask_by_turns(sides, contexts, queries, seed=seed, keep=kept)


def _function(name: str) -> Answerer:
    from tuner.core import registry

    function: Answerer = registry.load("answering function", name)
    if problem := registry.call_problem(function, "context", "query"):
        raise InputError(
            f"--answers {name}: {problem}; write a function (context, query) -> answer"
        )
    return function


def _is_file(source: str) -> bool:
    if Path(source).expanduser().is_file():
        return True
    if ":" in source and not source.endswith((".jsonl", ".json")):
        return False
    raise InputError(
        f"--answers {source}: there is no such file; write FILE.jsonl, or module:function"
    )


def _is_dataset(config: str) -> bool:
    return config.startswith("builtin:") or not config.endswith((".yaml", ".yml"))


def _looks(assembly: Assembly | None, part: str, answers: tuple[Answers, Answers]) -> list[str]:
    """Count this as a look at the held-out queries, and say how many there were before.

    The same answers again tell nothing new.
    """
    from tuner.run.judge import look

    if assembly is None or part == "tune" or not assembly.holdout_queries:
        return []
    runs_dir = Path(assembly.config.study.runs_dir)
    looks = look(
        runs_dir,
        assembly,
        [f"answers {digest_of(side.texts)}" for side in answers],
    )
    return looks.remarks(runs_dir)


def _print(duel: AnswerDuel) -> None:
    from tuner.cli.pair_table import CHANGED_QUERIES, print_pairs
    from tuner.cli.tables import print_types

    print_pairs(duel.metrics)
    echo(f"\n{duel.sentence}", bold=True)
    print_types(duel.to_record())
    before, after = next(iter(duel.scores.values()))
    change = after - before
    order = sorted(range(len(change)), key=lambda row: change[row])
    for title, rows in (("gained most", order[::-1]), ("lost most", order)):
        shown = [row for row in rows if change[row] * (1 if rows is not order else -1) > 0]
        if shown:
            echo(f"\n{title}")
        for row in shown[:CHANGED_QUERIES]:
            query = duel.queries[row]
            a, b = (side.texts.get(query.id, "") for side in duel.answers)
            echo(f"  {change[row]:+.3f}  {query.id}  {query.text}  A: {a[:60]}  B: {b[:60]}")
