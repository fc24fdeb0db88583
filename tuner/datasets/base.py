"""What a data set format is: it recognises a path, and reads what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from tuner.datasets.dataset import Dataset

KINDS = {
    "beir": "tuner.datasets.beir:Beir",
    "hotpotqa": "tuner.datasets.hotpotqa:Hotpotqa",
    "multihop_rag": "tuner.datasets.multihop_rag:MultihopRag",
    "musique": "tuner.datasets.musique:Musique",
    "openie": "tuner.datasets.openie:Openie",
    "qrels": "tuner.datasets.qrels:Qrels",
    "samples": "tuner.datasets.samples:Samples",
    "trec": "tuner.datasets.trec:Trec",
    "wiki2": "tuner.datasets.wiki2:Wiki2",
}
"""Each format by its name; a path is offered to them in the order of their names."""


class DatasetFormat(Protocol):
    """Reads one published layout. The class is looked up by name, and never constructed.

    ``layout`` says in one sentence what is expected on disk; it is shown in error messages.
    """

    layout: str

    @staticmethod
    def detect(path: Path) -> bool:
        """Return whether the path looks like this format, broken or not, without reading it all."""
        ...

    @staticmethod
    def read(path: Path, /, *_: Any, **asked: Any) -> Dataset:
        """Read the data set, or report everything that is wrong with it in one InputError.

        Only judgements of documents that the corpus lacks are told in ``Dataset.lacking``, where
        nothing else is wrong. Beside the path, ``read`` is given those of these that it names:

        - ``split``: one of several sets of judgements, or None. A format that does not name it has
          one set only.
        - ``relevant_from``: judgements from this grade on say "relevant"; see ``GradeScale``.
        - ``advance``: what to call with (done, of) while it reads.
        """
        ...
