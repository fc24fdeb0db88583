"""Does quality slip? Daily figures, tests for a change, and what they found."""
