"""The page on systems that are too heavy: its examples run over stand-ins like the real ones."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import yaml

from tests.retrieval.outside import heavy_stand_ins as stand_ins
from tuner.core.corpus import Corpus, Document, Query
from tuner.retrieval.adapters.function import Function

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "your-system" / "heavy.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```(?:python|yaml)\n# (my_\w+\.\w+)\n(.*?)^```", PAGE, re.M | re.S))
CORPUS = Corpus(tuple(Document(id_, "", text) for id_, text in stand_ins.PASSAGES.items()))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the examples into a folder in which the packages are stand-ins."""
    lines = [f'{{"_id": "{id_}", "text": "{text}"}}' for id_, text in stand_ins.PASSAGES.items()]
    data = tmp_path / "path" / "to" / "folder"
    (data / "qrels").mkdir(parents=True)
    (data / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (data / "queries.jsonl").write_text('{"_id": "q", "text": "Lima"}\n', encoding="utf-8")
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, module in stand_ins.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    stand_ins.ASKED.clear()
    return tmp_path


@pytest.mark.parametrize(
    ("example", "params"),
    [
        ("my_hipporag", {"linking_top_k": 3, "damping": 0.7, "top_k": 1}),
        ("my_nano", {"top_k": 7, "level": 1}),
        ("my_fast", {"chunks": 3, "relations": 9, "threshold": 0.1}),
        ("my_graphiti", {"limit": 5, "reranker": "mmr"}),
    ],
)
def test_an_example_asks_with_its_parameters_and_returns_ids(
    example: str, params: dict[str, Any], folder: Path
) -> None:
    retriever = Function.build(
        CORPUS,
        function=f"{example}:search",
        search_path=[str(folder)],
        cache_dir=Path(mkdtemp()),
        baseline=params,
    )
    found = retriever.retrieve([Query("q", "Lima Rimac river")], params)
    assert found.ids(0) == ["d0", "d1"][: params.get("top_k", 2)]
    sent = repr(stand_ins.ASKED[-1])
    assert all(
        str(value) in sent
        for name, value in params.items()
        if (example, name) != ("my_hipporag", "top_k")
    )


def test_the_configuration_names_parameters_of_its_example() -> None:
    config = yaml.safe_load(FILES["my_hipporag.yaml"])
    (search,) = (
        node
        for node in ast.parse(FILES["my_hipporag.py"]).body
        if isinstance(node, ast.FunctionDef) and node.name == "search"
    )
    names = {argument.arg for argument in search.args.args}
    assert {*config["space"], *config["baseline"]} <= names


# ---- the stand-ins are like the real ones, whose code is read and not imported


@pytest.mark.parametrize(
    ("package", "file", "name", "stand_in"),
    [pytest.param(*row, id=f"{row[0]}-{row[2]}") for row in stand_ins.REAL],
)
def test_a_stand_in_has_the_signature_of_the_real_one(
    package: str, file: str, name: str, stand_in: type
) -> None:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed: pip install --no-deps {package}")
    path = Path(spec.submodule_search_locations[0]) / file
    real = _class_of(ast.parse(path.read_text(encoding="utf-8")), name, path)
    if issubclass(stand_in, Enum):
        assert {one.name for one in stand_in} <= _names(real)
        return
    for method, function in vars(stand_in).items():
        code = getattr(function, "__func__", function)
        if inspect.isfunction(code) and not (is_dataclass(stand_in) and method.startswith("__")):
            _check_signature(code, real, method)
    if is_dataclass(stand_in):
        missing = {one.name for one in fields(stand_in)} - _names(real)
        assert not missing, f"{name} of {package} has no {missing}"


def _class_of(tree: ast.Module, name: str, path: Path) -> list[ast.ClassDef]:
    """Return a class, and those of its bases that stand in the same file."""
    found: dict[str, ast.ClassDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.setdefault(node.name, node)
            for inner in node.body:
                if isinstance(inner, ast.ClassDef):
                    found[f"{node.name}.{inner.name}"] = inner
    assert name in found, f"{path.name} has no {name}"
    bases = [base.id for base in found[name].bases if isinstance(base, ast.Name)]
    return [found[name], *(found[base] for base in bases if base in found)]


def _names(classes: list[ast.ClassDef]) -> set[str]:
    """Return the fields that classes declare."""
    targets = [
        target
        for one in classes
        for node in one.body
        for target in (
            [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        )
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _check_signature(function: Any, classes: list[ast.ClassDef], method: str) -> None:
    """Check that the real method takes what the stand-in takes, in that order."""
    real = next(
        node
        for one in classes
        for node in one.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == method
    )
    named = [argument.arg for argument in (*real.args.posonlyargs, *real.args.args)]
    wanted = list(inspect.signature(function).parameters)
    assert named[: len(wanted)] == wanted, f"{method} takes {named}"
    assert isinstance(real, ast.AsyncFunctionDef) == inspect.iscoroutinefunction(function), method
