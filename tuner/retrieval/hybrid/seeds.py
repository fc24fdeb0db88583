"""Seeds: from the words of a query to the entities where walks through the graph begin."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuner.core.corpus import Document
from tuner.core.rankings import FloatArray, IntArray
from tuner.core.steps import Advance, followed, portion, unheard
from tuner.core.words import fold, name_words
from tuner.retrieval.hybrid.columns import Places, Texts
from tuner.retrieval.hybrid.graph import Graph
from tuner.retrieval.hybrid.names import LONGEST_NAME, Name
from tuner.retrieval.hybrid.text import STOP_WORDS
from tuner.retrieval.hybrid.words import Words, flattened

# Words that ask, and so name nothing even where a song or a band is called that.
QUESTION_WORDS = frozenset(
    "did do does had has have how s was were what when where which who whom whose why".split()
)
STOP_WORD_INFORMATION = 0.1
PARTIAL_FACTOR = 0.5
# In a query that writes names with capitals, a name met in lower case is likely a common word.
LOWER_CASE_FACTOR = 0.5
LEAST_SPECIFICITY = 0.5
# So many seeds are looked at where what is seen of a query is told.
SEEN_SEEDS = 10

_SIMPLE_WORD = re.compile(r"[^\W_]+")
_CAPITALISED = re.compile(r"[A-Z](?<![^\W_].)[^\W_]*")
_OPENING_WORD = re.compile(r'[.!?:;"“”(][\W_]*([^\W_]+)')


@dataclass(frozen=True, eq=False)
class EntityLookup:
    """What is needed to find entities in a query.

    Attributes:
        names: entity of each name, its words joined by spaces.
        information: shape (entities,), sum of the informations of a name's different words.
        weight: shape (entities,) in (0, 1]: how specific, and how surely a proper name, it is.
        words: the words of passages and names.
        word_information: log((passages + 1) / (passages with the word + 1/2)) by word.
        postings: entities whose name holds a word, ascending, word by word.
        posting_bounds: shape (words + 1,), where those of each word begin and end.
        unseen_information: the information of a word that no passage holds.
    """

    names: Places
    information: FloatArray
    weight: FloatArray
    words: Places
    word_information: FloatArray
    postings: npt.NDArray[np.int32]
    posting_bounds: IntArray
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
        found = {word: self.words.get(word) for word in trust}
        entities, overlap = self._shared(trust, found)
        if not len(entities):
            return entities, np.zeros(0)
        query_information = sum(self._information(found[word]) for word in dict.fromkeys(words))
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

    def seen(self, text: str) -> dict[str, float]:
        """Return what a policy by features may look at: see ``core.seen.PHRASES``.

        Strong seeds score at least half of the best one; how far that stands out is its share of
        the scores of the first ``SEEN_SEEDS``. Both are NaN where there is no seed.
        """
        words = name_words(text)
        numbers = [self.words.get(word) for word in dict.fromkeys(words) if not is_empty(word)]
        rarity = [self._information(number) for number in numbers]
        _, scores = self.candidates(text, count=SEEN_SEEDS)
        best = float(scores[0]) if len(scores) else 0.0
        return {
            "rarest_word": max(rarity, default=math.nan),
            "mean_rarity": sum(rarity) / len(rarity) if rarity else math.nan,
            "unknown_words": float(sum(number is None for number in numbers)),
            "names_recognised": float(len(self._exact(words, _trust(text, words)))),
            "best_seed": best,
            "strong_seeds": float((scores >= best / 2).sum()),
            "seed_share": best / float(scores.sum()) if best else math.nan,
        }

    def _information(self, word: int | None) -> float:
        return self.unseen_information if word is None else float(self.word_information[word])

    def _shared(
        self, trust: dict[str, float], found: dict[str, int | None]
    ) -> tuple[IntArray, FloatArray]:
        """Return the entities that share a word with the query, and how much they share."""
        lists, gains = [], []
        for word, number in found.items():
            if number is None or is_empty(word):
                continue
            begin, end = self.posting_bounds[number : number + 2]
            if end > begin:
                lists.append(self.postings[begin:end])
                gains.append(trust[word] * self._information(number))
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
                if any(is_taken[start : start + length]):
                    continue
                entity = self.names.get(" ".join(span))
                if entity is None:
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
    graph: Graph, documents: Sequence[Document], words: Words, advance: Advance = unheard
) -> EntityLookup:
    """Prepare the search for the names of ``graph``."""
    count, vocabulary = len(documents), words.vocabulary
    frequencies = words.frequencies()
    advance(1, 4)
    number_of = vocabulary.__getitem__
    # Words that stand in no passage, as imported names may have, come behind the others.
    in_names, entities = flattened(
        [*map(number_of, dict.fromkeys(name.split(" ")))] for name in graph.names
    )
    frequencies = np.pad(frequencies, (0, len(vocabulary) - len(frequencies)))
    # One logarithm for each frequency: few of them differ.
    of_frequency = {
        number: float(np.log((count + 1) / (number + 0.5)))
        for number in np.unique(frequencies).tolist()
    }
    word_information = np.array(
        [
            STOP_WORD_INFORMATION if word in STOP_WORDS else of_frequency[number]
            for word, number in zip(vocabulary, frequencies.tolist(), strict=True)
        ],
        dtype=np.float64,
    )
    entity_count = len(graph.names)
    rarity = np.log(count / graph.degrees) / np.log(count) if count > 1 else np.ones(1)
    specificity = LEAST_SPECIFICITY + (1 - LEAST_SPECIFICITY) * rarity
    by_word = np.argsort(in_names, kind="stable")
    per_word = np.bincount(in_names, minlength=len(vocabulary))
    return EntityLookup(
        names=Places.of(graph.names),
        # log((n + 1) / (n + 1/2)) is still above 0, so no name is without information.
        information=np.bincount(
            entities, word_information[in_names], minlength=entity_count
        ).astype(np.float64),
        weight=specificity * _properness(graph.names, documents, words, portion(advance, 0.3, 1.0)),
        words=Places.of(Texts.of(vocabulary)),
        word_information=word_information,
        postings=entities[by_word].astype(np.int32),
        posting_bounds=np.concatenate([[0], np.cumsum(per_word)]),
        unseen_information=float(np.log((count + 1) / 0.5)),
    )


def _properness(
    names: Sequence[str], documents: Sequence[Document], words: Words, advance: Advance
) -> FloatArray:
    """Return how often a one-word name is written with a capital where it need not be.

    ``President`` opens sentences and titles, so it looks like a name; inside sentences it is
    mostly ``president``. Longer names, and words of scripts without case, count as proper.
    """
    written: Counter[str] = Counter()
    capitalised: Counter[str] = Counter()
    opening: Counter[str] = Counter()
    is_ascii = np.zeros(len(documents), dtype=bool)
    for place, document in enumerate(followed(documents, advance)):
        if document.text.isascii():
            # Capitals are few; all words of such texts, in small letters, are counted already.
            is_ascii[place] = True
            capitalised.update(_CAPITALISED.findall(document.text))
        else:
            written.update(_SIMPLE_WORD.findall(document.text))
        # A sentence of its own, so that the first word opens one, too.
        opening.update(_OPENING_WORD.findall(f".{document.text}"))
    lower: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for word, number in written.items():
        if word[0].islower():
            lower[fold(word)] += number
    for word in written.keys() | capitalised.keys():
        if word[0].isupper():
            capital[fold(word)] += written[word] + capitalised[word] - opening[word]
            lower[fold(word)] -= capitalised[word]
    in_ascii = words.occurrences(is_ascii)

    def share(name: str) -> float:
        number = words.vocabulary.get(name)
        small = lower[name] + (in_ascii[number] if number is not None and name[0].isalpha() else 0)
        return float((capital[name] + 0.5) / (capital[name] + small + 0.5))

    return np.array([1.0 if " " in name else share(name) for name in names], dtype=np.float64)


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
