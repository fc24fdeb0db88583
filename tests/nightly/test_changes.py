"""What changes between nights: documents, judgements, held-out queries; and what is thrown away."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuner.config import load_config
from tuner.config.budget import shares
from tuner.config.nightly import KeepSection
from tuner.core.corpus import Query
from tuner.core.journal import read_journal
from tuner.nightly.night import check_drift, record_score, write_score
from tuner.nightly.pruning import prune
from tuner.nightly.records import Part, Records, Score, read_records
from tuner.nightly.spending import Spending, remember_part
from tuner.run.assembly import Assembly, assemble
from tuner.run.planning import make_plan
from tuner.verdict.measured import Measured

DAY = date(2026, 3, 1)
WORDS = "river market harbour bridge tower garden library station square mill".split()


@pytest.fixture
def own_data(nights: Any) -> Any:
    """Let the nights be on a data set of their own, that tests may change."""
    folder = nights.folder / "data"
    (folder / "qrels").mkdir(parents=True)
    places = [f"{word} {number}" for number in range(8) for word in WORDS]
    _write(folder / "corpus.jsonl", [_document(place) for place in places])
    queries = [{"_id": f"q-{place}", "text": f"how old is the {place}?"} for place in places]
    _write(folder / "queries.jsonl", queries)
    lines = ["query-id\tcorpus-id\tscore", *(f"q-{place}\t{place}\t1" for place in places)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    nights.configure(dataset={"path": str(folder)})
    return nights


def test_a_changed_corpus_is_told_and_the_best_before_are_asked_again(own_data: Any) -> None:
    first = own_data("2026-03-01", "nightly.promote=never")
    assert first["data"]["changes"] == []
    journal = read_journal(Path(first["run_dir"]) / "journal.jsonl")
    scored = [trial for trial in journal.trials.values() if trial.is_scored]
    scored = [trial for trial in scored if trial.shared_from is None and trial.arm != "baseline"]
    best = sorted(scored, key=lambda trial: (-(trial.objective or 0.0), trial.number))
    with (own_data.folder / "data" / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(_document("tunnel 9")) + "\n")
    second = own_data("2026-03-02", "nightly.promote=never")
    assert second["data"]["changes"] == ["the corpus changed: 81 documents, 80 before"]
    assert (
        "earlier nights: the data changed, so of 1 earlier night the 5 best are asked again, and "
        "nothing else is taken over"
    ) in second["notes"]
    asked = list(read_journal(Path(second["run_dir"]) / "journal.jsonl").trials.values())
    assert [trial.arm for trial in asked[:6]] == ["baseline", *5 * ["earlier"]]
    assert [trial.params for trial in asked[1:6]] == [trial.params for trial in best[:5]]
    assert second["trials"]["evaluated"] + second["trials"]["shared"] == 1 + 5 + 8
    third = own_data("2026-03-03", "nightly.promote=never")
    assert third["data"]["changes"] == []
    # Now there are trials on the same data, and of these the best is asked again alone.
    assert any("trials of 1 earlier night on the same data" in note for note in third["notes"])
    asked = list(read_journal(Path(third["run_dir"]) / "journal.jsonl").trials.values())
    assert [trial.arm for trial in asked].count("earlier") == 1


def test_new_queries_leave_the_best_before_as_starting_points_and_another_split_does_not(
    own_data: Any,
) -> None:
    own_data("2026-03-01", "nightly.promote=never")
    data = own_data.folder / "data"
    with (data / "queries.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"_id": "new", "text": "is the river 0 deep?"}) + "\n")
    with (data / "qrels" / "test.tsv").open("a", encoding="utf-8") as file:
        file.write("new\triver 0\t1\n")
    second = own_data("2026-03-02", "nightly.promote=never")
    assert any("the 5 best are asked again" in note for note in second["notes"])
    # What chose the best of the earlier nights would now be among what is held out.
    with (data / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(_document("tunnel 9")) + "\n")
    third = own_data("2026-03-03", "nightly.promote=never", "study.seed=4")
    (said,) = [note for note in third["notes"] if note.startswith("earlier nights: ")]
    assert said.startswith("earlier nights: nothing is taken over from them: ")
    assert "the split (seed or share of the holdout)" in said


@pytest.mark.slow
def test_a_score_by_another_objective_is_no_drift(nights: Any) -> None:
    nights.configure(budget={"trials": 0})
    first = nights("2026-03-01")
    nights.repeat_the_score(days=20)
    nights.configure(objective={"maximize": {"recall@1": 1.0}}, metrics=["recall@1"])
    later = [nights(f"2026-03-{day:02d}") for day in (12, 13, 14)]
    assert later[-1]["champion"]["score"] < first["champion"]["score"] - 0.2
    assert later[0]["notes"] == ["the objective changed"]
    assert (later[-1]["exit_code"], later[-1]["drift"]["status"]) == (0, "insufficient data")


def test_changed_judgements_are_told(own_data: Any) -> None:
    own_data("2026-03-01")
    with (own_data.folder / "data" / "qrels" / "test.tsv").open("a", encoding="utf-8") as file:
        file.write("q-river 0\triver 1\t1\n")
    second = own_data("2026-03-02")
    assert second["data"]["changes"] == ["the judgements changed: 81 judgements, 80 before"]
    path = own_data.folder / "data" / "qrels" / "test.tsv"
    path.write_text(path.read_text().replace("river 0\triver 1\t1", "river 0\triver 1\t2"))
    third = own_data("2026-03-03")
    assert third["data"]["changes"] == ["the judgements changed: 81 judgements, as before"]


def test_new_held_out_queries_begin_anew(nights: Any) -> None:
    assembly = _assembly(nights)
    held_out = assembly.holdout_queries
    fresh = tuple(replace(query, text=f"new {query.text}") for query in held_out)
    some = (*held_out[: len(held_out) // 8], *fresh[len(held_out) // 8 :])
    numbers = [
        _look(nights, assembly, queries, hops)
        for queries, hops in ((held_out, 1), (held_out, 2), (held_out, 2), (fresh, 1), (some, 1))
    ]
    # `some` shares an eighth with the first two, and seven eighths with `fresh`.
    assert numbers == [1, 2, 2, 1, 4]


def test_the_same_parameters_are_no_look(nights: Any) -> None:
    assembly = _assembly(nights)
    nights.runs_dir.mkdir()
    spending = Spending(nights.records, assembly, DAY)
    values = np.zeros(len(assembly.holdout_queries))
    same = Measured({"graph_weight": 0.0, "max_hops": 1}, values)
    assert spending(same, Measured(assembly.baseline or {}, values)) == 0.05
    assert spending.look is None
    assert not (nights.runs_dir / "nights.jsonl").exists()


def test_a_look_at_unknown_queries_counts(nights: Any) -> None:
    nights.runs_dir.mkdir()
    look = {"night": "2026-02-01", "pair": "p", "part": "gone", "number": 1, "alpha": 0.01}
    nights.records.write("look", **look)
    assembly = _assembly(nights)
    assert _look(nights, assembly, assembly.holdout_queries, 2) == 2


def test_drift_is_looked_for_within_one_champion(tmp_path: Path) -> None:
    records = Records(tmp_path, "small")
    remember_part(records, "part", Part(("a", "b", "c"), ("x", "x", "x")))
    for day in range(35):
        level = 0.8 if day < 28 else 0.5
        values = (level, level + 0.1, level - 0.1 + 0.001 * (day % 3))
        score = Score(DAY + timedelta(days=day), "old", sum(values) / 3, "part", values)
        write_score(records, score)
    last = DAY + timedelta(days=34)
    write_score(records, Score(last, "new", 0.2))
    for known in (records, read_records(tmp_path, "small")):
        assert check_drift(known, "old", last).status == "alarm"
        assert check_drift(known, "old", last - timedelta(days=7)).status == "no alarm"
        assert check_drift(known, "new", last).status == "insufficient data"


@pytest.mark.slow
def test_only_what_the_nights_made_is_pruned(nights: Any) -> None:
    for day in range(1, 6):
        nights(f"2026-03-0{day}", "nightly.promote=never")
    run_dirs = [nights.runs_dir / night.run_dir for night in nights.records.nights]
    mine = nights.runs_dir / "small-by-hand"
    shutil.copytree(run_dirs[0], mine)
    moved = nights.folder / "moved"
    run_dirs[1].rename(moved)
    run_dirs[1].symlink_to(moved)
    # A run directory in another one's place.
    shutil.rmtree(run_dirs[2])
    shutil.copytree(run_dirs[4], run_dirs[2])
    records = nights.records
    champion = records.nights[3].study_id
    gone = prune(
        records,
        KeepSection(days=1),
        today=date(2026, 3, 20),
        never={champion},
        say=pytest.fail,
    )
    assert sorted(gone) == sorted(path.name for path in (run_dirs[0], run_dirs[4]))
    assert mine.is_dir()
    assert (moved / "journal.jsonl").is_file()
    assert run_dirs[2].is_dir()
    assert run_dirs[3].is_dir()
    assert nights.records.pruned == set(gone)
    assert nights("2026-03-21", "nightly.promote=never")["outcome"] == "kept"


@pytest.mark.parametrize(
    ("weights", "total", "parts"),
    [
        # 10 * 3/4 = 7.5 and 10 * 1/4 = 2.5: the first of equal remainders gets one more
        ([30, 10], 10, [8, 2]),
        ([1, 1, 1], 2, [1, 1, 0]),
        ([5], 100, [100]),
    ],
)
def test_trials_are_shared_in_proportion(weights: list[int], total: int, parts: list[int]) -> None:
    assert shares(weights, total) == parts


def _document(place: str) -> dict[str, str]:
    return {"_id": place, "title": place, "text": f"the {place} is old, as people say"}


def _write(path: Path, records: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _assembly(nights: Any) -> Assembly:
    config, source = load_config(nights.path)
    return assemble(config, source, make_plan(config, source), say=pytest.fail)


def _look(nights: Any, assembly: Assembly, queries: tuple[Query, ...], hops: int) -> int:
    nights.runs_dir.mkdir(exist_ok=True)
    tonight = replace(assembly, holdout_queries=queries)
    spending = Spending(nights.records, tonight, DAY)
    values = np.random.default_rng(hops).random((2, len(queries)))
    alpha = spending(
        Measured({"graph_weight": 0.5, "max_hops": hops}, values[0]),
        Measured(assembly.baseline or {}, values[1]),
    )
    assert spending.look is not None
    assert alpha == spending.look.alpha
    return spending.look.number


def test_a_damaged_file_of_values_costs_a_finished_night_the_values_by_query_alone(
    nights: Any,
) -> None:
    summary = nights("2026-03-01")
    run_dir = Path(summary["run_dir"])
    trial = read_journal(run_dir / "journal.jsonl").trials[0]
    (run_dir / "trials" / "0.npz").write_bytes(b"PK damaged")
    loaded, source = load_config(run_dir / "config.yaml")
    assembly = assemble(loaded, source, make_plan(loaded, source), say=print)
    records = Records(nights.runs_dir, "small")
    score = record_score(records, assembly, trial, run_dir, champion="c", night=DAY)
    assert score is not None
    assert (score.mean, score.part, score.by_query) == (trial.objective, None, ())
    assert records.scores == [score]
