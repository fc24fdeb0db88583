"""How alike an answer is to what was expected: words in common, the same text, or a judge's view.

These compare texts and know nothing of rankings, so they are no ``METRICS``; ``tuner compare
--answers`` finds them by name, and any other by ``module:function``.
"""

from __future__ import annotations

import inspect
import math
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.core import registry
from tuner.core.errors import InputError, MetricError, did_you_mean, one_line
from tuner.core.words import fold, is_unspaced

ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True)
class Similarity:
    """One way to score an answer, higher is better.

    Attributes:
        name: as the user wrote it.
        function: ``function(answer, expected)``, or ``function(answer, expected, query=…)`` where
            ``takes_query``.
        takes_query: whether the function judges the answer to a question, such as an LLM does.
    """

    name: str
    function: Callable[..., Any]
    takes_query: bool = False

    def score(self, answer: str, accepted: Sequence[str], query: str = "") -> float:
        """Return the best score over the accepted answers; NaN where all are undefined.

        Raises:
            MetricError: no accepted answer, or a function that raised or gave no finite number.
        """
        if not accepted:
            raise MetricError(f"{self.name}: there is no expected answer to compare with")
        scores = [self._one(answer, expected, query) for expected in accepted]
        return max((score for score in scores if not math.isnan(score)), default=math.nan)

    def _one(self, answer: str, expected: str, query: str) -> float:
        more = {"query": query} if self.takes_query else {}
        try:
            value = float(self.function(answer, expected, **more))
        except Exception as error:  # whatever code from outside raises
            reason = one_line(error)
            raise MetricError(f"{self.name} failed for {answer[:60]!r}: {reason}") from error
        if math.isinf(value):
            raise MetricError(f"{self.name} is infinite for {answer[:60]!r}; return a number")
        return value


def answer_tokens(text: str) -> list[str]:
    """Split an answer into the tokens by which it is compared: as SQuAD does, and CJK.

    SQuAD's evaluation (Rajpurkar et al. 2016): lower case, punctuation deleted (not replaced, so
    "U.S." is "us" and "well-known" one word), a, an, the dropped, split at blanks. For ASCII the
    result is the same. Beyond it, three differences: letters are folded (Café = cafe, full width =
    half width), punctuation is that of Unicode (。 and 「 too), and each character of a script
    without spaces is a token, as in CMRC 2018 and MLQA; at blanks alone a Chinese answer would be
    one token, right or wrong as a whole.

    >>> answer_tokens("The U.S. Navy!"), answer_tokens("利马（Lima）。")
    (['us', 'navy'], ['利', '马', 'lima'])
    """
    return [token for token in _tokens(text) if token not in ARTICLES]


def token_f1(answer: str, expected: str) -> float:
    """Return the harmonic mean of precision and recall of tokens, each as often as it stands there.

    Where one of the two has no tokens, 1 if neither has, else 0 (SQuAD 2.0).

    "Lima, Peru" for "Lima": precision 1/2, recall 1, F1 = 2 * .5 / 1.5.

    >>> round(token_f1("Lima, Peru", "Lima"), 4)
    0.6667
    """
    found, wanted = answer_tokens(answer), answer_tokens(expected)
    if not found or not wanted:
        return float(found == wanted)
    common = (Counter(found) & Counter(wanted)).total()
    return 2.0 * common / (len(found) + len(wanted))


def exact_match(answer: str, expected: str) -> float:
    """Return 1 where both have the same tokens in the same order, else 0.

    >>> exact_match("the Eiffel Tower.", "Eiffel tower")
    1.0
    """
    return float(answer_tokens(answer) == answer_tokens(expected))


def rouge_l(answer: str, expected: str) -> float:
    """Return the F1 of the longest common subsequence of tokens (Lin 2004, beta = 1).

    Unlike in ``token_f1`` the order counts, and articles do. 0 where one has no tokens.

    "police kill the gunman" for "police killed the gunman": police, the, gunman of 4 and 4.

    >>> rouge_l("police kill the gunman", "police killed the gunman")
    0.75
    """
    found, wanted = _tokens(answer), _tokens(expected)
    if not found or not wanted:
        return 0.0
    lengths = [0] * (len(wanted) + 1)
    for token in found:
        diagonal = 0
        for place, other in enumerate(wanted, start=1):
            above = lengths[place]
            lengths[place] = diagonal + 1 if token == other else max(above, lengths[place - 1])
            diagonal = above
    return 2.0 * lengths[-1] / (len(found) + len(wanted))


SIMILARITIES: Mapping[str, Callable[[str, str], float]] = {
    "token_f1": token_f1,
    "exact_match": exact_match,
    "rouge_l": rouge_l,
}


def find_similarity(name: str) -> Similarity:
    """Return a similarity by its name, or ``module:function``: (answer, expected) -> number.

    A function with a parameter ``query`` is given the question too, which a judge needs.

    Raises:
        InputError: no such similarity, module or function.
    """
    if name in SIMILARITIES:
        return Similarity(name, SIMILARITIES[name])
    if ":" not in name:
        hint = did_you_mean(name, SIMILARITIES)
        raise InputError(f"unknown similarity {name!r}; your own is module:function{hint}")
    function = registry.load("similarity", name)
    try:
        takes_query = "query" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin, or nothing that can be called
        takes_query = False
    named = ("query",) if takes_query else ()
    if problem := registry.call_problem(function, "answer", "expected", named=named):
        raise InputError(f"the similarity {name!r} {problem}")
    return Similarity(name, function, takes_query)


def _tokens(text: str) -> list[str]:
    kept = (letter for letter in fold(text) if not _is_punctuation(letter))
    # A script without spaces has no blanks to split at: each of its characters stands alone.
    return "".join(f" {letter} " if is_unspaced(letter) else letter for letter in kept).split()


def _is_punctuation(letter: str) -> bool:
    return letter in string.punctuation or unicodedata.category(letter).startswith("P")
