"""Which tests belong to a module, found by walking imports: no module is named here.

A test belongs to the modules it imports, and to those whose names it gets through a package that
passes them on (``from tuner.stats import compare_paired`` belongs to the module that defines it).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

# Runs the examples in the docstrings of each module, a test a module.
EXAMPLES = "tests/test_docstrings.py"


@dataclass(frozen=True)
class Imported:
    """What one file imports of the package."""

    modules: frozenset[str]  # as a whole
    names: frozenset[tuple[str, str]]  # single names: (module, name)
    # What a name of this file stands for elsewhere: {"tune": ("tuner.api", "tune")}
    passed_on: dict[str, tuple[str, str]]
    words: frozenset[str]  # short strings, such as a family's name


@dataclass(frozen=True)
class Tree:
    """A package and its tests below one folder."""

    root: Path
    package: str

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Every module's name with its file."""
        found = {}
        for path in sorted((self.root / self.package).rglob("*.py")):
            parts = list(path.relative_to(self.root).with_suffix("").parts)
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        return found

    @cached_property
    def imports(self) -> dict[str, Imported]:
        """What each module imports."""
        return {name: self._read(path, name) for name, path in self.modules.items()}

    @cached_property
    def tests(self) -> dict[str, frozenset[str]]:
        """Each test file with the modules it imports, those behind passed-on names included."""
        return {name: self._reached(read) for name, read in self._test_imports.items()}

    @cached_property
    def edges(self) -> dict[str, frozenset[str]]:
        """Each module with the modules it imports."""
        return {name: self._reached(read) for name, read in self.imports.items()}

    def module_of(self, path: str) -> str:
        """Name the module of a file."""
        return next(name for name, file in self.modules.items() if file == self.root / path)

    def first_ring(self, path: str) -> list[str]:
        """List the tests that belong to a file, the nearest first.

        They are those that import it, or where none does, those in the folder of the same room;
        the contract suites of the room; and the one that runs the examples in its docstrings.
        """
        module = self.module_of(path)
        found = {test for test, modules in self.tests.items() if module in modules}
        found = found or set(self._room_tests(path)) or self._nearest(module)
        has_examples = (self.root / EXAMPLES).exists() and ">>> " in self.modules[
            module
        ].read_text()
        examples = [f"{EXAMPLES}::test_examples_hold[{module}]"] if has_examples else []
        return [*examples, *self._by_nearness(found | self._contracts(module), path)]

    def second_ring(self, path: str) -> list[str]:
        """List the tests that may see a file from further off, without those of the first ring.

        They are the other tests in the folder of the room, and those that belong to a module that
        imports it.
        """
        module = self.module_of(path)
        found = set(self._room_tests(path))
        for name, used in self.edges.items():
            if module in used:
                user = self.modules[name].relative_to(self.root).as_posix()
                imported = {test for test, modules in self.tests.items() if name in modules}
                found |= imported or set(self._room_tests(user))
        return self._by_nearness(found - set(self.first_ring(path)), path)

    def _room(self, module: str) -> str:
        return [*module.split("."), ""][1]

    def _room_tests(self, path: str) -> list[str]:
        inside = PurePosixPath(path).relative_to(self.package)
        for folder in inside.parents:
            if not folder.name:
                # A module that is no room: tests that lie loose and have its name.
                return [test for test in self.tests if test == f"tests/test_{inside.stem}.py"]
            here = [test for test in self.tests if test.startswith(f"tests/{folder}/")]
            if here:
                return here
        return []

    def _contracts(self, module: str) -> set[str]:
        """Name the suites in a folder ``contract`` that import the room, or name it as a family."""
        room = self._room(module)
        return {
            test
            for test, read in self._test_imports.items()
            if "/contract/" in test
            and (room in read.words or any(self._room(used) == room for used in self.tests[test]))
            and room != self._shared_room
        }

    @cached_property
    def _shared_room(self) -> str:
        """The room that most others import: what every suite imports is the subject of none."""
        counts: dict[str, set[str]] = {}
        for name, used in self.edges.items():
            for room in {self._room(one) for one in used} - {self._room(name), ""}:
                counts.setdefault(room, set()).add(self._room(name))
        return max(counts, key=lambda room: (len(counts[room]), room), default="")

    def _nearest(self, module: str) -> set[str]:
        """Name the tests that reach a module, or the room of one, over the fewest imports."""
        users, seen = {module}, {module}
        while users:
            found = {test for test, modules in self.tests.items() if modules & users}
            for user in users - {module}:
                path = self.modules[user].relative_to(self.root).as_posix()
                found |= set(self._room_tests(path))
            if found:
                return found
            users = {name for name, used in self.edges.items() if used & users} - seen
            seen |= users
        return set()

    def _by_nearness(self, tests: set[str], path: str) -> list[str]:
        """Put first what has the module's name, then what speaks of it, then its room's."""
        words = _words(path)
        stem = PurePosixPath(path).stem
        own = _words(stem)

        def distance(test: str) -> tuple[int, bool, int, int, str]:
            name = _words(PurePosixPath(test).stem)
            is_silent = stem not in (self.root / test).read_text("utf-8")
            others = len(self.tests[test])
            return -len(own & name), is_silent, -len(words & _words(test)), others, test

        return sorted(tests, key=distance)

    @cached_property
    def _test_imports(self) -> dict[str, Imported]:
        paths = sorted((self.root / "tests").rglob("test_*.py"))
        return {path.relative_to(self.root).as_posix(): self._read(path, "") for path in paths}

    def _read(self, path: Path, module: str) -> Imported:
        tree = ast.parse(path.read_text("utf-8"))
        is_package = path.name == "__init__.py"
        modules: set[str] = set()
        names: set[tuple[str, str]] = set()
        passed_on: dict[str, tuple[str, str]] = {}
        words: set[str] = set()
        for node in _without_types(tree):
            match node:
                case ast.Import(names=aliases):
                    modules |= {alias.name for alias in aliases if alias.name in self.modules}
                case ast.ImportFrom(names=aliases):
                    origin = _origin(node, module, is_package)
                    if origin not in self.modules:
                        continue
                    for alias in aliases:
                        if f"{origin}.{alias.name}" in self.modules:
                            modules.add(f"{origin}.{alias.name}")
                        else:
                            names.add((origin, alias.name))
                            passed_on[alias.asname or alias.name] = (origin, alias.name)
                case ast.Dict(keys=keys, values=values):  # a table of what is loaded on first use
                    for key, value in zip(keys, values, strict=True):
                        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                            home, _, name = str(value.value).partition(":")
                            if home in self.modules:
                                passed_on[str(key.value)] = (home, name or str(key.value))
                case ast.Constant(value=str() as text) if len(text) < 80:
                    words.add(text)
                    home = text.partition(":")[0]
                    if home in self.modules and "." in home:
                        modules.add(home)
        return Imported(frozenset(modules), frozenset(names), passed_on, frozenset(words))

    def _reached(self, read: Imported) -> frozenset[str]:
        found = set()
        for module in read.modules:
            found.add(module)
            if self.modules[module].name == "__init__.py" and module != self.package:
                # Used as a whole: whatever the package passes on may be meant.
                found |= {origin for origin, _ in self.imports[module].passed_on.values()}
        for module, name in read.names:
            found |= set(self._homes(module, name))
        return frozenset(found)

    def _homes(self, module: str, name: str) -> Iterator[str]:
        """Yield the modules that a name is passed through, up to the one that defines it."""
        seen: set[tuple[str, str]] = set()
        while module in self.modules and (module, name) not in seen:
            yield module
            seen.add((module, name))
            module, name = self.imports[module].passed_on.get(name, ("", ""))


def _words(path: str) -> set[str]:
    return {word.removesuffix("s") for word in re.split(r"[/_.]+", path)} - {"test", "py", ""}


def _origin(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    above = parts[: len(parts) - node.level + is_package]
    return ".".join([*above, *(node.module or "").split(".")]).rstrip(".")


def _without_types(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree, but not into what is imported for type annotations alone."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _without_types(other)
        else:
            yield from _without_types(child)
