"""Executions on other machines: Dask and Ray."""
