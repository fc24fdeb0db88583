"""From features of queries to the setting of each: models, and how one is chosen."""
