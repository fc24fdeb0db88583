"""The features of queries that a policy may look at: one function for learning and for serving."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tuner.core import registry
from tuner.core.checks import is_number
from tuner.core.corpus import Query
from tuner.core.errors import InputError, one_line
from tuner.core.feature_rule import FeatureRule, Seen
from tuner.core.policy import Policy
from tuner.core.seen import PHRASES, text_features
from tuner.core.trial import Params
from tuner.retrieval.base import Retriever, features_of

OPTION = "--features"


def seen_of(
    retriever: Retriever | None, queries: Sequence[Query], params: Params, *, function: str = ""
) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return what is seen of queries before they are answered, each of shape (queries,).

    That is what their words tell, what the retriever tells (None: it is not here), and what the
    user's own ``function`` does, named as ``module:function``. NaN is what is not known.

    Raises:
        InputError: the function is not there, raises, or returns something else than numbers.
    """
    texts = [text_features(query.text) for query in queries]
    found = {name: np.array([one[name] for one in texts]) for name in (texts[0] if texts else ())}
    if retriever is not None and queries:
        found |= features_of(retriever, queries, params)
    if function:
        found |= _own(function, queries)
    return found


def params_for(
    policy: Policy, retriever: Retriever | None, queries: Sequence[Query]
) -> list[Params]:
    """Return the parameters that a policy gives each query.

    Raises:
        InputError: as ``seen_of`` does.
    """
    rule = policy.rule
    seen: Seen = {}
    if isinstance(rule, FeatureRule) and rule.features:
        seen = seen_of(retriever, queries, policy.default, function=rule.function)
    return policy.params_for([query.text for query in queries], seen)


def _own(function: str, queries: Sequence[Query]) -> dict[str, Any]:
    tell = _loaded(function)
    rows = [_told(tell, function, query) for query in queries]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


@lru_cache(maxsize=8)
def _loaded(function: str) -> Callable[[str], Any]:
    loaded = registry.load_outside("function of features", function, key=(OPTION,))
    if problem := registry.call_problem(loaded, "query"):
        raise InputError(
            f"{function} {problem}: it is called with the text of a query", key=(OPTION,)
        )
    tell: Callable[[str], Any] = loaded
    return tell


def _told(tell: Callable[[str], Any], function: str, query: Query) -> dict[str, float]:
    """Return one query's features; what is None, NaN or infinite is not known."""
    where = f"{function} on query {query.id!r}"
    try:
        told = tell(query.text)
    except (Exception, SystemExit) as error:  # its sys.exit() is not to end ours
        raise InputError(f"{where} raised {one_line(error)}", key=(OPTION,)) from error
    if not isinstance(told, Mapping):
        kind = type(told).__name__
        message = f"{where} returned a {kind}, not a mapping such as {{'length': 12}}"
        raise InputError(message, key=(OPTION,))
    found = {}
    for name, value in told.items():
        if not isinstance(name, str) or name in PHRASES:
            why = "is one of the tuner's own features" if name in PHRASES else "is no text"
            raise InputError(f"{where} named a feature {name!r}, which {why}", key=(OPTION,))
        if value is not None and not is_number(value) and not isinstance(value, bool):
            raise InputError(f"{where} returned {name!r}: {value!r}, not a number", key=(OPTION,))
        number = np.nan if value is None else float(value)
        found[name] = number if np.isfinite(number) else np.nan
    return found
