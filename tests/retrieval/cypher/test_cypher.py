"""A graph in ladybug, asked in steps: what is found, what is tuned, what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from tests.retrieval.cypher.graphs import (
    BASELINE,
    CORPUS,
    GRAPH,
    IDS,
    QUERIES,
    SEEDS,
    STEPS,
    write_graph,
)
from tuner.cli import tuner as command_line
from tuner.core.corpus import Query
from tuner.core.errors import InputError, TunerError
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.retrieval.adapters.cypher import Cypher
from tuner.retrieval.adapters.cypher.ladybug import Ladybug
from tuner.retrieval.adapters.cypher.statement import Statement
from tuner.run.systems import declared_knobs
from tuner.testing import RetrieverCase, RetrieverContract

pytest.importorskip("ladybug", reason="ladybug is not installed: pip install '.[ladybug]'")

TEXT = {"text": {"bm25": "$starts"}}
SPACE = SearchSpace({"hops": Integer(0, 3), "depth": Integer(1, 20)})
MIXED = {**BASELINE, "starts": 3, "weight_text": 0.5}
MIXED_STEPS = [TEXT, {"seeds": SEEDS}, {"graph": GRAPH}]


@lru_cache(maxsize=1)
def graph() -> Path:
    return write_graph(Path(mkdtemp()) / "graph.lbug")


def built(steps: Any = None, **given: Any) -> Cypher:
    given = {
        "database": str(graph()),
        "cache_dir": Path(mkdtemp()),
        "steps": STEPS if steps is None else steps,
        "baseline": BASELINE,
        "timeout_s": 900,  # a loaded machine may be slow
        **given,
    }
    return Cypher.build(given.pop("corpus", CORPUS), **given)


def found(retriever: Cypher, query: str, **params: Any) -> list[str]:
    return retriever.retrieve([Query("q", query)], params).ids(0)


def one(statement: str, **baseline: Any) -> Cypher:
    """Return a retriever of one step."""
    return built([{"graph": statement}], baseline=baseline)


class TestCypher(RetrieverContract):
    case = RetrieverCase(
        lambda: built(space=SPACE),
        QUERIES,
        ({}, {"hops": 3, "depth": 20}, {"hops": 0, "seeds": 1, "top_k": 1}),
        document_ids=IDS,
    )


class TestCypherWithOurWords(RetrieverContract):
    case = RetrieverCase(
        lambda: built(MIXED_STEPS, legs=["text", "graph"], baseline=MIXED),
        QUERIES,
        (
            {},
            {"hops": 3, "weight_text": 0.0},
            {"weight_graph": 0.25, "normalisation": "z", "top_k": 2},
            {"fusion": "rrf", "rrf_k": 10, "hops": 0},
        ),
        document_ids=IDS,
    )


def test_the_steps_lead_from_names_over_hops_to_passages() -> None:
    retriever = built()
    query = "Where was the director of Night Ferry born?"
    # Night Ferry alone is a seed. 0 hops: passage 10 mentions it. 1 hop: Ada Holm, in 10 and 11.
    assert found(retriever, query, hops=0) == ["10"]
    assert found(retriever, query, hops=1) == ["10", "11"]
    # 2 hops: Kvarnby, which 11, 12 and 14 mention; 10 and 11 are met twice.
    assert found(retriever, query, hops=2) == ["10", "11", "12", "14"]
    assert found(retriever, query, hops=2, top_k=3) == ["10", "11", "12"]


def test_the_scores_are_those_of_the_last_step() -> None:
    rankings = built().retrieve([Query("q", "Night Ferry")], {"hops": 2})
    assert rankings.scores is not None
    # 10 mentions Night Ferry, Ada Holm, and Night Ferry once more, by the way back from her.
    assert rankings.scores.tolist() == [[3, 2, 1, 1]]


def test_a_query_of_which_a_step_finds_nothing_has_an_empty_answer() -> None:
    assert found(built(), "zymurgy") == []


def test_a_step_reads_the_ids_of_an_earlier_one_by_its_name() -> None:
    steps = [
        {"seeds": SEEDS},
        {"near": "MATCH (e:Entity)-[:Related]-(f) WHERE e.name IN $seeds_ids RETURN f.name AS id"},
        {
            "graph": "MATCH (p:Passage)-[:Mentions]->(e) WHERE e.name IN $ids AND NOT e.name IN "
            "$seeds_ids RETURN p.id AS id, count(*) AS score ORDER BY score DESC, id"
        },
    ]
    # From Night Ferry to Ada Holm, whom 10 and 11 mention.
    assert found(built(steps, baseline={"seeds": 3}), "night ferry") == ["10", "11"]


def test_a_step_reads_rows_with_the_scores_of_the_one_before_it() -> None:
    steps = [
        TEXT,
        {
            "graph": "UNWIND $rows AS row MATCH (p:Passage {id: row.id}) "
            "RETURN p.id AS id, 2 * row.score AS score ORDER BY score DESC, id"
        },
    ]
    query = Query("q", "town on the river")
    twice = built(steps, baseline={"starts": 3}).retrieve([query], {})
    once = built([TEXT], baseline={"starts": 3}).retrieve([query], {})
    assert twice.ids(0) == once.ids(0) == ["12"]
    assert twice.scores is not None
    assert once.scores is not None
    assert twice.scores[0, 0] == pytest.approx(2 * once.scores[0, 0])


def test_equal_scores_are_in_the_order_of_ids_whatever_the_database_says() -> None:
    statement = "MATCH (p:Passage) RETURN p.id AS id, 1 AS score ORDER BY p.id DESC"
    assert found(one(statement), "any") == sorted(IDS)


def test_without_scores_the_order_of_the_rows_counts() -> None:
    statement = "MATCH (p:Passage) RETURN p.id AS id ORDER BY id DESC"
    assert found(one(statement), "any") == sorted(IDS, reverse=True)


# Two legs --------------------------------------------------------------------------------------


def legs_of(**params: Any) -> list[str]:
    retriever = built(MIXED_STEPS, legs=["text", "graph"], baseline=MIXED)
    return found(retriever, "On which river lies the home town of Ada Holm?", **params)


def test_a_weight_of_0_leaves_a_leg_out() -> None:
    graph_alone = found(built(), "On which river lies the home town of Ada Holm?")
    words_alone = found(built([TEXT], baseline={"starts": 3}), "river lies home town Ada Holm")
    assert legs_of(weight_text=0.0) == graph_alone
    assert legs_of(weight_graph=0.0, weight_text=1.0) == words_alone
    assert set(legs_of()) == {*graph_alone, *words_alone}


def test_weights_that_are_all_0_are_refused() -> None:
    with pytest.raises(InputError, match="weight_text, weight_graph are all 0"):
        legs_of(weight_text=0.0, weight_graph=0.0)


WEIGHT = Real(0.0, 1.0)


def checked(space: Mapping[str, Any], **baseline: Any) -> Cypher:
    given = {**MIXED, **baseline}
    return built(
        MIXED_STEPS, legs=["text", "graph"], space=SearchSpace(dict(space)), baseline=given
    )


@pytest.mark.parametrize(
    ("space", "baseline", "said"),
    [
        (
            {"hops": Integer(0, 3)},
            {"weight_text": 0, "weight_graph": 0},
            "baseline.weight_text: weight_text, weight_graph are all 0, which leaves nothing",
        ),
        ({"weight_graph": WEIGHT}, {"weight_text": 0, "weight_graph": 0}, "are all 0"),
        (
            {"weight_graph": Categorical((0.0,))},
            {"weight_text": 0, "weight_graph": 1},
            "space.weight_graph: weight_text, weight_graph are all 0, which leaves nothing",
        ),
        (
            {"weight_graph": WEIGHT},
            {"weight_text": 0},
            "space.weight_graph: has no effect where weight_text is 0: one leg is left, 'graph', "
            "and nothing is mixed; leave it out, or give weight_text a value above 0 in the base",
        ),
        (
            {"normalisation": Categorical(("z", "max"))},
            {"weight_graph": 0},
            "space.normalisation: has no effect where weight_graph is 0: one leg is left, 'text'",
        ),
        (
            {"starts": Integer(1, 9)},
            {"weight_text": 0},
            "space.starts: has no effect where weight_text is 0: read by 'text' alone",
        ),
        (
            {"seeds": Integer(1, 3)},
            {"weight_graph": 0},
            "space.seeds: has no effect where weight_graph is 0: read by 'seeds' alone",
        ),
        (
            {"weight_text": Categorical((0.0,)), "starts": Integer(1, 9)},
            {},
            "give weight_text a value above 0 in the space",
        ),
        (
            {"rrf_k": Integer(1, 100)},
            {},
            "'rrf_k' has no effect where fusion is score; leave it out, or set fusion in the",
        ),
    ],
)
def test_what_weights_of_0_make_mute_is_refused(
    space: Mapping[str, Any], baseline: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        checked(space, **baseline)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("weight_txt", "did you mean 'weight_text'?; the legs are text, graph: correct the name"),
        ("hopps", "did you mean 'hops'?: write $hopps into a statement"),
        ("graph.hops", "did you mean 'hops'?; parameters of statements have no dots: correct"),
    ],
)
def test_a_misspelt_name_is_told_the_one_that_was_meant(name: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        checked({name: Real(0.0, 1.0)})


def test_a_weight_of_0_is_legal_where_what_is_searched_still_counts() -> None:
    checked({"hops": Integer(0, 3), "seeds": Integer(1, 3), "top_k": Integer(1, 5)}, weight_text=0)
    # Searched down to 0, a weight leaves the leg with the others now and then.
    checked({"weight_text": WEIGHT, "starts": Integer(1, 9)}, weight_text=0)
    checked({"fusion": Categorical(("score", "rrf")), "weight_graph": WEIGHT}, weight_graph=0)


def test_legs_count_by_their_normalised_scores() -> None:
    steps = [
        {"a": "UNWIND ['10', '11', '12'] AS id RETURN id, 30 - CAST(id AS INT64) AS score"},
        {"b": "UNWIND ['12', '13'] AS id RETURN id, 14 - CAST(id AS INT64) AS score"},
    ]
    retriever = built(steps, legs=["a", "b"], baseline={})
    rankings = retriever.retrieve([Query("q", "any")], {"weight_a": 0.5})
    # a: 20, 19, 18 become 1, 1/2, 0; b: 2, 1 become 1, 0.
    # 10: .5 * 1; 11: .5 / 2; 12: .5 * 0 + 1 * 1; 13: 1 * 0
    assert rankings.ids(0) == ["12", "10", "11", "13"]
    assert rankings.scores is not None
    assert rankings.scores[0].tolist() == [1.0, 0.5, 0.25, 0.0]


def test_a_leg_without_scores_counts_by_places() -> None:
    steps = [
        {"a": "UNWIND ['10', '11', '12'] AS id RETURN id ORDER BY id DESC"},
        {"b": "UNWIND ['10'] AS id RETURN id, 5 AS score"},
    ]
    retriever = built(steps, legs=["a", "b"], baseline={})
    rankings = retriever.retrieve([Query("q", "any")], {"normalisation": "none"})
    # a: 12, 11, 10 have 3, 2, 1; b: 10 has 5.
    assert rankings.scores is not None
    assert dict(zip(rankings.ids(0), rankings.scores[0].tolist(), strict=True)) == {
        "10": 6.0,
        "12": 3.0,
        "11": 2.0,
    }


def test_weights_and_the_depth_are_free_and_what_a_statement_reads_is_not() -> None:
    retriever = built(MIXED_STEPS, legs=["text", "graph"], baseline=MIXED)
    free = retriever.free_knobs({"fusion": "score"}, ["top_k", "weight_graph", "hops"])
    assert free.names == ("top_k", "weight_graph")
    ranks = retriever.free_knobs({"fusion": "rrf"}, ["weight_graph", "rrf_k"])
    assert ranks.names == ("top_k", "rrf_k", "weight_graph")
    assert built().free_knobs({}, ["top_k", "hops"]).names == ("top_k",)
    reading = one("MATCH (p:Passage) RETURN p.id AS id ORDER BY id LIMIT $top_k", top_k=3)
    assert reading.free_knobs({}, ["top_k"]).names == ()


# What is tuned ---------------------------------------------------------------------------------


def test_the_knobs_are_what_the_statements_read_with_the_ranges_of_the_space() -> None:
    space = SearchSpace({"hops": Integer(0, 3), "mode": Categorical(("a", "b"))})
    steps = [{"graph": "MATCH (p)-[*0..{hops}]-(q) WHERE p.id = $mode RETURN q.id AS id"}]
    knobs = {knob.name: knob for knob in built(steps, space=space, baseline={"hops": 2}).knobs}
    assert list(knobs) == ["top_k", "hops", "mode"]
    assert knobs["hops"].kind == "integer"
    assert knobs["hops"].default == 2
    assert knobs["mode"].choices == ("a", "b")


def test_without_a_configuration_hops_and_counts_are_known() -> None:
    options: Mapping[str, Any] = {"steps": [*MIXED_STEPS[:1], {"graph": GRAPH}]}
    knobs = {knob.name: knob for knob in declared_knobs("cypher", options)}
    assert list(knobs) == ["top_k", "starts", "hops", "depth"]
    assert (knobs["hops"].kind, knobs["hops"].suggested) == ("integer", (1, 3))
    assert (knobs["depth"].kind, knobs["depth"].suggested) == ("integer", (1, 100))


def test_other_statements_another_file_and_other_legs_are_another_system(tmp_path: Path) -> None:
    other = write_graph(tmp_path / "other.lbug", CORPUS)
    fingerprints = [
        built().fingerprint,
        built(database=str(other)).fingerprint,
        built([{"seeds": SEEDS}, {"graph": f"{GRAPH} // more"}]).fingerprint,
        built(MIXED_STEPS, legs=["text", "graph"], baseline=MIXED).fingerprint,
        built(MIXED_STEPS, legs=["graph", "text"], baseline=MIXED).fingerprint,
    ]
    assert len(set(fingerprints)) == 5
    assert built().fingerprint == fingerprints[0]


def test_a_statement_reads_the_vector_of_the_question(tmp_path: Path) -> None:
    import ladybug

    path = tmp_path / "vectors.lbug"
    database = ladybug.Database(str(path))
    connection = ladybug.Connection(database)
    connection.execute("CREATE NODE TABLE Passage(id STRING, v FLOAT[2], PRIMARY KEY(id))")
    for id_, vector in (("10", [1.0, 0.0]), ("11", [0.0, 1.0]), ("12", [1.0, 1.0])):
        given = {"id": id_, "v": vector}
        connection.execute("CREATE (:Passage {id: $id, v: CAST($v AS FLOAT[2])})", given)
    connection.close()
    database.close()
    steps = [
        {
            "near": "MATCH (p:Passage) RETURN p.id AS id, array_cosine_similarity(p.v, "
            "CAST($vector AS FLOAT[2])) AS score ORDER BY score DESC, id LIMIT $depth"
        }
    ]
    retriever = built(
        steps,
        database=str(path),
        baseline={"depth": 2},
        embedder="tests.retrieval.cypher.test_cypher:embed",
    )
    retriever.prepare(QUERIES)
    # "east" is (1, 0): cosines 1, 0 and 1/sqrt(2).
    rankings = retriever.retrieve([Query("q", "east")], {})
    assert rankings.ids(0) == ["10", "12"]
    assert rankings.scores is not None
    assert rankings.scores[0].tolist() == pytest.approx([1.0, 0.5**0.5])
    assert found(retriever, "north") == ["11", "12"]


def embed(texts: list[str]) -> Any:
    return np.array([[0.0, 1.0] if text == "north" else [1.0, 0.0] for text in texts])


# Opened once a process, never inherited, with a limit -------------------------------------------


def test_threads_get_the_same_answers() -> None:
    retriever = built(MIXED_STEPS, legs=["text", "graph"], baseline=MIXED)
    alone = [found(retriever, query.text, hops=hops) for query in QUERIES for hops in (0, 1, 2)]
    with ThreadPoolExecutor(4) as threads:
        calls = [
            threads.submit(found, retriever, query.text, hops=hops)
            for _ in range(5)
            for query in QUERIES
            for hops in (0, 1, 2)
        ]
        assert [call.result() for call in calls] == alone * 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_was_forked_opens_the_database_anew() -> None:
    retriever = built()
    assert found(retriever, "Night Ferry") == ["10", "11"]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # whatever happens here, the tests are not run a second time
        try:
            os.write(writer, " ".join(found(retriever, "Night Ferry")).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        assert answer.read() == "10 11"
    os.waitpid(child, 0)


FORKING = """
import os, sys
from pathlib import Path
from tests.retrieval.cypher.graphs import BASELINE, CORPUS, QUERIES, STEPS
from tuner.retrieval.adapters.cypher import Cypher
from tuner.retrieval.adapters.cypher.ladybug import Ladybug
from tuner.retrieval.adapters.cypher.statement import Statement

file, folder = sys.argv[1:]
retriever = Cypher.build(
    CORPUS, database=file, steps=STEPS, baseline=BASELINE, cache_dir=Path(folder)
)
retriever.retrieve(QUERIES, {})
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.exit(0 if retriever.retrieve(QUERIES, {}).ids(0) == ["10", "11"] else 3)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_was_forked_ends_when_it_is_done(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, str(graph()), str(tmp_path)]
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(command, env=environment, cwd=root, check=False, timeout=900)
    assert done.returncode == 0


@pytest.mark.slow
def test_a_statement_that_takes_too_long_ends_at_its_limit() -> None:
    walks = "MATCH (a:Entity)-[:Related*1..30]-(b:Entity)"  # more than a thousand million of them
    steps = [{"graph": f"{walks} RETURN '10' AS id, count(*) AS score ORDER BY score DESC, id"}]
    retriever = built(steps, baseline={}, timeout_s=5)
    with pytest.raises(TunerError, match=r"step 'graph' \(MATCH .*\): no answer within 5 s"):
        found(retriever, "any")
    # And the connection is as good as before.
    with pytest.raises(TunerError, match="no answer within"):
        found(retriever, "any")


# What is refused -------------------------------------------------------------------------------

REFUSED: list[tuple[str, Any, Mapping[str, Any], str]] = [
    (
        "a parameter that nothing sets",
        STEPS,
        {"seeds": 3, "hops": 1},
        r"reads \$depth, and neither",
    ),
    ("a parameter that nothing reads", STEPS, {**BASELINE, "mood": 1}, "no step reads it"),
    (
        "a weight of one leg",
        STEPS,
        {**BASELINE, "weight_graph": 1.0},
        "where `legs:` names several",
    ),
    ("a place without a parameter", STEPS, {"seeds": 3, "depth": 9}, r"\{hops\} is put in as a"),
    ("hops that are no number", STEPS, {**BASELINE, "hops": "1"}, "'hops' counts in step 'graph'"),
    ("hops below 0", STEPS, {**BASELINE, "hops": -1}, "'hops' counts in step 'graph'"),
    ("a count that is a fraction", STEPS, {**BASELINE, "depth": 2.5}, "'depth' counts in step"),
    (
        "hops as a parameter",
        [{"graph": "MATCH (a)-[*0..$hops]-(b) RETURN b.id AS id"}],
        {"hops": 1},
        r"no database takes hops as a parameter: write \{hops\}",
    ),
    ("a write", [{"graph": "CREATE (n:Passage {id: '1'}) RETURN n.id AS id"}], {}, "CREATE writes"),
    ("a write in small letters", [{"graph": "match (n) set n.id = 1"}], {}, "SET writes"),
    ("an export", [{"graph": "EXPORT DATABASE 'stolen'"}], {}, "EXPORT writes"),
    ("an extension", [{"graph": "LOAD EXTENSION fts"}], {}, "LOAD writes"),
    ("a procedure", [{"graph": "CALL apoc.create.node(['A'], {}) YIELD node"}], {}, "may write"),
    ("an index", [{"graph": "call CREATE_FTS_INDEX('P', 'i', ['text'])"}], {}, "may write"),
    ("a file", [{"graph": "CALL apoc.load.json($url) YIELD value"}], {}, "reach out"),
    ("a batch", [{"graph": "CALL apoc . periodic.iterate('', '', {})"}], {}, "may write"),
    ("a setting", [{"graph": "CALL timeout=0"}], {}, "sets an option"),
    ("two statements", [{"graph": "RETURN 1 AS id; RETURN 2 AS id"}], {}, "several statements"),
    ("an open quote", [{"graph": "RETURN 'a AS id"}], {}, "not closed"),
    (
        "a limit without an order",
        [{"graph": "MATCH (p:Passage) RETURN p.id AS id LIMIT 3"}],
        {},
        "cuts what is in no order",
    ),
    ("ids of no step", [{"graph": GRAPH}], {"hops": 1, "depth": 3}, r"reads \$ids, and no step"),
    (
        "a later step",
        [{"a": "MATCH (p) WHERE p.id IN $b_ids RETURN p.id AS id"}, {"b": "RETURN 1 AS id"}],
        {},
        r"reads \$b_ids, and 'b' is no step before it",
    ),
    (
        "a step for nothing",
        [{"seeds": "RETURN 1 AS id"}, {"b": "RETURN 2 AS id"}],
        {},
        "is read by",
    ),
    ("a name twice", [{"a": "RETURN 1 AS id"}, {"a": "RETURN $ids AS id"}], {}, "has this name"),
    ("a name with a blank", [{"my step": "RETURN 1 AS id"}], {}, "starts with a letter"),
    ("no steps", [], {}, "must be a list of steps"),
    ("a mapping of steps", {"a": "RETURN 1 AS id"}, {}, "must be a list of steps"),
    ("a step with two names", [{"a": "RETURN 1", "b": "RETURN 2"}], {}, "one name with its"),
    ("a step that is a number", [{"a": 3}], {}, "must be a statement of Cypher"),
    ("a search of no depth", [{"a": {"bm25": 0}}], {}, "how many documents it finds"),
    ("a vector of nobody", [{"a": "RETURN $vector AS id"}], {}, r"reads \$vector: name what makes"),
]


@pytest.mark.parametrize(
    ("steps", "baseline", "said"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_is_wrong_with_steps_is_said_before_anything_is_asked(
    steps: Any, baseline: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        built(steps, baseline=baseline)


def test_an_error_names_the_step_and_the_statement() -> None:
    with pytest.raises(InputError) as raised:
        built(STEPS, baseline={"seeds": 3, "hops": 1})
    assert str(raised.value).startswith("steps.1.graph: reads $depth")
    assert "MATCH (e:Entity)-[:Related*0..{hops}]-" in str(raised.value)


def test_a_real_number_for_hops_is_refused_in_the_space() -> None:
    space = SearchSpace({"hops": Real(0.0, 3.0)})
    with pytest.raises(InputError, match=r"space\.hops: 'hops' counts"):
        built(space=space, baseline={"seeds": 3, "depth": 5})


ANSWERS = [
    ("RETURN 'x' AS id", "no document of the data set has the id 'x'"),
    ("MATCH (e:Entity) RETURN NULL AS id", "the id of row 1 is null"),
    ("MATCH (p:Passage) RETURN p AS id", "of type dict; return a text or a whole number"),
    ("MATCH (p:Passage) RETURN p.id", "it returns p.id; what counts is `id`"),
    ("MATCH (p:Passage) RETURN p.id AS id, p.title AS title", "and nothing else"),
    ("UNWIND [1, 2] AS s RETURN 1 + s AS id, s AS score ORDER BY score", "the scores rise"),
    ("RETURN '10' AS id, NULL AS score", "the score of row 1 is None, no finite number"),
    ("RETURN '10' AS id, 'high' AS score", "the score of row 1 is high"),
    ("MATCH (p:Nothing) RETURN p.id AS id", "Table Nothing does not exist"),
    ("MATCH (p:Passage RETURN p.id AS id", "Parser exception"),
]


@pytest.mark.parametrize(("statement", "said"), ANSWERS)
def test_what_is_wrong_with_rows_names_query_step_and_statement(statement: str, said: str) -> None:
    with pytest.raises(TunerError, match=re.escape(said)) as raised:
        found(one(statement), "any")
    assert str(raised.value).startswith(f"query 'q': step 'graph' ({statement}): ")


def test_words_that_only_look_like_writes_are_no_writes() -> None:
    statement = (
        "MATCH (p:Passage {title: 'SET or DELETE'}) // CREATE\n"
        "WITH p, {set: 1, load: 2} AS `merge` RETURN p.id AS id /* DROP; */"
    )
    assert found(one(statement), "any") == []


@pytest.mark.parametrize(
    "call",
    [
        "CALL db.index.fulltext.queryNodes('texts', $query) YIELD node, score",
        "CALL db.idx.vector.queryNodes('P', 'v', $k, $vector) YIELD node",
        "CALL vector_search.search('v', $k, $vector) YIELD node",
        "CALL QUERY_FTS_INDEX('P', 'i', $query)",
        "CALL gds.pageRank.stream('g') YIELD nodeId",
        "CALL { MATCH (p) RETURN p }",
    ],
)
def test_a_procedure_that_finds_is_no_write(call: str) -> None:
    assert list(Statement(f"{call} RETURN 1 AS id").problems()) == []


def test_the_database_itself_refuses_a_write_that_a_statement_hides(tmp_path: Path) -> None:
    opened = Ladybug.open(write_graph(tmp_path / "graph.lbug"), 60.0)
    with pytest.raises(RuntimeError, match="read-only"):
        opened.ask("CREATE (p:Passage {id: '99'})", {})
    assert opened.ask("MATCH (p:Passage {id: '99'}) RETURN p.id AS id", {}).rows == []


def test_a_product_is_no_count_of_hops() -> None:
    statement = "MATCH (p:Passage)-[*1..1]-(e) RETURN p.id AS id, max(2 * $w) AS score ORDER BY id"
    assert found(one(statement, w=0.5), "any") == sorted(IDS)


def test_braces_with_blanks_are_no_place_for_a_number() -> None:
    one("MATCH (p:Passage {id: '10'}) WITH p { p } AS q RETURN '10' AS id")


def test_a_note_says_where_a_limit_cuts_among_equals() -> None:
    chance = one("MATCH (p:Passage) RETURN p.id AS id, 1 AS score ORDER BY score DESC LIMIT 3")
    assert chance.notes() == (
        "step 'graph' does not say which of equals comes first, so a limit may cut others another "
        "time: end it with ORDER BY score DESC, id",
    )
    assert built().notes() == ()


def test_a_database_that_is_not_there_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        built(database=str(tmp_path / "none.lbug"))
    with pytest.raises(InputError, match="is a folder: name the database's file in it"):
        built(database=str(tmp_path))
    empty = write_graph(tmp_path / "empty.lbug", rows=False)
    with pytest.raises(TunerError, match=r"empty\.lbug holds no node: fill it first"):
        built(database=str(empty))
    text = tmp_path / "text.lbug"
    text.write_text("a text")
    with pytest.raises(TunerError, match=r"text\.lbug cannot be opened: .* not a valid"):
        built(database=str(text))


def test_an_extension_that_is_not_installed_names_what_is_there_instead() -> None:
    steps = [
        {"text": "CALL QUERY_FTS_INDEX('Passage', 'words', $query) RETURN node.id AS id, score"}
    ]
    with pytest.raises(TunerError, match=r"extension fts is not installed .* \{bm25: \$starts\}"):
        found(built(steps, baseline={}), "any")


def test_an_embedder_that_nothing_reads_is_refused() -> None:
    with pytest.raises(InputError, match=r"no statement reads \$vector"):
        built(embedder="hashed-words")


def test_a_search_by_words_needs_documents() -> None:
    from tuner.core.corpus import Corpus

    with pytest.raises(InputError, match="needs the documents of the data set"):
        built([TEXT], baseline={"starts": 3}, corpus=Corpus(()))


def test_a_parameter_that_nothing_reads_is_shown_where_it_stands(tmp_path: Path) -> None:
    config = {
        "dataset": {"path": "builtin:atlas"},
        "retriever": {"kind": "cypher", "database": str(graph()), "steps": STEPS},
        "space": {"hops": {"type": "integer", "low": 0, "high": 2}},
        "baseline": {**BASELINE, "mood": 1},
    }
    file = tmp_path / "graph.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    line = 1 + file.read_text(encoding="utf-8").splitlines().index("  mood: 1")
    done = CliRunner().invoke(command_line, ["check", str(file)])
    assert f"graph.yaml:{line}: baseline.mood: no step reads it" in str(done.exception)
