"""Parameters by what is seen of a query, from the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml

from tuner.core.errors import EXIT_BAD_INPUT

# Of a long query the document is found by the graph, of a short one by the text: what the other leg
# ranks first is wrong.
SYSTEM = """
def search(query, graph_weight, top_k):
    number = int(query.split()[-1].strip("?"))
    right, wrong = f"d{number:02}", f"d{(number - 1) % 40:02}"
    is_long = len(query.split()) > 8
    graph = [(right if is_long else wrong, 1.0), (wrong if is_long else right, 0.2)]
    text = [(wrong if is_long else right, 1.0), (right if is_long else wrong, 0.2)]
    mixed = {}
    for weight, leg in ((graph_weight, graph), (1 - graph_weight, text)):
        for id_, score in leg:
            mixed[id_] = mixed.get(id_, 0.0) + weight * score
    found = sorted(mixed.items(), key=lambda pair: (-pair[1], pair[0]))
    return {"results": found[:top_k], "legs": {"graph": graph, "text": text}}
"""
FEATURES = """
def length(query):
    return {"is_long": len(query.split()) > 8, "luck": None}

def fails(query):
    raise KeyError("no model")

def leaves(query):
    raise SystemExit(3)

def no_mapping(query):
    return 3

def no_number(query):
    return {"depth": "deep"}

def taken(query):
    return {"words": 3}

def of_two(query, corpus):
    return {}
"""
CONFIG = """\
study: {name: small, seed: 3}
dataset: {path: data, split: {holdout: 0.5}}
retriever: {kind: function, function: "two_legs:search"}
space:
  graph_weight: {type: real, low: 0.0, high: 1.0}
objective: {maximize: {mrr@10: 1.0}}
baseline: {graph_weight: 0.5, top_k: 2}
backends: [{kind: random, trials: 6}]
execution: {kind: inline}
tracking: null
free:
  graph_weight: {mixes: {graph: value, text: rest}, normalisation: none}
"""
LONG = "please tell me in plain words who now keeps the house number"
SHORT = "who keeps house"


@pytest.fixture
def legs(tuner_here):
    """A study whose right weight depends on how long a query is: 100 queries, half held out."""
    write_study(tuner_here.folder)
    return tuner_here


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Run that study once; copy its runs."""
    folder = tmp_path_factory.mktemp("ended")
    (folder / "data" / "qrels").mkdir(parents=True)
    write_study(folder)
    # In a process of its own: this one would remember the function's module.
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-m", "tuner", "run", "config.yaml", "--quiet"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "TUNER_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        check=True,
    )
    return folder


@pytest.fixture
def run_dir(legs, ended):
    shutil.copytree(ended / "runs", legs.folder / "runs")
    (found,) = legs.runs()
    return found


def write_study(folder):
    (folder / "two_legs.py").write_text(SYSTEM, encoding="utf-8")
    (folder / "seen.py").write_text(FEATURES, encoding="utf-8")
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    write(folder / "data", 100)


def write(data, count):
    documents = [{"_id": f"d{n:02}", "title": f"House {n}", "text": "A house."} for n in range(40)]
    queries, judgements = [], ["query-id\tcorpus-id\tscore"]
    for n in range(count):
        words = LONG if n % 5 < 2 else SHORT
        extra = " indeed" * (n // 40)  # no two queries alike
        queries.append({"_id": f"q{n}", "text": f"{words}{extra} {n % 40}?"})
        judgements.append(f"q{n}\td{n % 40:02}\t1")
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (data / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (data / "qrels" / "test.tsv").write_text("\n".join(judgements) + "\n", encoding="utf-8")


def ran(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    return run_dir


@pytest.mark.slow
def test_a_weight_by_features_is_written_judged_and_stands_wherever_parameters_do(legs, run_dir):
    record = json.loads(legs("policy", str(run_dir), "--by", "features", "--json").stdout)
    assert record["gain"] > 3 * record["gain_error"]
    assert record["left_out"]["names"] == "the same for every query"
    assert record["verdict"]["outcome"] == "deploy"
    assert record["verdict"]["looks"] == 1  # the run itself looked first
    policy = run_dir / "policy.yaml"
    written = yaml.safe_load(policy.read_text(encoding="utf-8"))
    keys = {"default", "types", "rule", "tuned_on", "outcome", "verdict", "queries_asked"}
    assert set(written) == keys
    assert written["outcome"] == "deploy"
    assert written["rule"] == record["rule"]
    asked = ("--params", str(policy), "--queries", "holdout", "--json")
    assert json.loads(legs("evaluate", "config.yaml", *asked).stdout)["metrics"]["mrr@10"] == 1.0
    best = ("--params", str(run_dir / "best.yaml"), "--queries", "holdout", "--json")
    assert json.loads(legs("evaluate", "config.yaml", *best).stdout)["metrics"]["mrr@10"] < 0.9
    shown = legs("evaluate", "config.yaml", "--params", str(policy)).stdout
    assert shown.startswith("by features  on 50 queries (tune)")
    # It is the baseline of the next study.
    legs("run", "config.yaml", "--quiet", "--set", f"baseline={policy}", "--name", "second")
    second = next(folder for folder in legs.runs() if folder != run_dir)
    events = map(json.loads, (second / "journal.jsonl").read_text("utf-8").splitlines())
    baseline = next(event for event in events if "policy" in event.get("params", {}))
    assert baseline["params"]["policy"].startswith("by features (")


def test_people_are_told_what_matters_and_what_is_expected(legs, run_dir):
    said = legs("policy", str(run_dir), "--by", "features").stdout
    assert "the number of words" in said or "the number of characters" in said
    assert "expected gain  +0." in said
    assert "Deploy: the policy is better by" in said


def test_where_nothing_is_free_the_trials_own_settings_are_chosen_from(legs):
    legs.edit(
        "free:\n  graph_weight: {mixes: {graph: value, text: rest}, normalisation: none}",
        "free: off",
    )
    legs.edit("kind: random, trials: 6", "kind: grid, trials: 5")
    record = json.loads(legs("policy", str(ran(legs)), "--by", "features", "--json").stdout)
    assert record["verdict"]["outcome"] == "deploy"
    assert all(0.0 <= params["graph_weight"] <= 1.0 for params in record["settings"].values())


def test_nothing_to_be_gained_leaves_the_winner_and_asks_no_held_out_query(legs):
    # By another name: this process remembers the function.
    system = SYSTEM.replace("is_long = len(query.split()) > 8", "is_long = False")
    (legs.folder / "one_right_leg.py").write_text(system, encoding="utf-8")
    legs.edit("two_legs:search", "one_right_leg:search")
    run_dir = ran(legs)
    looks = (run_dir.parent / "holdouts.jsonl").read_text(encoding="utf-8")
    said = legs("policy", str(run_dir), "--by", "features").stdout
    assert "so the winner stays for all" in said
    assert "No verdict: no feature tells where another setting than the winner is better." in said
    assert (run_dir.parent / "holdouts.jsonl").read_text(encoding="utf-8") == looks
    policy = yaml.safe_load((run_dir / "policy.yaml").read_text(encoding="utf-8"))
    assert (policy["types"], policy["rule"]) == ({}, {"features": {}})
    same = [
        json.loads(
            legs("evaluate", "config.yaml", "--params", str(run_dir / name), "--json").stdout
        )
        for name in ("policy.yaml", "best.yaml")
    ]
    assert same[0]["metrics"] == same[1]["metrics"]


def test_a_function_of_the_users_tells_further_features(legs, run_dir):
    asked = ("policy", str(run_dir), "--by", "features", "--features", "seen:length", "--json")
    record = json.loads(legs(*asked).stdout)
    assert "is_long" in record["features"]
    assert record["left_out"]["luck"] == "not known of any query"
    assert record["rule"]["function"] == "seen:length"
    assert record["verdict"]["outcome"] == "deploy"
    policy = run_dir / "policy.yaml"
    legs("evaluate", "config.yaml", "--params", str(policy))
    # The file names the function, and whoever answers by the file needs it.
    policy.write_text(
        policy.read_text(encoding="utf-8").replace("seen:length", "seen:gone"), "utf-8"
    )
    done = legs("evaluate", "config.yaml", "--params", str(policy), code=EXIT_BAD_INPUT)
    assert "module 'seen' has no 'gone'" in done.stderr


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("seen:fails", "seen:fails on query 'q"),
        ("seen:fails", "raised KeyError: 'no model'"),
        ("seen:leaves", "raised SystemExit: 3"),
        ("seen:no_mapping", "returned a int, not a mapping"),
        ("seen:no_number", "returned 'depth': 'deep', not a number"),
        ("seen:taken", "named a feature 'words', which is one of the tuner's own features"),
        ("seen:of_two", "is called with the text of a query"),
        ("seen", "must name the function of features as package.module:function"),
        ("nowhere:tell", "cannot import the function of features 'nowhere:tell'"),
    ],
)
def test_a_function_that_fails_is_told_in_words(legs, run_dir, function, message):
    asked = ("policy", str(run_dir), "--by", "features", "--features", function)
    assert message in legs(*asked, code=EXIT_BAD_INPUT).stderr
    assert not (run_dir / "policy.yaml").exists()


def test_features_without_by_features_are_refused(legs):
    done = legs("policy", "runs/any", "--features", "seen:length", code=EXIT_BAD_INPUT)
    assert "--by features" in done.stderr


@pytest.mark.parametrize("count", [2, 10])
def test_few_queries_teach_nothing(legs, count):
    write(legs.folder / "data", count)
    said = legs("policy", str(ran(legs)), "--by", "features").stdout
    assert "to learn from: the winner stays for all" in said
