"""Read judgements alone: for retrievers that bring their answers along and need no corpus."""

from __future__ import annotations

from pathlib import Path

from tuner.core.corpus import Query
from tuner.core.grades import RELEVANT_FROM
from tuner.datasets.collected import data_set_name
from tuner.datasets.dataset import Dataset
from tuner.datasets.run_files import read_qrels


class Qrels:
    """A file of judgements without texts; by its name alone. See `Qrels.read`."""

    layout = (
        "only as `format: qrels`, for a retriever that needs no texts (kind: runs): a file of "
        "judgements in TREC's format, tab-separated, or JSON"
    )

    @staticmethod
    def detect(path: Path) -> bool:  # noqa: ARG004
        """Return False: judgements without texts are far more often a mistake than a wish."""
        return False

    @staticmethod
    def read(path: Path, *, relevant_from: float = RELEVANT_FROM) -> Dataset:
        """Read a file in any format of judgements; a query's text is its id.

        The corpus is empty, so there is nothing to build an index from, nor tokens to count.

        Raises:
            InputError: everything that is wrong in the file.
        """
        path = Path(path)
        grades = read_qrels(path, relevant_from=relevant_from).grades
        queries = [Query(id_, id_) for id_, judged in grades.items() if judged]
        return Dataset.create(
            data_set_name(path), str(path), documents=(), queries=queries, qrels=grades
        )
