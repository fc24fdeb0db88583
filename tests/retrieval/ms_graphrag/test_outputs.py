"""Several output folders of GraphRAG's as choices: each is an index of its own."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from pyarrow import parquet

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.datasets import Dataset, open_dataset
from tuner.retrieval.adapters.ms_graphrag import MsGraphrag
from tuner.retrieval.adapters.ms_graphrag_local import MsGraphragLocal
from tuner.testing import IndexCase, IndexContract

FIXTURE = Path(__file__).resolve().parents[1] / "data" / "ms_graphrag"
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "Which bridge crosses the Lissa near Kvarnby?"),
)


def poorer(target: Path) -> Path:
    """Copy the output folder with a third of its entities."""
    shutil.copytree(FIXTURE / "output", target)
    table = parquet.read_table(target / "entities.parquet")
    parquet.write_table(table.take(list(range(0, len(table), 3))), target / "entities.parquet")
    return target


def case_of(kind: Any, **others: tuple[Any, Any]) -> IndexCase:
    outputs = {"rich": str(FIXTURE / "output"), "poor": str(poorer(Path(mkdtemp()) / "poor"))}
    return IndexCase(
        kind,
        open_dataset(FIXTURE / "data").corpus,
        QUERIES,
        first={"output": "rich"} | {name: first for name, (first, _) in others.items()},
        other={"output": "poor"} | {name: other for name, (_, other) in others.items()},
        options={"outputs": outputs},
    )


@pytest.mark.slow
class TestMsGraphrag(IndexContract):
    case = case_of(MsGraphrag, bm25_b=(0.75, 0.0))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("graphrag") is None, reason="graphrag is not installed: .[graphrag]")
class TestMsGraphragLocal(IndexContract):
    case = case_of(MsGraphragLocal, embedder=("hashed-words", "lsa"))


BOTH = pytest.mark.parametrize("kind", [MsGraphrag, MsGraphragLocal])


@pytest.fixture
def outputs(tmp_path: Path) -> dict[str, str]:
    return {"rich": str(FIXTURE / "output"), "poor": str(poorer(tmp_path / "poor"))}


@BOTH
def test_the_first_output_is_todays_unless_one_is_named(kind: Any, outputs: dict[str, str]) -> None:
    def knob(**options: Any) -> Any:
        declared = {knob.name: knob for knob in kind.declare_knobs(outputs=outputs, **options)}
        return declared["output"]

    assert knob().choices == ("rich", "poor")
    assert (knob().default, knob(output="poor").default) == ("rich", "poor")
    assert knob().stage == "index"
    one = kind.declare_knobs(outputs={"rich": outputs["rich"]})
    assert "output" not in {knob.name for knob in (*one, *kind.declare_knobs())}


def test_an_output_answers_as_when_it_is_the_only_one(
    dataset: Dataset, outputs: dict[str, str], tmp_path: Path
) -> None:
    for name, path in outputs.items():
        alone = MsGraphrag.build(dataset.corpus, cache_dir=tmp_path / "a", path=path)
        among = MsGraphrag.build(
            dataset.corpus, cache_dir=tmp_path / "b", outputs=outputs, output=name
        )
        for found in (alone, among):
            found.prepare(QUERIES)
        assert among.fingerprint == alone.fingerprint
        assert among.retrieve(QUERIES, {}).ids(0) == alone.retrieve(QUERIES, {}).ids(0)


@BOTH
def test_what_an_index_is_of_changes_with_the_content_of_a_folder(
    kind: Any, outputs: dict[str, str]
) -> None:
    settings = {
        knob.name: knob.default
        for knob in kind.declare_knobs(outputs=outputs)
        if knob.stage == "index"
    }

    def identity() -> str:
        return str(kind.identify_index(settings, outputs=outputs, judge="document"))

    before = identity()
    assert identity() == before
    poor = Path(outputs["poor"]) / "entities.parquet"
    was = poor.read_bytes()
    table = parquet.read_table(poor)
    parquet.write_table(table.take(list(range(len(table) - 1))), poor)
    assert identity() != before
    poor.write_bytes(was)
    assert identity() == before


def test_the_folders_hold_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    resolved = MsGraphrag.resolve_options({"outputs": {"a": "one", "b": 3}}, Path("elsewhere"))
    assert resolved == {"outputs": {"a": str(tmp_path / "one"), "b": 3}}


@BOTH
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "path: must be GraphRAG's output folder, or give several as outputs"),
        ({"path": "x", "outputs": {"a": "y"}}, "one folder as path, or several as outputs"),
        ({"outputs": "x"}, "outputs: must map names to paths, got 'x'; write {small: output_300"),
        ({"outputs": {}}, "outputs: must map names to paths"),
        ({"outputs": {300: "x", "b": 4}}, r"a name must be a text, got 300; write it in quotes"),
        ({"outputs": {300: "x", "b": 4}}, r"outputs\.b: must be a path, got 4"),
        ({"outputs": {"a": "no_such"}}, r"outputs\.a: no such folder"),
        ({"outputs": {"a": str(FIXTURE / "output")}, "output": "b"}, "'b' is none of the alternat"),
        ({"path": str(FIXTURE / "output"), "output": "b"}, "chooses among outputs, and there are"),
    ],
)
def test_impossible_options(
    kind: Any, dataset: Dataset, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    if kind is MsGraphragLocal:
        pytest.importorskip("graphrag", reason="graphrag is not installed: .[graphrag]")
    with pytest.raises(InputError, match=message):
        kind.build(dataset.corpus, cache_dir=tmp_path, **options)
