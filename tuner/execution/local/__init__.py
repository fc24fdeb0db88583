"""Executions on this machine: in this process, in threads, in worker processes."""
