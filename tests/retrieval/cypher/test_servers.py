"""Neo4j's driver and FalkorDB's client, the real ones, on stand-ins for their servers.

No real Neo4j, Memgraph or FalkorDB is asked: the stand-ins say what a driver sends, and let ladybug
answer it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.retrieval.cypher.graphs import BASELINE, CORPUS, IDS, QUERIES, STEPS, write_graph
from tests.retrieval.cypher.servers import Server, bolt, falkordb
from tuner.core.corpus import Query
from tuner.core.errors import InputError, OutageError, TunerError
from tuner.retrieval.adapters.cypher import Cypher
from tuner.testing import RetrieverCase, RetrieverContract

for package in ("ladybug", "neo4j", "falkordb"):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install '.[{package}]'")

PASSWORD = "NIGHT_FERRY_PASSWORD"
SECRET = "open-sesame-4711"
_OPEN = ExitStack()


def build(address: str, **given: Any) -> Cypher:
    given = {
        "steps": STEPS,
        "baseline": BASELINE,
        "cache_dir": Path(mkdtemp()),
        "timeout_s": 900,
        **given,
    }
    return Cypher.build(CORPUS, database=address, **given)


def ferry(retriever: Cypher, **params: Any) -> list[str]:
    return retriever.retrieve([Query("q", "Night Ferry")], params).ids(0)


def address_of(server: Server, scheme: str, *, user: str = "", graph: str = "films") -> str:
    return f"{scheme}://{user}127.0.0.1:{server.port}/{graph}"


@pytest.fixture(scope="module")
def file() -> Path:
    return write_graph(Path(mkdtemp()) / "graph.lbug")


@pytest.fixture
def neo4j_server(file: Path) -> Iterator[Server]:
    with bolt(file) as server:
        yield server


@pytest.fixture
def falkordb_server(file: Path) -> Iterator[Server]:
    with falkordb(file) as server:
        yield server


def _kept(serve: Callable[[Path], AbstractContextManager[Server]], scheme: str) -> Cypher:
    """Build on a server that stays there until the last test of its contract is over."""
    server = _OPEN.enter_context(serve(write_graph(Path(mkdtemp()) / "graph.lbug")))
    return build(address_of(server, scheme))


@pytest.fixture(scope="module", autouse=True)
def servers_end_with_the_module() -> Iterator[None]:
    yield
    _OPEN.close()


PARAMS = ({}, {"hops": 3, "depth": 20}, {"hops": 0, "seeds": 1, "top_k": 1})


class TestCypherByBolt(RetrieverContract):
    case = RetrieverCase(lambda: _kept(bolt, "bolt"), QUERIES, PARAMS, document_ids=IDS)


class TestCypherByFalkorDB(RetrieverContract):
    case = RetrieverCase(lambda: _kept(falkordb, "falkor"), QUERIES, PARAMS, document_ids=IDS)


# What is sent ----------------------------------------------------------------------------------


def test_neo4j_is_asked_to_read_with_a_time_limit_in_the_named_database(
    neo4j_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)
    address = address_of(neo4j_server, "bolt", user=f"ada:${{{PASSWORD}}}@")
    assert ferry(build(address, timeout_s=700)) == ["10", "11"]
    (hello,) = neo4j_server.of("HELLO")
    assert (hello[0]["principal"], hello[0]["credentials"]) == ("ada", SECRET)
    begun = neo4j_server.of("BEGIN")
    assert len(begun) == 3  # is there a node, the seeds, the passages
    for (extra,) in begun:
        assert (extra["mode"], extra["tx_timeout"], extra["db"]) == ("r", 700_000, "films")
    text, params, _ = neo4j_server.of("RUN")[-1]
    assert "[:Related*0..1]" in text
    assert params == {"ids": ["Night Ferry"], "depth": 10}


def test_a_cluster_of_neo4j_is_asked_where_it_reads(neo4j_server: Server) -> None:
    assert ferry(build(address_of(neo4j_server, "neo4j"))) == ["10", "11"]
    assert neo4j_server.of("ROUTE")
    assert {extra["mode"] for (extra,) in neo4j_server.of("BEGIN")} == {"r"}


def test_memgraph_needs_no_name_of_a_database_and_no_password(neo4j_server: Server) -> None:
    assert ferry(build(address_of(neo4j_server, "bolt", graph=""))) == ["10", "11"]
    assert all("db" not in extra for (extra,) in neo4j_server.of("BEGIN"))
    assert "credentials" not in neo4j_server.of("HELLO")[0][0]


def test_falkordb_is_asked_by_the_command_that_reads_with_a_time_limit(
    falkordb_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)
    address = address_of(falkordb_server, "falkor", user=f"ada:${{{PASSWORD}}}@")
    assert ferry(build(address, timeout_s=700)) == ["10", "11"]
    assert ["ada", SECRET] in falkordb_server.of("AUTH")
    assert not falkordb_server.of("GRAPH.QUERY")
    asked = falkordb_server.of("GRAPH.RO_QUERY")
    assert len(asked) == 3
    assert {tuple(words[2:]) for words in asked} == {("--compact", "timeout", "700000")}
    assert {words[0] for words in asked} == {"films"}
    assert asked[-1][1].startswith('CYPHER `ids`=["Night Ferry"] `depth`=10 MATCH')


@pytest.mark.parametrize(("serve", "scheme"), [(bolt, "bolt"), (falkordb, "falkor")])
def test_rows_with_scores_reach_the_server(serve: Any, scheme: str, file: Path) -> None:
    steps = [
        {"text": {"bm25": 3}},
        {
            "graph": "UNWIND $rows AS row MATCH (p:Passage {id: row.id}) "
            "RETURN p.id AS id, row.score AS score ORDER BY score DESC, id"
        },
    ]
    with serve(file) as server:
        retriever = build(address_of(server, scheme), steps=steps, baseline={})
        rankings = retriever.retrieve([Query("q", 'A town on the "river" \\ Lissa')], {})
    assert rankings.ids(0) == ["12"]


@pytest.mark.parametrize(("serve", "scheme"), [(bolt, "bolt"), (falkordb, "falkor")])
def test_a_process_connects_once(serve: Any, scheme: str, file: Path) -> None:
    with serve(file) as server:
        retriever = build(address_of(server, scheme))
        ferry(retriever)
        connections = server.connections
        for hops in (0, 1, 2, 3):
            ferry(retriever, hops=hops)
            ferry(build(address_of(server, scheme)), hops=hops)
        assert server.connections == connections


# What goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(("serve", "scheme"), [(bolt, "bolt"), (falkordb, "falkor")])
def test_a_statement_that_the_server_ends_fails_and_is_no_outage(
    serve: Any, scheme: str, file: Path
) -> None:
    steps = [{"graph": "MATCH (slow:Passage) RETURN slow.id AS id"}]
    with serve(file) as server:
        retriever = build(address_of(server, scheme), steps=steps, baseline={}, timeout_s=300)
        with pytest.raises(
            TunerError, match=r"step 'graph' \(.*\): no answer within 300 s"
        ) as raised:
            ferry(retriever)
    assert not isinstance(raised.value, OutageError)


@pytest.mark.parametrize(("serve", "scheme"), [(bolt, "bolt"), (falkordb, "falkor")])
def test_an_error_of_the_server_names_the_step(serve: Any, scheme: str, file: Path) -> None:
    with serve(file) as server:
        steps = [{"graph": "MATCH (p:Nothing) RETURN p.id AS id"}]
        retriever = build(address_of(server, scheme), steps=steps, baseline={})
        with pytest.raises(TunerError, match=r"step 'graph' \(.*Table Nothing does not exist"):
            ferry(retriever)


@pytest.mark.parametrize(("serve", "scheme"), [(bolt, "bolt"), (falkordb, "falkor")])
def test_a_server_that_is_not_there_is_away(serve: Any, scheme: str, file: Path) -> None:
    with serve(file) as server:
        address = address_of(server, scheme)
    with pytest.raises(OutageError, match="cannot be opened"):
        build(address)


@pytest.mark.parametrize(("serve", "scheme"), [(bolt, "bolt"), (falkordb, "falkor")])
def test_a_server_that_goes_away_is_asked_again_when_it_is_back(
    serve: Any, scheme: str, file: Path
) -> None:
    with serve(file) as server:
        retriever = build(address_of(server, scheme))
        assert ferry(retriever) == ["10", "11"]
    with pytest.raises(OutageError, match="query 'q': step 'seeds'"):
        ferry(retriever)
    with serve(file, server.port):
        assert ferry(retriever) == ["10", "11"]


def test_what_neo4j_remarks_of_each_statement_is_not_printed(
    neo4j_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    ferry(build(address_of(neo4j_server, "bolt")))
    assert [one for one in caplog.records if one.name.startswith("neo4j")] == []


def test_what_neo4j_remarks_of_statements_of_others_is_printed_as_before(
    neo4j_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    from neo4j import GraphDatabase

    ferry(build(address_of(neo4j_server, "bolt")))
    assert logging.getLogger("neo4j.notifications").level == logging.NOTSET
    with GraphDatabase.driver(f"bolt://127.0.0.1:{neo4j_server.port}") as driver:
        driver.execute_query("MATCH (p:Passage) RETURN p.id AS id")
    (remark,) = [one for one in caplog.records if one.name.startswith("neo4j")]
    assert "There is a newer one." in remark.getMessage()


@pytest.mark.parametrize(("serve", "scheme"), [(bolt, "bolt"), (falkordb, "falkor")])
def test_a_graph_without_a_node_is_refused(serve: Any, scheme: str, tmp_path: Path) -> None:
    with (
        serve(write_graph(tmp_path / "empty.lbug", rows=False)) as server,
        pytest.raises(TunerError, match="holds no node"),
    ):
        build(address_of(server, scheme))


def test_a_graph_that_falkordb_does_not_have_is_named(falkordb_server: Server) -> None:
    with pytest.raises(InputError, match=r"no graph 'film'; did you mean 'films'\?"):
        build(address_of(falkordb_server, "falkor", graph="film"))


WRONG = [
    ("", "must name a database"),
    ("http://localhost/films", "http:// is no database"),
    ("falkor://localhost:6379", "names no graph"),
    ("bolt://", "names no host"),
    ("bolt://localhost:port", "is no address"),
    ("bolt://localhost?password=open-sesame", "leave out what stands behind"),
    (f"bolt://ada:{SECRET}@localhost", "holds a password in clear"),
    (f"bolt://ada:1/{SECRET}@localhost", "has an @ behind its first /"),
    (f"falkor://ada:1/{SECRET}@localhost:6379/films", "has an @ behind its first /"),
    (f"bolt://ada:${{{PASSWORD}}}@localhost", f"{PASSWORD} is not set"),
]


@pytest.mark.parametrize(("address", "said"), WRONG)
def test_an_address_that_is_wrong_is_refused_and_not_repeated(
    address: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PASSWORD, raising=False)
    with pytest.raises(InputError, match=said) as raised:
        build(address)
    assert str(raised.value).startswith("database")
    assert SECRET not in str(raised.value)


def test_a_password_stands_in_no_record_and_no_message(
    neo4j_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, SECRET)
    address = address_of(neo4j_server, "bolt", user=f"ada:${{{PASSWORD}}}@")
    steps = [{"graph": f"MATCH (p:Passage {{id: '{SECRET}'}} RETURN p.id AS id"}]
    retriever = build(address, steps=steps, baseline={})
    with pytest.raises(TunerError) as raised:
        ferry(retriever)
    # The statement is the user's; what the server says of it is told without the secret.
    _, _, told = str(raised.value).partition("): ")
    assert "Parser exception" in told
    assert SECRET not in told
    assert SECRET not in repr(retriever.address)
    assert SECRET not in repr(retriever.address.server)
