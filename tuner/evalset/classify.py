"""Tell a query's type and difficulty from its words, by rules for English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tuner.core import registry
from tuner.core.errors import InputError
from tuner.core.words import normalise


class Labels(NamedTuple):
    """A query's type and difficulty, as strata and for reports by type."""

    query_type: str
    difficulty: str


Classifier = Callable[[str], tuple[str, str]]
"""Takes a query's text and returns its type and its difficulty."""

# The first rule that fits decides. `\b` stands at the ends of English words only.
_TYPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "comparison",
        re.compile(
            r"\b(?:compared?|comparison|versus|vs|differences?|than|both|same)\b"
            r"|^(?:which|who|what)\b.*\b\w+(?:er|more|less)\b.*\bor\b"
            r"|^(?:which|who|what)\b.*(?:,|\bfirst\b).*\bor\b"
            r"|^(?:is|are|was|were|do|does|did)\b.*\bor\b|\bin common\b|\bfirst out of\b"
            r"|比较|相比|区别|差异|不同|哪个更|谁更|哪一个更|相同|同一|都是|都在|还是"
        ),
    ),
    ("procedure", re.compile(r"\bhow (?:to|do|does|can|should)\b|如何|怎么|怎样|步骤")),
    ("reason", re.compile(r"\bwhy\b|\breasons? (?:for|of|why)\b|为什么|为何|原因")),
    (
        "count",
        re.compile(
            r"\bhow (?:many|much|often)\b|\bnumber of\b|\bcount\b|多少|几[个位次种本部座年]|数量"
        ),
    ),
    (
        "list",
        re.compile(r"\b(?:list|name|give) (?:all|every|the)\b|\bwhich .*\bare\b|哪些|列出|所有"),
    ),
    (
        "time",
        re.compile(
            r"\bwhen\b|\b(?:what|which) (?:year|date|month|century|decade)\b"
            r"|何时|什么时候|哪[一]?[年天月]|哪个世纪|几[月号]"
        ),
    ),
    (
        "yes-no",
        re.compile(
            r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b"
            r"|吗$|是否|是不是|有没有|能不能"
        ),
    ),
    (
        "place",
        re.compile(r"\bwhere\b|\b(?:what|which) (?:city|country|place)\b|哪里|哪儿|何处|在哪"),
    ),
    ("person", re.compile(r"\b(?:who|whom|whose)\b|谁|哪位")),
    ("fact", re.compile(r"\b(?:what|which|how)\b|什么|哪|几|何")),
)
_KEYWORDS = "keywords"

# Each of these leads from one thing to another, as in "the river of the city of the author".
_LINK = re.compile(
    r"\bof\b|'s\b|的"
    # "In which year" asks; "the year in which" leads on.
    r"|(?<=\w)(?<!^in)(?<!^on)(?<!^at)(?<!^to)(?<!^by) (?:whose|whom|that|where|who|which)\b"
)
_LONG_WORDS = 25
_LONG_CHARACTERS = 45  # of a script without spaces


def classify(text: str) -> Labels:
    """Return the type by the question's words, the difficulty by how many links it follows.

    Types: comparison, procedure, reason, count, list, time, yes-no, place, person, fact, and
    keywords where there is no question word. Difficulty: a link is an "of", a "whose", a relative
    clause, a 的. Up to one link is easy, two are medium, more are hard. Comparisons, lists and
    counts, which need several passages, and very long queries are one step harder.

    These are rules of thumb, for strata of a sample and for reports by type. On samples of
    HotpotQA and 2WikiMultihopQA, which they were adjusted on, they find 9 of 10 comparisons, and 9
    of 10 that they find are; MuSiQue's 3-hop questions come out harder than its 2-hop ones on
    average, not one by one.

    >>> classify("Which river crosses the birthplace of the author of Faust?")
    Labels(query_type='fact', difficulty='medium')
    >>> classify("《浮士德》的作者的出生地的河流是什么？").difficulty
    'hard'
    """
    key = normalise(text).casefold().rstrip(" ?!.。…")
    query_type = next((name for name, rule in _TYPES if rule.search(key)), _KEYWORDS)
    links = len(_LINK.findall(key))
    steps = max(links - 1, 0)
    steps += query_type in ("comparison", "list", "count")
    steps += len(key.split()) > _LONG_WORDS or len(re.findall(r"[㐀-鿿]", key)) > _LONG_CHARACTERS
    return Labels(query_type, ("easy", "medium", "hard")[min(steps, 2)])


def load_classifier(name: str | None) -> Classifier:
    """Return the rules above, or a function of yours by ``"module:function"``.

    Raises:
        InputError: there is no such function.
    """
    if name is None:
        return classify
    found = registry.load_outside("classifier", name)
    if problem := registry.call_problem(found, "query"):
        message = f"{name!r} {problem}; it must take a query and return two strings"
        raise InputError(message)
    return _checked(found, name)


def _checked(function: Callable[[str], object], name: str) -> Classifier:
    def classify_one(text: str) -> tuple[str, str]:
        labels = function(text)
        if (
            isinstance(labels, tuple | list)
            and len(labels) == 2
            and all(isinstance(label, str) for label in labels)
        ):
            return Labels(*labels)
        raise InputError(
            f"{name} returned {labels!r} for {text!r}; it must return (query_type, difficulty)"
        )

    return classify_one
