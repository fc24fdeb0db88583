"""A page on which people grade a sheet: served from here, every grade on the disk at once."""
