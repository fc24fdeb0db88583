"""Ready-made runs and answers, scored without a study."""
