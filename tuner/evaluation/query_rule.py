"""Learn from labelled queries the rule that tells a new query's type by its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tuner.core.policy import WordRule, features

# A word that a handful of queries share says little of a type.
FEWEST_QUERIES = 3
FOLDS = 5


def learn_rule(texts: Sequence[str], types: Sequence[str]) -> WordRule:
    """Fit a multinomial naive Bayes model (scikit-learn, alpha = 1) and write it as a rule.

    A feature's weights are its log probabilities by type less their mean, which changes no answer.
    """
    from sklearn.naive_bayes import MultinomialNB

    found = [features(text) for text in texts]
    counts = Counter(feature for row in found for feature in row)
    vocabulary = sorted(name for name, count in counts.items() if count >= FEWEST_QUERIES)
    place = {name: column for column, name in enumerate(vocabulary)}
    matrix = np.zeros((len(texts), max(len(vocabulary), 1)))
    for row, names in enumerate(found):
        columns = [place[name] for name in names if name in place]
        matrix[row, columns] = 1.0
    model = MultinomialNB().fit(matrix, list(types))
    classes = [str(name) for name in model.classes_]
    weights = model.feature_log_prob_ - model.feature_log_prob_.mean(axis=0)
    return WordRule(
        {name: round(float(p), 4) for name, p in zip(classes, model.class_log_prior_, strict=True)},
        {
            feature: {
                name: round(float(weights[row, column]), 4) for row, name in enumerate(classes)
            }
            for feature, column in place.items()
        },
    )


def rule_accuracy(texts: Sequence[str], types: Sequence[str], *, seed: int) -> float:
    """Return the share of queries whose type a rule learned from the others tells (5 folds)."""
    order = np.random.default_rng(seed).permutation(len(texts))
    right = 0
    for fold in range(min(FOLDS, len(texts))):
        held = set(order[fold::FOLDS].tolist())
        rest = [row for row in range(len(texts)) if row not in held]
        rule = learn_rule([texts[row] for row in rest], [types[row] for row in rest])
        right += sum(rule.classify(texts[row]) == types[row] for row in held)
    return right / len(texts)
