"""LightRAG's retrieval, without its language model."""

from tuner.retrieval.adapters.lightrag.adapter import Lightrag

__all__ = ["Lightrag"]
