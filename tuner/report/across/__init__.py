"""Several studies on one page: what changed between them, and which winner is better."""
