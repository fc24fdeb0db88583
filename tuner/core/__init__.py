"""The words that every part of the tuner speaks: parameters, trials, queries, rankings, errors."""
