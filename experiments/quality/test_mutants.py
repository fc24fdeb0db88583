"""The mutants of a toy package: what is killed, what survives, and what is never touched."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import mutants
from belonging import Tree
from mutations import draw, is_valid, mutants_of, mutants_of_tree

MODULE = '''
"""Says 1 < 2 in its docstring."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from toy import never

def larger(a, b):
    if a < 0:
        raise ValueError(f"{a + 1} is below {0}")
    return max(a, b)

def is_even(number):
    return number % 2 == 0
'''
TEST = """
from toy import larger
from toy.far import is_even

def test_larger():
    assert larger(1, 2) == 2

def test_even():
    assert is_even(2) and not is_even(3)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "toy/__init__.py": "from toy.near import larger\n",
        "toy/near.py": MODULE,
        "toy/far.py": "from toy import near\n\nis_even = near.is_even\n",
        "toy/other/__init__.py": "",
        "toy/other/alone.py": "ONE = 1\n",
        "tests/test_near.py": TEST,
        "tests/other/test_room.py": "def test_room():\n    pass\n",
        "pyproject.toml": "[tool.pytest.ini_options]\n",
    }
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


def faults(source: str) -> set[tuple[str, str]]:
    return {(one.before, one.after) for one in mutants_of("a.py", source)}


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        ("x = a < b", "a < b", "(a <= b)"),
        ("x = a == b", "a == b", "(a != b)"),
        ("x = a and b", "a and b", "(a or b)"),
        ("x = a + b", "a + b", "(a - b)"),
        ("x = a * b", "a * b", "(a / b)"),
        ("x += 1", "x += 1", "x -= 1"),
        ("x = not a", "not a", "a"),
        ("while going(): pass", "going()", "(not going())"),
        ("x = 3", "3", "2"),
        ("x = True", "True", "False"),
        ("def f() -> int | None:\n    return one", "one", "None"),
        ("def f() -> float:\n    return one", "one", "0.0"),
        ("if a:\n    raise Wrong", "a", "False"),
        ("x = np.min(a)", "np.min", "np.max"),
        ("x = sorted(a, key=len)", "sorted(a, key=len)", "sorted(a, key=len, reverse=True)"),
        ("a.sort(key=lambda one: -one.score)", "-one.score", "one.score"),
    ],
)
def test_kinds_of_faults(source, before, after):
    assert (before, after) in faults(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""1 < 2"""',
        "x: Literal[1, 2]",
        "def f(a: Annotated[int, 3]) -> Literal[4]: pass",
        "if TYPE_CHECKING:\n    x = 1",
        "log.info('so many', 1 + 1)",
        "class A:\n    def __repr__(self):\n        return 'a' * 3",
        "raise Wrong('below', 0)",
        "x = f'{a + 1}'",
        "x = 'a' + b",
        "@dataclass(frozen=True)\nclass A: pass",
        "__all__ = sorted(a)",
        "json.dumps(a, indent=2)",
    ],
)
def test_never_touched(source):
    assert not faults(source)


def test_a_mutant_changes_its_place_alone_and_keeps_the_lines():
    source = "def f(a,\n      b):\n    é = a < b  # why\n    return é\n"
    [one] = [one for one in mutants_of("a.py", source) if one.after == "(a <= b)"]
    assert one.of(source) == source.replace("a < b", "(a <= b)")
    assert one.line == 3
    assert is_valid(one, source)


def test_same_seed_same_mutants_wherever_the_module_is(root):
    first = draw(mutants_of_tree(root, "toy"), seed=1)
    assert draw(mutants_of_tree(root, "toy"), seed=1) == first
    assert draw(mutants_of_tree(root, "toy"), seed=2) != first
    (root / "toy/near.py").rename(root / "toy/moved.py")
    moved = draw(mutants_of_tree(root, "toy"), seed=1)
    assert [one.fingerprint for one in moved] == [one.fingerprint for one in first]


def test_one_place_has_one_fault_in_a_draw(root):
    places = [(one.path, one.start, one.end) for one in draw(mutants_of_tree(root, "toy"), seed=1)]
    assert len(places) == len(set(places))


def test_tests_belong_by_imports_else_by_room(root):
    tree = Tree(root, "toy")
    assert tree.first_ring("toy/near.py") == ["tests/test_near.py"]  # passed on by toy
    assert tree.first_ring("toy/far.py") == ["tests/test_near.py"]
    assert tree.first_ring("toy/other/alone.py") == ["tests/other/test_room.py"]


@pytest.mark.slow
def test_killed_and_surviving_are_told_apart_and_a_run_goes_on(root, tmp_path, capsys):
    out = tmp_path / "out.csv"
    given = ["--root", str(root), "--package", "toy", "--out", str(out), "--seed", "3"]
    mutants.main([*given, "--count", "2"])
    assert len(out.read_text().splitlines()) == 3  # the head and two mutants
    mutants.main([*given, "--count", "100"])
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["fingerprint"] for row in rows}) == len(rows)
    results = {row["before"]: row["result"] for row in rows}
    assert results["max"] == "killed"  # larger(1, 2) == 2
    assert results["a < 0"] == "survived"  # no test gives a number below 0, or 0
    assert (root / "toy/near.py").read_text() == MODULE
    assert "score:" in capsys.readouterr().out


def test_summary_leaves_out_what_is_equivalent():
    def row(fingerprint: str, result: str) -> dict[str, str]:
        names = dict.fromkeys(mutants.COLUMNS, "")
        return {**names, "fingerprint": fingerprint, "result": result, "ring": "1"}

    rows = [row("a", "killed"), row("b", "killed"), row("c", "survived"), row("d", "survived")]
    summary = mutants.Summary([*rows, row("e", "undecided")], {"d": "a skip of work"})
    assert summary.score == pytest.approx(2 / 3)  # killed a, b; survived c
    assert "5 tried: 2 killed, 1 survived, 1 undecided, 1 equivalent" in list(summary.lines())
