"""Ready-made run files as the legs of a fusion: no system is called, only scores are combined."""

from tuner.retrieval.adapters.runs.retriever import Runs

__all__ = ["Runs"]
