"""A graph in a database, asked in steps of Cypher: ladybug, Neo4j, Memgraph, FalkorDB."""

from tuner.retrieval.adapters.cypher.retriever import Cypher

__all__ = ["Cypher"]
