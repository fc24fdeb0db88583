"""Graph metrics: which of the labelled names and relation paths a system retrieved.

Documents, names and paths are three id spaces: a name that the graph retrieved is not a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np

from tuner.core.errors import MetricError
from tuner.core.rankings import BoolArray, FloatArray, IntArray, RelationPath, Step
from tuner.core.words import fold, name_words
from tuner.metrics.base import Judged, MetricFamily
from tuner.metrics.ranking import recall

Array = TypeVar("Array", BoolArray, IntArray)

CLASS_WEIGHTS: Mapping[str, float] = {"documents": 0.4, "entities": 0.3, "paths": 0.3}


@dataclass(frozen=True, eq=False)
class JudgedGraph:
    """What the graph retrieved for a batch of queries, compared with the labels.

    Attributes:
        documents: the judged rankings of the same queries.
        entity_count: shape (queries,), the number of different labelled names.
        path_count, route_count: shape (queries,), likewise of paths, and of paths whose relations
            are left out of the comparison.
        entity_hits: shape (queries, most retrieved): whether the name at each rank is labelled, or
            None where the system reports no names. Names that are equal after normalising hold
            one rank, the first.
        paths_found, routes_found: shape (queries,), how many of the labelled were retrieved, or
            None where the system reports no paths.
    """

    documents: Judged
    entity_count: IntArray
    path_count: IntArray
    route_count: IntArray
    entity_hits: BoolArray | None
    paths_found: IntArray | None
    routes_found: IntArray | None


@dataclass(frozen=True)
class GraphLabels:
    """Labelled names and paths of a list of queries, normalised. Make it with ``build``."""

    entities: tuple[frozenset[str], ...]
    paths: tuple[frozenset[tuple[Step, ...]], ...]

    @classmethod
    def build(
        cls,
        query_ids: Sequence[str],
        entities: Mapping[str, Iterable[str]],
        paths: Mapping[str, Iterable[RelationPath]],
    ) -> GraphLabels:
        """Normalise the labels; without any, a query is undefined in the metrics of that class.

        A labelled path with an empty name in it says that the name is not known. No retrieved path
        could be recognised as that one, so it is left out. A relation that is worded as a question
        ("Who founded it?") is no relation of any graph: it counts as not named.
        """
        known = {id_: filter(_is_known, paths.get(id_, ())) for id_ in query_ids}
        return cls(
            tuple(frozenset(map(normalise_name, entities.get(id_, ()))) for id_ in query_ids),
            tuple(_paths(map(_without_questions, known[id_])) for id_ in query_ids),
        )

    def judge(
        self,
        documents: Judged,
        entities: Sequence[Sequence[str]] | None,
        paths: Sequence[Sequence[RelationPath]] | None,
    ) -> JudgedGraph:
        """Compare what was retrieved for these very queries, in their order.

        Raises:
            MetricError: the numbers of queries differ.
        """
        for what, rows in (("names", entities), ("paths", paths), ("rankings", documents.gains)):
            if rows is not None and len(rows) != len(self.entities):
                message = f"{what} of {len(rows)} queries for labels of {len(self.entities)}"
                raise MetricError(message)
        routes = [_routes(wanted) for wanted in self.paths]
        found = None if paths is None else [_paths(followed) for followed in paths]
        return JudgedGraph(
            documents=documents,
            entity_count=_counts(self.entities),
            path_count=_counts(self.paths),
            route_count=_counts(routes),
            entity_hits=None if entities is None else self._entity_hits(entities),
            paths_found=None if found is None else _followed(self.paths, found),
            routes_found=None if found is None else _shared(routes, map(_routes, found)),
        )

    def _entity_hits(self, entities: Sequence[Sequence[str]]) -> BoolArray:
        ranked = [list(dict.fromkeys(map(normalise_name, names))) for names in entities]
        hits = np.zeros((len(ranked), max(map(len, ranked), default=0) or 1), dtype=np.bool_)
        for row, (names, wanted) in enumerate(zip(ranked, self.entities, strict=True)):
            hits[row, : len(names)] = [name in wanted for name in names]
        return hits


@lru_cache(maxsize=1 << 16)  # a study meets the same names in every trial
def normalise_name(name: str) -> str:
    """Return the form by which names are compared: folded words, one space between them.

    >>> normalise_name("  The Café-Royal ")
    'the cafe royal'
    """
    # A name of signs only, such as "+", has no words and stands for itself.
    return " ".join(name_words(name)) or " ".join(fold(name).split())


def normalise_path(path: RelationPath) -> tuple[Step, ...]:
    """Return the form by which paths are compared: each part of each step normalised, in order."""
    return tuple(
        (normalise_name(subject), normalise_name(relation), normalise_name(object_))
        for subject, relation, object_ in path
    )


def entity_recall(judged: JudgedGraph, cutoff: int | None = None) -> FloatArray:
    """Return the share of the labelled names among the first ``cutoff`` retrieved names.

    NaN for a query without labelled names.
    """
    if cutoff is not None and cutoff < 1:
        raise MetricError(f"the cut-off is {cutoff}; it must be at least 1")
    return _share(
        _reported(judged.entity_hits, "names")[:, :cutoff].sum(axis=1), judged.entity_count
    )


def path_recall(judged: JudgedGraph) -> FloatArray:
    """Return the share of the labelled paths that were retrieved.

    A path is its normalised (subject, relation, object) steps in their order; part of it, or the
    same names by other relations, does not count. Where a step of either path names no relation
    (""), its names decide: a graph made from mentions knows who is linked, not how. NaN for a query
    without labelled paths.
    """
    return _share(_reported(judged.paths_found, "paths"), judged.path_count)


def route_recall(judged: JudgedGraph) -> FloatArray:
    """Return path recall by names alone: the same names in the same order by whatever relations.

    For graphs whose relations are worded unlike the labels. Equal to ``path_recall`` where the
    graph names no relations.
    """
    return _share(_reported(judged.routes_found, "paths"), judged.route_count)


def graphrag_recall(
    judged: JudgedGraph,
    cutoff: int | None = None,
    *,
    weights: Mapping[str, float] = CLASS_WEIGHTS,
    is_by_route: bool = False,
) -> FloatArray:
    """Return the weighted mean of the recalls of documents, names and paths.

    Weights are divided by the sum over the classes for which the query has labels, so a query
    without labelled paths can reach 1; NaN where it has no labels at all. ``cutoff`` cuts
    documents and names. ``is_by_route`` compares paths by their names alone.

    Documents 1, names .5, no labelled path: (.4 * 1 + .3 * .5) / .7 = .786.

    Raises:
        MetricError: a weight of an unknown class, a negative one, or a sum of 0.
    """
    if weights.keys() - CLASS_WEIGHTS.keys() or any(not w >= 0 for w in weights.values()):
        known = ", ".join(CLASS_WEIGHTS)
        raise MetricError(f"weights are numbers from 0 up for {known}; got {dict(weights)}")
    if not sum(weights.values()) > 0:
        raise MetricError("the weights sum to 0; at least one must be above 0")
    paths = route_recall(judged) if is_by_route else path_recall(judged)
    recalls = {
        "documents": recall(judged.documents, cutoff),
        "entities": entity_recall(judged, cutoff),
        "paths": paths,
    }
    earned, possible = np.zeros(len(paths)), np.zeros(len(paths))
    for name, weight in weights.items():
        has_labels = ~np.isnan(recalls[name])
        earned += np.where(has_labels, weight * recalls[name], 0.0)
        possible += np.where(has_labels, weight, 0.0)
    # Weights such as .4 + .3 + .3 can round to an ulp more above the line than below it.
    return np.minimum(_share(earned, possible), 1.0)


METRICS: Mapping[str, MetricFamily] = {
    "entity_recall": MetricFamily(
        entity_recall, "optional", "share of the labelled names that the graph retrieved", "graph"
    ),
    "path_recall": MetricFamily(
        path_recall, "none", "share of the labelled relation paths that the graph followed", "graph"
    ),
    "route_recall": MetricFamily(
        route_recall,
        "none",
        "path recall that compares the names on a path only, not the relations",
        "graph",
    ),
    "graphrag_recall": MetricFamily(
        graphrag_recall,
        "optional",
        "weighted recall of documents (0.4), names (0.3) and paths (0.3)",
        "graph",
    ),
    "graphrag_recall_by_route": MetricFamily(
        partial(graphrag_recall, is_by_route=True),
        "optional",
        "graphrag_recall with route_recall in place of path_recall",
        "graph",
    ),
}


def _share(found: IntArray | FloatArray, count: IntArray | FloatArray) -> FloatArray:
    return found / np.where(count > 0, count, np.nan)


def _reported(values: Array | None, what: str) -> Array:
    if values is None:
        raise MetricError(
            f"this graph metric needs the retriever to report {what}; leave the metric out"
        )
    return values


def _without_questions(path: RelationPath) -> RelationPath:
    return tuple(
        (subject, "" if relation.rstrip().endswith(("?", "？")) else relation, object_)
        for subject, relation, object_ in path
    )


def _followed(
    wanted: Iterable[frozenset[tuple[Step, ...]]], retrieved: Iterable[frozenset[tuple[Step, ...]]]
) -> IntArray:
    """Count the labels of each query that a retrieved path agrees with."""
    counts = []
    for labels, found in zip(wanted, retrieved, strict=True):
        by_route: dict[tuple[tuple[str, str], ...], list[tuple[Step, ...]]] = {}
        for path in found:
            by_route.setdefault(_route(path), []).append(path)
        counts.append(
            sum(
                any(_have_same_relations(label, path) for path in by_route.get(_route(label), ()))
                for label in labels
            )
        )
    return np.array(counts, dtype=np.int64)


def _have_same_relations(path: tuple[Step, ...], other: tuple[Step, ...]) -> bool:
    return all(a == b or not a or not b for (_, a, _), (_, b, _) in zip(path, other, strict=True))


def _is_known(path: RelationPath) -> bool:
    return all(subject.strip() and object_.strip() for subject, _, object_ in path)


def _paths(paths: Iterable[RelationPath]) -> frozenset[tuple[Step, ...]]:
    return frozenset(map(normalise_path, paths))


def _routes(paths: Iterable[tuple[Step, ...]]) -> frozenset[tuple[tuple[str, str], ...]]:
    return frozenset(map(_route, paths))


def _route(path: tuple[Step, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((subject, object_) for subject, _, object_ in path)


def _shared(wanted: Iterable[frozenset[Any]], retrieved: Iterable[frozenset[Any]]) -> IntArray:
    return _counts(labels & found for labels, found in zip(wanted, retrieved, strict=True))


def _counts(sets: Iterable[frozenset[Any]]) -> IntArray:
    return np.array([len(members) for members in sets], dtype=np.int64)
