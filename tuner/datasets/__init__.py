"""Data sets: documents, judged queries, and the readers of each published layout."""
