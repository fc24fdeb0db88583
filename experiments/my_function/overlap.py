"""A search of one's own in 20 lines: passages that share words with the query, titles weighed."""

from collections import defaultdict
from functools import cache

from tuner import open_dataset


@cache
def index():
    found = defaultdict(set)
    for document in open_dataset("builtin:atlas").corpus.documents:
        for word in document.text.lower().split():
            found[word].add((document.id, False))
        for word in document.title.lower().split():
            found[word].add((document.id, True))
    return found


def search(query, title_weight=1.0, long_words=4, top_k=10):
    scores = defaultdict(float)
    for word in {word for word in query.lower().strip("?").split() if len(word) >= long_words}:
        for id_, is_title in index().get(word, ()):
            scores[id_] += title_weight if is_title else 1.0
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:top_k]
