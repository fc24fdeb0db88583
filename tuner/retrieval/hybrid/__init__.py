"""The built-in engine: BM25 fused with walks through a graph of names; no LLM, no network."""

from tuner.retrieval.hybrid.engine import Hybrid

__all__ = ["Hybrid"]
