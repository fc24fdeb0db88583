"""Build evaluation sets, from query logs or from a graph of facts; measure and write data sets."""
