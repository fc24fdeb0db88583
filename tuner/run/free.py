"""Which parameters a study need not ask for: declared by the retriever, and seen to be so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tuner.core import calls
from tuner.core.checks import is_number
from tuner.core.corpus import Query
from tuner.core.errors import OutageError, one_line
from tuner.core.journal import ENDING
from tuner.core.policy import POLICY
from tuner.core.rankings import FloatArray, Rankings
from tuner.core.space import Categorical, SearchSpace
from tuner.core.space.expression import UNKNOWN, Domain, parse
from tuner.core.steps import Say
from tuner.core.trial import Params, Scalar
from tuner.evaluation.free.settings import cutoff_values, prefix_values, told_by
from tuner.evaluation.system_metrics import CONTEXT_TOKENS, needs_latency
from tuner.retrieval.base import Measures, Retriever, free_knobs, telling_legs
from tuner.retrieval.computed import answer_at, leg_problem
from tuner.retrieval.free import NOTHING_FREE, FreeKnobs
from tuner.run.asking import keep_time, probe
from tuner.run.assembly import Assembly
from tuner.run.free_branches import with_branches
from tuner.run.free_difference import difference
from tuner.run.inspection import spread
from tuner.study.loop import State
from tuner.study.outages import answered, gets_answer
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
        some = spread(assembly.tune_queries, CHECKED_QUERIES)
        settled = checked(assembly, some, after=partial(keep_time, study))
        if settled.free.names or settled.refused:
            study.note(NOTE, free=list(settled.free.names), refused=dict(settled.refused))
    for sentence in settled.sentences:
        say(sentence)
    study.let_free(settled.free.names)
    return settled.free


def most_checked(assembly: Assembly) -> int:
    """Return how many queries ``settle`` asks at most."""
    free, space = expected(assembly).free, assembly.plan.space
    settings = 0
    for one in [branch for _, branch in free.branches] or [free]:
        others = [len(_others(space, name, one)) for name in (*one.prefixes, *one.weights)]
        settings += 1 + sum(others) + CHECKED_CUTOFFS * len(one.cutoffs) if one.names else 0
    return settings * len(spread(assembly.tune_queries, CHECKED_QUERIES))


def expected(assembly: Assembly) -> Settled:
    """Return which parameters are free by what is declared of them: nothing is asked."""
    if assembly.config.free == "off":
        return Settled()
    return _expected(assembly, _declared(assembly))


def _expected(assembly: Assembly, declared: FreeKnobs) -> Settled:
    untold = (name for name in assembly.plan.space.names if name not in declared.names)
    return replace(_eligible(assembly, declared), untold=tuple(untold))


def checked(
    assembly: Assembly, queries: Sequence[Query], *, after: Callable[[], object] = lambda: None
) -> Settled:
    """Ask some queries at other values, and compare with what one answer told of them.

    A value that gets no answer, though the system answers, tells against its parameter alone.
    ``after`` is called each time that they were answered.

    Raises:
        OutageError: the system does not answer.
    """
    found = expected(assembly)
    seen = _seen(assembly, found, queries, after)
    if found.free.branches and seen.free.names != found.free.names:
        # The others may be free as they are where nothing is known of what decides.
        found = _expected(assembly, _declared(assembly, by_branch=False))
        again = _seen(assembly, found, queries, after)
        told = {**seen.refused, **again.refused}.items()
        refused = {name: why for name, why in told if name not in again.free.names}
        seen = replace(again, refused=refused)
    untold = (name for name in found.untold if name not in seen.refused)
    return replace(seen, untold=tuple(untold))


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
    free = tuple(note.get("free", ()))
    declared = _declared(assembly)
    if declared.only(free).names != free:  # what is free in a branch was not
        declared = _declared(assembly, by_branch=False)
    return Settled(declared.only(free), dict(note.get("refused", {})))


def _declared(assembly: Assembly, *, by_branch: bool = True) -> FreeKnobs:
    """Return what the configuration and the retriever declare of what is searched.

    With what is free only where others have some values, unless not ``by_branch``.
    """
    retriever, space = assembly.retriever, assembly.plan.space
    if isinstance(retriever, Measures):
        return NOTHING_FREE

    def told(values: Params, searched: Sequence[str]) -> FreeKnobs:
        own = free_knobs(retriever, {**assembly.fixed, **values}, searched)
        return assembly.plan.free.and_those_of(own).only(searched)

    whole = told({}, space.names)
    return with_branches(space, whole, told) if by_branch else whole


def _eligible(assembly: Assembly, declared: FreeKnobs) -> Settled:
    """Leave out what this study cannot choose from an answer, and say why."""
    space, objective = assembly.plan.space, assembly.plan.objective
    refused: dict[str, str] = {}
    for name in declared.names:
        if assembly.parts:
            refused[name] = (
                "each part of the queries needs trials at many values of it (dataset.split.parts)"
            )
        elif name in _entangled(space, declared):
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


def _entangled(space: SearchSpace, free: FreeKnobs) -> set[str]:
    """Return the parameters that conditions or constraints speak of.

    But for those that are free wherever their conditions hold, and for constraints that forbid no
    more of the weights than ends of their ranges, such as that all are 0: those are kept to where a
    weight is chosen.
    """
    weights = free.weights
    in_branches = free.names if free.branches else ()
    names = {n for n, one in space.parameters.items() if one.when and n not in in_branches}
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


def _seen(
    assembly: Assembly, settled: Settled, queries: Sequence[Query], after: Callable[[], object]
) -> Settled:
    refused = dict(settled.refused)
    for values, free in settled.free.branches or (({}, settled.free),):
        if free.names:
            refused |= _differing(assembly, free, _place(assembly, values), queries, after)
    is_less = refused.keys() & set(settled.free.names)
    return _left(settled.free, refused) if is_less else settled


def _differing(
    assembly: Assembly,
    free: FreeKnobs,
    place: Params,
    queries: Sequence[Query],
    after: Callable[[], object],
) -> dict[str, str]:
    """Return what is not as it was declared, and why."""
    counting = assembly.counting(calls.CHECKED)
    retriever = counting.retriever
    assert not isinstance(retriever, Measures)
    space, fixed = assembly.plan.space, assembly.fixed
    at = {**fixed, **place}
    asked = {**at, **told_by(space, free)}

    def asking(params: Params, which: Retriever = retriever) -> Rankings:
        is_there = partial(gets_answer, partial(probe, assembly, at))
        answer = answered(partial(which.retrieve, queries, params), is_there)
        after()
        return answer

    refused: dict[str, str] = {}
    try:
        # What tells of others has its legs; what is only compared with it is kept without.
        telling = retriever if free.mixing is None else telling_legs(retriever)
        answer = asking(asked, telling)
        if free.mixing is not None:
            problem = leg_problem(free.mixing, answer.legs)
            if problem is not None:
                refused |= dict.fromkeys(free.mixing.parameters, problem)
    except OutageError:
        raise
    except Exception as error:
        return dict.fromkeys(free.names, _unseen(error))
    counts = _counts_tokens(assembly)
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
        try:
            others = _others(space, name, left, answer_at(left, answer, asked).scores)
            pairs = (
                (value, answer_at(left, answer, turned), asking(turned))
                for value in others
                for turned in [{**asked, name: value}]
            )
            reason = difference(name, queries, pairs, counts=counts)
        except OutageError:
            raise
        except Exception as error:
            reason = _unseen(error)
        refused |= {} if reason is None else {name: reason}
    return refused


def _unseen(error: Exception) -> str:
    return f"it could not be checked: {one_line(error)}"


def _place(assembly: Assembly, values: Mapping[str, Scalar]) -> Params:
    """Return a point of the space to check at: the baseline where it is one, else the middle.

    With some values given, near that where it can be.
    """
    space, baseline = assembly.plan.space, assembly.baseline or {}
    place = space.decode([0.5] * len(space.names))
    if not space.satisfies(place):
        place = space.sample(np.random.default_rng(0))
    inside = {name: baseline[name] for name in space.names if name in baseline}
    if POLICY not in baseline and space.contains(inside):
        place = space.canonical(inside)
    if not values:
        return place
    middle = {name: one.at(0.5) for name, one in space.parameters.items()}
    return space.canonical({**middle, **place, **values})


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
