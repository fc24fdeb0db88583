"""Embedders of a user's own: one that works, and others that go wrong."""

from __future__ import annotations

import numpy as np


def letters(texts):
    """Embed by pairs of letters; shape (texts, 64)."""
    vectors = np.full((len(texts), 64), 0.01)
    for vector, text in zip(vectors, texts, strict=True):
        for first, second in zip(text.lower(), text.lower()[1:], strict=False):
            vector[(ord(first) * 31 + ord(second)) % 64] += 1
    return vectors


def other(texts):
    """Embed as another model of the same size would."""
    return np.random.default_rng(0).permuted(letters(texts), axis=1)


def wide(texts):
    return np.hstack([letters(texts), letters(texts)])


def zero_passage(texts):
    return letters(texts) * np.array([["Kvarnby is a town" not in text] for text in texts])


def nan_query(texts):
    vectors = letters(texts)
    vectors[["streams" in text and "?" in text for text in texts]] = np.nan
    return vectors


def flat(texts):
    return letters(texts).ravel()


def one_short(texts):
    return letters(texts)[1:] if len(texts) > 1 else letters(texts)


def words(texts):
    return [["a"] for _ in texts]


def broken(texts):
    raise RuntimeError("the model is gone")


NOT_A_FUNCTION = 3
