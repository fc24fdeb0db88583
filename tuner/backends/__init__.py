"""Search backends: one file each, found by its name (`tpe.py` holds `Tpe`)."""
