"""What a mutant is: one small fault put into one place of a source file, as text.

The fault is chosen on the syntax tree and written over the characters of that one expression, so
every other line stays where it was.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
EXTREMES = {
    "min": "max",
    "max": "min",
    "argmin": "argmax",
    "argmax": "argmin",
    "minimum": "maximum",
    "maximum": "minimum",
}
# How a text or a picture is laid out.
LAID_OUT = {"indent", "figsize", "fontsize", "dpi", "linewidth", "markersize", "zorder"}
LOGS = {"log", "_log", "logger", "_logger", "logging"}


@dataclass(frozen=True)
class Mutant:
    """One fault: the characters from ``start`` to ``end`` of a file (in bytes) become ``after``."""

    path: str
    line: int
    function: str
    kind: str
    before: str
    after: str
    start: int
    end: int
    # Says which function, which expression and which fault, but not which file or line: it stays
    # the same when a module moves.
    fingerprint: str

    def of(self, source: str) -> str:
        """Return the file's text with the fault in it."""
        raw = source.encode()
        return (raw[: self.start] + self.after.encode() + raw[self.end :]).decode()


@dataclass(frozen=True)
class Place:
    """A node with what has to be known of what is around it."""

    node: ast.AST
    function: str
    returns: ast.expr | None  # of the innermost function
    anchor: ast.AST  # the whole expression or statement that the node is a part of


def mutants_of_tree(root: Path, package: str) -> list[Mutant]:
    """List every mutant of a package, each once, in an order that no path has a say in.

    Code that stands twice, word for word, in functions of the same name has one fingerprint and
    counts once.
    """
    found: dict[str, Mutant] = {}
    for path in sorted((root / package).rglob("*.py")):
        for mutant in mutants_of(path.relative_to(root).as_posix(), path.read_text("utf-8")):
            found.setdefault(mutant.fingerprint, mutant)
    return [found[fingerprint] for fingerprint in sorted(found)]


def draw(mutants: list[Mutant], *, seed: int) -> list[Mutant]:
    """Put mutants in a random order, one for each place.

    One place has as much chance as another, however many faults fit there. Code that is added or
    removed leaves the rest in its order.
    """

    def ticket(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed}:{mutant.fingerprint}".encode()).hexdigest()

    places: dict[tuple[str, int, int], list[Mutant]] = {}
    for mutant in sorted(mutants, key=lambda one: one.fingerprint):
        places.setdefault((mutant.path, mutant.start, mutant.end), []).append(mutant)
    # The place's ticket is that of its first fault; which fault it gets is drawn after that.
    order = sorted(places.values(), key=lambda faults: ticket(faults[0]))
    return [min(faults, key=lambda one: ticket(one)[::-1]) for faults in order]


def mutants_of(path: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of one file."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: Counter[tuple[str, ...]] = Counter()
    for place in _places(tree):
        for kind, old, new in _faults(place):
            before, after = ast.unparse(old), _written(new)
            key = (place.function, ast.unparse(place.anchor), kind, before, after)
            seen[key] += 1
            words = "\n".join((*key, str(seen[key])))
            mutant = Mutant(
                path=path,
                line=old.lineno,
                function=place.function,
                kind=kind,
                before=before,
                after=after,
                start=starts[old.lineno - 1] + old.col_offset,
                end=starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0),
                fingerprint=hashlib.sha256(words.encode()).hexdigest()[:12],
            )
            yield mutant


def is_valid(mutant: Mutant, source: str) -> bool:
    """Whether the mutated file compiles without a warning, and says something else than before."""
    text = mutant.of(source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compile(text, mutant.path, "exec")
    except (SyntaxError, SyntaxWarning):
        return False
    return ast.dump(ast.parse(text)) != ast.dump(ast.parse(source))


def _written(node: ast.AST) -> str:
    text = ast.unparse(node)
    is_plain = isinstance(node, ast.stmt | ast.Name | ast.Attribute | ast.Call)
    is_plain |= isinstance(node, ast.Constant) and not text.startswith("-")
    return text if is_plain else f"({text})"


# Which places there are.


def _places(tree: ast.Module) -> Iterator[Place]:
    for statement in tree.body:
        yield from _walk(Place(statement, "", None, statement))


def _walk(place: Place) -> Iterator[Place]:
    node = place.node
    if _is_left_out(node):
        return
    yield place
    function, returns = place.function, place.returns
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
        returns = None if isinstance(node, ast.ClassDef) else node.returns
    for child in _children(node):
        is_whole = isinstance(child, ast.stmt) or isinstance(node, ast.stmt)
        anchor = child if is_whole and _is_short(child) else place.anchor
        yield from _walk(Place(child, function, returns, anchor))


def _is_short(node: ast.AST) -> bool:
    return isinstance(node, ast.expr) or not hasattr(node, "body")


def _children(node: ast.AST) -> Iterator[ast.AST]:
    annotations = {"annotation", "returns", "type_params"}
    for name, value in ast.iter_fields(node):
        if name in annotations:
            continue
        if name == "decorator_list":
            # How a record is made (frozen, with slots) is how it is written, not what it does.
            value = [one for one in value if "dataclass" not in ast.unparse(one)]
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _is_left_out(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Assert():  # what messages say
            return True
        case ast.FunctionDef(name="__repr__"):
            return True
        case ast.If(test=test):
            return "TYPE_CHECKING" in ast.unparse(test) or "__name__" in ast.unparse(test)
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Subscript(value=ast.Name(id="Literal" | "Annotated")):
            return True
        case ast.Call(func=func):
            return ast.unparse(func).partition(".")[0] in LOGS
        case ast.keyword(arg=name):
            return name in LAID_OUT or name == "strict"  # of zip(): a check of the code by itself
    return False


# Which faults are put there.


def _faults(place: Place) -> Iterator[tuple[str, ast.expr | ast.stmt, ast.AST]]:
    """Yield the kind of a fault, the node that is replaced, and what replaces it."""
    node = place.node
    match node:
        case ast.Compare():
            for index, op in enumerate(node.ops):
                for other in COMPARISONS[type(op)]:
                    new = copy.deepcopy(node)
                    new.ops[index] = other()
                    yield "comparison", node, new
        case ast.BoolOp():
            other_op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and/or", node, ast.BoolOp(other_op, node.values)
        case ast.BinOp() if type(node.op) in ARITHMETIC and not _is_text(node):
            yield "arithmetic", node, ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in ARITHMETIC and not _is_text(node.value):
            new_op = ARITHMETIC[type(node.op)]()
            yield "arithmetic", node, ast.AugAssign(node.target, new_op, node.value)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node, node.operand
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            yield "sign", node, node.operand
        case ast.Constant(value=bool()):
            yield "constant", node, ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as number):
            yield "constant", node, ast.Constant(number + 1)
            yield "constant", node, ast.Constant(number - 1)
        case ast.Call():
            yield from _call_faults(node)
        case ast.Return(value=ast.expr() as value):
            yield from _return_faults(value, place.returns)
        case ast.If() if isinstance(node.body[-1], ast.Raise):
            yield "guard", node.test, ast.Constant(False)
    for test in _tests(node):
        for condition in _conditions(test):
            yield "not", condition, ast.UnaryOp(ast.Not(), condition)


def _call_faults(node: ast.Call) -> Iterator[tuple[str, ast.expr, ast.AST]]:
    match node.func:
        case ast.Name(id=name) if name in EXTREMES:
            yield "min/max", node.func, ast.Name(EXTREMES[name])
        case ast.Attribute(value=value, attr=name) if name in EXTREMES:
            yield "min/max", node.func, ast.Attribute(value, EXTREMES[name])
        case ast.Name(id="sorted") | ast.Attribute(attr="sort"):
            if not any(keyword.arg in ("reverse", None) for keyword in node.keywords):
                new = copy.deepcopy(node)
                new.keywords.append(ast.keyword("reverse", ast.Constant(True)))
                yield "order", node, new


def _return_faults(
    value: ast.expr, returns: ast.expr | None
) -> Iterator[tuple[str, ast.expr, ast.AST]]:
    words = ast.unparse(returns).split(" | ") if returns is not None else []
    written = ast.unparse(value)
    if "None" in words and len(words) > 1 and written != "None":
        yield "return", value, ast.Constant(None)
    if words in (["int"], ["float"]) and written not in ("0", "0.0"):
        yield "return", value, ast.Constant(0 if words == ["int"] else 0.0)


def _tests(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return [test]
        case ast.comprehension(ifs=tests):
            return tests
    return []


def _conditions(test: ast.expr) -> Iterator[ast.expr]:
    """Yield what is true or false by itself: a comparison has faults of its own."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _conditions(value)
    elif not isinstance(test, ast.Compare | ast.UnaryOp | ast.Constant):
        yield test


def _is_text(node: ast.AST) -> bool:
    """Whether a text, list or tuple is written in a sum or path: any other operator only fails."""
    match node:
        case ast.BinOp(left=left, right=right):
            return _is_text(left) or _is_text(right)
        case ast.Constant(value=str() | bytes()):
            return True
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
