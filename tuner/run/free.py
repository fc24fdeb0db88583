"""Which parameters a study need not ask for: declared by the retriever, and seen to be so."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tuner.core import calls
from tuner.core.checks import is_number
from tuner.core.corpus import Query
from tuner.core.errors import OutageError, one_line
from tuner.core.journal import ENDING
from tuner.core.outages import is_outage
from tuner.core.policy import POLICY
from tuner.core.rankings import FloatArray, Rankings
from tuner.core.space import Categorical, SearchSpace
from tuner.core.space.expression import UNKNOWN, Domain, parse
from tuner.core.steps import Say
from tuner.core.trial import Params, Scalar
from tuner.evaluation.free.settings import cutoff_values, prefix_values, told_by
from tuner.evaluation.system_metrics import CONTEXT_TOKENS, needs_latency
from tuner.retrieval.base import Measures, free_knobs, telling_legs
from tuner.retrieval.computed import answer_at, leg_problem
from tuner.retrieval.free import NOTHING_FREE, FreeKnobs
from tuner.run.assembly import Assembly
from tuner.run.inspection import spread
from tuner.study.loop import State
from tuner.study.study import Study

# The note of a journal that says which parameters are free; a study that goes on keeps to it.
NOTE = "free_knobs"
# So many queries are asked at other values before a declaration is believed.
CHECKED_QUERIES = 5
# So many points inside a range stand for all.
POINTS_INSIDE = 64
COMPUTED = "every value is computed from one answer, none is asked"
NOT_TOLD = "an answer tells nothing of other values"
# So many values of a cut-off are asked: those that part the scores of an answer in as many parts.
CHECKED_CUTOFFS = 3


@dataclass(frozen=True)
class Settled:
    """Which parameters are free, and of those that were declared and are not, why.

    ``untold`` are those that were not declared: each of their values is asked.
    """

    free: FreeKnobs = NOTHING_FREE
    refused: Mapping[str, str] = field(default_factory=dict)
    untold: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """Return what a run says of it."""
        free = [f"free: {', '.join(self.free.names)}: {COMPUTED}"] if self.free.names else []
        return [*free, *(f"not free: {told}" for told in _by_reason(self.refused))]

    @property
    def facts(self) -> dict[str, str]:
        """Return what a check says of it, of every parameter of the space."""
        free = f"{', '.join(self.free.names)}: {COMPUTED}" if self.free.names else "nothing"
        asked = {**self.refused, **dict.fromkeys(self.untold, NOT_TOLD)}
        return {"free": free, **({"not_free": "; ".join(_by_reason(asked))} if asked else {})}


def settle(assembly: Assembly, study: Study, say: Say) -> FreeKnobs:
    """Find out which parameters are free, once a study, and let the study know.

    Raises:
        OutageError: the system does not answer.
    """
    if assembly.config.free == "off" or assembly.config.budget.trials == 0:
        return NOTHING_FREE
    settled = noted(assembly, study.earlier.notes)
    if settled is None:
        settled = checked(assembly, spread(assembly.tune_queries, CHECKED_QUERIES))
        if settled.free.names or settled.refused:
            study.note(NOTE, free=list(settled.free.names), refused=dict(settled.refused))
    for sentence in settled.sentences:
        say(sentence)
    study.let_free(settled.free.names)
    return settled.free


def most_checked(assembly: Assembly) -> int:
    """Return how many queries ``settle`` asks at most."""
    free, space = expected(assembly).free, assembly.plan.space
    others = [len(_others(space, name, free)) for name in (*free.prefixes, *free.weights)]
    settings = 1 + sum(others) + CHECKED_CUTOFFS * len(free.cutoffs) if free.names else 0
    return settings * len(spread(assembly.tune_queries, CHECKED_QUERIES))


def expected(assembly: Assembly) -> Settled:
    """Return which parameters are free by what is declared of them: nothing is asked."""
    if assembly.config.free == "off":
        return Settled()
    declared = _declared(assembly)
    untold = (name for name in assembly.plan.space.names if name not in declared.names)
    return replace(_eligible(assembly, declared), untold=tuple(untold))


def checked(assembly: Assembly, queries: Sequence[Query]) -> Settled:
    """Ask some queries at other values, and compare with what one answer told of them.

    Raises:
        OutageError: the system does not answer.
    """
    found = expected(assembly)
    if not found.free.names:
        return found
    return replace(_seen(assembly, found, queries), untold=found.untold)


def interrupted(study: Study, reason: str, say: Say) -> State:
    """End a search that could not begin: it does when the study is resumed."""
    study.stopped_by = reason
    say(reason)
    study.note(ENDING, state="interrupted", reason=reason)
    return "interrupted"


def _by_reason(refused: Mapping[str, str]) -> Iterator[str]:
    """Yield each reason after the names that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in refused.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"{', '.join(names)}: {reason}"


def noted(assembly: Assembly, notes: Iterable[Mapping[str, Any]]) -> Settled | None:
    """Return what the notes of a journal say of it; None where it was not looked at."""
    note = next((one for one in notes if one.get("kind") == NOTE), None)
    if note is None:
        return None
    declared = _declared(assembly)
    return Settled(declared.only(note.get("free", ())), dict(note.get("refused", {})))


def _declared(assembly: Assembly) -> FreeKnobs:
    """Return what the configuration and the retriever declare of what is searched."""
    retriever, names = assembly.retriever, assembly.plan.space.names
    if isinstance(retriever, Measures):
        return NOTHING_FREE
    own = free_knobs(retriever, assembly.fixed, names)
    return assembly.plan.free.and_those_of(own).only(names)


def _eligible(assembly: Assembly, declared: FreeKnobs) -> Settled:
    """Leave out what this study cannot choose from an answer, and say why."""
    space, objective = assembly.plan.space, assembly.plan.objective
    refused: dict[str, str] = {}
    for name in declared.names:
        if assembly.parts:
            refused[name] = (
                "each part of the queries needs trials at many values of it (dataset.split.parts)"
            )
        elif objective.pareto:
            refused[name] = "a front needs trials at many values of it (objective.pareto)"
        elif name in _entangled(space, declared.weights):
            refused[name] = "a condition or constraint of the space ties it to other parameters"
        elif any(name in getattr(arm[1], "levels", ()) for arm in assembly.plan.arms):
            refused[name] = "an arm names levels of it"
        elif name in declared.prefixes and not _counts(space, name):
            refused[name] = "its values are not all whole numbers from 1 on"
        elif name in declared.cutoffs and not _are_numbers(space, name):
            refused[name] = "its values are not all numbers"
        elif name not in declared.weights and needs_latency(objective.metric_names):
            which = "largest" if name in declared.prefixes else "smallest"
            refused[name] = (
                f"the objective looks at the latency, which is known of the {which} value alone"
            )
        elif isinstance(space.parameters[name], Categorical) and name in declared.weights:
            refused[name] = "its values are choices, and a weight is a number in a range"
    for sort, names in (("prefix", declared.prefixes), ("cut-off", declared.cutoffs)):
        for name in names[1:]:
            refused.setdefault(name, f"{names[0]} is: one {sort} is computed at a time")
    return _left(declared, refused)


def _left(declared: FreeKnobs, refused: Mapping[str, str]) -> Settled:
    free = declared.only([name for name in declared.names if name not in refused])
    gone = dict.fromkeys(declared.names, "the weights of one mixture are free together")
    told = {
        name: refused.get(name, gone[name]) for name in declared.names if name not in free.names
    }
    return Settled(free, told)


def _entangled(space: SearchSpace, weights: Collection[str]) -> set[str]:
    """Return the parameters that conditions or constraints speak of.

    But for constraints that forbid no more of the weights than ends of their ranges, such as that
    all are 0: those are kept to where a weight is chosen.
    """
    names = {name for name, parameter in space.parameters.items() if parameter.when}
    names |= {other for parameter in space.parameters.values() for other in parameter.when}
    domains = {name: Domain(UNKNOWN) for name in space.names}
    for text in space.constraints:
        told = set(parse(text, domains).names)
        if not (told <= set(weights) and _holds_inside(space, told, text)):
            names |= told
    return names


def _holds_inside(space: SearchSpace, names: Collection[str], constraint: str) -> bool:
    """Say whether a constraint holds at all of many points that are at no end of a range."""
    part = SearchSpace({name: space.parameters[name] for name in names}, (constraint,))
    draws = np.random.default_rng(0).random((POINTS_INSIDE, len(names)))
    points = [part.decode(draw) for draw in draws.tolist()]
    ends = {name: [one.at(0.0), one.at(1.0)] for name, one in part.parameters.items()}
    inside = [p for p in points if not any(p[name] in ends[name] for name in names)]
    return bool(inside) and all(map(part.satisfies, inside))


def _counts(space: SearchSpace, name: str) -> bool:
    parameter = space.parameters[name]
    values = parameter.levels(parameter.count or 1)
    return parameter.count is not None and all(
        isinstance(v, int) and not isinstance(v, bool) and v >= 1 for v in values
    )


def _are_numbers(space: SearchSpace, name: str) -> bool:
    parameter = space.parameters[name]
    return not isinstance(parameter, Categorical) or all(map(is_number, parameter.choices))


def _seen(assembly: Assembly, settled: Settled, queries: Sequence[Query]) -> Settled:
    free = settled.free
    counting = assembly.counting(calls.CHECKED)
    retriever = counting.retriever
    assert not isinstance(retriever, Measures)
    space, fixed = assembly.plan.space, assembly.fixed
    at = {**fixed, **_place(assembly)}
    try:
        asked = {**at, **told_by(space, free)}
        # What tells of others has its legs; what is only compared with it is kept without.
        telling = retriever if free.mixing is None else telling_legs(retriever)
        answer = telling.retrieve(queries, asked)
        refused = dict(settled.refused)
        if free.mixing is not None:
            problem = leg_problem(free.mixing, answer.legs)
            if problem is not None:
                refused |= dict.fromkeys(free.mixing.parameters, problem)
        # Weights come first: a prefix is one also where what is mixed is not what was declared.
        for name in (*free.weights, *free.cutoffs, *free.prefixes):
            left = free.only([other for other in free.names if other not in refused])
            if name not in left.names:
                continue
            if left.cutoffs and left.mixing is None and answer.scores is None:
                refused |= dict.fromkeys(left.cutoffs, "the answers carry no scores")
                left = left.only([*left.prefixes, *left.weights])
                if name not in left.names:
                    continue
            others = _others(space, name, left, answer_at(left, answer, asked).scores)
            asking = partial(retriever.retrieve, queries)
            pairs = (
                (value, answer_at(left, answer, turned), asking(turned))
                for value in others
                for turned in [{**asked, name: value}]
            )
            reason = _difference(name, queries, pairs, counts=_counts_tokens(assembly))
            refused |= {} if reason is None else {name: reason}
    except Exception as error:
        if is_outage(error):
            raise OutageError(str(error)) from error
        reason = f"it could not be checked: {one_line(error)}"
        return Settled(NOTHING_FREE, {**settled.refused, **dict.fromkeys(free.names, reason)})
    return _left(free, refused) if refused.keys() & set(free.names) else settled


def _place(assembly: Assembly) -> Params:
    """Return a point of the space to check at: the baseline where it is one, else the middle."""
    space, baseline = assembly.plan.space, assembly.baseline or {}
    if POLICY not in baseline:
        inside = {name: baseline[name] for name in space.names if name in baseline}
        if space.contains(inside):
            return inside
    middle = space.decode([0.5] * len(space.names))
    return middle if space.satisfies(middle) else space.sample(np.random.default_rng(0))


def _others(
    space: SearchSpace, name: str, free: FreeKnobs, scores: FloatArray | None = None
) -> list[Scalar]:
    """Return the values that are really asked: one of a prefix, three of a weight or a cut-off.

    Those of a cut-off part the ``scores`` of an answer.
    """
    if name in free.prefixes:
        values = prefix_values(space, name)
        return values[len(values) // 2 : -1][:1] or values[:-1][:1]
    if name in free.cutoffs:
        values = cutoff_values(space, name, np.zeros(0) if scores is None else scores)
        places = [len(values) * part // CHECKED_CUTOFFS for part in range(1, CHECKED_CUTOFFS)]
        return list(dict.fromkeys(values[place] for place in [*places, -1]))
    parameter = space.parameters[name]
    return list(dict.fromkeys(parameter.at(place) for place in (0.0, 0.3, 1.0)))


def _counts_tokens(assembly: Assembly) -> bool:
    """Say whether the system's own count of tokens is looked at."""
    names = assembly.plan.metric_names
    return assembly.plan.tokenizer is None and any(n.startswith(CONTEXT_TOKENS) for n in names)


def _difference(
    name: str,
    queries: Sequence[Query],
    pairs: Iterable[tuple[Scalar, Rankings, Rankings]],
    *,
    counts: bool,
) -> str | None:
    """Return where an answer that was computed is not the one that was given; None: nowhere.

    ``pairs`` holds, for values of a parameter, the computed answers and the given ones; ``counts``
    says whether their tokens are compared, too.
    """
    for value, computed, given in pairs:
        for row, query in enumerate(queries):
            found = _first_difference(computed.ids(row), given.ids(row))
            if found is not None:
                rank, expected, got = found
                return (
                    f"with {name}={value} query {query.id!r} was answered with {got} at rank "
                    f"{rank}, where one answer to all values tells of {expected}"
                )
        if not counts or given.context_tokens is None:
            continue
        if computed.context_tokens is None:
            return (
                "the system counts the tokens of a context, and does not tell each passage's "
                "(give each result its tokens, or leave context_tokens out)"
            )
        is_off = ~np.isclose(computed.context_tokens, given.context_tokens)
        if is_off.any():
            row = int(is_off.argmax())
            return (
                f"with {name}={value} the context of query {queries[row].id!r} had "
                f"{given.context_tokens[row]:g} tokens, where one answer to all values tells of "
                f"{computed.context_tokens[row]:g}"
            )
    return None


def _first_difference(computed: list[str], given: list[str]) -> tuple[int, str, str] | None:
    length = max(len(computed), len(given))
    rows = [[*map(repr, ids), *["nothing"] * (length - len(ids))] for ids in (computed, given)]
    for rank, (expected, got) in enumerate(zip(*rows, strict=True), start=1):
        if expected != got:
            return rank, expected, got
    return None
