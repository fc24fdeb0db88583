"""`judge: evidence` against a plain reference: the engine's spans, judged by what they hold."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.corpus import Document, Query
from tuner.core.grades import GradeScale
from tuner.datasets.dataset import Dataset
from tuner.evaluation.evaluator import Evaluator
from tuner.retrieval.hybrid import Hybrid
from tuner.retrieval.hybrid.chunks import cut


def _module(name: str) -> ModuleType:
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _module("evidence_reference")

# Every sentence of a document is another one, so that a text stands in one place of it.
WORDS = st.lists(st.sampled_from(["Ada", "Holm", "river", "town", "born", "in"]), max_size=3)
texts = st.lists(WORDS, min_size=1, max_size=6).map(
    lambda rows: [" ".join([f"Line{n}", *words]) + "." for n, words in enumerate(rows)]
)


@settings(max_examples=15)
@given(
    documents=st.lists(texts, min_size=1, max_size=5),
    tokens=st.sampled_from([0, 3, 6, 12]),
    has_overlap=st.booleans(),
    grade=st.sampled_from([1.0, 2.0]),
    data=st.data(),
)
def test_what_counts(documents, tokens, has_overlap, grade, data):
    corpus = [Document(str(n), "", " ".join(rows)) for n, rows in enumerate(documents)]
    supports = {
        document.id: tuple(chosen)
        for document, rows in zip(corpus, documents, strict=True)
        if (chosen := data.draw(st.lists(st.sampled_from(rows), max_size=2)))
    }
    query = Query("q", "Line0 Line1 Line2 river town born Ada Holm in")
    dataset = Dataset.create(
        "made",
        "",
        documents=corpus,
        queries=[query],
        qrels={"q": {document.id: grade for document in corpus}},
        supports={"q": supports},
    ).with_scale(GradeScale(judge="evidence"))
    overlap = tokens // 2 if has_overlap else 0
    with TemporaryDirectory() as cache:
        engine = Hybrid.build(
            dataset.corpus, cache_dir=Path(cache), chunk_tokens=tokens, chunk_overlap=overlap
        )
        found = [engine.retrieve([query], {})]
        engine.prepare([query])
        found.append(engine.retrieve([query], {}))
    evaluator = Evaluator.build(
        engine, [query], dataset.qrels, ["recall@5"], scale=dataset.scale, spans=dataset.spans
    )
    by_id = {document.id: document.text for document in corpus}
    for rankings in found:
        ids = rankings.ids(0)
        assert len(ids) == len(corpus)
        stood = []
        for id_, (begin, end) in zip(ids, rankings.spans[0, : len(ids)], strict=True):
            stood.append((id_, by_id[id_][begin:end]))
            passages = list(cut(by_id[id_], tokens=tokens, overlap=overlap)) if tokens else []
            assert stood[-1][1] in (passages or [by_id[id_]])
        expected = reference.gains(stood, dataset.qrels["q"], supports)
        judged = evaluator.qrels.judge(rankings)
        assert judged.gains[0, : len(ids)].tolist() == expected
        assert not judged.gains[0, len(ids) :].any()
        recall = sum(gain >= 1 for gain in expected[:5]) / len(corpus)
        assert evaluator.measure(rankings).metrics["recall@5"] == recall
