"""Retrievers: the built-in GraphRAG engine and one file for each outside system."""
