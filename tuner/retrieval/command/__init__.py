"""A long-lived command of the user's as a retriever: JSON lines in and out."""

from tuner.retrieval.command.retriever import Command

__all__ = ["Command"]
