"""Constraints between parameters, such as ``start_k <= select_k``: parsed, never run as code.

Allowed: parameter names, with dots too; numbers, quoted text, True, False, None; ``+ - * /``;
``< <= > >= == !=``, chained too (numbers within 1e-9 are equal, so 1 equals 1.0; True equals True
only); ``in`` and ``not in`` a list of constants; ``and``, ``or``, ``not``; parentheses.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tuner.core.errors import InputError, did_you_mean
from tuner.core.trial import Params, Scalar

ALLOWED = (
    "allowed: parameter names, numbers, quoted text, True, False, None, + - * /, "
    "comparisons, in, and, or, not, parentheses"
)
LONGEST = 1000
DEEPEST = 50

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _is_equal(a: Any, b: Any) -> bool:
    # In Python True == 1; in a space they are two choices.
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    # So that 0.1 + 0.2 <= 0.3 holds: sums of round numbers should meet round limits.
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return bool(a == b)


_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: lambda a, b: a < b and not _is_equal(a, b),
    ast.LtE: lambda a, b: a < b or _is_equal(a, b),
    ast.Gt: lambda a, b: a > b and not _is_equal(a, b),
    ast.GtE: lambda a, b: a > b or _is_equal(a, b),
    ast.Eq: _is_equal,
    ast.NotEq: lambda a, b: not _is_equal(a, b),
    ast.In: lambda value, values: any(_is_equal(value, other) for other in values),
    ast.NotIn: lambda value, values: not any(_is_equal(value, other) for other in values),
}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)

Kinds = frozenset[str]
UNKNOWN: Kinds = frozenset({"number", "text", "truth value", "null", "unknown"})
NUMBER: Kinds = frozenset({"number"})
TRUTH: Kinds = frozenset({"truth value"})


@dataclass(frozen=True)
class Domain:
    """What a name can stand for: the kinds of its values, and the values themselves where few."""

    kinds: Kinds
    choices: tuple[Scalar, ...] | None = None


@dataclass(frozen=True)
class Constraint:
    """A condition on params. ``names`` are the parameters that it mentions."""

    text: str
    tree: ast.expr
    names: frozenset[str]

    def holds(self, params: Params) -> bool:
        """Say whether the params meet it; one that mentions an absent (inactive) name is met.

        A division by zero is not met.
        """
        if not self.names <= params.keys():
            return True
        try:
            return bool(_value(self.tree, params))
        except (ZeroDivisionError, OverflowError):
            return False


def parse(text: object, domains: Mapping[str, Domain]) -> Constraint:
    """Parse one constraint over the named parameters.

    Raises:
        InputError: what is wrong, at which column (from 1), and what is allowed.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"a constraint is text such as 'start_k <= select_k', got {text!r}")
    if len(text) > LONGEST:
        raise InputError(f"the constraint has {len(text)} characters; at most {LONGEST}")
    text = text.strip()
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        column = getattr(error, "offset", None) or 1
        reason = getattr(error, "msg", None) or str(error)
        raise InputError(f"{text!r}, column {column}: {reason}; {ALLOWED}") from None
    if _is_deep(tree):
        # Before it is looked at: to write it out takes as many calls as it is deep.
        raise InputError(f"{text!r}: nested deeper than {DEEPEST}; {ALLOWED}")
    checker = _Checker(text, domains)
    checker.truth(tree, 0)
    return Constraint(ast.unparse(tree), tree, frozenset(checker.names))


def _is_deep(tree: ast.AST) -> bool:
    level, depth = [tree], 0
    while level and depth <= 2 * DEEPEST:
        level, depth = [child for node in level for child in ast.iter_child_nodes(node)], depth + 1
    return bool(level)


class _Checker:
    """Walks a tree once: refuses what is not allowed and what can never make sense."""

    def __init__(self, text: str, domains: Mapping[str, Domain]) -> None:
        self.text = text
        self.domains = domains
        self.names: set[str] = set()

    def truth(self, node: ast.expr, depth: int) -> None:
        kinds = self.kinds(node, depth)
        if not kinds <= TRUTH and kinds != UNKNOWN:
            raise self.refusal(node, f"{ast.unparse(node)!r} is a {_words(kinds)}, not a condition")

    def kinds(self, node: ast.expr, depth: int) -> Kinds:
        if depth > DEEPEST:
            raise self.refusal(node, f"nested deeper than {DEEPEST}")
        match node:
            case ast.Name() | ast.Attribute() if (name := _name(node)) is not None:
                if name not in self.domains:
                    hint = did_you_mean(name, self.domains)
                    raise self.refusal(node, f"unknown parameter {name!r}{hint}")
                self.names.add(name)
                return self.domains[name].kinds
            case ast.Constant(value=bool() | int() | float() | str() | None):
                return _kind_of(node.value)  # type: ignore[arg-type]  # one of the scalars
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.number(operand, depth)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.truth(operand, depth + 1)
                return TRUTH
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                self.number(left, depth)
                return self.number(right, depth)
            case ast.BoolOp(values=values):
                for value in values:
                    self.truth(value, depth + 1)
                return TRUTH
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                for compare, a, b in zip(ops, [left, *comparators], comparators, strict=False):
                    self.comparison(compare, a, b, depth)
                return TRUTH
            case ast.BinOp(op=op):
                raise self.refusal(node, f"operator {type(op).__name__} is not allowed")
            case _:
                raise self.refusal(node, f"{ast.unparse(node)!r} is not allowed")

    def number(self, node: ast.expr, depth: int) -> Kinds:
        kinds = self.kinds(node, depth + 1)
        if kinds != UNKNOWN and not kinds <= NUMBER:
            raise self.refusal(
                node,
                f"{ast.unparse(node)!r} can be a {_words(kinds - NUMBER)}, "
                "where a number is wanted",
            )
        return NUMBER

    def comparison(self, op: ast.cmpop, a: ast.expr, b: ast.expr, depth: int) -> None:
        if isinstance(op, _ORDER):
            self.number(a, depth)
            self.number(b, depth)
        elif isinstance(op, ast.Eq | ast.NotEq):
            self.equality(a, b, depth)
        elif isinstance(op, ast.In | ast.NotIn):
            if not isinstance(b, ast.Tuple | ast.List | ast.Set) or not b.elts:
                raise self.refusal(b, "after 'in' comes a list of values, as in mode in ['a', 'b']")
            for element in b.elts:
                if not isinstance(element, ast.Constant | ast.UnaryOp):
                    raise self.refusal(element, "a list after 'in' holds constants only")
                self.equality(a, element, depth)
        else:
            raise self.refusal(a, "'is' is not allowed; write == or !=")

    def equality(self, a: ast.expr, b: ast.expr, depth: int) -> None:
        kinds_a, kinds_b = self.kinds(a, depth + 1), self.kinds(b, depth + 1)
        if not kinds_a & kinds_b:
            raise self.refusal(
                a,
                f"{ast.unparse(a)!r} is a {_words(kinds_a)} and never equals "
                f"{ast.unparse(b)!r}, a {_words(kinds_b)}",
            )
        for side, constant in ((a, b), (b, a)):
            name = _name(side)
            if name is not None and isinstance(constant, ast.Constant):
                choices = self.domains[name].choices
                value = constant.value
                if choices is not None and not any(_is_equal(value, other) for other in choices):
                    hint = did_you_mean(str(value), [str(choice) for choice in choices])
                    raise self.refusal(constant, f"{value!r} is no choice of {name!r}{hint}")

    def refusal(self, node: ast.expr, message: str) -> InputError:
        return InputError(f"{self.text!r}, column {node.col_offset + 1}: {message}; {ALLOWED}")


def kinds_of(values: tuple[Scalar, ...]) -> Kinds:
    """Return the kinds of some scalars: number, text, truth value, null."""
    return frozenset().union(*(_kind_of(value) for value in values))


def _kind_of(value: Scalar) -> Kinds:
    match value:
        case bool():
            return TRUTH
        case int() | float():
            return NUMBER
        case str():
            return frozenset({"text"})
        case None:
            return frozenset({"null"})


def _name(node: ast.expr) -> str | None:
    """Return the parameter that a node names, such as ``retriever.top_k``; None: it names none."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=part):
            whole = _name(value)
            return None if whole is None else f"{whole}.{part}"
    return None


def _words(kinds: Kinds) -> str:
    return " or a ".join(sorted(kinds))


def _value(node: ast.expr, params: Params) -> Any:
    match node:
        case ast.Name() | ast.Attribute():
            return params[str(_name(node))]
        case ast.Constant(value=value):
            return value
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            values = [_value(side, params) for side in (left, *comparators)]
            pairs = zip(ops, values, values[1:], strict=False)
            return all(_COMPARE[type(op)](a, b) for op, a, b in pairs)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, params) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_value(part, params) for part in parts)
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_value(left, params), _value(right, params))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, params)
        case ast.UnaryOp(op=op, operand=operand):
            number = _value(operand, params)
            return -number if isinstance(op, ast.USub) else number
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return [_value(element, params) for element in elements]
        case _:
            raise InputError(f"{ast.unparse(node)!r} cannot be evaluated")
