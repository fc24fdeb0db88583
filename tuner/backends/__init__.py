"""Search backends: one file each; `base.py` says what one is, and names them all."""
