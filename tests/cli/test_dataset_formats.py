"""stats, check, convert and split on a sample of every published format."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tuner.cli.dataset import command
from tuner.datasets import open_dataset

# What to lay into a folder of its own, where the files belong together.
FOLDERS = {
    "openie": ("hipporag_corpus.json", "hipporag_openie.json", "musique.jsonl"),
    "multihop_rag": ("multihop_rag_corpus.json", "multihop_rag_queries.json"),
}
FILES = (
    "2wiki.json",
    "hotpotqa.json",
    "hotpotqa_huggingface.json",
    "musique.jsonl",
    "multihop_rag_queries.json",
)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def trec_folder(qrels: Path, folder: Path) -> Path:
    """Write topics and a collection for judgements, of which some grades are below 0."""
    content = qrels.read_text(encoding="utf-8")
    rows = [line.split() for line in content.splitlines()]
    folder.mkdir()
    (folder / "qrels.txt").write_text("\n".join("\t".join(row) for row in rows), encoding="utf-8")
    topics = "".join(f"{query}\ttopic {query}\n" for query in sorted({row[0] for row in rows}))
    (folder / "topics.tsv").write_text(topics, encoding="utf-8")
    texts = "".join(f"{id_}\ttext of {id_}\n" for id_ in sorted({row[2] for row in rows}))
    (folder / "collection.tsv").write_text(texts, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", [*FILES, *FOLDERS, "trec"])
def test_every_command_on_every_format(published: Any, name: str, tmp_path: Path) -> None:
    if name == "trec":
        place = trec_folder(published.sample("trec_qrels_graded.txt"), tmp_path / name)
    elif name in FOLDERS:
        place = tmp_path / name
        place.mkdir()
        for file in FOLDERS[name]:
            shutil.copy(published.sample(file), place)
    else:
        place = published.sample(name)
    source = open_dataset(place)

    record = json.loads(run("stats", str(place), "--json"))
    assert record["fingerprint"] == source.fingerprint
    assert record["counts"]["queries"] == len(source.queries)
    assert record["reach"]["in_corpus"] == 1.0
    assert record["reach"]["by_words"] <= record["reach"]["by_either"]["6"] <= 1.0
    assert run("check", str(place)).startswith("ok: ")

    for layout in ("beir", "samples"):
        run("convert", str(place), str(tmp_path / layout), "--to", layout)
        assert open_dataset(tmp_path / layout).fingerprint == source.fingerprint

    run("split", str(place), str(tmp_path / "parts"))
    parts = [open_dataset(tmp_path / "parts" / part) for part in ("tune", "holdout")]
    ids = sorted(query.id for part in parts for query in part.queries)
    assert ids == sorted(query.id for query in source.queries)
    for part in parts:
        assert part.corpus.fingerprint == source.corpus.fingerprint
        assert part.qrels == {query.id: source.qrels[query.id] for query in part.queries}
