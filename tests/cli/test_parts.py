"""All queries decide: the search is repeated without each part, and its winner is tested on it."""

from __future__ import annotations

import json

import pytest

from tuner.core.journal import read_journal, read_per_query
from tuner.datasets import open_dataset, split_queries
from tuner.stats import minimum_detectable_difference, queries_needed

CITIES = (
    "Lima Oslo Cairo Quito Paris Rome Delhi Hanoi Accra Dakar "
    "Tunis Sofia Minsk Riga Seoul Tokyo Perth Lyon Graz Bern Bonn Turin"
).split()
SPLIT = "{holdout: 0.5, stratify_by: [query_type]}"
PARTS = "{parts: 2, stratify_by: [query_type]}"
KILLED = -9


@pytest.fixture
def in_parts(tuner_here, quick):
    """44 queries of two types in two parts; half of the passages name another city in the text."""
    folder = tuner_here.folder / "data"
    documents, queries, judgements = [], [], ["query-id\tcorpus-id\tscore"]
    for index, city in enumerate(CITIES):
        for part in ("river", "market"):
            other = CITIES[(index + 1) % len(CITIES)]
            text = f"the {part} of {other} is old, and so is the {part} of that {part}"
            documents.append({"_id": f"{city}-{part}", "title": f"{city} {part}", "text": text})
            queries.append(
                {
                    "_id": f"q{index:02}-{part}",
                    "text": f"how old is the {part} of {city}?",
                    "query_type": part,
                }
            )
            judgements.append(f"q{index:02}-{part}\t{city}-{part}\t1")
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join(judgements) + "\n", encoding="utf-8")
    tuner_here.edit(SPLIT, PARTS)
    tuner_here.edit("baseline: {title_weight: 1.0", "baseline: {title_weight: 0.0")
    tuner_here.edit("kind: grid", "kind: tpe")
    return tuner_here


def run(tuner_here, *options):
    return json.loads(tuner_here("run", "config.yaml", "--json", *options).stdout)


def journals(tuner_here, record):
    run_dir = tuner_here.folder / record["run_dir"]
    paths = (run_dir, run_dir / "parts" / "1", run_dir / "parts" / "2")
    return [path / "journal.jsonl" for path in paths]


def asked_and_scored(path):
    return [
        (trial.arm, trial.params, trial.objective) for trial in read_journal(path).trials.values()
    ]


def test_every_query_meets_what_was_chosen_without_it(in_parts):
    record = run(in_parts)
    verdict = record["verdict"]
    assert verdict["comparison"]["n"] == 44
    assert verdict["outcome"] == "deploy"
    assert verdict["sentence"].startswith("Deploy: this way of choosing is better by ")
    assert " in the composite on 44 queries (" in verdict["sentence"]
    assert (
        "Each of 2 parts of the queries met what a search without it chose" in verdict["sentence"]
    )
    assert [choice["queries"] for choice in verdict["parts"]] == [22, 22]
    whole, *parts = journals(in_parts, record)
    assert len(read_per_query(whole, 0)["recall@5"]) == 44
    for path in parts:
        assert len(read_journal(path).trials) == len(read_journal(whole).trials)
        assert len(read_per_query(path, 0)["recall@5"]) == 22
    # 13 trials: the baseline and two arms of 6.
    assert record["queries_asked"]["trials"] == 13 * 44
    assert record["queries_asked"]["parts"] == 13 * 44


def test_a_search_without_a_part_does_not_know_how_that_part_is_judged(in_parts):
    before = run(in_parts)
    dataset = open_dataset(in_parts.folder / "data")
    _, first = split_queries(dataset.queries, holdout=0.5, stratify_by=["query_type"], seed=3)
    qrels = in_parts.folder / "data" / "qrels" / "test.tsv"
    head, *lines = qrels.read_text().splitlines()
    others = [line.split("\t") for line in lines]
    turned = [
        f"{query}\t{others[row - 1][1] if query in first else document}\t{grade}"
        for row, (query, document, grade) in enumerate(others)
    ]
    qrels.write_text("\n".join([head, *turned]) + "\n")
    after = run(in_parts)
    one, other = (journals(in_parts, record) for record in (before, after))
    assert asked_and_scored(one[0]) != asked_and_scored(other[0])
    assert asked_and_scored(one[1]) == asked_and_scored(other[1])  # without the first part
    assert asked_and_scored(one[2]) != asked_and_scored(other[2])


@pytest.mark.slow
@pytest.mark.parametrize("queries", [300, 700, 1_000, 1_250])
def test_a_run_that_is_killed_anywhere_comes_to_the_same_end(in_parts, as_process, queries):
    whole = run(in_parts)
    retriever = in_parts.folder / "word_overlap.py"
    text = retriever.read_text()
    dying = (
        "        count = globals().setdefault('count', [0])\n"
        "        count[0] += len(queries)\n"
        f"        if count[0] >= {queries}:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        weight, depth ="
    )
    retriever.write_text(text.replace("        weight, depth =", dying, 1))
    as_process(in_parts.folder)("run", "config.yaml", code=KILLED)
    retriever.write_text(text)
    run_dir = in_parts.runs()[-1]
    done = json.loads(in_parts("resume", str(run_dir), "--json").stdout)
    for one, other in zip(journals(in_parts, whole), journals(in_parts, done), strict=True):
        assert asked_and_scored(one) == asked_and_scored(other)
    for name in ("sentence", "parts", "comparison"):
        assert done["verdict"][name] == whole["verdict"][name]
    again = json.loads(in_parts("resume", str(run_dir), "--json").stdout)
    assert again["queries_asked"] == done["queries_asked"]  # nothing is left to ask


def test_another_seed_looks_at_all_queries_again(in_parts):
    assert run(in_parts)["verdict"]["looks"] == 0
    price = ("--set", "objective.price.context_tokens_per_1000=0.7")
    second = run(in_parts, "--set", "study.seed=4", *price)["verdict"]
    assert second["looks"] == 1
    assert "All 44 queries were looked at once before" in second["sentence"]


def test_where_all_queries_choose_the_baseline_no_search_is_repeated(in_parts):
    # As good as it gets: one passage, and it is the one.
    in_parts.edit("{title_weight: 0.0, top_k: 10}", "{title_weight: 3.5, top_k: 1}")
    record = run(in_parts)
    assert record["verdict"]["reason"] == "the same parameters"
    assert not (in_parts.folder / record["run_dir"] / "parts").exists()


def test_check_says_what_it_asks_and_plan_knows_that_all_queries_decide(in_parts):
    told = in_parts("check", "config.yaml").stdout
    assert "13 trials of 44 queries, 572 to search again without each part" in told
    record = run(in_parts)
    run_dir = str(in_parts.folder / record["run_dir"])
    planned = json.loads(in_parts("plan", run_dir, "--effect", "0.1", "--json").stdout)
    spread = planned["spread"]
    assert spread["queries"] == 44
    assert spread["held_out_share"] is None
    assert spread["source"] == "winner against baseline on 44 queries of small"
    # Intervals are wider than those of as many held-out queries, so it takes more of them.
    (caveat,) = [one for one in record["verdict"]["caveats"] if "parts" in one["figures"]]
    assert spread["widened"] == caveat["figures"]["widened"] > 1.0
    wide = spread["widened"] * spread["standard_deviation"]
    assert planned["needed"][0]["queries"] == queries_needed(0.1, wide)
    assert planned["detectable"][0]["difference"] == pytest.approx(
        minimum_detectable_difference(30, wide)
    )
    words = in_parts("plan", run_dir).stdout
    assert f"intervals are {spread['widened']:.3g} times as wide, which is counted here" in words


def test_a_policy_and_a_comparison_are_not_decided_on_queries_that_chose(in_parts):
    run_dir = in_parts.folder / run(in_parts)["run_dir"]
    for options in ((), ("--by", "features")):
        said = in_parts("policy", str(run_dir), *options).stdout
        assert "No verdict: no" in said
    assert "no query was held out" in in_parts("policy", str(run_dir)).stdout
    asked = ("compare", "config.yaml", "--b", str(run_dir))
    assert "no query is held out; write --queries all" in in_parts(*asked, code=2).stderr
    done = in_parts(*asked, "--queries", "all")
    said = done.stdout + done.stderr
    assert "All these 44 queries were among those that B was tuned on (study small)" in said


def test_the_report_shows_what_each_part_chose(in_parts):
    record = run(in_parts)
    page = (in_parts.folder / record["run_dir"] / "report.html").read_text()
    assert "What the search without each part chose" in page
    for choice in record["verdict"]["parts"]:  # #7 would be the seventh of the study
        assert f">{choice['trial']} of parts/{choice['part']}<" in page


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("parts: 2", "parts: 2, holdout: 0.5", "give one of them"),
        ("parts: 2", "parts: 1", "greater than or equal to 2"),
        ("tracking: null", "tracking: null\nbudget: {minutes: 5}", "leave out budget.minutes"),
        ("tracking: null", "tracking: null\nstart_from: [runs/x]", "has seen every part"),
        ("tracking: null", "tracking: null\nstart_from: [no.yaml]", "no.yaml: no such file"),
        ("baseline: {title_weight: 0.0, top_k: 10}", "", "decides against the baseline"),
    ],
)
def test_what_does_not_go_with_parts_is_refused_with_its_line(in_parts, old, new, said):
    in_parts.edit(old, new)
    done = in_parts("check", "config.yaml", code=2)
    assert said in done.stderr
    assert "config.yaml:" in done.stderr


def test_too_few_queries_for_parts_are_refused(tuner_here):
    tuner_here.edit(SPLIT, PARTS)
    done = tuner_here("check", "config.yaml", code=2)
    assert "20 queries are too few to decide part by part: at least 40 are needed" in done.stderr


def test_copies_of_a_query_are_one_of_those_that_parts_need(in_parts):
    path = in_parts.folder / "data" / "queries.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[:6]:
        line["text"] = "how old is it?"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = in_parts("check", "config.yaml", code=2)
    assert "44 queries, which count as 39, are too few to decide part by part" in done.stderr


def test_nights_keep_to_a_fixed_holdout(in_parts):
    done = in_parts("nightly", "config.yaml", code=2)
    assert "hold queries out instead (holdout: 0.5)" in done.stderr


def test_a_study_that_goes_on_goes_on_without_each_part_too(in_parts):
    record = run(in_parts)
    run_dir = str(in_parts.folder / record["run_dir"])
    more = json.loads(in_parts("resume", run_dir, "--trials", "random=+2", "--json").stdout)
    longer = in_parts("run", "config.yaml", "--json", "--set", "backends.1.trials=8")
    for one, other in zip(
        journals(in_parts, more), journals(in_parts, json.loads(longer.stdout)), strict=True
    ):
        assert len(read_journal(one).trials) == 15
        assert sorted(map(str, asked_and_scored(one))) == sorted(map(str, asked_and_scored(other)))
    assert more["verdict"]["comparison"]["n"] == 44


def test_damaged_values_of_a_part_are_told_and_its_trials_count_by_their_means(in_parts):
    record = run(in_parts)
    run_dir = in_parts.folder / record["run_dir"]
    for path in (run_dir / "parts" / "2" / "trials").iterdir():
        path.write_bytes(b"no archive")
    again = in_parts("resume", str(run_dir), "--trials", "random=+1", "--json")
    assert "parts/2/trials/0.npz: this file of values by query is damaged" in again.stderr
    assert [one["queries"] for one in json.loads(again.stdout)["verdict"]["parts"]] == [22, 22]


def test_known_points_are_asked_in_every_search(in_parts):
    (in_parts.folder / "known.yaml").write_text("title_weight: 2.5\n", encoding="utf-8")
    known = "tracking: null\nstart_from: [{title_weight: 1.5, top_k: 3}, known.yaml]"
    in_parts.edit("tracking: null", known)
    points = [{"title_weight": 1.5, "top_k": 3}, {"title_weight": 2.5, "top_k": 10}]
    record = run(in_parts)
    for path in journals(in_parts, record):
        asked = asked_and_scored(path)
        assert [params for arm, params, _ in asked if arm == "earlier"] == points
        assert len(asked) == 15
    run_dir = str(in_parts.folder / record["run_dir"])
    in_parts("resume", run_dir, "--trials", "random=+1")
    assert [len(read_journal(path).trials) for path in journals(in_parts, record)] == [16] * 3


@pytest.mark.parametrize("name", ["best.yaml", "known.yaml"])
def test_no_search_without_a_part_starts_from_what_that_part_chose(in_parts, name):
    run_dir = in_parts.folder / run(in_parts)["run_dir"]
    known = in_parts.folder / name
    known.write_text((run_dir / "best.yaml").read_text(), encoding="utf-8")
    in_parts.edit("tracking: null", f"tracking: null\nstart_from: [{name}]")
    refused = in_parts("check", "config.yaml", code=2).stderr
    assert f"start_from.0: {name}: no search without a part of the queries may start" in refused
    assert "all these 44 queries were among those that it was tuned on (study small)" in refused


@pytest.fixture
def failing(in_parts):
    """Return what lets a system fail from one query to another; all trials ask 44, then 22."""
    retriever = in_parts.folder / "word_overlap.py"
    failing = (
        "        count = globals().setdefault('count', [0])\n"
        "        count[0] += len(queries)\n"
        "        first, last = map(int, Path('failing.txt').read_text().split())\n"
        "        if first < count[0] <= last:\n"
        "            raise RuntimeError('the key has run out')\n"
        "        weight, depth ="
    )
    text = retriever.read_text()
    retriever.write_text(text.replace("        weight, depth =", failing, 1), encoding="utf-8")
    retriever.write_text(f"from pathlib import Path\n{retriever.read_text()}", encoding="utf-8")

    def fails(first, last):
        (in_parts.folder / "failing.txt").write_text(f"{first} {last}", encoding="utf-8")

    return fails


def test_no_search_follows_one_that_failed_and_its_trials_can_be_evaluated_again(in_parts, failing):
    failing(13 * 44 + 4 * 22, 10**9)
    done = in_parts("run", "config.yaml")
    (run_dir,) = in_parts.runs()
    said = (
        "the search without part 1 failed: 9 of 13 trials could not be evaluated, most often by: "
    )
    again = f"once that is mended: tuner resume {run_dir.relative_to(in_parts.folder)}"
    assert said in done.stderr
    assert f"{again} --retry-failed" in done.stderr
    assert not (run_dir / "parts" / "2").exists()
    failing(0, 0)
    assert said in in_parts("resume", str(run_dir)).stderr
    assert not (run_dir / "parts" / "2").exists()
    done = in_parts("resume", str(run_dir), "--retry-failed", "--json")
    assert "no trial of the search on all queries failed" in done.stderr
    assert "part 1 of 2: 9 failed trials will be evaluated again" in done.stderr
    assert "part 2 of 2: the search once more" in done.stderr
    verdict = json.loads(done.stdout)["verdict"]
    assert [choice["queries"] for choice in verdict["parts"]] == [22, 22]
    assert "failed" not in verdict["sentence"]


def test_failures_in_the_searches_without_a_part_stand_in_the_verdict(in_parts, failing):
    failing(13 * 44 + (13 + 9) * 22, 13 * 44 + 26 * 22)
    sentence = run(in_parts)["verdict"]["sentence"]
    share = "(4 of 26 trials of the searches without a part, 15 %, failed, most often by: "
    assert share in sentence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tracking: null", "tracking: null\nracing: {}"),
        ("{context_tokens_per_1000: 0.1}", "{}\n  pareto: [composite, context_tokens]"),
        (
            "tracking: null",
            "tracking: null\nverdict: {guardrails: {recall@5: {max_decrease: 0.1}}}",
        ),
        ("tracking: null", "tracking: null\nstop: {gain_below: 0.5}"),
        ("kind: inline", "kind: processes, workers: 2"),
    ],
    ids=["racing", "front", "guardrail", "stop", "processes"],
)
def test_what_goes_with_a_study_goes_with_its_parts(in_parts, as_process, old, new):
    in_parts.edit(old, new)
    done = as_process(in_parts.folder)("run", "config.yaml", "--json")
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["comparison"]["n"] == 44
    assert len(verdict["parts"]) == 2
