"""What retrieval is for: how the quality of answers goes with metrics, and with positions."""
