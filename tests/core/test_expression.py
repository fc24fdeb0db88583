"""Constraints: what they may say, what they mean, and how they are refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tuner.core.errors import InputError
from tuner.core.space.expression import NUMBER, Domain, kinds_of, parse

CHOICES: dict[str, tuple[Any, ...]] = {
    "mode": ("text", "graph"),
    "flag": (True, False),
    "prior": (None, 1, "a"),
}
CHOICES |= {"either": (True, 1, 1.0, 3), "truth_or_two": (True, 2)}
DOMAINS = {name: Domain(kinds_of(values), values) for name, values in CHOICES.items()} | {
    name: Domain(NUMBER) for name in ("a", "b", "start_k", "select_k")
}


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        ("start_k <= select_k", {"start_k": 3, "select_k": 3}, True),
        ("start_k < select_k", {"start_k": 3, "select_k": 3}, False),
        ("a + b <= 0.3", {"a": 0.1, "b": 0.2}, True),  # .30000000000000004 in floats
        ("a + b < 0.3", {"a": 0.1, "b": 0.2}, False),
        ("a + b == 0.3", {"a": 0.1, "b": 0.2}, True),
        ("a + b != 0.3", {"a": 0.1, "b": 0.2}, False),
        ("0 < a <= 1 < b", {"a": 1, "b": 2}, True),
        ("0 < a <= 1 < b", {"a": 1, "b": 1}, False),
        ("-a * 2 > b / 4 - 1", {"a": -1, "b": 8}, True),
        ("a / b > 1", {"a": 1, "b": 0}, False),  # A division by zero is not met.
        ("mode != 'text' or a > 3", {"mode": "text", "a": 3}, False),
        ("mode != 'text' or a > 3", {"mode": "graph", "a": 3}, True),
        ('mode in ["graph"] and not flag', {"mode": "graph", "flag": False}, True),
        ("mode not in ('graph', 'text')", {"mode": "graph"}, False),
        ("flag", {"flag": True}, True),
        ("flag == False", {"flag": True}, False),
        ("prior == None", {"prior": None}, True),
        ("prior != 'a'", {"prior": 1}, True),
        ("(a > 1) == flag", {"a": 2, "flag": True}, True),
        ("either == True", {"either": True}, True),
        ("either == True", {"either": 1}, False),
        ("either == 1", {"either": True}, False),
        ("either == 1", {"either": 1.0}, True),  # Numbers are compared by value.
        ("either != True", {"either": 1.0}, True),
        ("either in [True, 3]", {"either": 1}, False),
        ("either not in [1]", {"either": True}, True),
        ("a in [-1, 2]", {"a": -1}, True),
        ("a > 5", {"b": 1}, True),  # An inactive parameter makes it met.
        ("  a > 5 ", {"a": 1}, False),
    ],
)
def test_meaning(text: str, params: dict[str, Any], expected: bool) -> None:
    constraint = parse(text, DOMAINS)
    assert constraint.holds(params) is expected
    assert pickle.loads(pickle.dumps(constraint)).holds(params) is expected


def test_names_and_normal_text() -> None:
    constraint = parse("start_k<=select_k  and(a>1)", DOMAINS)
    assert constraint.names == {"start_k", "select_k", "a"}
    assert constraint.text == "start_k <= select_k and a > 1"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("start_k <= selectk", 12, "did you mean 'select_k'?"),
        ("a < __import__('os')", 5, "is not allowed"),
        ("a.real < 1", 1, "unknown parameter 'a.real'"),
        ("a[0] < 1", 1, "is not allowed"),
        ("a < (lambda: 1)", 6, "is not allowed"),
        ("a < [b for b in (1,)]", 5, "is not allowed"),
        ("a ** b < 1", 1, "operator Pow is not allowed"),
        ("a % 2 == 0", 1, "operator Mod is not allowed"),
        ("~a < 1", 1, "is not allowed"),
        ("(a := 3) < 4", 2, "is not allowed"),
        ("a < 1j", 5, "is not allowed"),
        ("a < b'x'", 5, "is not allowed"),
        ("f'{a}' == 'x'", 1, "is not allowed"),
        ("a if flag else b", 1, "is not allowed"),
        ("a is b", 1, "write == or !="),
        ("a + b", 1, "is a number, not a condition"),
        ("mode", 1, "is a text, not a condition"),
        ("a and b > 1", 1, "is a number, not a condition"),
        ("not a", 5, "not a condition"),
        ("mode > 3", 1, "where a number is wanted"),
        ("a + mode > 3", 5, "where a number is wanted"),
        ("prior < 3", 1, "can be a null or a text"),
        ("flag + 1 > 1", 1, "where a number is wanted"),
        ("mode == 3", 1, "never equals"),
        ("mode == 'grpah'", 9, "'grpah' is no choice of 'mode'; did you mean 'graph'?"),
        ("mode in ['grpah']", 10, "no choice"),
        ("truth_or_two == 1", 17, "1 is no choice of 'truth_or_two'"),
        ("truth_or_two in [2, False]", 21, "False is no choice"),
        ("mode in 'graph'", 9, "a list of values"),
        ("mode in [mode]", 10, "constants only"),
        ("a <", 4, "column"),
        ("a = 3", 3, "column"),
        ("a < 1; b < 2", 6, "column"),
        ("import os", 1, "column"),
    ],
)
def test_refusals_say_where_and_what_is_allowed(text: str, column: int, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text, DOMAINS)
    assert message in str(error.value)
    assert "allowed: parameter names" in str(error.value)
    if message != "column":  # Python's own syntax errors move between its versions.
        assert f"column {column}:" in str(error.value)


@pytest.mark.parametrize(
    "text",
    [None, 3, "", "   ", "a < " + "1 + " * 400 + "1", "(" * 300 + "a" + ")" * 300, "a < \0 1"],
    ids=["none", "number", "empty", "blank", "long", "nested", "null byte"],
)
def test_nonsense_is_refused_without_a_crash(text: Any) -> None:
    with pytest.raises(InputError):
        parse(text, DOMAINS)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(InputError, match="nested deeper"):
        parse("a > " + "-" * 200 + "1", DOMAINS)


@pytest.mark.parametrize(
    "text",
    ["a" + ".a" * 490, "a" + "[0]" * 300, "not " * 200 + "a < 1", "-" * 900 + "a < 1"],
)
def test_what_is_nested_deep_is_refused_whatever_it_is(text: str) -> None:
    with pytest.raises(InputError, match=r"\(\d+ characters\): nested deeper than 50; allowed"):
        parse(text, DOMAINS)
