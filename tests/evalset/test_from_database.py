"""A corpus and its facts out of a graph database."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

import pytest
from click.testing import CliRunner

from tests.retrieval.cypher.graphs import CORPUS, write_graph
from tuner import open_dataset
from tuner.cli import tuner as command_line
from tuner.core.errors import InputError, TunerError
from tuner.evalset.from_database import read_database

pytest.importorskip("ladybug", reason="ladybug is not installed: pip install '.[ladybug]'")

DOCUMENTS = "MATCH (p:Passage) RETURN p.title AS title, p.id AS id, p.title AS text"
TRIPLES = (
    "MATCH (a)-[r:Related]->(b) "
    "RETURN r.passage AS doc_id, a.name AS subject, r.name AS relation, b.name AS object"
)


@pytest.fixture(scope="module")
def graph() -> str:
    return str(write_graph(Path(mkdtemp()) / "graph.lbug"))


def test_documents_and_facts_are_those_of_the_graph(graph: str) -> None:
    corpus = read_database(graph, documents=DOCUMENTS, triples=TRIPLES)
    assert [(one.id, one.title) for one in corpus.documents] == [
        (one.id, one.title) for one in CORPUS.documents
    ]
    assert corpus.triples == CORPUS.triples
    assert corpus.fingerprint


WRONG = [
    ("MATCH (p:Passage) RETURN p.id AS id", TRIPLES, "documents: returns id; name its columns"),
    (DOCUMENTS, "MATCH (a) SET a.id = '1' RETURN a", "triples: SET writes"),
    (DOCUMENTS, f"{TRIPLES} ORDER BY doc_id LIMIT $count", "triples: reads 'count', and nothing"),
    ("MATCH (p:Passage) WHERE false " + DOCUMENTS[18:], TRIPLES, "documents: finds nothing"),
    (DOCUMENTS, TRIPLES.replace("r.passage", "a.name"), "no document has the id 'Ada Holm'"),
    (DOCUMENTS, TRIPLES.replace("r.name", "NULL"), "triples: row 1 has no relation"),
    (DOCUMENTS.replace("p.id", "'1'"), TRIPLES, "documents: returns an id twice"),
    (DOCUMENTS, "MATCH (a", "triples: .*Parser exception"),
]


@pytest.mark.parametrize(("documents", "triples", "said"), WRONG)
def test_what_is_wrong_with_a_statement_names_it(
    graph: str, documents: str, triples: str, said: str
) -> None:
    with pytest.raises(TunerError, match=said):
        read_database(graph, documents=documents, triples=triples)


def test_the_command_writes_questions_with_the_documents_that_state_their_facts(
    graph: str, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    words = ["dataset", "build", "from-graph", graph, str(made), "--count", "4", "--kind", "2hop"]
    done = CliRunner().invoke(
        command_line, [*words, "--documents", DOCUMENTS, "--triples", TRIPLES]
    )
    assert done.exit_code == 0, done.output
    dataset = open_dataset(str(made))
    assert dataset.queries
    assert {one.id for one in dataset.corpus.documents} == {one.id for one in CORPUS.documents}


def test_a_database_needs_both_statements(graph: str, tmp_path: Path) -> None:
    words = ["dataset", "build", "from-graph", graph, str(tmp_path / "made")]
    done = CliRunner().invoke(command_line, [*words, "--triples", TRIPLES])
    assert isinstance(done.exception, InputError)
    assert "needs both" in str(done.exception)
