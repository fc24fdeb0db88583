"""Three legs of the built-in engine, written as run files and tuned by two backends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tuner.config import load_config
from tuner.core.errors import InputError
from tuner.core.rankings import Rankings
from tuner.datasets import Dataset, open_dataset
from tuner.retrieval.hybrid import Hybrid
from tuner.run.assembly import Assembly, assemble
from tuner.run.planning import make_plan
from tuner.run.session import begin, reopen

CONFIG = """\
study: {{name: legs, seed: 1, runs_dir: {folder}/runs}}
dataset: {dataset}
retriever:
  kind: runs
  legs: {{graph: {folder}/graph.run, text: {folder}/text.jsonl, near: {folder}/near.tsv}}
space:
  weight_graph: {{type: real, low: 0.0, high: 1.0}}
  weight_text:  {{type: real, low: 0.0, high: 1.0}}
  weight_near:  {{type: real, low: 0.0, high: 1.0}}
  fusion: {{type: categorical, choices: [score, rrf]}}
  normalisation: {{type: categorical, choices: [min_max, z, dbsf, max], when: {{fusion: score}}}}
  rrf_k: {{type: integer, low: 1, high: 200, scale: log, when: {{fusion: rrf}}}}
space_constraints: ["weight_graph + weight_text + weight_near > 0.01"]
objective: {{maximize: {{ndcg@10: 1.0}}}}
baseline: {{weight_graph: 1.0, weight_text: 1.0, weight_near: 1.0}}
backends: [{{kind: gp, trials: 14}}, {{kind: tpe, trials: 25}}]
execution: {{kind: inline}}
tracking: null
"""

SMALL = """\
study: {{name: small, seed: 1}}
dataset: {{path: "{place}/qrels.txt", format: qrels, split: {{holdout: 0}}}}
retriever: {{kind: runs, legs: {{a: "{place}/a.run", b: "{place}/b.run"}}}}
space: {{{searched}}}
objective: {{maximize: {{mrr@10: 1.0}}}}
baseline: {{{today}}}
backends: [{{kind: random, trials: 2}}]
tracking: null
"""


@pytest.fixture(scope="module")
def atlas() -> Dataset:
    return open_dataset("builtin:atlas")


@pytest.fixture(scope="module")
def folder(atlas: Dataset, tmp_path_factory: pytest.TempPathFactory, index_dir: Path) -> Path:
    """Write runs at extreme settings, each in another format, and the judgements as TREC's."""
    place = tmp_path_factory.mktemp("legs")
    engine = Hybrid.build(atlas.corpus, cache_dir=index_dir)
    engine.prepare(atlas.queries)

    def answered(**params: float) -> Rankings:
        return engine.retrieve(atlas.queries, {"top_k": 100, **params})

    graph = scored(answered(graph_weight=1.0, max_hops=5, temperature=0.01))
    trec = (
        f"{query} Q0 {id_} {rank} {score} graph\n"
        for query, hits in graph
        for rank, (id_, score) in enumerate(hits, start=1)
    )
    (place / "graph.run").write_text("".join(trec), encoding="utf-8")
    text = (
        json.dumps({"query_id": query, "docs": [{"doc_id": i, "score": s} for i, s in hits]})
        for query, hits in scored(answered(graph_weight=0.0))
    )
    (place / "text.jsonl").write_text("\n".join(text) + "\n", encoding="utf-8")
    near = scored(answered(graph_weight=1.0, max_hops=1, temperature=1.0))
    lines = (f"{query}\t{id_}\t{score}\n" for query, hits in near for id_, score in hits)
    (place / "near.tsv").write_text("".join(lines), encoding="utf-8")
    judged = (
        f"{query} 0 {id_} {grade:g}\n"
        for query, grades in atlas.qrels.items()
        for id_, grade in grades.items()
    )
    (place / "qrels.txt").write_text("".join(judged), encoding="utf-8")
    return place


def scored(rankings: Rankings) -> list[tuple[str, list[tuple[str, float]]]]:
    assert rankings.scores is not None
    return [
        (query, list(zip(rankings.ids(row), rankings.scores[row].tolist(), strict=False)))
        for row, query in enumerate(rankings.query_ids)
    ]


def assembled(folder: Path, *, dataset: str, cache: Path) -> tuple[Assembly, list[str]]:
    path = folder / "config.yaml"
    path.write_text(CONFIG.format(folder=folder, dataset=dataset), encoding="utf-8")
    return assembled_at(path)


def assembled_at(path: Path) -> tuple[Assembly, list[str]]:
    config, source = load_config(path, ())
    said: list[str] = []
    return assemble(config, source, make_plan(config, source), say=said.append), said


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TUNER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.slow
def test_both_backends_beat_the_best_single_leg(folder: Path, cache: Path) -> None:
    assembly, _ = assembled(folder, dataset="{path: 'builtin:atlas'}", cache=cache)
    legs = {
        leg: assembly.evaluate(
            {f"weight_{other}": float(other == leg) for other in ("graph", "text", "near")},
            assembly.tune_queries,
        ).metrics["ndcg@10"]
        for leg in ("graph", "text", "near")
    }
    tuned = begin(assembly).run(on_event=lambda event: None, say=lambda message: None)
    best = {arm.arm: arm.tune_objective for arm in tuned.summary.arms}
    assert best["gp"] > max(legs.values()) + 0.02
    assert best["tpe"] > max(legs.values()) + 0.02


@pytest.mark.parametrize(
    ("searched", "today", "said"),
    [
        (
            "depth_a: {type: integer, low: 1, high: 2}",
            "weight_a: 0, weight_b: 0",
            "baseline.weight_a",
        ),
        (
            "weight_a: {type: real, low: 0, high: 1}",
            "weight_a: 0, weight_b: 0",
            "baseline.weight_a",
        ),
        ("weight_b: {type: categorical, choices: [0.0]}", "weight_a: 0", "space.weight_b"),
    ],
)
def test_weights_that_leave_no_leg_are_refused_before_the_study(
    tmp_path: Path, searched: str, today: str, said: str
) -> None:
    with pytest.raises(InputError, match=f"{said}: weight_a, weight_b are all 0, which leaves"):
        assembled_small(tmp_path, searched, today)


@pytest.mark.parametrize(
    ("searched", "today", "said"),
    [
        (
            "rrf_k: {type: integer, low: 1, high: 9}",
            "fusion: score",
            "'rrf_k' has no effect where fusion is score; leave it out, or set fusion in the "
            "baseline to one of rrf",
        ),
        (
            "normalisation: {type: categorical, choices: [z, max]}, "
            "fusion: {type: categorical, choices: [score, rrf]}",
            "weight_a: 1",
            "'normalisation' has no effect where fusion is rrf; write when: {fusion: [score]}",
        ),
        ("rrf_k: {type: integer, low: 1, high: 9}", "fusion: rrf", None),
    ],
)
def test_what_is_searched_without_effect_is_told(
    tmp_path: Path, searched: str, today: str, said: str | None
) -> None:
    told = assembled_small(tmp_path, searched, today)
    assert [one for one in told if "no effect" in one] == ([f"note: {said}"] if said else [])


def assembled_small(place: Path, searched: str, today: str) -> list[str]:
    for leg, lines in (("a", "q1 Q0 d1 1 2 a\nq1 Q0 d2 2 1 a\n"), ("b", "q1 Q0 d3 1 1 b\n")):
        (place / f"{leg}.run").write_text(lines)
    (place / "qrels.txt").write_text("q1 0 d1 1\n")
    (place / "config.yaml").write_text(SMALL.format(place=place, searched=searched, today=today))
    return assembled_at(place / "config.yaml")[1]


def test_judgements_alone_are_enough(folder: Path, cache: Path) -> None:
    whole, _ = assembled(folder, dataset="{path: 'builtin:atlas'}", cache=cache)
    dataset = f"{{path: {folder}/qrels.txt, format: qrels}}"
    alone, said = assembled(folder, dataset=dataset, cache=cache)
    assert "note: the data set has no texts, so context_tokens is not reported" in said
    params = whole.params({"weight_text": 0.5})
    one = whole.evaluate(params, whole.dataset.queries).metrics
    other = alone.evaluate(params, alone.dataset.queries).metrics
    assert one.keys() - other.keys() == {"context_tokens"}
    assert {name: one[name] for name in other} == pytest.approx(other, abs=1e-12)


def test_judgements_alone_are_not_taken_for_a_data_set_unasked(folder: Path, cache: Path) -> None:
    with pytest.raises(InputError, match="or write format: qrels for runs"):
        assembled(folder, dataset=f"{{path: {folder}/qrels.txt}}", cache=cache)


def test_a_study_is_resumed_from_another_folder(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    text = CONFIG.format(folder=".", dataset="{path: qrels.txt, format: qrels}")
    (cache / "config.yaml").write_text(text, encoding="utf-8")
    config, source = load_config(cache / "config.yaml", ("backends.0.trials=1",))
    assembly = assemble(config, source, make_plan(config, source), say=lambda message: None)
    session = begin(assembly)
    run_dir = session.run_dir.resolve()
    session.study.close()
    monkeypatch.chdir(cache)
    again = reopen(run_dir, say=lambda message: None)
    again.study.close()
    assert again.assembly.retriever.fingerprint == assembly.retriever.fingerprint


def test_a_session_that_does_not_come_about_holds_no_lock(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cache)
    assembly, _ = assembled(folder, dataset="{path: 'builtin:atlas'}", cache=cache)

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    runs_dir = Path(assembly.config.study.runs_dir)
    before = set(runs_dir.glob("*"))
    with monkeypatch.context() as broken:
        broken.setattr("tuner.run.session.remembering", full)
        # Its traceback keeps the study, so nothing but `close` lets go of the lock.
        with pytest.raises(OSError, match="the disk is full") as begun:
            begin(assembly)
        (run_dir,) = {*runs_dir.glob("*-*")} - before
        with pytest.raises(OSError, match="the disk is full") as resumed:
            reopen(run_dir, say=lambda message: None)
    reopen(run_dir, say=lambda message: None).study.close()
    assert begun.tb is not resumed.tb


def test_a_broken_leg_ends_the_command_with_code_2(
    folder: Path, tmp_path: Path, run_here: Callable[..., CompletedProcess[str]]
) -> None:
    text = CONFIG.format(folder=folder, dataset="{path: 'builtin:atlas'}")
    broken = text.replace("near.tsv", "nothing.tsv")
    (tmp_path / "config.yaml").write_text(broken, encoding="utf-8")
    done = run_here(tmp_path, "check", "config.yaml")
    assert done.returncode == 2
    assert "nothing.tsv: no such file" in done.stderr
