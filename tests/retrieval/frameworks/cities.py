"""Four documents that retrievers of all frameworks are tried over, and what is asked of them."""

from __future__ import annotations

from tuner.core.corpus import Corpus, Document, Query

DOCUMENTS = (
    Document("d0", "Lima", "Lima lies on a river called Rimac."),
    Document("d1", "Cairo", "Cairo lies on a river called Nile."),
    Document("d2", "Paris", "Paris lies on a river called Seine."),
    Document("d3", "Rome", "Rome lies on a river called Tiber, and Rome is old."),
)
QUERIES = (
    Query("q0", "which river flows through Lima"),
    Query("q1", "Paris old"),
    Query("q2", "Rome or Cairo"),
)
IDS = {document.id for document in DOCUMENTS}
CORPUS = Corpus(DOCUMENTS, fingerprint="four-cities")
