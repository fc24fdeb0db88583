"""Bad input: one message with file, line, key and a way out; exit code 2; nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = {
    "unknown key": ("seed: 3", "sede: 3", ["config.yaml:1: study.sede", "did you mean 'seed'"]),
    "wrong type": (
        "trials: 6}\n  - {kind: random",
        "trials: many}\n  - {kind: random",
        [":12:", "'many'"],
    ),
    "low above high": ("low: 0.0, high: 4.0", "low: 4.0, high: 0.5", [":5: space.title_weight"]),
    "log from 0": ("high: 4.0}", "high: 4.0, scale: log}", [":5: space.title_weight", "log"]),
    "unknown type": ("type: real", "type: reel", [":5: space.title_weight.type", "'real'"]),
    "unknown metric": ("ndcg@10: 0.2", "ndgc@10: 0.2", [":8:", "did you mean 'ndcg@10'"]),
    "a cut-off of 0": ("ndcg@10: 0.2", "ndcg@0: 0.2", [":8:", "ndcg@0", "at least 1"]),
    "no cut-off": ("ndcg@10: 0.2", "recall: 0.2", [":8:", "needs a cut-off"]),
    "weights of 0": (
        "{recall@5: 0.5, mrr@10: 0.3, ndcg@10: 0.2}",
        "{recall@5: 0, mrr@10: 0}",
        [":8: objective.maximize", "sum to 0"],
    ),
    "empty budget": ("random, trials: 6", "random, trials: 0", [":13: backends.1.trials"]),
    "unknown backend": ("kind: random", "kind: randon", [":13: backends.1.kind", "'random'"]),
    "unknown option": ("trials: 6}\nexec", "trials: 6, sead: 1}\nexec", [":13: backends.1.sead"]),
    "twice the same arm": ("kind: grid", "kind: random", ["backends.1", "a second arm"]),
    "unknown execution": ("kind: inline", "kind: inlin", ["execution.kind", "'inline'"]),
    "no workers": ("kind: inline", "kind: threads, workers: 0", ["execution.workers"]),
    "missing data": ("path: data", "path: dta", [":2: dataset", "'dta'", "'data'"]),
    "unknown knob": ("top_k: {", "top_n: {", [":6: space.top_n", "did you mean 'top_k'"]),
    "knob's range": ("high: 12", "high: 99", [":6: space.top_k.high", "1 to 50"]),
    "baseline's knob": ("baseline: {t", "baseline: {x: 1, t", [":10: baseline.x"]),
    "baseline's range": ("top_k: 10}", "top_k: 0}", [":10: baseline.top_k", "1 to 50"]),
    "outside module": ("word_overlap:", "word_overlop:", [":3: retriever.kind", "word_overlop"]),
    "outside class": (":WordOverlap", ":WordOverlop", [":3: retriever.kind", "WordOverlop"]),
    "retriever option": (
        'WordOverlap"}',
        'WordOverlap", flavor: x}',
        [":3: retriever.flavor", "flavour"],
    ),
    "price": ("context_tokens_per", "context_token_per", [":9: objective.price", "context_tokens"]),
    "two scales": (
        "ndcg@10: 0.2",
        "context_efficiency: 0.2",
        [
            ":8: objective.maximize.context_efficiency",
            "0 to 100",
            "{context_efficiency: {min: 50}}",
        ],
    ),
    "tokenizer": (
        "tracking: null",
        "tracking: null\ncontext: {tokenizer: 'word_overlap:no_function'}",
        [":16: context.tokenizer", "has no 'no_function'"],
    ),
    "a backend that cannot suggest": (
        "kind: random",
        "kind: 'word_overlap:WordOverlap'",
        [":13: backends.1", "corpus"],
    ),
    "a backend of another kind": (
        "kind: random",
        "kind: 'fractions:Fraction'",
        [":13: backends.1", "has no method `suggest`", "tuner/backends/base.py"],
    ),
    "a backend that is no class": (
        "kind: random",
        "kind: 'math:pi'",
        [":13: backends.1", "a class is needed"],
    ),
    "an execution of another kind": (
        "kind: inline",
        "kind: 'fractions:Fraction'",
        ["execution", "has no method `run`"],
    ),
    "a tokenizer of mappings": (
        "tracking: null",
        "tracking: null\ncontext: {tokenizer: 'collections:Counter'}",
        [":16: context.tokenizer", "it returned a Counter"],
    ),
    "no weights": (
        "ndcg@10: 0.2",
        "discounted_precision_fitted@3: 0.2",
        [":8: objective.maximize", "context: {discount: [1, 0.6, 0.8]}"],
    ),
    "key twice": ("tracking: null", "tracking: null\ntracking: null", [":16: tracking", "twice"]),
    "tag": ("tracking: null", "metrics: !!python/name:os.system", [":15:", "not supported"]),
    "bomb": ("tracking: null", "a: &a [1]\nb: [*a, *a]", [":15:", "anchors"]),
    "not a number": ("low: 0.0", "low: .nan", [":5: space.title_weight"]),
    "constraint": (
        "objective:",
        "space_constraints: ['top_k <= titel_weight']\nobjective:",
        [":7: space_constraints", "title_weight"],
    ),
    "code as a constraint": (
        "objective:",
        "space_constraints: ['__import__(\"os\").getcwd() == 1']\nobjective:",
        [":7: space_constraints"],
    ),
    "a wrong tag": ("tracking: null", "metrics: !!bool maybe", [":15: metrics", "'maybe'"]),
    "too many digits": ("seed: 3", "seed: " + "9" * 400, [":1: study.seed", "too large"]),
    "too many workers": ("kind: inline", "kind: threads, workers: 100000", ["execution.workers"]),
    "tracking": ("tracking: null", "tracking: {uri: 'ftp://x'}", [":15: tracking", "ftp"]),
}


@pytest.mark.parametrize("case", CASES)
def test_one_message_and_nothing_half_written(tuner_here, case):
    old, new, expected = CASES[case]
    tuner_here.edit(old, new)
    done = tuner_here("run", "config.yaml", code=2)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert all(line.startswith("error: config.yaml:") for line in lines), done.stderr
    for part in expected:
        assert part in done.stderr
    assert not (tuner_here.folder / "runs").exists()
    assert not list(tuner_here.folder.glob("mlflow.db*"))


def test_broken_data_is_reported_whole(tuner_here):
    with (tuner_here.folder / "data" / "corpus.jsonl").open("a") as corpus:
        corpus.write('{"_id": "x", "text": ""}\nnonsense\n')
    with (tuner_here.folder / "data" / "qrels" / "test.tsv").open("a") as qrels:
        qrels.write("q0-river\tnowhere\t1\n")
    done = tuner_here("run", "config.yaml", code=2)
    for place in ("corpus.jsonl:21", "corpus.jsonl:22", "test.tsv:22"):
        assert place in done.stderr
    assert not (tuner_here.folder / "runs").exists()


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ('{"top_k": "ten"}', "params.top_k: 'ten' is not a number"),
        ('{"top_k": 2.5}', "params.top_k: 2.5 is not a whole number"),
        ('{"topk": 5}', "did you mean 'top_k'"),
        ("{top_k: 5", "--params is not valid JSON"),
        ('{"mode": "fancy"}', "'fancy' is not one of"),
        ("nowhere.yaml", "nowhere.yaml: no such file"),
        ('{"top_k": NaN}', "is not a finite number"),
        ('{"top_k": 1e999}', "is not a finite number"),
        ('{"top_k": ' + "9" * 5000 + "}", "--params is not valid JSON"),
    ],
)
def test_params_that_make_no_sense(tuner_here, params, expected):
    assert expected in tuner_here("evaluate", "config.yaml", "--params", params, code=2).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "nowhere.yaml"),
        ("rum", "config.yaml"),
        ("run", "config.yaml", "--workers", "0"),
        ("run", "config.yaml", "--set", "study.seed"),
        ("run", "config.yaml", "--name", "a/b"),
        ("resume", "nowhere"),
        ("sync", "nowhere"),
        ("ui", "nowhere.yaml"),
        ("evaluate", "config.yaml", "--per-query", "no/such/folder.csv"),
    ],
)
def test_wrong_commands_exit_with_2(tuner_here, arguments):
    done = tuner_here(*arguments, code=2)
    assert done.stderr
    assert not (tuner_here.folder / "runs").exists()


def test_text_that_the_output_s_encoding_lacks_is_no_failure(tuner):
    environment = {**tuner.environment, "PYTHONIOENCODING": "ascii:strict"}
    command = tuner.command("run", "config.yaml", "--quiet", "--set", 'study.name="plain"')
    done = subprocess.run(command, cwd=tuner.folder, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"   ?  " in done.stdout  # the dash of a value that is not there


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("def retrieve(self, queries, params)", "def retrieve(self, query)", "`retrieve` takes"),
        ("def retrieve(self,", "def search(self,", "has no method `retrieve`"),
        ("def prepare(self, queries)", "def prepare(self)", "`prepare` takes ()"),
        ("    knobs = (", "    nobs = (", "has no `knobs`, a tuple of tuner.retrieval.base.Knob"),
        ("self.corpus, self.fingerprint", "self.corpus, self.hash", "has no `fingerprint`"),
    ],
)
def test_a_retriever_that_could_not_be_asked_is_refused_by_check(tuner_here, old, new, reason):
    module = tuner_here.folder / "word_overlap.py"
    text = module.read_text()
    assert old in text
    module.write_text(text.replace(old, new))
    done = tuner_here("check", "config.yaml", code=2)
    assert "config.yaml:3: retriever" in done.stderr
    assert reason in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a folder in use cannot be deleted")
def test_a_working_folder_that_was_deleted_is_told_in_a_line(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    script = f"cd {folder} && rmdir {folder} && exec {sys.executable} -m tuner check config.yaml"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(
        ["sh", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "error: the working folder was deleted; go to another one\n"


JUDGED_BY_EVIDENCE = """\
dataset:
  path: builtin:atlas
  judge: evidence
retriever: {retriever}
space: {{top_k: {{type: integer, low: 1, high: 5}}}}
objective: {{maximize: {{recall@5: 1.0}}}}
baseline: {{top_k: 3}}
backends: [{{kind: random, trials: 2}}]
tracking: null
"""


def test_supporting_texts_are_not_judged_where_no_part_of_a_document_can_be_told(tuner):
    for name in ("a.run", "b.run"):
        (tuner.folder / name).write_text("q001 Q0 647f0c 1 1.0 a\n")
    text = JUDGED_BY_EVIDENCE.format(retriever="{kind: runs, legs: {a: a.run, b: b.run}}")
    (tuner.folder / "config.yaml").write_text(text, encoding="utf-8")
    refused = tuner("check", "config.yaml", code=2).stderr
    assert "config.yaml:3: dataset.judge: " in refused
    assert "does not tell which part of a document it retrieved" in refused


@pytest.mark.slow
def test_nor_where_a_system_that_could_tell_it_does_not(tuner):
    (tuner.folder / "plain.py").write_text("def search(query, top_k=3):\n    return ['lima']\n")
    text = JUDGED_BY_EVIDENCE.format(retriever='{kind: function, function: "plain:search"}')
    (tuner.folder / "config.yaml").write_text(text.replace("builtin:atlas", "small"))
    small = tuner.folder / "small"
    (small / "qrels").mkdir(parents=True)
    said = '{"_id": "lima", "title": "Lima", "text": "Lima lies in Peru. It has a harbour."}\n'
    (small / "corpus.jsonl").write_text(said)
    ids = [f"q{number}" for number in range(12)]
    questions = "".join(f'{{"_id": "{id_}", "text": "Where is Lima, {id_}?"}}\n' for id_ in ids)
    (small / "queries.jsonl").write_text(questions)
    judged = "".join(f"{id_}\tlima\t1\n" for id_ in ids)
    (small / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    supporting = '[{"doc_id": "lima", "text": "It has a harbour."}]'
    labels = "".join(f'{{"query_id": "{id_}", "supporting": {supporting}}}\n' for id_ in ids)
    (small / "evidences.jsonl").write_text(labels)
    failed = tuner("evaluate", "config.yaml", code=2).stderr
    assert "does not tell which part of a document it retrieved (the `span` of a result" in failed
    for span, recall in (((0, 18), 0.0), ((19, 36), 1.0), ((0, 36), 1.0)):
        answer = [{"id": "lima", "span": span}]
        code = f"def search(query, top_k=3):\n    return {answer}\n"
        (tuner.folder / "plain.py").write_text(code)
        told = json.loads(tuner("evaluate", "config.yaml", "--json").stdout)
        assert told["metrics"]["recall@5"] == recall
