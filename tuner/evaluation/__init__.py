"""From parameters to an outcome: retrieval, metrics, and the one objective they add up to."""
