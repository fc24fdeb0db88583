"""Parameters of local search, and what is said where GraphRAG's package is missing."""

from __future__ import annotations

import pytest

from tuner.core.errors import InputError
from tuner.retrieval.adapters.ms_graphrag_local.options import read_params


def test_defaults_are_graphrags() -> None:
    settings = read_params({})
    assert settings.text_unit_prop == 0.5
    assert settings.community_prop == 0.15
    assert settings.top_k_mapped_entities == 10
    assert settings.top_k_relationships == 10
    assert settings.max_context_tokens == 12_000


def test_shares_of_one_context() -> None:
    assert read_params({"text_unit_prop": 1, "community_prop": 0}).text_unit_prop == 1.0
    # .9 + .1 is 1, but .7 + .2 + .1 in floats is not quite
    settings = read_params({"text_unit_prop": 0.7 + 0.2, "community_prop": 0.1})
    assert settings.text_unit_prop + settings.community_prop <= 1.0
    with pytest.raises(
        InputError, match=r"= 1\.1, but .* write space_constraints: \[\"text_unit_pro"
    ):
        read_params({"text_unit_prop": 0.9, "community_prop": 0.2})
