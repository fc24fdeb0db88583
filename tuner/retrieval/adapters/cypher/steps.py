"""The steps of a configuration: statements and searches by words, and what each of them reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self

from tuner.core.checks import is_whole
from tuner.core.errors import Problem, did_you_mean, refuse
from tuner.core.space import Categorical, Integer, SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.adapters.cypher.statement import Statement
from tuner.retrieval.adapters.runs.fusion import WEIGHT
from tuner.retrieval.knobs import Knob, space_knobs, unvalued

QUERY, VECTOR, IDS, ROWS = "query", "vector", "ids", "rows"
"""What a statement can read besides parameters: the question, its vector, and what the step before
found, as ids or as rows with ``id`` and ``score``. ``$NAME_ids`` is what an earlier step found."""
GIVEN = (QUERY, VECTOR, IDS, ROWS)
BM25 = "bm25"
# The parameters, beside the weights, of an answer that is mixed from several legs.
MIXING = ("fusion", "normalisation", "rrf_k")
KEY = "steps"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_EXAMPLE = (
    'write a list such as [{seeds: "MATCH … RETURN e.name AS id"}, {graph: "MATCH … WHERE e.name '
    'IN $ids RETURN p.id AS id, score"}]'
)
_MOST = 100


@dataclass(frozen=True)
class Step:
    """One step by its name: a statement, or the built-in search by words where there is none.

    ``depth`` is how many documents that search finds: a number, or a parameter's name.
    """

    name: str
    statement: Statement | None = None
    depth: int | str = 0

    @property
    def ids(self) -> str:
        """Return the name by which later steps read what it found."""
        return f"{self.name}_{IDS}"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that it reads."""
        if self.statement is not None:
            return self.statement.names
        return (self.depth,) if isinstance(self.depth, str) else ()

    @property
    def whole(self) -> tuple[str, ...]:
        """Return the parameters that have to be whole numbers."""
        if self.statement is not None:
            return (*self.statement.places, *self.statement.counts)
        return self.names

    def __str__(self) -> str:
        """Name the step and its statement."""
        return f"step {self.name!r} ({self.statement or f'{BM25}: {self.depth}'})"


@dataclass(frozen=True)
class Steps:
    """Steps in their order, and which of them find the documents of an answer: its legs."""

    steps: tuple[Step, ...]
    legs: tuple[str, ...]

    @classmethod
    def read(cls, steps: Any, legs: Any) -> Self:
        """Check what a configuration says of them.

        Raises:
            InputError: everything that is wrong with any step, at once.
        """
        found = list(_steps(steps))
        refuse([*(one for one in found if isinstance(one, Problem)), *_repeated(found)])
        read = tuple(step for step in found if isinstance(step, Step))
        named = [read[-1].name] if legs is None else legs
        refuse(_leg_problems(read, named))
        checked = cls(read, tuple(named))
        refuse(checked._problems())
        return checked

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names that a configuration has to set, each once, in their order."""
        own = {*GIVEN, *(step.ids for step in self.steps)}
        names = (name for step in self.steps for name in step.names if name not in own)
        return tuple(dict.fromkeys(names))

    @property
    def reads_vector(self) -> bool:
        """Say whether a statement reads the question's vector."""
        return any(VECTOR in step.names for step in self.steps)

    @property
    def reads_words(self) -> bool:
        """Say whether a step searches by words."""
        return any(step.statement is None for step in self.steps)

    def sources(self, place: int) -> tuple[str, ...]:
        """Return the earlier steps that a step starts from, by name."""
        before, read = self.steps[:place], set(self.steps[place].names)
        named = [step.name for step in before if step.ids in read]
        last = [step.name for step in before[-1:] if {IDS, ROWS} & read]
        return tuple(dict.fromkeys([*named, *last]))

    def knobs(
        self, space: SearchSpace | None, baseline: Params | None, own: Sequence[Knob]
    ) -> tuple[Knob, ...]:
        """Return a knob for each parameter, as the configuration tells them.

        ``own`` are those of the retriever itself. Without a configuration only hops and counts have
        a range, which is a suggestion.

        Raises:
            InputError: a parameter that nothing sets, that nothing reads, or that is of the wrong
                kind.
        """
        if space is None and baseline is None:
            return tuple(self._unknown(name) for name in self.parameters)
        knobs = space_knobs(space, baseline, names=self.parameters)
        refuse(self._knob_problems(space, baseline or {}, {knob.name for knob in own}))
        return knobs

    def as_record(self) -> list[list[Any]]:
        """Return all that shapes an answer, as JSON can hold it."""
        texts = [[s.name, s.statement.text if s.statement else s.depth] for s in self.steps]
        return [*texts, list(self.legs)]

    def _unknown(self, name: str) -> Knob:
        """Return what is known of a parameter by the statements alone."""
        if any(name in (step.statement.places if step.statement else ()) for step in self.steps):
            told = "put into a statement as {" + name + "}"
            return Knob(name, "integer", 1, 0, is_guess=True, suggested=(1, 3), description=told)
        if any(name in step.whole for step in self.steps):
            return Knob(
                name,
                "integer",
                10,
                0,
                scale="log",
                is_guess=True,
                suggested=(1, _MOST),
                description="how many are taken",
            )
        return unvalued(name)

    def _problems(self) -> Iterator[Problem]:
        """Yield what does not fit together."""
        read = {name for place in range(len(self.steps)) for name in self.sources(place)}
        for place, step in enumerate(self.steps):
            key = (KEY, place, step.name)
            for problem in step.statement.problems() if step.statement else ():
                yield Problem(f"{problem}: {step.statement}", key=key)
            for later in self.steps[place:]:
                if later.ids in step.names:
                    message = (
                        f"reads ${later.ids}, and {later.name!r} is no step before it: "
                        f"{step.statement}"
                    )
                    yield Problem(message, key=key)
            if place == 0 and (names := [n for n in (IDS, ROWS) if n in step.names]):
                message = f"reads ${names[0]}, and no step comes before it: {step.statement}"
                yield Problem(message, key=key)
            if step.statement is not None:
                given = {*GIVEN, *(one.ids for one in self.steps)}
                for name in step.statement.places:
                    if name in given:
                        yield Problem(_no_place(name, step.statement), key=key)
            if step.name not in read and step.name not in self.legs:
                message = "what it finds is read by no later step, and it is none of the legs"
                yield Problem(message, key=key)

    def _knob_problems(
        self, space: SearchSpace | None, baseline: Params, own: set[str]
    ) -> Iterator[Problem]:
        searched = {} if space is None else space.parameters
        known = {*searched, *baseline}
        for place, step in enumerate(self.steps):
            key = (KEY, place, step.name)
            needed = {name for name in step.names if name in self.parameters}
            for name in sorted(needed - known - own):
                places = step.statement.places if step.statement else ()
                if name in places and step.statement is not None:
                    yield Problem(_no_place(name, step.statement), key=key)
                    continue
                hint = did_you_mean(name, {*known, *GIVEN})
                where = f": {step.statement}" if step.statement else ""
                message = f"reads ${name}, and neither space nor baseline sets it{hint}{where}"
                yield Problem(message, key=key)
            for name in step.whole:
                if name in known and not _is_whole(name, space, baseline):
                    said = f"{name!r} counts in {step}, so it has to be an integer, from 0 up"
                    section = "space" if name in searched else "baseline"
                    yield Problem(f"{said}: {{type: integer, …}}", key=(section, name))
        for section, names in (("space", searched), ("baseline", baseline)):
            for name in names:
                if name in self.parameters or name in own or (section, name) in _both(searched):
                    continue
                where = self._where_read(name, [*self.parameters, *own])
                yield Problem(f"no step reads it{where}, or leave it out", key=(section, name))

    def _where_read(self, name: str, known: Sequence[str]) -> str:
        """Say what to write for a name that nothing reads."""
        if len(self.legs) == 1 and (name in MIXING or name.startswith(WEIGHT)):
            return ": legs are mixed where `legs:` names several steps"
        close = get_close_matches(name.rpartition(".")[2], known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        if name.startswith(WEIGHT):
            return f"{hint}; the legs are {', '.join(self.legs)}: correct the name"
        if "." in name:  # which no statement can read
            return f"{hint}; parameters of statements have no dots: correct the name"
        return f"{hint}: write ${name} into a statement, or {{{name}}} where it counts hops"


def _both(searched: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return what a problem of the space says already."""
    return {("baseline", name) for name in searched}


def _is_whole(name: str, space: SearchSpace | None, baseline: Params) -> bool:
    parameter = None if space is None else space.parameters.get(name)
    values: list[Any] = [baseline[name]] if name in baseline else []
    if isinstance(parameter, Categorical):
        values += parameter.choices
    elif isinstance(parameter, Integer):
        values += [parameter.low]
    elif parameter is not None:
        return False
    return all(is_whole(value) and value >= 0 for value in values)


def _no_place(name: str, statement: Statement) -> str:
    return (
        f"{{{name}}} is put in as a whole number, and no parameter of the space or the baseline "
        f"has this name: write ${name} for what is sent beside the statement, or {{ {name} }} with "
        f"blanks for a map: {statement}"
    )


def _steps(given: Any) -> Iterator[Step | Problem]:
    if not isinstance(given, list | tuple) or not given:
        yield Problem(f"must be a list of steps, got {given!r}; {_EXAMPLE}", key=(KEY,))
        return
    for place, one in enumerate(given):
        if not isinstance(one, Mapping) or len(one) != 1:
            yield Problem(f"must be one name with its statement; {_EXAMPLE}", key=(KEY, place))
            continue
        ((name, asked),) = one.items()
        key = (KEY, place, str(name))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            message = "a step's name starts with a letter and has letters, digits and _ only"
            yield Problem(message, key=key)
        elif isinstance(asked, Mapping):
            yield _search(name, asked, key)
        elif not isinstance(asked, str) or not asked.strip():
            message = f"must be a statement of Cypher, or {{{BM25}: $starts}}, got {asked!r}"
            yield Problem(message, key=key)
        else:
            yield Step(name, Statement(asked.strip().rstrip(";").rstrip()))


def _search(name: str, asked: Mapping[Any, Any], key: tuple[str | int, ...]) -> Step | Problem:
    depth = asked.get(BM25)
    if set(asked) == {BM25}:
        if isinstance(depth, str) and re.fullmatch(r"\$[A-Za-z_]\w*", depth):
            return Step(name, depth=depth[1:])
        if is_whole(depth) and depth >= 1:
            return Step(name, depth=depth)
    message = (
        f"the built-in search by words is {{{BM25}: 20}} or {{{BM25}: $starts}}, how many "
        f"documents it finds; got {dict(asked)!r}"
    )
    return Problem(message, key=key)


def _repeated(found: Sequence[Step | Problem]) -> Iterator[Problem]:
    seen = set()
    for place, step in enumerate(found):
        if isinstance(step, Step):
            if step.name in seen:
                yield Problem("an earlier step has this name", key=(KEY, place, step.name))
            seen.add(step.name)


def _leg_problems(steps: Sequence[Step], legs: Any) -> Iterator[Problem]:
    names = [step.name for step in steps]
    if not isinstance(legs, list | tuple) or not legs:
        yield Problem(f"must be a list of steps, such as [{names[-1]}]", key=("legs",))
        return
    for leg in legs:
        if leg not in names:
            yield Problem(f"{leg!r} is no step{did_you_mean(str(leg), names)}", key=("legs",))
    if len(set(map(str, legs))) < len(legs):
        yield Problem("names a step twice", key=("legs",))
