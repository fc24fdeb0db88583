"""Retrieval metrics: pure functions on arrays, and `evaluate_run` for dictionaries."""
