"""Find what can be asked about a graph: chains of facts, comparisons, and intersections."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, zip_longest
from typing import Any, Literal

from tuner.datasets.building.facts import Fact, FactGraph

Path = tuple[Fact, ...]
Form = Literal["path", "earlier", "larger", "same", "intersection"]
Order = Callable[[Any], bytes]
"""A sort key that is drawn by a seed, so that a sample is not the first in the alphabet."""

_Condition = tuple[str, str]  # a relation and an object
_Meeting = Mapping[_Condition, Mapping[str, Fact]]  # condition -> subject -> the fact

# "1941", "27 September 1941", "1941年", "1941年9月27日"; but not 公元前, before Christ
_YEAR = re.compile(r"(?:^|[^前]*[^\d.,前])([12]\d{3})(?:年(?:\d{1,2}月(?:\d{1,2}[日号])?)?)?$")
# "12th century", "1940s" and "850年" are neither years nor numbers.
_NO_UNITS = ("st", "nd", "rd", "th", "s", "'s", "年")
_NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?\s*(\D*)")


@dataclass(frozen=True)
class Draft:
    """A question before it has words. Names, relations and answers are keys of the graph.

    Attributes:
        kind: ``1hop``, ``2hop``, ``3hop``, ``comparison`` or ``intersection``.
        named: the names in the question; for an intersection, the objects of the conditions.
        relations: the relations along the path; for an intersection, of each condition.
        paths: every path of facts that leads to an answer.
        answers: everything that satisfies the question; empty for "yes" and "no".
    """

    kind: str
    form: Form
    named: tuple[str, ...]
    relations: tuple[str, ...]
    paths: tuple[Path, ...]
    answers: tuple[str, ...]
    is_true: bool | None = None


@dataclass(frozen=True)
class Drafts:
    """Makes drafts of each kind, lazily, in an order that ``order`` draws.

    ``vague`` relations are not asked about. A question has at most ``most_answers`` answers, and
    as many things in each place on the way to them.
    """

    graph: FactGraph
    order: Order
    vague: frozenset[str]
    most_answers: int

    def paths(self, hops: int) -> Iterator[Draft]:
        """Yield questions that follow ``hops`` relations from a name.

        All objects of a relation are followed, from all things in each place: every answer and
        every document that supports one is found. A question on which a path would come back to
        a name that it has visited, or pass through something that is not a name, is left out.
        """
        return _in_turn(self._paths_from(start, hops) for start in self._starts())

    def comparisons(self) -> Iterator[Draft]:
        """Yield questions that compare one relation of two names, of which each has one value.

        Years and numbers are compared by size; other values by whether they are the same, with
        as many "yes" as "no" for each relation.
        """
        by_relation = self.graph.by_relation()
        relations = sorted(by_relation.keys() - self.vague, key=self.order)
        return _in_turn(self._compared(name, by_relation[name]) for name in relations)

    def intersections(self) -> Iterator[Draft]:
        """Yield questions for all things that meet two conditions, neither of which suffices."""
        meeting: defaultdict[_Condition, dict[str, Fact]] = defaultdict(dict)
        for subject, relations in self.graph.facts.items():
            for relation in relations.keys() - self.vague:
                for fact in relations[relation]:
                    if self._is_start(fact.object):
                        meeting[relation, fact.object][subject] = fact
        conditions: defaultdict[str, list[_Condition]] = defaultdict(list)
        for condition, found in meeting.items():
            for subject in found if len(found) > 1 else ():
                conditions[subject].append(condition)
        subjects = sorted(conditions, key=self.order)
        return _in_turn(self._intersected(meeting, conditions[name]) for name in subjects)

    def _starts(self) -> list[str]:
        return sorted(filter(self._is_start, self.graph.facts), key=self.order)

    def _is_start(self, name: str) -> bool:
        is_spoken = len(name) > 1 and any(letter.isalpha() for letter in name)
        return name in self.graph.names and is_spoken

    def _paths_from(self, start: str, hops: int) -> Iterator[Draft]:
        for relations, paths in self._extend(start, (), ((),), hops):
            answers = tuple(dict.fromkeys(path[-1].object for path in paths))
            yield Draft(f"{hops}hop", "path", (start,), relations, paths, answers)

    def _extend(
        self, start: str, relations: tuple[str, ...], paths: tuple[Path, ...], hops: int
    ) -> Iterator[tuple[tuple[str, ...], tuple[Path, ...]]]:
        if len(relations) == hops:
            yield relations, paths
            return
        facts = self.graph.facts
        ends = {path[-1].object if path else start for path in paths}
        known = {relation for end in ends for relation in facts.get(end, ())} - self.vague
        for relation in sorted(known, key=self.order):
            longer = tuple(
                (*path, fact)
                for path in paths
                for fact in facts.get(path[-1].object if path else start, {}).get(relation, ())
            )
            reached = {path[-1].object for path in longer}
            is_last = len(relations) + 1 == hops
            if (
                len(reached) <= self.most_answers
                and not any(_turns_back(path) for path in longer)
                and (not relations or all(path[-2].object in self.graph.names for path in longer))
                and (is_last or any(name in facts for name in reached))
            ):
                yield from self._extend(start, (*relations, relation), longer, hops)

    def _compared(
        self, relation: str, by_subject: Mapping[str, tuple[Fact, ...]]
    ) -> Iterator[Draft]:
        single = {
            subject: facts[0]
            for subject, facts in by_subject.items()
            if len(facts) == 1 and self._is_start(subject)
        }
        yield from self._by_size(relation, single)
        yield from self._by_sameness(relation, single)

    def _by_size(self, relation: str, single: dict[str, Fact]) -> Iterator[Draft]:
        sizes = {subject: _size(fact.object) for subject, fact in single.items()}
        units = {size[1] for size in sizes.values() if size}
        if units >= {"year", ""}:  # 1500 may be a number here, as 850 is: neither can be asked
            units -= {"year", ""}
        for unit in sorted(units):
            alike = [subject for subject, size in sizes.items() if size and size[1] == unit]
            for first, second in self._pairs(alike):
                one, other = sizes[first], sizes[second]
                if not one or not other or one[0] == other[0]:
                    continue
                is_year = unit == "year"
                is_first = (one[0] < other[0]) is is_year  # the earlier year, the larger number
                yield Draft(
                    "comparison",
                    "earlier" if is_year else "larger",
                    (first, second),
                    (relation,),
                    ((single[first],), (single[second],)),
                    (first if is_first else second,),
                )

    def _by_sameness(self, relation: str, single: dict[str, Fact]) -> Iterator[Draft]:
        worded = {s: fact for s, fact in single.items() if _size(fact.object) is None}
        by_value: defaultdict[str, list[str]] = defaultdict(list)
        for subject, fact in worded.items():
            by_value[fact.object].append(subject)
        same = [pair for subjects in by_value.values() for pair in self._pairs(subjects)]
        differ = [
            (first, second)
            for first, second in self._pairs(list(worded))
            if worded[first].object != worded[second].object
        ]
        balanced = min(len(same), len(differ))
        for pairs in zip_longest(same[:balanced], differ[:balanced]):
            for first, second in pairs:
                yield Draft(
                    "comparison",
                    "same",
                    (first, second),
                    (relation,),
                    ((worded[first],), (worded[second],)),
                    (),
                    is_true=worded[first].object == worded[second].object,
                )

    def _pairs(self, subjects: Sequence[str]) -> list[tuple[str, str]]:
        """Return disjoint pairs: the number of all pairs would grow with the square."""
        drawn = sorted(subjects, key=self.order)
        return list(zip(drawn[::2], drawn[1::2], strict=False))

    def _intersected(self, meeting: _Meeting, conditions: list[_Condition]) -> Iterator[Draft]:
        for first, second in combinations(sorted(conditions, key=self.order), 2):
            draft = self._intersection(meeting, first, second)
            if draft is not None:
                yield draft

    def _intersection(
        self, meeting: _Meeting, first: _Condition, second: _Condition
    ) -> Draft | None:
        both = [subject for subject in meeting[first] if subject in meeting[second]]
        fewest = min(len(meeting[first]), len(meeting[second]))
        # Where everything that meets one condition meets the other, one condition asks nothing.
        if len(both) > self.most_answers or len(both) == fewest or first[1] == second[1]:
            return None
        conditions = sorted((first, second))  # the same question from whichever subject it is met
        return Draft(
            "intersection",
            "intersection",
            tuple(name for _, name in conditions),
            tuple(relation for relation, _ in conditions),
            tuple((meeting[condition][s],) for s in both for condition in conditions),
            tuple(both),
        )


def _in_turn(sources: Iterable[Iterator[Draft]]) -> Iterator[Draft]:
    """Yield the first of each source, then the second of each, and so on."""
    waiting: Iterable[Iterator[Draft]] = sources
    while True:
        following = []
        for source in waiting:
            for draft in islice(source, 1):
                yield draft
                following.append(source)
        if not following:
            return
        waiting = following


def _turns_back(path: Path) -> bool:
    visited = [path[0].subject, *(fact.object for fact in path)]
    return len(set(visited)) < len(visited)


def _size(text: str) -> tuple[float, str] | None:
    """Return a year or a number with its unit, or None for anything else.

    >>> _size("27 september 1941"), _size("1,200 m"), _size("lima")
    ((1941.0, 'year'), (1200.0, 'm'), None)
    """
    year = _YEAR.fullmatch(text)
    if year:
        return float(year[1]), "year"
    number = _NUMBER.fullmatch(text)
    if number is None or (number[3].startswith(_NO_UNITS) and text[number.start(3) - 1] != " "):
        return None
    return float(number[1].replace(",", "") + (number[2] or "")), number[3].strip()
