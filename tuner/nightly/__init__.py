"""A night: tune, test the challenger against the champion, promote, look for drift, tell."""
