"""Microsoft GraphRAG's output folder, read into the built-in engine."""

from tuner.retrieval.adapters.ms_graphrag.retriever import MsGraphrag

__all__ = ["MsGraphrag"]
