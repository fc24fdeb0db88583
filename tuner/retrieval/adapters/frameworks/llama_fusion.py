"""How deep a fusion of LlamaIndex's can be: what it returns was found by those that it asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuner.core.trial import Scalar

DEPTH, QUERY_MODE = "similarity_top_k", "vector_store_query_mode"
HYBRID_MODES = ("hybrid", "semantic_hybrid")
_FUSION = "QueryFusionRetriever"
# Retrievers that return so many at most; in others the name may count something else.
_LIMITED = frozenset({"BM25Retriever", "VectorIndexRetriever", _FUSION})


def depth_rule(
    part: Any, name: str, asked: Mapping[str, Any]
) -> tuple[str, Mapping[str, tuple[Scalar, ...]]]:
    """Return the constraint on a fusion's depth, and beside which values it counts.

    ``name`` is what its depth is called, and ``asked`` are the retrievers that it asks, by what
    their parameters begin with. The text is empty where one of them has no limit that is known.
    """
    is_fusion = _is_one_of(part, {_FUSION})
    if not (is_fusion and asked and all(_is_limited(one) for one in asked.values())):
        return "", {}
    rule = " + ".join(f"{prefix}{DEPTH}" for prefix in asked)
    if part.num_queries != 1:
        prefix = name.removesuffix(DEPTH)
        rule = f"{prefix}num_queries * ({rule})"
    when: dict[str, tuple[Scalar, ...]] = {}
    for prefix, one in asked.items():
        mode = vars(one).get("_vector_store_query_mode")
        if mode is not None:  # a store that mixes two sorts of vectors has more than one depth
            known = (each.value for each in type(mode))
            when[f"{prefix}{QUERY_MODE}"] = tuple(v for v in known if v not in HYBRID_MODES)
    return f"{name} <= {rule}", when


def _is_limited(part: Any) -> bool:
    # Where nodes lead to other retrievers, one of them stands for many.
    return _is_one_of(part, _LIMITED) and not vars(part).get("object_map")


def _is_one_of(part: Any, names: frozenset[str] | set[str]) -> bool:
    return any(
        base.__name__ in names and base.__module__.startswith("llama_index.")
        for base in type(part).__mro__
    )
