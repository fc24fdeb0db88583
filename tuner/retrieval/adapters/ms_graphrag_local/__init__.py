"""Microsoft GraphRAG's own local search, up to the context that it builds; no language model."""

from tuner.retrieval.adapters.ms_graphrag_local.adapter import MsGraphragLocal

__all__ = ["MsGraphragLocal"]
