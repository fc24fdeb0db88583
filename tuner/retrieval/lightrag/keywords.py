"""A query's keywords by rule, in place of the language model that LightRAG would ask."""

from __future__ import annotations

import re

from tuner.core.words import split_words
from tuner.retrieval.hybrid.names import phrases
from tuner.retrieval.hybrid.text import STOP_WORDS

_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{2,80})[\"”»]")
# Words that ask, but name no theme.
_ASKING = STOP_WORDS | frozenset(
    "did do does from had has have he her his how i me my name named of our she tell us we were "
    "what when where which who whom whose why you your".split()
)


def keywords(query: str) -> tuple[list[str], list[str]]:
    """Return low-level keywords (names) and high-level ones (what is asked about them).

    Neither list is empty: without names, and without other words, each takes what there is.

    >>> keywords("Where was the director of Night Ferry born?")
    (['night ferry'], ['director', 'born'])
    """
    names = [" ".join(split_words(quoted)) for quoted in _QUOTED.findall(query)]
    names += [" ".join(name) for name in phrases(query)]
    low = [name for name in dict.fromkeys(names) if name]
    in_names = {word for name in low for word in name.split(" ")}
    words = [word for word in dict.fromkeys(split_words(query)) if word not in _ASKING]
    high = [word for word in words if word not in in_names]
    whole = [query.strip()]
    return low or words or whole, high or words or whole
