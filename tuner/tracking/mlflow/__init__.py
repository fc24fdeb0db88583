"""The view of a study in MLflow."""
