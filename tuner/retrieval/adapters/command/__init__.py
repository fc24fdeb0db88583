"""A long-lived command of the user's as a retriever: JSON lines in and out."""

from tuner.retrieval.adapters.command.retriever import Command

__all__ = ["Command"]
