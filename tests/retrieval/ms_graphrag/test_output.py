"""Reading a GraphRAG output folder, whole and broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from tuner.core.errors import InputError
from tuner.retrieval.adapters.ms_graphrag import MsGraphrag
from tuner.retrieval.adapters.ms_graphrag.output import read_output

Rows = list[dict[str, Any]]
Edit = Callable[[str, Callable[[Rows], Rows]], None]


def problems(folder: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_output(folder)
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def without(column: str) -> Callable[[Rows], Rows]:
    return lambda rows: [{k: v for k, v in row.items() if k != column} for row in rows]


def with_value(column: str, value: object, *, row: int = 0) -> Callable[[Rows], Rows]:
    return lambda rows: [{**r, column: value} if i == row else r for i, r in enumerate(rows)]


class TestWhole:
    def test_text_units_with_their_documents(self, folder: Path) -> None:
        output = read_output(folder)
        of_the_first = [unit for unit in output.units if unit.document_id == "night-ferry"]
        assert [unit.short_id for unit in of_the_first] == ["0", "1"]
        assert of_the_first[0].text.startswith("Night Ferry is a film of 1954")
        assert len(output.units) == 20
        assert len({unit.document_id for unit in output.units}) == len(output.titles) == 18
        assert output.titles["lissa-academy"] == "Lissa Academy"

    def test_entities_and_relationships_by_text_unit(self, folder: Path) -> None:
        output = read_output(folder)
        unit = next(unit for unit in output.units if unit.document_id == "jon-ravn")
        assert set(output.entities[unit.id]) == {
            "JON RAVN",
            "STENHOLM",
            "GREY RANGE",
            "RAVN VIADUCT",
        }
        found = [(t.subject, t.object) for t in output.triples if t.document_id == unit.id]
        assert {frozenset(pair) for pair in found} == {frozenset({"JON RAVN", "STENHOLM"})}
        assert output.entities.keys() == {unit.id for unit in output.units}

    def test_a_list_of_one_document_as_graphrag_2_wrote(self, folder: Path, edit: Edit) -> None:
        now = read_output(folder)
        edit(
            "text_units",
            lambda rows: [
                {**without("document_id")([row])[0], "document_ids": [row["document_id"]]}
                for row in rows
            ],
        )
        assert read_output(folder) == now

    def test_entities_without_text_units_are_names_of_nothing(
        self, folder: Path, edit: Edit
    ) -> None:
        edit("entities", with_value("text_unit_ids", None))
        assert "NIGHT FERRY" not in {
            n for names in read_output(folder).entities.values() for n in names
        }


class TestBroken:
    def test_missing_files_and_columns_all_at_once(self, folder: Path, edit: Edit) -> None:
        (folder / "relationships.parquet").unlink()
        edit("entities", without("text_unit_ids"))
        edit("text_units", without("document_id"))
        (folder / "documents.parquet").write_bytes(b"no parquet at all")
        told = problems(folder)
        assert told[0].startswith("documents.parquet: cannot be read as parquet: ")
        assert told[1].startswith(
            "text_units.parquet: document_id: no such column; the columns are: id, human_read"
        )
        assert told[2].startswith("entities.parquet: text_unit_ids: no such column")
        assert told[3] == "relationships.parquet: no such file"
        assert len(told) == 4

    def test_no_text_units(self, folder: Path, edit: Edit) -> None:
        edit("text_units", lambda rows: [])
        assert problems(folder) == ["text_units.parquet: holds no text unit"]

    def test_no_entities(self, folder: Path, edit: Edit) -> None:
        edit("entities", lambda rows: [])
        assert problems(folder) == ["entities.parquet: holds no entity, so there is no graph"]

    def test_tables_of_two_runs(self, folder: Path, edit: Edit) -> None:
        edit("entities", lambda rows: [{**row, "text_unit_ids": ["other"]} for row in rows])
        assert problems(folder) == [
            "entities.parquet: text_unit_ids: names none of the text units in text_units.parquet; "
            "are the files of one run?"
        ]

    def test_text_units_of_no_document_or_with_one_id(self, folder: Path, edit: Edit) -> None:
        edit("text_units", with_value("document_id", "gone", row=3))
        edit("text_units", with_value("id", "", row=4))
        first, second = problems(folder)
        assert first.startswith("text_units.parquet: document_id: text unit ")
        assert first.endswith("no document has the id 'gone'")
        assert second == "text_units.parquet: id: the id '' is empty or there twice"

    def test_text_units_of_several_documents(self, folder: Path, edit: Edit) -> None:
        edit(
            "text_units",
            lambda rows: [
                {**without("document_id")([row])[0], "document_ids": ["lissa", "vessby"]}
                for row in rows
            ],
        )
        edit("text_units", lambda rows: [{**row, "id": ""} for row in rows])
        told = problems(folder)
        assert "is of 2 documents; one is needed" in told[0]
        assert len(told) == 21
        assert told[-1].endswith(": and 21 more like these")

    @pytest.mark.parametrize("value", [5, "['a', 'b']"])
    def test_text_unit_ids_that_are_no_lists(self, folder: Path, value: object) -> None:
        path = folder / "entities.parquet"
        titles = parquet.read_table(path, columns=["title"])["title"]
        ids = pyarrow.array([value] * len(titles))
        parquet.write_table(pyarrow.table({"title": titles, "text_unit_ids": ids}), path)
        assert problems(folder) == [
            "entities.parquet: text_unit_ids: is to hold lists of the ids of text units"
        ]

    def test_no_folder_and_the_folder_above(self, folder: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no such folder"):
            read_output(tmp_path / "outptu")
        with pytest.raises(InputError, match=f"did you mean '{folder}'"):
            read_output(tmp_path)


def test_the_folder_holds_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"path": "output", "judge": "document"}
    resolve = MsGraphrag.resolve_options
    resolved = {"path": str(tmp_path / "output"), "judge": "document"}
    assert resolve(options, Path("elsewhere")) == resolved
    assert resolve({"path": None}, Path("elsewhere")) == {"path": None}


@pytest.mark.parametrize("place", ["", "20240102-030405/artifacts", "output/20240102/artifacts"])
def test_tables_of_graphrag_0_and_1_are_one_report(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    for table in ("documents", "entities", "relationships", "text_units"):
        (tmp_path / place / f"create_final_{table}.parquet").write_bytes(b"PAR1")
    where = f" below {place}" if place else ""
    (told,) = problems(tmp_path)
    assert f"holds create_final_*.parquet{where}, made by GraphRAG 0 or 1" in told
    assert "version 2 or 3 are needed: index again, or migrate" in told


def test_a_folder_with_none_of_the_tables_is_one_report(tmp_path: Path) -> None:
    (tmp_path / "entities.csv").write_text("id,title\n")
    (told,) = problems(tmp_path)
    assert "path: holds none of GraphRAG's tables (documents.parquet, text_units.parquet" in told
