"""What can be seen of a query before it is answered: features, as numbers by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tuner.core.words import split_words

# What each feature is called in a sentence.
PHRASES: Mapping[str, str] = {
    "words": "the number of words",
    "characters": "the number of characters",
    "word_length": "the length of its words",
    "names": "the number of capitalised names",
    "numbers": "the number of numbers",
    "asks_who": "asking who",
    "asks_what": "asking what",
    "asks_which": "asking which",
    "asks_when": "asking when",
    "asks_where": "asking where",
    "asks_how": "asking how",
    "asks_why": "asking why",
    "asks_whether": "asking whether",
    "rarest_word": "how rare its rarest word is",
    "mean_rarity": "how rare its words are",
    "unknown_words": "the number of words that no document has",
    "names_recognised": "the number of names recognised",
    "best_seed": "how well the best seed fits",
    "strong_seeds": "the number of strong seeds",
    "seed_share": "how far the best seed stands out",
    "legs_overlap": "how many documents the legs share at the top",
    "legs_agreement": "how alike the legs rank",
    "graph_silent": "a graph that finds nothing",
    "text_lead": "how far the text's first document leads",
    "graph_lead": "how far the graph's first document leads",
}

_ASKS: Mapping[str, str] = {
    "who": "who",
    "whom": "who",
    "whose": "who",
    "what": "what",
    "which": "which",
    "when": "when",
    "where": "where",
    "how": "how",
    "why": "why",
}
# A question that begins with one of these is answered by yes or no.
_WHETHER = frozenset("are can could did do does had has have is should was were will would".split())
# Small words that may stand inside a name, as in Bank of England.
_JOINERS = frozenset("of the de la le du da di del der den des von van al el for and".split())
_OPENING = "\"'(“‘„«[¿¡"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def text_features(text: str) -> dict[str, float]:
    """Return what the words of a query tell.

    The first word's capital tells nothing, so a name there is not counted. Of the words that ask,
    the first one counts.

    >>> found = text_features("Who wrote the Letters of Ada Byron in 1842?")
    >>> {name: value for name, value in found.items() if value}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'words': 9.0, 'characters': 43.0, 'word_length': 3.78, 'names': 1.0, 'numbers': 1.0,
     'asks_who': 1.0}
    """
    words = split_words(text)
    asked = next((_ASKS[word] for word in words if word in _ASKS), "")
    if words and words[0] in _WHETHER:
        asked = "whether"
    return {
        "words": float(len(words)),
        "characters": float(len(text.strip())),
        "word_length": round(sum(map(len, words)) / len(words), 2) if words else 0.0,
        "names": float(_names(text)),
        "numbers": float(len(_NUMBER.findall(text))),
        **{
            f"asks_{word}": float(word == asked)
            for word in (*dict.fromkeys(_ASKS.values()), "whether")
        },
    }


def _names(text: str) -> int:
    """Count the runs of capitalised words after the first word."""
    count, is_inside = 0, False
    for word in text.split()[1:]:
        is_capital = word.lstrip(_OPENING)[:1].isupper()
        count += is_capital and not is_inside
        is_inside = is_capital or (is_inside and word in _JOINERS)
    return count


def phrase(feature: str) -> str:
    """Return what a feature is called in a sentence; one of the user's own by its name."""
    return PHRASES.get(feature, feature)
