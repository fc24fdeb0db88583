"""What is declared free is checked, and then computed from one answer, unless ``free: off``."""

from __future__ import annotations

import json

import pytest

from tuner import load_study

DECLARED = """
    def free_knobs(self, fixed, searched):
        from tuner.retrieval.free import FreeKnobs
        return FreeKnobs(("top_k",))

    def prepare(self, queries):
"""


@pytest.fixture
def free(tuner_here):
    """A small study of a retriever whose top_k is free, and that tells each passage's tokens."""
    path = tuner_here.folder / "word_overlap.py"
    text = path.read_text(encoding="utf-8")
    text = text.replace("\n    def prepare(self, queries):\n", DECLARED)
    text = text.replace("context_tokens=tokens)", "context_tokens=tokens, tokens=each)")
    text = text.replace(
        "        tokens = np",
        "        each = np.full((len(answers), depth), 8.0)\n        tokens = np",
    )
    path.write_text(text, encoding="utf-8")
    return tuner_here


def told(run_dir):
    lines = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for line in lines if (event := json.loads(line))["event"] == "told"]


def notes(run_dir, kind):
    lines = (run_dir / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for line in lines if (event := json.loads(line)).get("kind") == kind]


def test_a_free_parameter_is_computed_and_not_asked(free):
    done = free("run", "config.yaml")
    assert "free: top_k: every value is computed from one answer, none is asked" in done.stderr
    (run_dir,) = free.runs()
    baseline, *others = told(run_dir)
    assert "profile" not in baseline
    assert all(trial["profile"]["looked_at"] == 12 for trial in others)
    assert all(trial["params"].keys() == {"title_weight", "top_k"} for trial in others)
    assert all(trial["profile"]["asked"].keys() == {"title_weight"} for trial in others)
    # Five queries, with the largest top_k and with one in the middle.
    assert "10 to check which parameters are free" in " ".join(done.stdout.split())
    evaluated = [trial for trial in others if trial["state"] == "finished"]
    assert f"saved          {11 * len(evaluated)} settings computed, not asked" in done.stdout
    study = load_study(run_dir)
    curve = study.curves()
    assert curve["parameter"].unique().tolist() == ["top_k"]
    assert curve["value"].tolist() == list(range(1, 13))
    chosen = curve[curve["value"] == study.winner.params["top_k"]]
    assert chosen["objective"].item() == pytest.approx(study.winner.tune_objective)
    assert study.curves(0).empty  # the baseline's value is given


def test_a_parameter_that_is_not_what_it_was_said_to_be_is_asked(free):
    path = free.folder / "word_overlap.py"
    text = path.read_text(encoding="utf-8")
    lie = "scored = scored[1:] if depth < 9 else scored\n            answers.append("
    path.write_text(text.replace("answers.append(", lie), encoding="utf-8")
    done = free("run", "config.yaml")
    assert "not free: top_k: with top_k=7 query '" in done.stderr
    assert " at rank 1, where one answer to all values tells of '" in done.stderr
    (run_dir,) = free.runs()
    assert not any("profile" in trial for trial in told(run_dir))
    assert notes(run_dir, "free_knobs")[0]["free"] == []


def test_a_system_that_counts_no_passage_has_no_free_top_k(free):
    path = free.folder / "word_overlap.py"
    text = path.read_text(encoding="utf-8").replace(", tokens=each", "")
    path.write_text(text, encoding="utf-8")
    done = free("run", "config.yaml")
    assert "does not tell each passage's" in done.stderr


def test_a_latency_in_the_objective_is_known_of_the_largest_value_alone(free):
    free.edit("baseline:", "  constraints: {latency_p95_ms: {max: 5000}}\nbaseline:")
    done = free("run", "config.yaml")
    assert "not free: top_k: the objective looks at the latency" in done.stderr


def test_a_study_that_goes_on_checks_nothing_again(free):
    free("run", "config.yaml")
    (run_dir,) = free.runs()
    path = run_dir / "journal.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if '"summary"' not in line and '"ending"' not in line][:12]
    long = [trial["params"] for trial in told(run_dir)]
    path.write_text("".join(kept), encoding="utf-8")
    done = free("resume", str(run_dir))
    assert "free: top_k" in done.stderr
    assert "to check which" not in done.stderr
    assert len(notes(run_dir, "free_knobs")) == 1
    assert [trial["params"] for trial in told(run_dir)] == long


def test_with_free_off_every_value_is_asked(free):
    free.edit("tracking: null", "tracking: null\nfree: off")
    done = free("run", "config.yaml")
    assert "free: top_k" not in done.stderr
    (run_dir,) = free.runs()
    assert not any("profile" in trial for trial in told(run_dir))
    assert json.loads(free("check", "config.yaml", "--json").stdout)["free"] == "nothing"


def test_a_study_that_says_nothing_of_it_stays_as_it_was(free):
    free.edit("tracking: null", "tracking: null\nfree: off")
    first = json.loads(free("run", "config.yaml", "--json").stdout)
    (run_dir,) = free.runs()
    config, path = run_dir / "config.yaml", run_dir / "journal.jsonl"
    config.write_text(config.read_text(encoding="utf-8").replace("free: 'off'\n", ""))
    header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    record = json.loads(header)
    assert record["config"].pop("free") == "off"
    path.write_text("".join([json.dumps(record) + "\n", *lines]), encoding="utf-8")
    assert "free" not in config.read_text(encoding="utf-8")
    # It has ended, with a verdict that is not given again.
    again = json.loads(free("resume", str(run_dir), "--json").stdout)
    assert again["queries_asked"] == first["queries_asked"]
    done = free("resume", str(run_dir), "--trials", "random=+3")
    assert "random goes on to 9 trials, 3 more" in done.stderr
    assert "free: top_k" not in done.stderr
    assert not any("profile" in trial for trial in told(run_dir))


def test_workers_change_no_trial(free):
    free("run", "config.yaml")
    free.edit("execution: {kind: inline}", "execution: {kind: threads, workers: 2}")
    free("run", "config.yaml")
    first, second = (told(run_dir) for run_dir in sorted(free.runs()))
    params = [{trial["trial"]: trial["params"] for trial in run} for run in (first, second)]
    assert params[0] == params[1]


def test_trials_race_with_the_best_that_their_answers_tell_of(free):
    free.edit("tracking: null", "tracking: null\nracing: {}")
    free("run", "config.yaml")
    (run_dir,) = free.runs()
    _, *others = told(run_dir)
    assert all(trial["profile"]["asked"].keys() == {"title_weight"} for trial in others)


def test_levels_that_an_arm_names_are_searched(free):
    free.edit("{kind: grid, trials: 6}", "{kind: grid, trials: 6, levels: {top_k: 2}}")
    done = free("run", "config.yaml")
    assert "not free: top_k: an arm names levels of it" in done.stderr


def test_a_warm_start_and_known_points_go_with_free_parameters(free):
    free("run", "config.yaml")
    (first,) = free.runs()
    known = "{title_weight: 2.5, top_k: 7}"
    free.edit("tracking: null", f"tracking: null\nstart_from: ['{first}', {known}]")
    free("run", "config.yaml")
    events = told(free.runs()[-1])
    given = [event for event in events if event["arm"] == "earlier"]
    assert {"title_weight": 2.5, "top_k": 7} in [event["params"] for event in given]
    # What is given whole is asked as it is, and none of it is asked for again.
    assert not any("profile" in event for event in given)
    before = {event["profile"]["asked"]["title_weight"] for event in told(first)[1:]}
    after = {e["profile"]["asked"]["title_weight"] for e in events if e["arm"] == "random"}
    assert after
    assert not before & after


def test_a_system_that_is_down_at_the_check_is_asked_when_the_study_goes_on(free):
    path = free.folder / "word_overlap.py"
    text = path.read_text(encoding="utf-8")
    asking = 'if os.path.exists("down"):\n            raise ConnectionError("refused")\n        '
    text = text.replace("weight, depth", f"{asking}weight, depth", 1)
    path.write_text(text, encoding="utf-8")
    (free.folder / "down").touch()
    done = free("run", "config.yaml", code=130)
    assert "the system does not answer" in done.stderr
    (free.folder / "down").unlink()
    (run_dir,) = free.runs()
    done = free("resume", str(run_dir))
    assert "free: top_k: every value" in done.stderr
    assert all("profile" in trial for trial in told(run_dir)[1:])


def test_a_check_says_what_is_free_and_what_is_not_as_the_run_does(free):
    facts = json.loads(free("check", "config.yaml", "--json").stdout)
    assert facts["free"] == "top_k: every value is computed from one answer, none is asked"
    assert facts["not_free"] == "title_weight: an answer tells nothing of other values"
    assert "10 to check what is free" in facts["queries_to_ask"]
    assert "free" in free("check", "config.yaml").stdout
    assert not (free.folder / "runs").exists()


def test_a_probe_sees_whether_what_is_declared_free_is_so(free):
    path = free.folder / "word_overlap.py"
    text = path.read_text(encoding="utf-8")
    lie = "scored = scored[1:] if depth < 9 else scored\n            answers.append("
    path.write_text(text.replace("answers.append(", lie), encoding="utf-8")
    assert "top_k" in json.loads(free("check", "config.yaml", "--json").stdout)["free"]
    facts = json.loads(free("check", "config.yaml", "--probe", "--json").stdout)
    assert facts["free"] == "nothing"
    assert facts["not_free"].startswith("top_k: with top_k=7 query '")


def test_where_nothing_is_free_a_run_says_nothing_of_it(tuner_here):
    done = tuner_here("run", "config.yaml")
    assert "free" not in done.stdout + done.stderr
    (run_dir,) = tuner_here.runs()
    assert not notes(run_dir, "free_knobs")


def test_each_type_of_query_has_free_values_of_its_own(free):
    path = free.folder / "word_overlap.py"
    text = path.read_text(encoding="utf-8")
    # What answers a question on markets is third, so that river alone is served best by one.
    third = 'if "market" in query.text:\n                scored = scored[1:3] + scored[:1] + '
    text = text.replace(
        "answers.append([id_", f"{third}scored[3:]\n            answers.append([id_"
    )
    path.write_text(text, encoding="utf-8")
    free("run", "config.yaml", "--quiet")
    (run_dir,) = free.runs()
    record = json.loads(free("policy", str(run_dir), "--prior", "0", "--json").stdout)
    market, river = record["types"]
    assert (record["default"]["top_k"], market["params"]["top_k"]) == (3, 3)
    assert (river["query_type"], river["params"]["top_k"]) == ("river", 1)
    # Two passages of 8 tokens less, at 0.1 for each 1,000.
    assert river["tune_gain"] == pytest.approx(2 * 8 * 0.1 / 1000)
    assert river["trial"] in {trial["trial"] for trial in told(run_dir)}
    assert record["verdict"]["outcome"]


CONDITIONAL = """\
study: {name: runs, seed: 3}
dataset: {path: data, split: {holdout: 0.5, stratify_by: [query_type]}}
retriever: {kind: runs, legs: {titles: titles.json, texts: texts.json}}
space:
  fusion: {type: categorical, choices: [score, rrf]}
  normalisation: {type: categorical, choices: [min_max, z], when: {fusion: score}}
  rrf_k: {type: integer, low: 1, high: 100, scale: log, when: {fusion: rrf}}
  weight_texts: {type: real, low: 0.1, high: 1.0}
  top_k: {type: integer, low: 1, high: 8}
objective: {maximize: {recall@5: 0.5, mrr@10: 0.5}, price: {context_tokens_per_1000: 0.1}}
baseline: {fusion: rrf, rrf_k: 60, weight_texts: 1.0, top_k: 8}
backends: [{kind: random, trials: 4}]
execution: {kind: inline}
tracking: null
"""


def test_a_parameter_under_a_condition_is_free_where_that_holds(tuner_here):
    folder = tuner_here.folder
    documents, queries = (
        [json.loads(line) for line in (folder / "data" / f"{name}.jsonl").read_text().splitlines()]
        for name in ("corpus", "queries")
    )
    for name, part in (("titles", "title"), ("texts", "text")):
        run = {
            query["_id"]: {
                d["_id"]: len(set(query["text"].split()) & set(f"{d[part]} of".split()))
                + 0.01 * place
                for place, d in enumerate(documents[number % 5 : number % 5 + 12])
            }
            for number, query in enumerate(queries)
        }
        (folder / f"{name}.json").write_text(json.dumps(run), encoding="utf-8")
    (folder / "config.yaml").write_text(CONDITIONAL, encoding="utf-8")
    facts = json.loads(tuner_here("check", "config.yaml", "--probe", "--json").stdout)
    assert facts["free"].startswith("top_k, weight_texts, rrf_k: every value is computed")
    assert facts["not_free"].startswith("fusion, normalisation: an answer tells nothing")
    tuner_here("run", "config.yaml")
    (run_dir,) = tuner_here.runs()
    asked = [event for event in told(run_dir) if "profile" in event]
    assert asked
    for event in asked:
        is_rrf = event["params"]["fusion"] == "rrf"
        names = {curve["name"] for curve in event["profile"]["curves"]}
        assert names == {"weight_texts", "top_k", *(["rrf_k"] if is_rrf else [])}
        assert ("rrf_k" in event["params"]) == is_rrf
        assert not event["profile"]["asked"].keys() & {"weight_texts", "top_k", "rrf_k"}
    path = run_dir / "journal.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    ends = [place for place, line in enumerate(lines) if '"told"' in line]
    before = [event["params"] for event in told(run_dir)]
    path.write_text("".join(lines[: ends[1] + 1]), encoding="utf-8")
    tuner_here("resume", str(run_dir))
    assert [event["params"] for event in told(run_dir)] == before
