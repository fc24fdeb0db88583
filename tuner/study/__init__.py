"""A study: its journal, its arms, and the loop that asks and tells."""
