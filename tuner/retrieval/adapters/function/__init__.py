"""Any Python function or object as a retriever, or as a system that measures itself."""

from tuner.retrieval.adapters.function.retriever import Function

__all__ = ["Function"]
