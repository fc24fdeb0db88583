"""Other people's systems as retrievers: one folder each, and what several of them share."""
