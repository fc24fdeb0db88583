"""Find what can be asked about a graph: chains of facts, comparisons, and intersections."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, zip_longest
from typing import Any, Literal

from tuner.evalset.facts import Fact, FactGraph, size_of
from tuner.evalset.wording import is_chinese

Path = tuple[Fact, ...]
Form = Literal["path", "earlier", "larger", "same", "intersection"]
Order = Callable[[Any], bytes]
"""A sort key that is drawn by a seed, so that a sample is not the first in the alphabet."""

_Condition = tuple[str, str]  # a relation and an object
_Meeting = Mapping[_Condition, Mapping[str, Fact]]  # condition -> subject -> the fact

# Two conditions of this kind: one place, or whole, lies in the other, or the thing is nowhere.
_INSIDE = re.compile(r"(?:^|.*\s)(?:in|within|inside|part of)|.*(?:于|於|在|属于)")


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

    ``vague`` relations are not asked about. Numbers without a unit are compared where a word of
    their relation is one of ``quantities``: postal codes have no larger one. A question
    has at most ``most_answers`` answers, and as many things in each place on the way to them.
    """

    graph: FactGraph
    order: Order
    vague: frozenset[str]
    most_answers: int
    quantities: frozenset[str] = frozenset()

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
        as many "yes" as "no" for each relation. Two names of which one holds all words of the
        other are not compared: they may well be one thing.
        """
        by_relation = self.graph.by_relation()
        relations = sorted(by_relation.keys() - self.vague, key=self.order)
        return _in_turn(self._compared(name, by_relation[name]) for name in relations)

    def intersections(self) -> Iterator[Draft]:
        """Yield questions for all things that meet two conditions, neither of which suffices.

        Where facts lead from one object to the other, as from a town to its country, or one name
        holds the other, a condition may follow from the other one, and nothing is asked.
        """
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
        sizes = {subject: size_of(fact.object) for subject, fact in single.items()}
        units = {size[1] for size in sizes.values() if size}
        if units >= {"year", ""}:  # 1500 may be a number here, as 850 is: neither can be asked
            units -= {"year", ""}
        if not self._is_quantity(relation):
            units -= {""}
        for unit in sorted(units):
            alike = [subject for subject, size in sizes.items() if size and size[1] == unit]
            for first, second in self._pairs(alike):
                one, other = sizes[first], sizes[second]
                if not one or not other or one[0] == other[0] or _share_words(first, second):
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
        worded = {s: fact for s, fact in single.items() if size_of(fact.object) is None}
        by_value: defaultdict[str, list[str]] = defaultdict(list)
        for subject, fact in worded.items():
            by_value[fact.object].append(subject)
        same = [pair for subjects in by_value.values() for pair in self._pairs(subjects)]
        differ = [
            (first, second)
            for first, second in self._pairs(list(worded))
            if worded[first].object != worded[second].object
        ]
        same, differ = (
            [pair for pair in pairs if not _share_words(*pair)] for pairs in (same, differ)
        )
        balanced = min(len(same), len(differ))
        ways = [same[:balanced], differ[:balanced]]
        # Of many relations only the first question may be taken: not always one to say "yes" to.
        if self.order(("same", relation))[0] % 2:
            ways.reverse()
        for pairs in zip_longest(*ways):
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

    def _is_quantity(self, relation: str) -> bool:
        return any(
            word in relation if is_chinese(word) else word in relation.split()
            for word in self.quantities
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
        if self._may_follow(first, second):
            return None
        both = [subject for subject in meeting[first] if subject in meeting[second]]
        fewest = min(len(meeting[first]), len(meeting[second]))
        # Where everything that meets one condition meets the other, one condition asks nothing.
        if len(both) > self.most_answers or len(both) == fewest:
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

    def _may_follow(self, first: _Condition, second: _Condition) -> bool:
        (relation, one), (other_relation, other) = first, second
        return (
            _share_words(one, other)
            or bool(_INSIDE.fullmatch(relation) and _INSIDE.fullmatch(other_relation))
            or self.graph.leads_to(one, other)
            or self.graph.leads_to(other, one)
        )


def _share_words(first: str, second: str) -> bool:
    """Return whether one name holds all words of the other: "2010 census", "2010 U.S. census"."""
    words, others = set(first.split()), set(second.split())
    return words <= others or others <= words


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
