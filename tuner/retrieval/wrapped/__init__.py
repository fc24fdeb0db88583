"""Retrievers around a retriever: a policy, a memory, a count of calls."""
