"""Tune GraphRAG retrieval: define a space, search it in parallel, and keep every trial."""
