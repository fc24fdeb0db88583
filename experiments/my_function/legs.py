"""A search of one's own whose answers carry their legs: words in titles, and words in texts."""

from collections import defaultdict
from functools import cache
from math import log

from tuner import open_dataset

MIXED = 200
"""So many documents of each leg are mixed."""


@cache
def index():
    documents = open_dataset("builtin:atlas").corpus.documents
    found = {"title": defaultdict(list), "text": defaultdict(list)}
    for document in documents:
        for leg, text in (("title", document.title), ("text", document.text)):
            for word in dict.fromkeys(text.lower().split()):
                found[leg][word].append(document.id)
    return found, len(documents)


def best_first(scores, count):
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:count]


def leg_of(words, where, total, rare):
    scores = defaultdict(float)
    for word in words:
        ids = where.get(word, ())
        for id_ in ids:
            scores[id_] += log(1 + total / len(ids)) ** rare
    return best_first(scores, MIXED)


def search(query, title_weight=0.5, long_words=4, rare=1.0, top_k=10):
    words = [word for word in query.lower().strip("?").split() if len(word) >= long_words]
    found, total = index()
    legs = {name: leg_of(dict.fromkeys(words), found[name], total, rare) for name in found}
    mixed = defaultdict(float)
    for name, weight in (("title", title_weight), ("text", 1 - title_weight)):
        for id_, score in legs[name]:
            mixed[id_] += weight * score / legs[name][0][1]
    return {"results": best_first(mixed, top_k), "legs": legs}
