"""One question asked of a configuration: what it retrieved, why, how good that is, what it took."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tuner.core.account import Account, Start, Walk
from tuner.core.calls import EVALUATION
from tuner.core.corpus import Document, Query
from tuner.core.errors import InputError
from tuner.core.json_text import text_digest
from tuner.core.policy import Policy
from tuner.core.rankings import WHOLE, FloatArray, Rankings
from tuner.core.trial import Params
from tuner.evaluation.evaluator import Evaluator
from tuner.evaluation.objective import COMPOSITE, composite_values
from tuner.evaluation.system_metrics import SYSTEM_METRICS
from tuner.metrics.efficiency import default_tokenizer
from tuner.metrics.names import parse
from tuner.metrics.passages import Passages
from tuner.retrieval.account import account_of, answered_by
from tuner.retrieval.base import Retriever, Serves, serve_one, telling_legs, with_reasons
from tuner.retrieval.features import params_for
from tuner.retrieval.wrapped.around import is_engine
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.run.assembly import Assembly
from tuner.run.judge import Choice, key_of, look
from tuner.verdict.looks import EarlierLooks, query_digest

FREE_TEXT = "question"
# What is timed or built has no value for one query.
_NOT_BY_QUERY = ("latency_ms", "index")


@dataclass(frozen=True)
class Question:
    """What is asked: a query of the data set, or any text.

    Attributes:
        part: ``"tune"`` or ``"holdout"``; empty for a text that is no query of the data set.
        relevant: ids of the documents that are to be found; empty where nobody said.
    """

    query: Query
    part: str = ""
    relevant: tuple[str, ...] = ()

    @property
    def is_labelled(self) -> bool:
        """Say whether it is a query of the data set."""
        return bool(self.part)


@dataclass(frozen=True)
class Found:
    """A passage of an answer.

    Attributes:
        text: what was retrieved of it: the document's text, or the part of it.
        relevant: None where nobody said.
        score, tokens: None where the system does not tell.
    """

    id: str
    title: str
    text: str
    relevant: bool | None = None
    score: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, eq=False)
class Asked:
    """What one configuration made of a question.

    Attributes:
        choice: as it was given; ``params``: those that answered, which a policy may have chosen.
        found: the passages, best first; ``account``: how they came about.
        metrics: the query's values; None is undefined, and all of them are left out of a free text.
        tokens: of the context, None where it is not known.
        seconds: how long the answer took, as live traffic would have it answered; None where it
            was kept from before.
        titles: by id, of all documents that the account names.
    """

    choice: Choice
    params: Params
    found: tuple[Found, ...]
    account: Account
    metrics: Mapping[str, float | None]
    tokens: float | None
    seconds: float | None
    titles: Mapping[str, str]

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """Return the rank, from 1, of each document."""
        return {one.id: rank for rank, one in enumerate(self.found, start=1)}

    def to_record(self, count: int | None = None) -> dict[str, Any]:
        """Return it as a JSON-ready mapping, with the first ``count`` passages; None: all."""
        account, policy = self.account, self.choice
        record: dict[str, Any] = {
            **({"policy": policy.told} if isinstance(policy, Policy) else {}),
            "params": dict(self.params),
            "retrieved": len(self.found),
            "passages": [self._passage(place) for place in range(len(self.found[:count]))],
            "metrics": dict(self.metrics),
            "tokens": self.tokens,
            "seconds": self.seconds,
            "remarks": list(account.remarks),
        }
        if account.starts is not None:
            record["names"] = [_start(one) for one in account.starts]
        elif account.names is not None:
            record["names"] = [{"name": name} for name in account.names]
        if account.paths is not None:
            record["paths"] = [[list(step) for step in path] for path in account.paths]
        return record

    def _passage(self, place: int) -> dict[str, Any]:
        one, account = self.found[place], self.account
        record: dict[str, Any] = {
            "rank": place + 1,
            "id": one.id,
            "title": one.title,
            "text": one.text,
            "relevant": one.relevant,
        }
        known = {"score": one.score, "tokens": one.tokens}
        if account.mixed is not None:
            known["mixed"] = float(account.mixed[place])
        record |= {name: value for name, value in known.items() if value is not None}
        if account.legs:
            record["legs"] = {
                name: {
                    "score": number(leg.scores, place),
                    **({} if leg.parts is None else {"part": number(leg.parts, place)}),
                }
                for name, leg in account.legs.items()
            }
        if account.walks is not None:
            record["paths"] = [_walk(walk) for walk in account.walks[place]]
        return record


@dataclass(frozen=True)
class Moved:
    """Where one document stands in two answers: ranks from 1, None where it is not among them."""

    id: str
    a: int | None
    b: int | None

    @property
    def change(self) -> str:
        """Return what became of it: came, went, up, down or same."""
        if self.a is None or self.b is None:
            return "came" if self.a is None else "went"
        return "same" if self.a == self.b else "up" if self.b < self.a else "down"


def moved(a: Asked, b: Asked, count: int | None = None) -> tuple[Moved, ...]:
    """Return the documents among the first ``count`` of either answer, those of ``b`` first."""
    first, second = a.ranks, b.ranks
    shown = [one.id for one in b.found[:count]]
    shown += [one.id for one in a.found[:count] if one.id not in shown]
    return tuple(Moved(id_, first.get(id_), second.get(id_)) for id_ in shown)


def to_record(asked: Question, answers: Sequence[Asked], count: int | None) -> dict[str, Any]:
    """Return a question and one answer or two as a JSON-ready mapping."""
    sides = dict(zip("ab", (one.to_record(count) for one in answers), strict=False))
    record: dict[str, Any] = {
        "question": asked.query.text,
        "query": None
        if not asked.is_labelled
        else {
            "id": asked.query.id,
            "query_type": asked.query.query_type,
            "part": asked.part,
            "relevant": list(asked.relevant),
        },
        **sides,
    }
    if len(answers) > 1:
        record["moved"] = [
            {"id": one.id, "a": one.a, "b": one.b, "change": one.change}
            for one in moved(answers[0], answers[1], count)
        ]
    return record


def number(values: FloatArray, place: int) -> float | None:
    """Return one value, None where it is undefined."""
    return float(values[place]) if np.isfinite(values[place]) else None


def _start(start: Start) -> dict[str, Any]:
    told = {"name": start.name} if start.name else {"passage": start.passage}
    return {**told, "weight": start.weight}


def _walk(walk: Walk) -> dict[str, Any]:
    return {
        "share": walk.share,
        "names": list(walk.names),
        "passages": list(walk.passages),
        "relations": [None if step is None else list(step) for step in walk.relations],
        **({"start": walk.start} if walk.start else {}),
    }


def question(assembly: Assembly, written: str) -> Question:
    """Return what is asked: a query by its id or its words, or else the text itself.

    Raises:
        InputError: nothing is asked.
    """
    if not written.strip():
        raise InputError("the question is empty; write a question, or the id of a query")
    queries = assembly.dataset.queries
    wanted = query_digest(written)
    found = next((one for one in queries if one.id == written), None) or next(
        (one for one in queries if query_digest(one.text) == wanted), None
    )
    if found is None:
        # An id of its own: kept answers are known by it.
        return Question(Query(f"{FREE_TEXT}-{text_digest(written, 12)}", written))
    is_held_out = any(one.id == found.id for one in assembly.holdout_queries)
    part = "holdout" if is_held_out else "tune"
    return Question(found, part, assembly.dataset.relevant(found.id))


def ask(assembly: Assembly, asked: Question, choices: Sequence[Choice]) -> tuple[Asked, ...]:
    """Ask a question of each configuration, once; two that answer it by the same are asked once.

    Raises:
        InputError: the system measures itself, so it answers no questions.
        TunerError: it does not answer.
    """
    counting, answers = assembly.counting(EVALUATION), list[Asked]()
    for choice in choices:
        chosen = _chosen(counting, asked.query, choice)
        same = next((one for one in answers if one.params == chosen), None)
        if same is None:
            answers.append(_ask(counting, asked, choice, chosen))
        else:
            answers.append(replace(same, choice=choice))
    return tuple(answers)


def remember_look(
    assembly: Assembly, asked: Question, choices: Sequence[Choice]
) -> EarlierLooks | None:
    """Remember a look at a held-out query; None of any other question, which is none."""
    if asked.part != "holdout":
        return None
    keys = [key_of(assembly, choice) for choice in choices]
    runs_dir = Path(assembly.config.study.runs_dir)
    return look(runs_dir, assembly, keys, queries=[asked.query])


def _chosen(assembly: Assembly, query: Query, choice: Choice) -> Params:
    """Return the parameters that answer a query; a policy chooses them by it."""
    retriever, own = assembly.answering(choice)
    if isinstance(choice, Policy):
        return params_for(choice, retriever, [query])[0]
    return {**assembly.fixed, **own}


def _ask(assembly: Assembly, asked: Question, choice: Choice, chosen: Params) -> Asked:
    retriever, own = assembly.answering(choice)
    query, params = asked.query, {**assembly.fixed, **own}
    is_kept, has_legs = _kept(assembly.retriever, query, chosen)
    if has_legs or not is_kept:  # what was paid for is not paid again for its legs
        retriever = telling_legs(retriever)
    evaluator = _evaluator(assembly, retriever, asked)
    answering, own = answered_by(retriever, query, params)
    begin = time.perf_counter()
    if _is_served(assembly, answering, is_kept=is_kept):
        rankings = serve_one(retriever, query, params)
    else:
        rankings = retriever.retrieve([query], params)
    seconds = None if is_kept else time.perf_counter() - begin
    if evaluator.labels is not None:
        rankings = with_reasons(retriever, [query], params, rankings)
    if evaluator.passages is not None and evaluator.budget_tokens is not None:
        rankings = evaluator.passages.within(rankings, evaluator.budget_tokens)
        evaluator = replace(evaluator, budget_tokens=None)
    account = account_of(retriever, query, params, rankings)
    if not is_kept and is_engine(answering):
        # It answered from what was prepared ahead, which says nothing of its time. To ask it again
        # costs nothing, and is not counted.
        begin = time.perf_counter()
        serve_one(answering, query, own)
        seconds = time.perf_counter() - begin
    documents = _documents(assembly, asked, rankings, account)
    return Asked(
        choice,
        chosen,
        _found(rankings, documents, asked, evaluator),
        account,
        _metrics(assembly, evaluator, rankings) if asked.is_labelled else {},
        _tokens(assembly, rankings, documents),
        seconds,
        {id_: document.title for id_, document in documents.items()},
    )


def _is_served(assembly: Assembly, answering: Retriever, *, is_kept: bool) -> bool:
    """Say whether to ask with nothing prepared, so that one answer tells its time as well.

    Not where answers are kept: such a one would not be.
    """
    is_alone = not is_kept and not isinstance(assembly.retriever, Remembered)
    return is_alone and isinstance(answering, Serves) and not is_engine(answering)


def _kept(retriever: object, query: Query, params: Params) -> tuple[bool, bool]:
    """Say whether the answer was kept, and whether its legs were."""
    if not isinstance(retriever, Remembered):
        return False, False
    has_legs = bool(retriever.telling_legs().kept([query], params))
    return has_legs or bool(retriever.kept([query], params)), has_legs


def _evaluator(assembly: Assembly, retriever: Retriever, asked: Question) -> Evaluator:
    """Return what measures the answer to a question: by all metrics that one query can have."""
    names = [
        name
        for name in assembly.plan.metric_names
        if name not in SYSTEM_METRICS or SYSTEM_METRICS[name].source not in _NOT_BY_QUERY
    ]
    if asked.query.id not in assembly.dataset.evidences:
        names = [n for n in names if n in SYSTEM_METRICS or parse(n).kind != "graph"]
    plan = replace(assembly.plan, metric_names=tuple(names) if asked.is_labelled else ())
    return replace(assembly, plan=plan).evaluator_over(retriever, [asked.query])


def _documents(
    assembly: Assembly, asked: Question, rankings: Rankings, account: Account
) -> dict[str, Document]:
    """Return, by id, the documents that an answer, its account and the labels name."""
    wanted = {*rankings.ids(0), *asked.relevant}
    for walks in account.walks or ():
        wanted.update(id_ for walk in walks for id_ in walk.passages)
    wanted.update(start.passage for start in account.starts or ())
    return {one.id: one for one in assembly.dataset.corpus.documents if one.id in wanted}


def _found(
    rankings: Rankings,
    documents: Mapping[str, Document],
    asked: Question,
    evaluator: Evaluator,
) -> tuple[Found, ...]:
    hits = evaluator.qrels.judge(rankings).hits[0]
    scores, tokens, spans = rankings.scores, rankings.tokens, rankings.spans
    found = []
    for place, id_ in enumerate(rankings.ids(0)):
        document = documents.get(id_, Document(id_, "", ""))
        begin, end = WHOLE if spans is None else spans[0, place].tolist()
        found.append(
            Found(
                id_,
                document.title,
                document.text[begin:end],
                bool(hits[place]) if asked.is_labelled else None,
                None if scores is None else number(scores[0], place),
                None if tokens is None else number(tokens[0], place),
            )
        )
    return tuple(found)


def _metrics(
    assembly: Assembly, evaluator: Evaluator, rankings: Rankings
) -> dict[str, float | None]:
    per_query = evaluator.measure(rankings).per_query
    weights = assembly.plan.objective.weights
    values = dict(per_query)
    if weights.keys() <= per_query.keys():
        values = {COMPOSITE: composite_values(per_query, weights), **per_query}
    return {name: number(one, 0) for name, one in values.items()}


def _tokens(
    assembly: Assembly, rankings: Rankings, documents: Mapping[str, Document]
) -> float | None:
    """Return the tokens of the context: by a tokenizer of the user's, as reported, or counted."""
    reported = rankings.context_tokens
    if reported is not None and assembly.plan.tokenizer is None:
        return number(reported, 0)
    if not all(id_ in documents for id_ in rankings.ids(0)):
        return None
    texts = [f"{one.title} {one.text}".strip() for one in documents.values()]
    tokenizer = assembly.plan.tokenizer or default_tokenizer
    counting = Passages.build(list(documents), texts, [], tokenizer=tokenizer)
    return number(counting.context_tokens(rankings), 0)
