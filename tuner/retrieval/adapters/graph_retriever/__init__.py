"""DataStax's graph-retriever: traversal strategies over a vector store with linked documents."""

from tuner.retrieval.adapters.graph_retriever.adapter import GraphRetriever

__all__ = ["GraphRetriever"]
