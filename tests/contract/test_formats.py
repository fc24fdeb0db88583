"""What every reader of a data set promises, tried on a sample of each layout, whole and damaged."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from tuner.core import registry
from tuner.core.corpus import Document, Query, Triple
from tuner.core.errors import InputError
from tuner.core.grades import GradeScale
from tuner.core.steps import unheard
from tuner.datasets import open_dataset
from tuner.datasets.dataset import Dataset

DATA = Path(__file__).resolve().parents[1] / "data"
KINDS = registry.kinds("datasets")


@dataclass(frozen=True)
class Part:
    """A file of a layout, and how to damage its records.

    ``style`` is "lines" of JSON, a JSON "array", the "docs" of an object, a "table" of fields, or
    TREC's "topics". ``wrong`` is a key with a value of a type that it may not have, ``missing``
    are keys of which a record needs one.
    """

    file: str
    style: str
    wrong: tuple[str, object] | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """A sample: what to copy out of ``tests/data``, what to open there, and its parts."""

    kind: str
    source: tuple[str, ...]
    parts: tuple[Part, ...]
    opened: str = ""


BEIR_PARTS = (
    Part("corpus.jsonl", "lines", ("text", 7), ("_id",)),
    Part("queries.jsonl", "lines", ("_id", 7), ("_id",)),
    Part("qrels/test.tsv", "table"),
    Part("evidences.jsonl", "lines", ("paths", 7), ("query_id",)),
)
LAYOUTS = {
    "beir": Layout(
        "beir",
        ("musique",),
        (
            *BEIR_PARTS,
            Part("triples.jsonl", "lines", ("relation", 7), ("doc_id",)),
            Part("entities.jsonl", "lines", ("entities", 7), ("doc_id",)),
        ),
    ),
    "beir without facts": Layout("beir", ("2wiki",), BEIR_PARTS),
    "samples": Layout(
        "samples",
        ("samples",),
        (
            Part("corpus.jsonl", "lines", ("_id", 7), ("_id",)),
            Part("samples.jsonl", "lines", ("relevant_docs", 7), ("query",)),
        ),
    ),
    "trec": Layout(
        "trec",
        ("trec",),
        (
            Part("qrels.txt", "table"),
            Part("topics.txt", "topics"),
            Part("collection.tsv", "table"),
        ),
    ),
    "qrels": Layout(
        "qrels",
        ("formats/trec_qrels_graded.txt",),
        (Part("trec_qrels_graded.txt", "table"),),
        opened="trec_qrels_graded.txt",
    ),
    "hotpotqa": Layout(
        "hotpotqa",
        ("formats/hotpotqa.json",),
        (Part("hotpotqa.json", "array", ("context", 7), ("supporting_facts",)),),
        opened="hotpotqa.json",
    ),
    "hotpotqa of Hugging Face": Layout(
        "hotpotqa",
        ("formats/hotpotqa_huggingface.json",),
        (Part("hotpotqa_huggingface.json", "array", ("supporting_facts", 7), ("question",)),),
        opened="hotpotqa_huggingface.json",
    ),
    "wiki2": Layout(
        "wiki2",
        ("formats/2wiki.json",),
        (Part("2wiki.json", "array", ("evidences", 7), ("evidences",)),),
        opened="2wiki.json",
    ),
    "musique": Layout(
        "musique",
        ("formats/musique.jsonl",),
        (Part("musique.jsonl", "lines", ("paragraphs", 7), ("paragraphs",)),),
        opened="musique.jsonl",
    ),
    "multihop_rag": Layout(
        "multihop_rag",
        ("formats/multihop_rag_corpus.json", "formats/multihop_rag_queries.json"),
        (
            Part("multihop_rag_corpus.json", "array", ("body", 7), ("body",)),
            Part("multihop_rag_queries.json", "array", ("evidence_list", 7), ("query",)),
        ),
    ),
    "openie": Layout(
        "openie",
        (
            "formats/hipporag_corpus.json",
            "formats/hipporag_openie.json",
            "formats/musique.jsonl",
        ),
        (
            Part("hipporag_corpus.json", "array", ("text", 7), ("title", "text")),
            Part("hipporag_openie.json", "docs", ("extracted_triples", 7), ("extracted_entities",)),
            Part("musique.jsonl", "lines", ("paragraphs", 7), ("paragraphs",)),
        ),
    ),
}
PARTS = [(name, part) for name, layout in LAYOUTS.items() for part in layout.parts]

every_layout = pytest.mark.parametrize("name", LAYOUTS)
every_part = pytest.mark.parametrize(
    ("name", "part"), PARTS, ids=[f"{name}: {part.file}" for name, part in PARTS]
)


def laid(name: str, folder: Path) -> Path:
    """Copy a layout into a folder; return what to open."""
    layout = LAYOUTS[name]
    for source in layout.source:
        if (DATA / source).is_dir():
            shutil.copytree(DATA / source, folder, dirs_exist_ok=True)
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy(DATA / source, folder)
    return folder / layout.opened


def opened(name: str, place: Path, **options: Any) -> Dataset:
    return open_dataset(place, format=LAYOUTS[name].kind, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_every_reader_is_tried(kind: str) -> None:
    assert kind in {layout.kind for layout in LAYOUTS.values()}, (
        f"put a small sample of the layout below tests/data, of three records or more, and add to "
        f'LAYOUTS: "{kind}": Layout("{kind}", ("FOLDER OR FILES OF THE SAMPLE",), '
        '(Part("FILE", "lines", ("KEY", 7), ("KEY THAT IT NEEDS",)),)); Layout and Part above say '
        "what they hold"
    )


class TestDetect:
    @every_layout
    def test_exactly_one_says_that_it_is_its_own(self, name: str, tmp_path: Path) -> None:
        place = laid(name, tmp_path / "set")
        found = [kind for kind in KINDS if registry.load("datasets", kind).detect(place)]
        # Judgements alone are TREC's, unless they are asked for by name.
        assert found == (["trec"] if name == "qrels" else [LAYOUTS[name].kind])

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_not_there_or_says_nothing_is_nobodys(self, kind: str, tmp_path: Path) -> None:
        reader = registry.load("datasets", kind)
        (tmp_path / "empty").mkdir()
        (tmp_path / "nothing.json").write_bytes(b"")
        (tmp_path / "noise.jsonl").write_bytes(bytes(range(256)))
        for there in ("empty", "nothing.json", "noise.jsonl", "nowhere"):
            assert not reader.detect(tmp_path / there)

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_interface(self, kind: str) -> None:
        reader = registry.load("datasets", kind)
        assert isinstance(reader.layout, str)
        assert reader.layout
        _, *options = signature(reader.read).parameters.values()
        defaults = {"split": None, "relevant_from": 1.0, "advance": unheard}
        assert {option.name: option.default for option in options}.items() <= defaults.items()


class TestRead:
    @every_layout
    def test_types_and_joins(self, name: str, tmp_path: Path) -> None:
        dataset = opened(name, laid(name, tmp_path / "set"))
        documents = dataset.corpus.documents
        assert all(isinstance(document, Document) for document in documents)
        known = {document.id for document in documents}
        assert len(known) == len(documents)
        assert all(document.text for document in documents)
        assert dataset.queries
        assert all(isinstance(query, Query) and query.text for query in dataset.queries)
        asked = [query.id for query in dataset.queries]
        assert len(set(asked)) == len(asked)
        assert set(asked) == set(dataset.qrels)
        for judged in dataset.qrels.values():
            assert judged
            assert all(type(grade) is float for grade in judged.values())
            assert name == "qrels" or judged.keys() <= known
        assert dataset.evidences.keys() <= set(asked)
        assert dataset.answers.keys() <= set(asked)
        for evidence in dataset.evidences.values():
            steps = [step for path in evidence.paths for step in path]
            assert all(type(part) is str for step in steps for part in step)
            assert all(type(entity) is str for entity in evidence.entities)
        assert all(isinstance(triple, Triple) for triple in dataset.corpus.triples)
        assert {triple.document_id for triple in dataset.corpus.triples} <= known
        assert dataset.corpus.entities.keys() <= known

    @every_layout
    def test_twice_is_the_same(self, name: str, tmp_path: Path) -> None:
        place = laid(name, tmp_path / "set")
        first, second = (opened(name, place) for _ in range(2))
        assert first.fingerprint == second.fingerprint
        for field in fields(Dataset):
            assert getattr(first, field.name) == getattr(second, field.name), field.name

    def test_it_hangs_on_no_order_of_a_set(self, tmp_path: Path) -> None:
        places = {name: str(laid(name, tmp_path / name)) for name in LAYOUTS}
        kinds = {name: layout.kind for name, layout in LAYOUTS.items()}
        code = (
            "import json, sys\n"
            "from tuner.datasets import open_dataset\n"
            "places, kinds = json.loads(sys.argv[1])\n"
            "for name, place in places.items():\n"
            "    found = open_dataset(place, format=kinds[name])\n"
            "    print(name, found.fingerprint, found.queries, found.qrels, found.evidences,\n"
            "          found.answers, found.corpus, found.warnings)\n"
        )
        told = {
            subprocess.run(
                [sys.executable, "-c", code, json.dumps([places, kinds])],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(told) == 1
        assert told.pop().count("\n") == len(LAYOUTS)


def records_of(part: Part, content: str) -> list[dict[str, Any]]:
    if part.style == "lines":
        return [json.loads(line) for line in content.splitlines()]
    found = json.loads(content)
    return found["docs"] if part.style == "docs" else found


def written(part: Part, records: list[Any]) -> str:
    if part.style == "lines":
        return "".join(json.dumps(record) + "\n" for record in records)
    return json.dumps({"docs": records} if part.style == "docs" else records)


def changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Part, str], tuple[bytes, str]]:
    """Damage the third record."""

    def damage(part: Part, content: str) -> tuple[bytes, str]:
        records: list[Any] = records_of(part, content)
        records[2] = change(records[2])
        place = ":3: " if part.style == "lines" else ": record 3"
        return written(part, records).encode(), place

    return damage


def cut_off(part: Part, content: str) -> tuple[bytes, str]:
    """Cut the file within its last record."""
    if part.style == "table":
        last = content.rstrip("\n").splitlines()[-1]
        end = len(content.rstrip("\n")) - len(last) + len(last.split()[0])
    else:
        end = content.rindex({"lines": '"', "topics": "<title>"}.get(part.style, "}"))
    kept = content[:end]
    start = kept.rindex("<top>") if part.style == "topics" else end
    line = kept.count("\n", 0, start) + 1
    # The end of an array is missed at the last line, or at the last one that says anything.
    lines = (line, len(kept.rstrip().splitlines()))
    return kept.encode(), "|".join(f":{number}: " for number in lines)


def not_utf8(part: Part, content: str) -> tuple[bytes, str]:
    """Put a byte that is no UTF-8 amid the file."""
    raw = content.encode()
    at = re.compile(rb"[A-Za-z0-9]").search(raw, len(raw) // 2).start()  # type: ignore[union-attr]
    line = raw.count(b"\n", 0, at) + 1
    return raw[:at] + b"\xff" + raw[at + 1 :], f":{line}: "


def wrong_grade(part: Part, content: str) -> tuple[bytes, str]:
    """Write a word where the third line has its grade."""
    lines = content.splitlines()
    lines[2] = lines[2].rsplit(maxsplit=1)[0] + lines[2][-2] + "high"
    return "\n".join(lines).encode(), ":3: "


def is_told(name: str, place: Path, file: Path, where: str, run_here: Any) -> list[str]:
    """Check that opening says what is wrong in the file, and where, and the command line too."""
    with pytest.raises(InputError) as caught:
        opened(name, place)
    told = [str(problem) for problem in caught.value.problems]
    places = [f"{file}{each}" for each in where.split("|")]
    assert any(line.startswith(each) for line in told for each in places), told
    done = run_here(place.parent, "dataset", "check", place.name, "--format", LAYOUTS[name].kind)
    assert done.returncode == 2
    assert file.name in done.stderr
    assert "Traceback" not in done.stderr
    return told


class TestDamaged:
    @every_part
    @pytest.mark.parametrize("damage", [cut_off, not_utf8], ids=["cut", "not UTF-8"])
    def test_a_file(self, name, part, damage, tmp_path: Path, run_here) -> None:
        place = laid(name, tmp_path / "set")
        file = tmp_path / "set" / part.file
        content, where = damage(part, file.read_text(encoding="utf-8"))
        file.write_bytes(content)
        is_told(name, place, file, where, run_here)

    @every_part
    @pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"], ids=["empty", "blank", "mark"])
    def test_a_file_without_any_record(self, name, part, content, tmp_path, run_here) -> None:
        place = laid(name, tmp_path / "set")
        file = tmp_path / "set" / part.file
        file.write_text(content, encoding="utf-8")
        if part.file in ("triples.jsonl", "entities.jsonl", "evidences.jsonl"):
            # A corpus in which nothing was found is a corpus.
            assert opened(name, place).queries
            return
        is_told(name, place, file, ": ", run_here)

    @pytest.mark.parametrize(
        ("name", "part"),
        [(name, part) for name, part in PARTS if part.wrong],
        ids=[f"{name}: {part.file}" for name, part in PARTS if part.wrong],
    )
    def test_a_record(self, name, part: Part, tmp_path: Path, run_here) -> None:
        key, value = part.wrong or ("", None)
        damages = {
            "type": changed(lambda record: {**record, key: value}),
            "missing": changed(
                lambda record: {k: v for k, v in record.items() if k not in part.missing}
            ),
            "no object": changed(lambda record: list(record)),
            "null": changed(lambda record: None),
        }
        place = laid(name, tmp_path / "set")
        file = tmp_path / "set" / part.file
        content = file.read_text(encoding="utf-8")
        for what, damage in damages.items():
            damaged, where = damage(part, content)
            file.write_bytes(damaged)
            told = is_told(name, place, file, where, run_here)
            if what == "missing":
                assert any(each in line for line in told for each in (*part.missing, "title"))

    @pytest.mark.parametrize("name", ["beir", "trec", "qrels"])
    def test_a_grade(self, name: str, tmp_path: Path, run_here) -> None:
        place = laid(name, tmp_path / "set")
        file = (
            tmp_path
            / "set"
            / {"beir": "qrels/test.tsv", "trec": "qrels.txt"}.get(name, "trec_qrels_graded.txt")
        )
        content, where = wrong_grade(Part("", "table"), file.read_text(encoding="utf-8"))
        file.write_bytes(content)
        (told, *_) = is_told(name, place, file, where, run_here)
        assert "'high'" in told


# Kind -> the file of judgements in the folder, and where one more set of them is.
SPLITS = {
    "beir": ("qrels/test.tsv", "qrels/dev.tsv"),
    "samples": ("samples.jsonl", "dev.jsonl"),
    "trec": ("qrels.txt", "qrels.dev.txt"),
    "openie": ("musique.jsonl", "dev.jsonl"),
}
GRADED = ("beir", "samples", "trec", "qrels")


class TestOptions:
    @pytest.mark.parametrize("name", SPLITS)
    def test_a_split_picks_its_judgements(self, name: str, tmp_path: Path) -> None:
        place = laid(name, tmp_path / "set")
        first, second = (place / file for file in SPLITS[name])
        whole = opened(name, place)
        lines = first.read_text(encoding="utf-8").splitlines(keepends=True)
        second.write_text("".join(lines[:2]), encoding="utf-8")
        part = opened(name, place, split_name="dev")
        assert set(part.qrels) < set(whole.qrels)
        assert part.corpus == whole.corpus
        with pytest.raises(InputError, match=r"no .* named 'deev'.*did you mean 'dev'"):
            opened(name, place, split_name="deev")

    @pytest.mark.parametrize(
        "name", [name for name, layout in LAYOUTS.items() if layout.kind not in SPLITS]
    )
    def test_where_there_is_one_set_a_split_is_refused(self, name: str, tmp_path: Path) -> None:
        place = laid(name, tmp_path / "set")
        with pytest.raises(InputError, match="no judgements named 'dev': this format holds one"):
            opened(name, place, split_name="dev")

    @pytest.mark.parametrize("name", GRADED)
    def test_the_scale_says_which_grades_are_relevant(self, name: str, tmp_path: Path) -> None:
        place = laid(name, tmp_path / "set")
        if name == "beir":  # the published sets have no other grade than 1
            file = place / "qrels/test.tsv"
            lines = file.read_text(encoding="utf-8").splitlines()
            lines[1] = f"{lines[1][:-1]}2"
            file.write_text("\n".join(lines), encoding="utf-8")
        if name == "samples":  # what is named relevant may not have a lower grade
            file = place / "samples.jsonl"
            samples = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            for sample in samples:
                grades = sample.setdefault("grades", {})
                sample["grades"] = dict.fromkeys(sample["relevant_docs"], 1) | grades
                sample["relevant_docs"] = [id_ for id_, grade in grades.items() if grade > 1]
            file.write_text("".join(json.dumps(one) + "\n" for one in samples), encoding="utf-8")
        grades = [g for judged in opened(name, place).qrels.values() for g in judged.values()]
        for lowest in (1.0, 2.0):
            dataset = opened(name, place, scale=GradeScale(lowest))
            assert dataset.summary().relevant == sum(grade >= lowest for grade in grades)
        with pytest.raises(InputError, match=r"no grade reaches 9|its grade is below 9"):
            opened(name, place, scale=GradeScale(9.0))

    @pytest.mark.parametrize(
        "name", [name for name, layout in LAYOUTS.items() if layout.kind not in GRADED]
    )
    def test_labels_without_grades_are_1(self, name: str, tmp_path: Path) -> None:
        dataset = opened(name, laid(name, tmp_path / "set"), scale=GradeScale(0.5))
        assert {g for judged in dataset.qrels.values() for g in judged.values()} == {1.0}
