"""Load on a system, and how it holds."""
