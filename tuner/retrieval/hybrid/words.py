"""The words by which the engine indexes and compares: the same as everywhere in this package."""

from tuner.core.words import count_tokens, fold, is_unspaced, name_words, split_words

__all__ = ["count_tokens", "fold", "is_unspaced", "name_words", "split_words"]
