"""People's grades of some queries beside a judge's of all: read, compared, and held out first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tuner.config.dataset import DatasetSection
from tuner.core.errors import InputError, Problem, refuse
from tuner.core.json_text import fingerprint_of
from tuner.core.shown import counted
from tuner.core.steps import Say
from tuner.datasets import Dataset, split_queries
from tuner.datasets.run_files import read_qrels
from tuner.datasets.together import together
from tuner.stats.agreement import Agreement, cohen_kappa
from tuner.stats.with_judge import FEWEST_PEOPLE
from tuner.verdict.few_queries import FEWEST_TO_SPLIT

Grades = Mapping[str, Mapping[str, float]]

# So many ids are named in a message.
SHOWN_IDS = 3


@dataclass(frozen=True)
class PeoplesLabels:
    """What people graded, and how far the judge agrees with them.

    Attributes:
        queries: ids of the queries that people graded.
        by_judge: the judge's grades of these: query id -> document id -> grade.
        agreement: people's grades against the judge's, of the passages that both graded.
        gate: the kappa from which the judge counts.
        counts: whether it does.
    """

    queries: frozenset[str]
    by_judge: Grades = field(repr=False)
    agreement: Agreement
    gate: float
    counts: bool

    def to_record(self) -> dict[str, Any]:
        """Return all but the grades as plain data, and in words."""
        return {
            "told": self._told(),
            "people": len(self.queries),
            "pairs": self.agreement.pairs,
            "same": self.agreement.same,
            "kappa": self.agreement.kappa,
            "weights": self.agreement.weights,
            "gate": self.gate,
            "counts": self.counts,
            "table": [[*grades, count] for grades, count in self.agreement.table.items()],
        }

    def _told(self) -> str:
        kappa = self.agreement.kappa
        agree = "undefined" if kappa is None else f"{kappa:.3f}"
        counts = "counts" if self.counts else "counts for nothing"
        return (
            f"{counted(len(self.queries), 'query', 'queries')} graded by people; the judge of the "
            f"others {counts} (kappa with people {agree}, {self.agreement.weights} weights)"
        )


def with_people(
    section: DatasetSection, dataset: Dataset, say: Say
) -> tuple[Dataset, PeoplesLabels | None]:
    """Return the data set by people's grades where there are some, else the judge's; and whose.

    Where the judge agrees too little with people, or no query is held out, so that nothing could
    correct it, the data set holds people's queries alone.

    Raises:
        InputError: the file cannot be read, or names queries or documents that are not there.
    """
    if section.people is None:
        return dataset, None
    if section.judge == "evidence":
        raise InputError(
            "people's grades are of whole documents; leave `judge` out", key=("judge",)
        )
    if section.split.parts is not None:
        raise InputError(
            "a judge's labels are corrected on held-out queries: leave out `parts` or `people`",
            key=("split", "parts"),
        )
    path = Path(section.people).expanduser()
    people = read_qrels(path, relevant_from=dataset.scale.relevant_from).grades
    _check(people, dataset, section.people)
    ids = frozenset(people)
    agreement = agreement_of(people, dataset.qrels, relevant_from=dataset.scale.relevant_from)
    gate = float(section.people_gate)
    every = len(dataset.queries)
    split = section.split
    is_split = split.holdout > 0 and (
        "holdout" in split.model_fields_set or every >= FEWEST_TO_SPLIT
    )
    counts = agreement.passes(gate) and is_split and len(ids) < every
    labels = PeoplesLabels(
        ids, {id_: dataset.qrels[id_] for id_ in people}, agreement, gate, counts
    )
    for line in _told(labels, dataset, is_split):
        say(line)
    if counts and len(ids) > (held := int(every * split.holdout + 0.5)):
        say(
            f"note: all {held} held-out queries are people's, so the judge adds nothing to the "
            f"verdict; hold out more of them (dataset.split.holdout, now {split.holdout:g})"
        )
    known = {id_: dict(graded) for id_, graded in people.items()}
    merged = replace(dataset, qrels={**dataset.qrels, **known})
    if not counts:
        return merged.select(ids), labels
    merged = merged.select([query.id for query in dataset.queries])
    told = [[merged.fingerprint], sorted(ids), sorted(map(str, labels.by_judge.items()))]
    return replace(merged, fingerprint=fingerprint_of(told)), labels


def agreement_of(people: Grades, judged: Grades, *, relevant_from: float) -> Agreement:
    """Compare people's grades with a judge's, of the passages that both graded.

    Fractions count as relevant or not.
    """

    def whole(grade: float) -> int:
        return int(grade) if float(grade).is_integer() else int(grade >= relevant_from)

    pairs = [
        (whole(grade), whole(judged[id_][document]))
        for id_, graded in people.items()
        for document, grade in graded.items()
        if document in judged[id_]
    ]
    return cohen_kappa([one for one, _ in pairs], [other for _, other in pairs])


def agreement_lines(found: Agreement, *, people: int, judged: int) -> list[str]:
    """Say how far a judge agrees with people, who graded so many queries, and it alone so many."""
    lines = [f"labels: {people} queries graded by people, {judged} more by the judge alone"]
    if found.kappa is None:
        lines.append(f"people and judge: kappa is undefined: {found.why_undefined}")
    else:
        lines.append(
            f"people and judge: kappa {found.kappa:.3f} ({found.weights} weights) over "
            f"{found.pairs} passages, {100.0 * (found.same or 0.0):.0f} % with the same grade"
        )
    return lines + _table(found)


def not_judged(people: Grades, judged: Grades, path: str) -> list[Problem]:
    """Return what is wrong where people graded queries that the judge did not."""
    strange = [id_ for id_ in people if id_ not in judged]
    if not strange:
        return []
    some = ", ".join(map(repr, strange[:SHOWN_IDS]))
    return [
        Problem(
            f"people graded {len(strange)} queries that the judge did not ({some}): have it "
            "grade them too",
            path,
            key=("people",),
        )
    ]


def people_first(
    dataset: Dataset,
    people: frozenset[str],
    *,
    holdout: float,
    stratify_by: Sequence[str],
    seed: int,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids to tune on, and those to hold out: people's queries before all others.

    A verdict rests on people's grades, and a search can do with a judge's. Queries of one group,
    or with the same text, stay on one side. People's queries are drawn by seed where there are more
    than are held out.

    Raises:
        InputError: as ``split_queries``.
    """
    numbered = list(zip(together(dataset.queries).tolist(), dataset.queries, strict=True))
    theirs = {number for number, query in numbered if query.id in people}
    first = [query for number, query in numbered if number in theirs]
    taken = {query.id for query in first}
    rest = [query for query in dataset.queries if query.id not in taken]
    total = int(len(dataset.queries) * holdout + 0.5)
    if len(first) > total or not rest:
        share = total / len(first)
        kept, held = split_queries(first, holdout=share, stratify_by=stratify_by, seed=seed)
        return tuple(sorted((*kept, *(query.id for query in rest)))), held
    held = tuple(query.id for query in first)
    left = total - len(first)
    # Two of the judge's queries are held out at least, which tell of a spread, and one is left.
    share = min(max(left, 2) / len(rest), (len(rest) - 1) / len(rest))
    kept, more = split_queries(rest, holdout=share, stratify_by=stratify_by, seed=seed)
    return kept, tuple(sorted((*held, *more)))


def _check(people: Grades, dataset: Dataset, path: str) -> None:
    """Refuse grades of queries or documents that the data set does not hold."""
    documents = {document.id for document in dataset.corpus.documents}
    named = {document for graded in people.values() for document in graded}
    missing = sorted(named - documents) if documents else []
    problems = not_judged(people, dataset.qrels, path)
    if missing:
        some = ", ".join(map(repr, missing[:SHOWN_IDS]))
        problems.append(
            Problem(f"documents that are not in the corpus: {some}", path, key=("people",))
        )
    refuse(problems)


def _told(labels: PeoplesLabels, dataset: Dataset, is_split: bool) -> list[str]:
    """Say how far the judge agrees with people, and what that means."""
    found = labels.agreement
    people, judged = len(labels.queries), len(dataset.queries) - len(labels.queries)
    lines = agreement_lines(found, people=people, judged=judged)
    if labels.counts:
        if people < FEWEST_PEOPLE:
            lines.append(
                f"note: under {FEWEST_PEOPLE} of people's queries nothing is known of the judge's "
                "rare errors: it chooses the winner, and people's queries alone decide"
            )
        return lines
    if not judged:
        why = "people graded every query"
    elif not is_split:
        why = "no query is held out, so that nothing could correct it"
    else:
        why = f"that is below {labels.gate:g} (dataset.people_gate)"
    return [*lines, f"note: the judge counts for nothing: {why}"]


def _table(found: Agreement) -> list[str]:
    """Return the confusion table, a row for each of people's grades."""
    if not found.table:
        return []
    grades = sorted({grade for pair in found.table for grade in pair})
    cells = [["people \\ judge", *map(str, grades)]]
    cells += [
        [str(one), *(str(found.table.get((one, other), 0)) for other in grades)] for one in grades
    ]
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    return [
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
