"""Kinds from elsewhere: what is wrong with them is said in words."""

from __future__ import annotations

import pytest

from tuner.core import registry
from tuner.core.errors import InputError


def test_an_error_inside_a_module_is_told_and_not_taken_for_a_missing_name(tmp_path, monkeypatch):
    (tmp_path / "broken_kind.py").write_text("import math\nmath.no_such_thing\nThing = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="no attribute 'no_such_thing'"):
        registry.load("backends", "broken_kind:Thing")
    with pytest.raises(InputError, match="module 'math' has no 'Thing'"):
        registry.load("backends", "math:Thing")


def test_what_does_not_tell_its_options_is_refused_in_words():
    with pytest.raises(InputError, match="does not tell which options it takes"):
        registry.construct(registry.load("backends", "builtins:map"), {}, budget=1)


def test_every_kind_of_every_family_can_be_named():
    for family in ("backends", "datasets", "execution", "retrieval"):
        assert registry.kinds(family) == sorted(registry.kinds(family))
        assert registry.kinds(family)
