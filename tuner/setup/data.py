"""What a path holds to tune on: its format, its queries, and whether these are enough."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tuner.core.errors import InputError
from tuner.core.grades import GradeScale
from tuner.core.shown import counted
from tuner.core.steps import Advance, unheard
from tuner.datasets import Dataset, format_of, open_dataset
from tuner.evaluation.evaluator import undefined_metrics
from tuner.run.split import FEWEST_IN_PARTS
from tuner.verdict.few_queries import FEWEST_QUERIES, FEWEST_TO_SPLIT

BUILTIN = "builtin:"
ALONE = "qrels"
# By documents, by names of the graph, and by paths: the first that the labels define is maximised.
OBJECTIVES: tuple[dict[str, float], ...] = (
    {"recall@10": 0.5, "mrr@10": 0.3, "ndcg@10": 0.2},
    {"entity_recall": 1.0},
    {"path_recall": 1.0},
)
# A folder with more entries than this is not looked through.
_MOST_ENTRIES = 200
_LOW_GRADES = re.compile(r"set relevant_from, such as ([\d.e+-]+)")
_USUAL_FOLDERS = ("data", "dataset", "datasets")


@dataclass(frozen=True)
class FoundData:
    """A data set to tune on.

    Attributes:
        path: as the user wrote it.
        format: the name of its format.
        relevant_from: the lowest grade of a relevant document.
        is_named: whether a configuration has to name the format, since another one recognises it.
    """

    path: str
    format: str
    dataset: Dataset
    relevant_from: float = 1.0
    is_named: bool = False

    @property
    def queries(self) -> int:
        """Return how many queries are judged."""
        return len(self.dataset.queries)

    @property
    def is_split(self) -> bool:
        """Say whether there are enough queries to hold some out."""
        return self.queries >= FEWEST_TO_SPLIT

    @property
    def may_have_parts(self) -> bool:
        """Say whether there are enough to let all of them decide, part by part."""
        return self.queries >= FEWEST_IN_PARTS

    @property
    def told(self) -> str:
        """Return what it is, for people: ``BEIR, 1,720 documents, 406 queries``."""
        documents = len(self.dataset.corpus.documents)
        held = counted(documents, "document") if documents else "no documents"
        facts = len(self.dataset.corpus.triples)
        graph = f", {counted(facts, 'fact')}" if facts else ""
        return f"format {self.format}, {held}, {counted(self.queries, 'query', 'queries')}{graph}"

    @property
    def objective(self) -> dict[str, float]:
        """Return metrics that its labels define, with their weights."""
        data = self.dataset
        for weights in OBJECTIVES:
            scored = (data.queries, data.qrels, data.evidences)
            has_labels = weights is OBJECTIVES[0] or bool(data.evidences)
            if has_labels and not undefined_metrics(list(weights), *scored, scale=data.scale):
                return weights
        return OBJECTIVES[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """Return which of ``query_type`` and ``difficulty`` its queries have."""
        names = ("query_type", "difficulty")
        return tuple(n for n in names if any(getattr(q, n) for q in self.dataset.queries))

    def warnings(self) -> Iterator[str]:
        """Yield what the reader found odd, and what few queries mean."""
        yield from self.dataset.warnings
        count = counted(self.queries, "query", "queries")
        if self.queries < FEWEST_QUERIES:
            yield (
                f"{count}: with fewer than {FEWEST_QUERIES} there is no verdict; "
                f"{FEWEST_TO_SPLIT} or more are needed to hold some out, 100 or more are a good "
                "size (docs/evaluation-sets.md)"
            )
        elif not self.is_split:
            yield (
                f"{count}: with fewer than {FEWEST_TO_SPLIT} none are held out, and the gain is "
                "corrected for the search's luck; 100 or more are a good size "
                "(docs/evaluation-sets.md)"
            )


def find_data(path: str, advance: Advance = unheard) -> FoundData:
    """Read the data set at a path, in whichever format it is.

    Raises:
        InputError: nothing is there, no format recognises it, or its content is wrong.
    """
    if path.startswith(BUILTIN):
        return FoundData(path, "beir", open_dataset(path))
    name = format_of(Path(path).expanduser())
    try:
        dataset, relevant_from = _opened(path, None, advance)
    except InputError:
        # Judgements alone look like a part of TREC's layout.
        if name != "trec" or not Path(path).expanduser().is_file():
            raise
        with suppress(InputError):
            return FoundData(path, ALONE, *_opened(path, ALONE, advance), is_named=True)
        raise
    return FoundData(path, name or "", dataset, relevant_from)


def _opened(path: str, format: str | None, advance: Advance) -> tuple[Dataset, float]:
    """Read it; where no grade reaches 1, documents are relevant from half of the highest on."""
    try:
        return open_dataset(path, format=format, advance=advance), 1.0
    except InputError as error:
        said = _LOW_GRADES.search(str(error))
        if said is None:
            raise
        half = float(said[1])
    return open_dataset(path, format=format, scale=GradeScale(half), advance=advance), half


def near(folder: Path) -> list[str]:
    """Return the data sets in a folder, itself first, in those usual for data, and beside it."""
    places = [folder, *_entries(folder)]
    for name in _USUAL_FOLDERS:
        places += _entries(folder / name)
    found = [place for place in dict.fromkeys(places) if format_of(place) is not None]
    if folder in found:
        return ["."]
    inner = [place for place in found if place.is_dir()] or found
    return [str(place.relative_to(folder)) for place in inner]


def _entries(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    entries = [entry for entry in sorted(folder.glob("*")) if not entry.name.startswith(".")]
    return entries if len(entries) <= _MOST_ENTRIES else []
