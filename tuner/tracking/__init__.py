"""Views of a study in outside trackers; the journal stays the only source of truth."""
