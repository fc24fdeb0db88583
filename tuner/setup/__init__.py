"""A first configuration, from what there is: a data set, and a system that searches it."""
