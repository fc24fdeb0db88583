"""Seeds: from the words of a query to the entities where walks through the graph begin."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuner.core.corpus import Document
from tuner.core.rankings import FloatArray, IntArray
from tuner.core.steps import Advance, followed, portion, unheard
from tuner.core.words import fold, name_words
from tuner.retrieval.hybrid.graph import Graph
from tuner.retrieval.hybrid.names import LONGEST_NAME, Name
from tuner.retrieval.hybrid.text import STOP_WORDS, full_text

# Words that ask, and so name nothing even where a song or a band is called that.
QUESTION_WORDS = frozenset(
    "did do does had has have how s was were what when where which who whom whose why".split()
)
STOP_WORD_INFORMATION = 0.1
PARTIAL_FACTOR = 0.5
# In a query that writes names with capitals, a name met in lower case is likely a common word.
LOWER_CASE_FACTOR = 0.5
LEAST_SPECIFICITY = 0.5

_SIMPLE_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r'[.!?:;"“”(]')


@dataclass(frozen=True)
class EntityLookup:
    """What is needed to find entities in a query.

    Attributes:
        names: entity of each name.
        information: shape (entities,), sum of the informations of a name's different words.
        weight: shape (entities,) in (0, 1]: how specific, and how surely a proper name, it is.
        word_information: log((passages + 1) / (passages with the word + 1/2)) by word.
        postings: entities whose name holds the word, ascending, by word.
        unseen_information: the information of a word that no passage holds.
    """

    names: dict[Name, int]
    information: FloatArray
    weight: FloatArray
    word_information: dict[str, float]
    postings: dict[str, IntArray]
    unseen_information: float

    def candidates(self, text: str, *, count: int) -> tuple[IntArray, FloatArray]:
        """Return the ``count`` best matching entities with scores in (0, 1], best first.

        With I the information of words, a name that stands in the query word for word and is not
        part of a longer one scores ``weight * I(name) / (I(name) + 1)``; any other name that
        shares words with it ``weight / 2 * (I(shared)/I(name))^2 * sqrt(I(shared)/I(query))``.
        Words in lower case count half where other words of the query have capitals. Ties go to
        the name that sorts first.
        """
        words = name_words(text)
        trust = _trust(text, words)
        entities, overlap = self._shared(trust)
        if not len(entities):
            return entities, np.zeros(0)
        query_information = sum(self._information(word) for word in dict.fromkeys(words))
        scores = PARTIAL_FACTOR * (overlap / self.information[entities]) ** 2
        scores *= np.sqrt(overlap / query_information) * self.weight[entities]
        for entity, factor in self._exact(words, trust):
            place = np.searchsorted(entities, entity)
            information = self.information[entity]
            exact = factor * self.weight[entity] * information / (information + 1.0)
            scores[place] = max(scores[place], exact)
        # Rounded, because equal scores that were summed in another order differ in the last digit.
        scores = np.round(scores, 12)
        best = np.argsort(-scores, kind="stable")[:count]
        return entities[best], scores[best]

    def _information(self, word: str) -> float:
        return self.word_information.get(word, self.unseen_information)

    def _shared(self, trust: dict[str, float]) -> tuple[IntArray, FloatArray]:
        """Return the entities that share a word with the query, and how much they share."""
        telling = [word for word in trust if word in self.postings and not is_empty(word)]
        lists = [self.postings[word] for word in telling]
        gains = [trust[word] * self._information(word) for word in telling]
        everywhere = np.concatenate([np.zeros(0, dtype=np.int64), *lists])
        entities, place = np.unique(everywhere, return_inverse=True)
        overlap: FloatArray = np.bincount(
            place, np.repeat(gains, list(map(len, lists))), minlength=len(entities)
        ).astype(np.float64)
        return entities, overlap

    def _exact(self, words: Name, trust: dict[str, float]) -> list[tuple[int, float]]:
        """Find names word for word, long ones first; a word belongs to one name at most."""
        found: list[tuple[int, float]] = []
        is_taken = [False] * len(words)
        for length in range(min(LONGEST_NAME, len(words)), 0, -1):
            for start in range(len(words) - length + 1):
                span = words[start : start + length]
                entity = self.names.get(span)
                if entity is None or any(is_taken[start : start + length]):
                    continue
                telling = [word for word in span if not is_empty(word)]
                if telling:
                    is_taken[start : start + length] = [True] * length
                    found.append((entity, max(trust[word] for word in telling)))
        return found


def is_empty(word: str) -> bool:
    """Say whether a word alone cannot point at a name."""
    return word in STOP_WORDS or word in QUESTION_WORDS


def _trust(text: str, words: Name) -> dict[str, float]:
    """Return by word how much its match counts; the first word's capital proves nothing."""
    capitals = {
        fold(match.group()) for match in _SIMPLE_WORD.finditer(text) if match.group()[0].isupper()
    }
    if not capitals.difference(words[:1]):
        return dict.fromkeys(words, 1.0)
    return {word: 1.0 if word in capitals else LOWER_CASE_FACTOR for word in words}


def build_lookup(
    graph: Graph, documents: Sequence[Document], advance: Advance = unheard
) -> EntityLookup:
    """Prepare the search for the names of ``graph``."""
    count = len(documents)
    frequency = Counter(
        word
        for document in followed(documents, portion(advance, 0.0, 0.5))
        for word in set(name_words(full_text(document)))
    )
    used = {word for name in graph.names for word in name} | frequency.keys()
    word_information = {
        word: STOP_WORD_INFORMATION
        if word in STOP_WORDS
        else float(np.log((count + 1) / (frequency[word] + 0.5)))
        for word in sorted(used)
    }
    information = [
        sum(word_information[word] for word in dict.fromkeys(name)) for name in graph.names
    ]
    postings: dict[str, list[int]] = {}
    for entity, name in enumerate(graph.names):
        for word in dict.fromkeys(name):
            postings.setdefault(word, []).append(entity)
    rarity = np.log(count / graph.degrees) / np.log(count) if count > 1 else np.ones(1)
    specificity = LEAST_SPECIFICITY + (1 - LEAST_SPECIFICITY) * rarity
    return EntityLookup(
        names={name: entity for entity, name in enumerate(graph.names)},
        # log((n + 1) / (n + 1/2)) is still above 0, so no name is without information.
        information=np.array(information, dtype=np.float64),
        weight=specificity * _properness(graph.names, documents, portion(advance, 0.5, 1.0)),
        word_information=word_information,
        postings={word: np.array(entities) for word, entities in postings.items()},
        unseen_information=float(np.log((count + 1) / 0.5)),
    )


def _properness(
    names: Sequence[Name], documents: Sequence[Document], advance: Advance
) -> FloatArray:
    """Return how often a one-word name is written with a capital where it need not be.

    ``President`` opens sentences and titles, so it looks like a name; inside sentences it is
    mostly ``president``. Longer names, and words of scripts without case, count as proper.
    """
    capital: Counter[str] = Counter()
    lower: Counter[str] = Counter()
    for document in followed(documents, advance):
        end = 0
        for match in _SIMPLE_WORD.finditer(document.text):
            word = match.group()
            is_first = end == 0 or _SENTENCE_END.search(document.text, end, match.start())
            end = match.end()
            if word[0].islower():
                lower[fold(word)] += 1
            elif word[0].isupper() and not is_first:
                capital[fold(word)] += 1
    return np.array(
        [
            (capital[name[0]] + 0.5) / (capital[name[0]] + lower[name[0]] + 0.5)
            if len(name) == 1
            else 1.0
            for name in names
        ],
        dtype=np.float64,
    )


def softmax(scores: FloatArray, temperature: float) -> FloatArray:
    """Return seed weights of shape (queries, seeds) that add up to 1 in a row.

    Rows hold candidates' scores, filled with -inf; a row of fill stays 0. As the temperature goes
    to 0 the best candidate takes everything.
    """
    best = scores.max(axis=1, keepdims=True, initial=-np.inf)
    is_some = np.isfinite(best)
    shifted = np.where(np.isfinite(scores), scores - np.where(is_some, best, 0.0), -np.inf)
    weights: FloatArray = np.exp(shifted / temperature)
    total = weights.sum(axis=1, keepdims=True)
    np.divide(weights, total, out=weights, where=total > 0)
    return weights
