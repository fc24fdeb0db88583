"""Is it really better? From the figures of held-out queries to a ruling, and to its words."""
