"""GraphRAG's own context builder over a real output folder, where its package is installed."""

from __future__ import annotations

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

pytest.importorskip("graphrag", reason="Microsoft's graphrag is not installed: '.[graphrag]'")

from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError, TunerError
from tuner.datasets import Dataset, open_dataset
from tuner.retrieval.adapters.ms_graphrag.output import read_output
from tuner.retrieval.adapters.ms_graphrag_local import MsGraphragLocal
from tuner.testing import RetrieverCase, RetrieverContract

FIXTURE = Path(__file__).resolve().parents[1] / "data" / "ms_graphrag"
OUTPUT = FIXTURE / "output"
QUERIES = (
    Query("a", "Where was the director of Night Ferry born?"),
    Query("b", "Which bridge crosses the Lissa near Kvarnby?"),
    Query("c", "zymurgy"),
)
PARAMS: tuple[dict[str, Any], ...] = (
    {},
    {"max_context_tokens": 500, "top_k_mapped_entities": 2},
    {"text_unit_prop": 1.0, "community_prop": 0.0, "max_context_tokens": 300},
)


def build(corpus: Corpus, **options: Any) -> MsGraphragLocal:
    given = {"path": str(OUTPUT), "cache_dir": Path(mkdtemp()), **options}
    return MsGraphragLocal.build(corpus, **given)


def corpus() -> Corpus:
    return open_dataset(FIXTURE / "data").corpus


class TestContractOfDocuments(RetrieverContract):
    case: ClassVar = RetrieverCase(
        lambda: build(corpus()),
        QUERIES,
        PARAMS,
        document_ids=[document.id for document in corpus().documents],
    )


class TestContractOfTextUnits(RetrieverContract):
    case: ClassVar = RetrieverCase(
        lambda: build(Corpus(()), judge="text_unit"),
        QUERIES,
        PARAMS,
        document_ids=[unit.id for unit in read_output(OUTPUT).units],
    )


class TestContext:
    def test_what_a_query_starts_from_leads_its_sources(self, dataset: Dataset) -> None:
        query, params = [Query("q", "Signe Dahl")], {"top_k_mapped_entities": 1}
        rankings = build(dataset.corpus, community_level=None).retrieve(query, params)
        assert rankings.entities is not None
        assert rankings.entities[0][0] == "SIGNE DAHL"
        assert len(rankings.entities[0]) == 2  # GraphRAG takes twice as many
        assert set(rankings.ids(0)[:2]) == {"signe-dahl", "mount-skarv"}
        assert rankings.paths is not None
        both = set(rankings.entities[0])
        assert all(both & {path[0][0], path[0][2]} for path in rankings.paths[0])
        # GraphRAG's query command leaves out what stands in no community.
        rankings = build(dataset.corpus, community_level=2).retrieve(query, params)
        assert rankings.entities is not None
        assert "SIGNE DAHL" not in rankings.entities[0]

    def test_entities_that_a_level_hides_are_counted(self, dataset: Dataset) -> None:
        assert build(dataset.corpus).notes() == ()  # by default every entity can be found
        (told,) = build(dataset.corpus, community_level=2).notes()
        hidden, of = (int(word) for word in told.split()[:3:2])
        entities = parquet.read_table(OUTPUT / "entities.parquet").column("id").to_pylist()
        communities = parquet.read_table(OUTPUT / "communities.parquet").to_pylist()
        found = {id_ for one in communities if one["level"] <= 2 for id_ in one["entity_ids"]}
        assert (hidden, of) == (len(set(entities) - found), len(entities))
        assert hidden > 0
        assert "in no community of level 2 or below; they cannot be found" in told

    def test_the_budget_holds_for_the_whole_context(self, dataset: Dataset) -> None:
        retriever = build(dataset.corpus)
        found = []
        for budget in (100, 400, 12_000):
            rankings = retriever.retrieve(QUERIES, {"max_context_tokens": budget})
            assert rankings.context_tokens is not None
            # What joins the parts, and a header a part, is not counted by GraphRAG.
            assert rankings.context_tokens.max() <= budget + 40
            found.append(sum(len(rankings.ids(row)) for row in range(3)))
        assert found == sorted(found)
        assert found[0] < found[-1]

    def test_shares_move_the_budget(self, dataset: Dataset) -> None:
        retriever = build(dataset.corpus)

        def count(text: float, community: float) -> int:
            shares = {"text_unit_prop": text, "community_prop": community}
            rankings = retriever.retrieve(QUERIES, {"max_context_tokens": 600, **shares})
            return sum(len(rankings.ids(row)) for row in range(3))

        assert count(0.0, 0.5) == 0
        assert 0 < count(0.3, 0.5) < count(0.9, 0.1)

    def test_claims_are_part_of_the_context_where_there_are_some(
        self, dataset: Dataset, folder: Path
    ) -> None:
        query = [Query("q", "Night Ferry")]
        plain = build(dataset.corpus).retrieve(query, {})
        claim = {
            "id": "claim-1",
            "human_readable_id": 0,
            "covariate_type": "claim",
            "type": "AWARD",
            "description": "Night Ferry was given the Silver Lantern.",
            "subject_id": "NIGHT FERRY",
            "object_id": "VESSBY FILM FESTIVAL",
            "status": "TRUE",
            "start_date": "1954-01-01",
            "end_date": "1954-12-31",
            "source_text": "The film won the Silver Lantern.",
            "text_unit_id": "0",
        }
        table = pyarrow.table({name: [value] for name, value in claim.items()})
        parquet.write_table(table, folder / "covariates.parquet")
        claimed = build(dataset.corpus, path=str(folder)).retrieve(query, {})
        assert plain.context_tokens is not None
        assert claimed.context_tokens is not None
        assert claimed.context_tokens[0] > plain.context_tokens[0] + 20

    @pytest.mark.slow
    def test_threads_get_the_same_answers(self, dataset: Dataset) -> None:
        retriever = build(dataset.corpus)
        alone = [retriever.retrieve([query], {}).ids(0) for query in dataset.queries]
        with ThreadPoolExecutor(4) as pool:
            together = pool.map(
                lambda query: retriever.retrieve([query], {}).ids(0), dataset.queries
            )
        assert list(together) == alone


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # GraphRAG's use of LanceDB
def test_entities_are_found_as_in_lancedb(tmp_path: Path) -> None:
    from graphrag_vectors import VectorStoreDocument
    from graphrag_vectors.lancedb import LanceDBVectorStore

    from tuner.retrieval.adapters.ms_graphrag_local.builder import _Vectors

    draw = np.random.default_rng(3)
    ids = [f"entity-{number}" for number in range(40)]
    # Of different lengths, so that the cosine would order them otherwise.
    vectors = (draw.normal(size=(40, 8)) * draw.uniform(0.2, 3.0, (40, 1))).astype(np.float32)
    theirs = LanceDBVectorStore(db_uri=str(tmp_path), index_name="entities", vector_size=8)
    theirs.connect()
    theirs.create_index()
    theirs.load_documents(
        [
            VectorStoreDocument(id_, vector.tolist())
            for id_, vector in zip(ids, vectors, strict=True)
        ]
    )
    mine = _Vectors(ids, vectors)
    for _ in range(10):
        query = draw.normal(size=8).astype(np.float32).tolist()
        found = mine.similarity_search_by_vector(query, k=12)
        wanted = theirs.similarity_search_by_vector(query, k=12)
        assert [hit.document.id for hit in found] == [hit.document.id for hit in wanted]
        scores = [hit.score for hit in wanted]
        assert [hit.score for hit in found] == pytest.approx(scores, abs=1e-4)


class TestKeeping:
    def test_a_pickle_is_small(self, dataset: Dataset) -> None:
        assert len(pickle.dumps(build(dataset.corpus))) < 1000

    def test_the_fingerprint_tells_contents_and_options(
        self, dataset: Dataset, folder: Path
    ) -> None:
        made = [
            build(dataset.corpus),
            build(dataset.corpus, community_level=0),
            build(dataset.corpus, encoding="cl100k_base"),
            build(dataset.corpus, judge="document", path=str(folder)),
        ]
        first, *changed, copy = [retriever.fingerprint for retriever in made]
        assert len({first, *changed}) == 3
        assert copy == first
        shutil.copy(OUTPUT / "entities.parquet", folder / "relationships.parquet")
        with pytest.raises(InputError, match=r"relationships\.parquet: source: no such column"):
            build(dataset.corpus, path=str(folder))


class TestWrong:
    def test_missing_reports(self, dataset: Dataset, folder: Path) -> None:
        (folder / "community_reports.parquet").unlink()
        (folder / "communities.parquet").unlink()
        with pytest.raises(InputError) as caught:
            build(dataset.corpus, path=str(folder))
        assert [Path(str(problem.file)).name for problem in caught.value.problems] == [
            "communities.parquet",
            "community_reports.parquet",
        ]

    def test_broken_reports(self, dataset: Dataset, folder: Path) -> None:
        shutil.copy(OUTPUT / "entities.parquet", folder / "community_reports.parquet")
        with pytest.raises(InputError, match="GraphRAG cannot read it"):
            build(dataset.corpus, path=str(folder))

    def test_unknown_tokenizer(self, dataset: Dataset) -> None:
        with pytest.raises(InputError, match="cannot load the tokenizer 'o300k'"):
            build(dataset.corpus, encoding="o300k")

    def test_vectors_of_zeros_and_an_unknown_embedder(
        self, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = "import numpy\ndef zeros(texts):\n    return numpy.zeros((len(texts), 3))\n"
        (tmp_path / "made_of_nothing.py").write_text(code, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        with pytest.raises(TunerError, match="is all zeros"):
            build(dataset.corpus, embedder="made_of_nothing:zeros")
        with pytest.raises(InputError, match="has no 'ones'"):
            build(dataset.corpus, embedder="made_of_nothing:ones")

    def test_an_embedder_of_the_users_own(
        self, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = (
            "import numpy\n"
            "def letters(texts):\n"
            "    return numpy.array([[1 + t.count(c) for c in 'adefghiklort'] for t in texts])\n"
        )
        (tmp_path / "by_letters.py").write_text(code, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        retriever = build(dataset.corpus, embedder="by_letters:letters")
        rankings = retriever.retrieve(dataset.queries, {})
        assert (np.asarray(rankings.documents)[:, 0] >= 0).all()
