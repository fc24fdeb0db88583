"""By what the documents that a framework finds are known: its answer to a first query tells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuner.core import registry
from tuner.datasets import Dataset
from tuner.retrieval.adapters.answers import passage_tokens
from tuner.retrieval.adapters.frameworks.factory import Factory
from tuner.retrieval.adapters.frameworks.matching import how_to_match
from tuner.retrieval.adapters.frameworks.retriever import OfFactory

# A query may find nothing.
_QUERIES = 3


def by_what(kind: str, options: Mapping[str, Any], folder: Path, dataset: Dataset) -> str:
    """Return the option ``id`` of what a factory makes, such as ``metadata.source``.

    It is called, and asked up to three queries. Empty where that tells nothing: it needs arguments
    or the documents of the data set, finds nothing, or cannot be asked. What is wrong with it is
    then told when the configuration is checked and run.
    """
    loaded = registry.load("retrieval", kind)
    assert isinstance(loaded, type)
    assert issubclass(loaded, OfFactory)
    resolved = loaded.resolve_options(options, folder)
    seam = loaded.seam_of(**resolved)
    factory = Factory.read(resolved["make"], resolved["search_path"])
    if factory.takes_data:
        return ""
    corpus = dataset.corpus
    known = passage_tokens(corpus)
    try:
        bound = seam.bound(factory.made_of_stand_ins(), {})
        for query in dataset.queries[:_QUERIES]:
            if how := how_to_match(seam.ask(bound, query.text), corpus, known):
                return how
    except Exception:  # whatever the user's code and the framework raise
        return ""
    return ""
