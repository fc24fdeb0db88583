"""tuner dataset build from-graph: questions made from the facts of a graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import click

from tuner.cli.dataset.options import AT_LEAST_1, path_argument
from tuner.cli.options import note
from tuner.cli.out import echo
from tuner.core.errors import InputError


@click.command("from-graph", short_help="Make questions from a graph's facts.")
@path_argument
@click.argument("out", metavar="OUT")
@click.option(
    "--count", default=100, show_default=True, type=AT_LEAST_1, help="How many questions."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["1hop", "2hop", "3hop", "comparison", "intersection"]),
    help="A kind of question to make. May be repeated. Default: all.",
)
@click.option(
    "--language",
    type=click.Choice(["auto", "english", "chinese"]),
    default="auto",
    show_default=True,
    help="auto: Chinese where the names or relations are Chinese.",
)
@click.option(
    "--relations",
    metavar="FILE",
    help='A YAML file that says how relations are worded: `written by: {phrase: "the author of '
    '{subject}", verb: "was written by"}`.',
)
@click.option(
    "--documents",
    metavar="CYPHER",
    help="Of a graph database: the statement that returns id, title and text of each document.",
)
@click.option(
    "--triples",
    metavar="CYPHER",
    help="Of a graph database: the statement that returns doc_id, subject, relation and object.",
)
@click.option("--seed", default=0, show_default=True, help="The same seed, the same questions.")
@click.option(
    "--most-answers",
    default=5,
    show_default=True,
    type=AT_LEAST_1,
    help="Leave out questions with more answers than this.",
)
@click.option(
    "--most-documents",
    default=10,
    show_default=True,
    type=AT_LEAST_1,
    help="Leave out questions that more documents than this support.",
)
@click.option(
    "--most-per-name",
    default=2,
    show_default=True,
    type=AT_LEAST_1,
    help="How many questions of a kind may start from one name.",
)
@click.option(
    "--hub-degree",
    default=20,
    show_default=True,
    type=AT_LEAST_1,
    help="A name with at least this many neighbours makes a question one level harder.",
)
def from_graph(
    path: str,
    out: str,
    count: int,
    kinds: tuple[str, ...],
    language: str,
    relations: str | None,
    documents: str | None,
    triples: str | None,
    seed: int,
    most_answers: int,
    most_documents: int,
    most_per_name: int,
    hub_degree: int,
) -> None:
    """Make questions from the triples at PATH, and write a data set to the new folder OUT.

    PATH is a folder with corpus.jsonl and triples.jsonl, or any data set with triples, whose own
    questions are not used; or an output folder of Microsoft GraphRAG, or LightRAG's working
    directory, whose text units or chunks are the passages then. An entities.jsonl says what counts
    as a name. Each question gets all its answers in the graph, the documents that state its facts,
    and its paths as evidence.
    With --documents and --triples PATH is a database, as for `kind: cypher`: a file of ladybug's,
    or the address of a server.
    """
    from tuner.evalset.corpus import open_corpus
    from tuner.evalset.from_database import read_database
    from tuner.evalset.synthetic import KINDS, Options, build_from_graph
    from tuner.evalset.wording import read_relations
    from tuner.evalset.writing import refuse_full, write_dataset, write_notes

    refuse_full(Path(out))
    if (documents is None) != (triples is None):
        raise InputError("a graph database needs both --documents and --triples")
    options = Options(
        count=count,
        kinds=kinds or KINDS,
        language=language,
        relations=None if relations is None else read_relations(Path(relations)),
        seed=seed,
        most_answers=most_answers,
        most_documents=most_documents,
        most_per_name=most_per_name,
        hub_degree=hub_degree,
    )
    if documents is None or triples is None:
        corpus = open_corpus(path)
    else:
        corpus = read_database(path, documents=documents, triples=triples)
    built = build_from_graph(corpus, path, name=Path(out).name, options=options)
    copy = write_dataset(built, Path(out))
    settings = {name: value for name, value in asdict(options).items() if name != "relations"}
    write_notes(Path(out), path, built.warnings, settings)
    for warning in built.warnings:
        note(f"warning: {warning}")
    made = Counter(query.query_type for query in copy.queries)
    counts = ", ".join(f"{made[kind]} {kind}" for kind in options.kinds)
    echo(f"{out}: {len(copy.queries)} questions ({counts})")
    echo(f"fingerprint {copy.fingerprint[:12]}")


commands: tuple[click.Command, ...] = (from_graph,)
