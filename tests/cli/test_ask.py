"""tuner ask: one question, what is retrieved for it, why, and what that costs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cli.paid import PaidService


@pytest.fixture
def engine(tuner_here):
    """Configure the built-in engine; the data set gets relations."""
    tuner_here.edit('retriever: {kind: "word_overlap:WordOverlap"}', "retriever: {kind: hybrid}")
    tuner_here.edit(
        "title_weight: {type: real, low: 0.0, high: 4.0}",
        "graph_weight: {type: real, low: 0.0, high: 1.0}",
    )
    tuner_here.edit("title_weight: 1.0, top_k: 10", "graph_weight: 0.5, max_hops: 2, top_k: 4")
    rows = [
        {"doc_id": "Lima-river", "subject": "Lima", "relation": "lies on", "object": "Rimac"},
        {"doc_id": "Oslo-river", "subject": "Rimac", "relation": "is far from", "object": "Oslo"},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tuner_here.folder / "data" / "triples.jsonl").write_text(text, encoding="utf-8")
    return tuner_here


def asked(tuner_here, *arguments: str) -> dict[str, Any]:
    return json.loads(tuner_here("ask", "config.yaml", *arguments, "--json").stdout)


def parts_of(tuner_here) -> tuple[str, str]:
    """Return a query that is tuned on, and one that is held out."""
    done = {}
    for number in range(10):
        record = asked(tuner_here, f"q{number}-river")
        done.setdefault(record["query"]["part"], f"q{number}-river")
    for path in (tuner_here.folder / "runs").glob("holdouts.jsonl"):
        path.unlink()
    return done["tune"], done["holdout"]


def test_a_query_of_the_data_set_by_id_or_by_words(engine):
    by_id = asked(engine, "q0-river")
    assert by_id["query"] == {
        "id": "q0-river",
        "query_type": "river",
        "part": by_id["query"]["part"],
        "relevant": ["Lima-river"],
    }
    side = by_id["a"]
    assert side["params"]["graph_weight"] == 0.5
    assert [one["relevant"] for one in side["passages"]].count(True) == 1
    assert side["metrics"]["mrr@10"] == 1.0
    assert side["tokens"] > 0
    assert side["seconds"] > 0
    assert by_id["a"]["passages"][0]["title"] == "Lima"
    by_words = asked(engine, "How  old is the RIVER of Lima?")
    assert by_words["query"] == by_id["query"]
    assert by_words["a"]["passages"] == side["passages"]


def test_every_figure_of_a_query_is_what_evaluate_says_of_it(engine):
    table = engine.folder / "each.csv"
    engine("evaluate", "config.yaml", "--queries", "all", "--per-query", str(table))
    head, *rows = (line.split(",") for line in table.read_text().splitlines())
    row = next(dict(zip(head, one, strict=False)) for one in rows if one[0] == "q3-market")
    metrics = asked(engine, "q3-market")["a"]["metrics"]
    for name in ("recall@5", "mrr@10", "ndcg@10", "context_tokens"):
        assert metrics[name] == pytest.approx(float(row[name]), rel=1e-5)


def test_legs_names_and_ways_of_the_engine(engine):
    side = asked(engine, "which city lies on the Rimac", "--params", '{"temperature": 0.01}')["a"]
    assert side["names"][0]["name"] == "rimac"
    assert side["names"][0]["weight"] > 0.9
    for one in side["passages"]:
        parts = sum(leg["part"] for leg in one["legs"].values())
        assert one["score"] == pytest.approx(parts, abs=1e-5)
    found = {one["id"]: one for one in side["passages"]}
    (way, *_) = found["Lima-river"]["paths"]
    assert (way["names"], way["passages"]) == (["rimac"], ["Lima-river"])
    onward = [way for way in found["Lima-market"]["paths"] if len(way["names"]) == 2]
    assert onward[0]["names"] == ["rimac", "lima"]
    assert onward[0]["relations"] == [["lima", "lies on", "rimac"]]
    assert sum(way["share"] for way in found["Lima-market"]["paths"]) <= 1.0 + 1e-6


def test_the_same_as_a_table(engine):
    done = engine("ask", "config.yaml", "q0-river", "--k", "2")
    lines = done.stdout.splitlines()
    assert lines[0] == "how old is the river of Lima?"
    head = next(line for line in lines if "passage" in line and "score" in line)
    assert head.split() == [
        "passage", "score", "text", "text", "part", "graph", "graph", "part", "tokens"
    ]  # fmt: skip
    first = next(line for line in lines if line.startswith("1 "))
    assert first.split()[1:4] == ["✓", "Lima", "(Lima-river)"]
    assert "2 more passages: --k 4" in done.stdout
    assert "names  lima" in done.stdout
    assert "mrr@10" in done.stdout
    assert "asked:" not in done.stderr  # the engine costs nothing


def test_a_free_text_has_no_metrics_and_no_marks(engine):
    record = asked(engine, "something about markets in Oslo")
    assert record["query"] is None
    assert record["a"]["metrics"] == {}
    assert {one["relevant"] for one in record["a"]["passages"]} == {None}
    done = engine("ask", "config.yaml", "something about markets in Oslo")
    assert "no query of the data set: nobody said which passages are relevant" in done.stdout
    assert "metric" not in done.stdout


def test_two_configurations_side_by_side(engine):
    other = '{"graph_weight": 0.0, "top_k": 3}'
    record = asked(engine, "q0-river", "--compare", other)
    a = {one["id"]: one["rank"] for one in record["a"]["passages"]}
    b = {one["id"]: one["rank"] for one in record["b"]["passages"]}
    assert "graph" not in record["b"]["passages"][0]["legs"]
    assert "names" not in record["b"]
    for one in record["moved"]:
        assert (one["a"], one["b"]) == (a.get(one["id"]), b.get(one["id"]))
        came, went = one["a"] is None, one["b"] is None
        up = None if came or went else one["b"] < one["a"]
        assert one["change"] == (
            "came" if came else "went" if went else "up" if up
            else "same" if one["a"] == one["b"] else "down"
        )  # fmt: skip
    assert "went" in {one["change"] for one in record["moved"]}  # four against three
    done = engine("ask", "config.yaml", "q0-river", "--compare", other)
    assert "A  graph_weight=0.5 top_k=4" in done.stdout
    assert "B  graph_weight=0 top_k=3" in done.stdout
    assert "B less A" in done.stdout
    head = next(line for line in done.stdout.splitlines() if "score A" in line)
    assert "graph A" in head


def test_a_passage_beyond_what_is_shown_has_not_come(engine):
    record = asked(engine, "q0-river", "--compare", "baseline", "--k", "1")
    assert record["moved"] == [{"id": "Lima-river", "a": 1, "b": 1, "change": "same"}]
    assert record["a"] == record["b"]
    assert record["a"]["retrieved"] == 4


def test_parameters_of_a_run_and_of_its_best_yaml(tuner_here):
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    by_folder = asked(tuner_here, "q0-river", "--params", str(run_dir))["a"]
    by_file = asked(tuner_here, "q0-river", "--params", str(run_dir / "best.yaml"))["a"]
    assert by_folder["params"] == by_file["params"]
    assert by_folder["passages"] == by_file["passages"]
    baseline = asked(tuner_here, "q0-river", "--params", "baseline")["a"]
    assert baseline["params"]["title_weight"] == 1.0
    assert baseline["passages"] == asked(tuner_here, "q0-river")["a"]["passages"]


def test_what_another_system_does_not_tell_is_absent(tuner_here):
    one = asked(tuner_here, "q0-river", "--k", "1")["a"]
    assert not {"names", "paths"} & one.keys()
    assert one["passages"][0].keys() == {"rank", "id", "title", "text", "relevant"}
    done = tuner_here("ask", "config.yaml", "q0-river")
    head = next(line for line in done.stdout.splitlines() if "passage" in line and "✓" not in line)
    assert head.split() == ["passage"]
    assert "names" not in done.stdout


def test_names_and_paths_that_a_system_tells_are_shown(tuner_here):
    retriever = tuner_here.folder / "word_overlap.py"
    told = (
        "context_tokens=tokens, entities=[['Lima'] for _ in queries], "
        "paths=[[(('Lima', 'lies on', 'Rimac'),)] for _ in queries]"
    )
    retriever.write_text(retriever.read_text().replace("context_tokens=tokens", told))
    side = asked(tuner_here, "q0-river")["a"]
    assert side["names"] == [{"name": "Lima"}]
    assert side["paths"] == [[["Lima", "lies on", "Rimac"]]]
    done = tuner_here("ask", "config.yaml", "q0-river")
    assert "names  Lima" in done.stdout
    assert "path  Lima –lies on→ Rimac" in done.stdout


def test_a_held_out_query_is_a_look_and_any_other_is_none(tuner_here):
    looks = tuner_here.folder / "runs" / "holdouts.jsonl"
    tuned, held_out = parts_of(tuner_here)
    tuner_here("ask", "config.yaml", tuned)
    tuner_here("ask", "config.yaml", "where is Lima")
    assert not looks.exists()
    done = tuner_here("ask", "config.yaml", held_out)
    assert "note: remembered as a look at the held-out query, in runs/holdouts.jsonl" in done.stderr
    assert "held out" in done.stdout
    assert len(looks.read_text().splitlines()) == 1
    again = tuner_here("ask", "config.yaml", held_out, "--params", "baseline")
    assert "no further look at the held-out query: it was asked the same before" in again.stderr
    assert len(looks.read_text().splitlines()) == 1
    record = asked(tuner_here, held_out, "--params", '{"title_weight": 3.0}')
    assert record["holdout_looks"]["is_new"]
    assert record["holdout_looks"]["count"] == 1
    assert len(looks.read_text().splitlines()) == 2
    by_words = tuner_here("ask", "config.yaml", record["question"].upper())
    assert "no further look" in by_words.stderr


def test_a_query_of_a_holdout_that_was_looked_at_whole_is_no_further_look(tuner_here):
    _, held_out = parts_of(tuner_here)
    tuner_here("evaluate", "config.yaml", "--queries", "holdout")
    done = tuner_here("ask", "config.yaml", held_out)
    assert "no further look" in done.stderr


TOKENS = 500.0


def answer(query: str, params: Mapping[str, Any]) -> tuple[Mapping[str, Any], float]:
    hits = [{"id": "Lima-river", "score": 2.0}, {"id": "Oslo-river", "score": 1.0}]
    return {"results": hits, "context_tokens": TOKENS}, TOKENS


@pytest.fixture
def service() -> Iterator[PaidService]:
    service = PaidService(answer)
    yield service
    service.close()


def pay(tuner_here, service: PaidService) -> None:
    retriever = {
        "kind": "http",
        "url": service.url,
        "request": {"query": "query", "params": "params"},
        "response": "@",
        "headers": {"Authorization": "${THE_TOKEN}"},
    }
    tuner_here.edit(
        'retriever: {kind: "word_overlap:WordOverlap"}', f"retriever: {json.dumps(retriever)}"
    )
    path = tuner_here.folder / "config.yaml"
    path.write_text(path.read_text() + "cost: {per_query: 0.01, per_1000_tokens: 0.5}\n")


def test_a_question_to_a_priced_system_is_counted(tuner_here, service, monkeypatch):
    monkeypatch.setenv("THE_TOKEN", "a-secret-of-mine")
    pay(tuner_here, service)
    done = tuner_here("ask", "config.yaml", "where is Lima")
    assert service.asked == 1
    # 1 query at 0.01, and 500 tokens at 0.5 a thousand: 0.26
    assert "asked: 1 query, 500 tokens, money 0.26" in done.stderr
    record = asked(tuner_here, "where is Lima", "--compare", '{"title_weight": 3.0}')
    assert service.asked == 3
    assert (record["queries_asked"], record["money"]) == (2, pytest.approx(0.52))
    assert record["a"]["passages"][0]["score"] == 2.0
    assert "a-secret-of-mine" not in done.stdout + done.stderr + json.dumps(record)


PREPARES = """
    def serve(self, query, params):
        return self.retrieve([query], params)

    def retrieve(self, queries, params):
        with open("calls.txt", "a") as calls:
            calls.writelines(f"{query.text}\\n" for query in queries)
        return self.answered(queries, params)
"""


def calls(tuner_here) -> int:
    """Return how often a service was asked since the last time, as it says itself."""
    path = tuner_here.folder / "calls.txt"
    count = len(path.read_text().splitlines()) if path.exists() else 0
    path.unlink(missing_ok=True)
    return count


def test_what_prepares_queries_ahead_is_asked_once_by_each_configuration(tuner_here):
    path = tuner_here.folder / "word_overlap.py"
    path.write_text(path.read_text().replace("def retrieve(", "def answered(") + PREPARES)
    other = '{"title_weight": 3.0}'
    for question in ("q0-river", "where is Lima"):
        record = asked(tuner_here, question, "--compare", other)
        assert (record["queries_asked"], calls(tuner_here)) == (2, 2)
        assert min(record["a"]["seconds"], record["b"]["seconds"]) > 0
    tuner_here("run", "config.yaml", "--quiet")
    calls(tuner_here)
    record = asked(tuner_here, "where is Lima", "--params", str(tuner_here.runs()[0]))
    assert (record["queries_asked"], calls(tuner_here)) == (1, 1)


def test_a_policy_and_what_it_chooses_are_one_configuration(tuner_here, service, monkeypatch):
    monkeypatch.setenv("THE_TOKEN", "a-secret-of-mine")
    pay(tuner_here, service)
    flat = {"title_weight": 2.0, "top_k": 10}
    rule = {"start": {"river": 0.0, "market": -1.0}, "weights": {"market": {"market": 2.0}}}
    policy = {"default": flat, "types": {"market": {**flat, "top_k": 3}}, "rule": rule}
    (tuner_here.folder / "policy.yaml").write_text(json.dumps({"params": policy}))
    both = ("--params", "policy.yaml", "--compare", json.dumps(flat))
    record = asked(tuner_here, "q0-river", *both)
    assert service.asked == 1
    assert record["a"]["params"] == record["b"]["params"] == flat
    assert "policy" in record["a"]
    assert "policy" not in record["b"]
    asked(tuner_here, "q0-market", *both)
    assert service.asked == 3


@pytest.mark.slow
def test_what_a_run_paid_for_is_not_asked_again(tuner_here, service, monkeypatch):
    monkeypatch.setenv("THE_TOKEN", "a-secret-of-mine")
    pay(tuner_here, service)
    tuner_here("run", "config.yaml", "--quiet")
    (run_dir,) = tuner_here.runs()
    tuned, _ = parts_of(tuner_here)
    service.begin_anew()
    done = tuner_here("ask", "config.yaml", tuned, "--params", str(run_dir))
    assert service.asked == 0
    assert "an answer that was kept" in done.stdout
    assert "1 query not asked again, as its answer was kept" in done.stderr
    record = asked(tuner_here, tuned, "--params", str(run_dir))
    assert (record["queries_asked"], record["kept_answers"], record["money"]) == (0, 1, 0.0)
    assert record["a"]["seconds"] is None


def test_texts_do_nothing_to_a_terminal(tuner_here):
    path = tuner_here.folder / "data" / "corpus.jsonl"
    lines = path.read_text().splitlines()
    evil = {"_id": "Lima-river", "title": "Lima [bold red]\x1b[31m\u202e", "text": "[link=x]river"}
    lines[0] = json.dumps(evil)
    path.write_text("\n".join(lines) + "\n")
    question = "river of \x1b]0;title\x07 [red]Lima[/red]?"
    every = ("--params", '{"top_k": 20}', "--k", "20")
    done = tuner_here("ask", "config.yaml", question, *every)
    assert "\x1b" not in done.stdout + done.stderr
    assert "[bold red]\\u001b[31m" in done.stdout
    assert "[red]Lima[/red]?" in done.stdout


@pytest.mark.parametrize("width", ["30", "60", "80", "200"])
def test_a_narrow_terminal_gets_every_passage(engine, monkeypatch, width):
    from rich.console import Console

    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setattr(Console, "is_terminal", property(lambda self: True))
    done = engine("ask", "config.yaml", "q0-river", "--compare", '{"graph_weight": 0.2}')
    words = " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) < 400
    assert "…" not in words
    for column in ("A", "B", "passage"):
        assert column in words.split()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("",), "the question is empty"),
        ((" ",), "the question is empty"),
        (("q0-river", "--params", "nowhere.yaml"), "nowhere.yaml"),
        (("q0-river", "--params", '{"colour": 1}'), "colour"),
        (("q0-river", "--compare", "{"), "--compare is not valid JSON"),
        (("q0-river", "--k", "0"), "--k"),
        (("q0-river", "and", "more"), "unexpected extra argument"),
    ],
)
def test_bad_input(tuner_here, arguments, said):
    done = tuner_here("ask", "config.yaml", *arguments, code=2)
    assert said in done.stderr
    assert not done.stdout


def test_a_system_that_measures_itself_answers_nothing(tuner_here):
    (tuner_here.folder / "own.py").write_text("def measure(top_k):\n    return {'score': 1.0}\n")
    (tuner_here.folder / "own.yaml").write_text(
        "retriever: {kind: function, function: 'own:measure'}\n"
        "space: {top_k: {type: integer, low: 1, high: 3}}\n"
        "objective: {maximize: {score: 1.0}}\n"
        "baseline: {top_k: 2}\n"
        "backends: [{kind: random, trials: 2}]\n"
        "tracking: null\n"
    )
    done = tuner_here("ask", "own.yaml", "where is Lima", code=2)
    assert "measures itself" in done.stderr


def test_legs_of_run_files_and_their_parts(tuner_here):
    for name, first, second in (("graph", "Oslo", "Lima"), ("text", "Lima", "Cairo")):
        (tuner_here.folder / f"{name}.run").write_text(
            f"q0-river Q0 {first}-river 1 1.0 r\nq0-river Q0 {second}-river 2 0.5 r\n"
        )
    tuner_here.edit(
        '{kind: "word_overlap:WordOverlap"}',
        "{kind: runs, legs: {graph: graph.run, text: text.run}}",
    )
    tuner_here.edit(
        "title_weight: {type: real, low: 0.0, high: 4.0}",
        "weight_graph: {type: real, low: 0.0, high: 1.0}",
    )
    tuner_here.edit("title_weight: 1.0", "weight_graph: 0.4")
    found = asked(tuner_here, "q0-river")["a"]["passages"]
    assert len(found) == 3
    for one in found:
        parts = [leg["part"] for leg in one["legs"].values() if leg["part"] is not None]
        assert one["score"] == pytest.approx(sum(parts))
    only = next(one for one in found if one["id"] == "Cairo-river")
    assert only["legs"]["graph"]["score"] is None
