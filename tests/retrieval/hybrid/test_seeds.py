"""How much a name in a query weighs as a seed of the walk."""

from __future__ import annotations

from tuner.core.corpus import Corpus, Document, Triple
from tuner.retrieval.hybrid.graph import build_graph
from tuner.retrieval.hybrid.options import HybridOptions
from tuner.retrieval.hybrid.seeds import build_lookup
from tuner.retrieval.hybrid.words import Words

TEXTS = (
    "In Kvarnby lives a mayor. There the mayor is old.",
    "They say that each mayor knew, like all Kvarnby, the mayor before.",
)


def weights(texts: tuple[str, ...]) -> dict[str, float]:
    """Return the weight of each name in the graph of these texts."""
    documents = tuple(Document(str(i), "", text) for i, text in enumerate(texts))
    corpus = Corpus(documents, triples=(Triple("0", "Kvarnby", "led by", "Mayor"),))
    words = Words.of(documents)
    graph = build_graph(corpus, documents, words, HybridOptions())
    lookup = build_lookup(graph, documents, words)
    return {name: float(lookup.weight[i]) for i, name in enumerate(graph.names)}


def test_a_word_that_is_mostly_no_name_weighs_less_than_a_name() -> None:
    as_a_word = weights(TEXTS)
    as_a_name = weights(tuple(text.replace("mayor", "Mayor") for text in TEXTS))
    # With the same place in the graph: never with a capital inside of a sentence, and always.
    assert as_a_word["mayor"] < 0.5 * as_a_name["mayor"]
    assert as_a_name["mayor"] <= 1.0
