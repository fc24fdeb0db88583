"""Run evaluations in this process, in threads, or in worker processes, one failure at a time."""
