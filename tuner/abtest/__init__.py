"""Online experiments: from a file of what users did to what should be done."""
