"""What people look at: a study as a page, as plots, and as Optuna shows it."""
