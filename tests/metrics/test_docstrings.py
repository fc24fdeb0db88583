"""The examples of the docstrings give the answers that they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tuner.metrics

MODULES = [
    "tuner.core.words",
    *(f"tuner.metrics.{info.name}" for info in pkgutil.iter_modules(tuner.metrics.__path__)),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_right(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
