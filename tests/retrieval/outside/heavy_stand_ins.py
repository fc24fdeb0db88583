"""Stand-ins for systems that are too heavy to install: their names and signatures, and no more.

Each class answers over the passages of ``PASSAGES``, so that the examples of a page run. That the
real packages have these classes, with these parameters and fields, is tested where they lie.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

PASSAGES = {
    "d0": "Lima lies on a river called Rimac.",
    "d1": "Cairo lies on a river called Nile.",
}
ASKED: list[dict[str, Any]] = []


def ranked(query: str) -> list[str]:
    """Return the passages that share a word with a query, best first."""
    words = {*query.lower().split()}
    shared = {id_: len(words & {*text.lower().split()}) for id_, text in PASSAGES.items()}
    return sorted((id_ for id_ in shared if shared[id_]), key=lambda id_: -shared[id_])


class Hipporag:
    @dataclass
    class BaseConfig:
        save_dir: str = ""
        linking_top_k: int = 5
        passage_node_weight: float = 0.05
        damping: float = 0.5

    @dataclass
    class QuerySolution:
        question: str
        docs: list[str]

    class HippoRAG:
        def __init__(
            self,
            global_config: Any = None,
            save_dir: Any = None,
            llm_model_name: Any = None,
            llm_base_url: Any = None,
            embedding_model_name: Any = None,
            embedding_base_url: Any = None,
            azure_endpoint: Any = None,
            azure_embedding_endpoint: Any = None,
        ) -> None:
            self.global_config = global_config

        def index(self, docs: list[str]) -> None:
            raise AssertionError("it is there")

        def retrieve(
            self, queries: list[str], num_to_retrieve: Any = None, gold_docs: Any = None
        ) -> list[Any]:
            ASKED.append(vars(self.global_config))
            found = [PASSAGES[id_] for id_ in ranked(queries[0])][:num_to_retrieve]
            return [Hipporag.QuerySolution(queries[0], found)]


class NanoGraphrag:
    @dataclass
    class QueryParam:
        mode: str = "global"
        only_need_context: bool = False
        level: int = 2
        top_k: int = 20
        local_max_token_for_text_unit: int = 4000

    @dataclass
    class GraphRAG:
        working_dir: str = ""

        def insert(self, string_or_strings: Any) -> None:
            raise AssertionError("it is there")

        async def aquery(self, query: str, param: Any = None) -> str:
            ASKED.append(vars(param))
            rows = "\n".join(f'{n},\t"{PASSAGES[id_]}"' for n, id_ in enumerate(ranked(query)))
            return f"-----Entities-----\n{PASSAGES['d1']}\n-----Sources-----\n{rows}\n"


class FastGraphrag:
    @dataclass
    class QueryParam:
        only_context: bool = False

    @dataclass
    class TChunk:
        id: Any
        content: str
        metadata: dict[str, Any] = field(default_factory=dict)

    @dataclass
    class TContext:
        chunks: list[Any]

    @dataclass
    class TQueryResponse:
        context: Any

    @dataclass
    class BaseGraphRAG:
        working_dir: str
        domain: str
        example_queries: str
        entity_types: list[str]

        def insert(
            self, content: Any, metadata: Any = None, params: Any = None, show_progress: bool = True
        ) -> None:
            raise AssertionError("it is there")

        def query(self, query: str, params: Any = None) -> Any:
            policies = vars(self.config)
            ASKED.append({name: vars(policies[name].config) for name in policies})
            chunks = [
                (FastGraphrag.TChunk(1, PASSAGES[id_], {"id": id_}), 0.5) for id_ in ranked(query)
            ]
            return FastGraphrag.TQueryResponse(FastGraphrag.TContext(chunks))

        @property
        def config(self) -> Any:
            if "kept" not in vars(self):
                names = ("chunk_ranking_policy", "relation_ranking_policy", "entity_ranking_policy")
                policies = {n: SimpleNamespace(config=SimpleNamespace()) for n in names}
                self.kept = SimpleNamespace(**policies)
            return self.kept

    @dataclass
    class RankingPolicies:
        chunk_ranking_policy: Any
        relation_ranking_policy: Any
        entity_ranking_policy: Any


class Graphiti:
    class EdgeReranker(Enum):
        rrf = "reciprocal_rank_fusion"
        node_distance = "node_distance"
        episode_mentions = "episode_mentions"
        mmr = "mmr"
        cross_encoder = "cross_encoder"

    class EdgeSearchMethod(Enum):
        cosine_similarity = "cosine_similarity"
        bm25 = "bm25"
        bfs = "breadth_first_search"

    @dataclass
    class EdgeSearchConfig:
        search_methods: list[Any]
        reranker: Any
        sim_min_score: float
        mmr_lambda: float
        bfs_max_depth: int

    @dataclass
    class SearchConfig:
        edge_config: Any
        limit: int

    @dataclass
    class EntityEdge:
        episodes: list[str]

    @dataclass
    class SearchResults:
        edges: list[Any]

    @dataclass
    class EpisodicNode:
        uuid: str
        name: str

        @classmethod
        async def get_by_uuids(cls, driver: Any, uuids: list[str]) -> list[Any]:
            return [cls(uuid, uuid.removeprefix("uuid-")) for uuid in reversed(uuids)]

    class Graphiti:
        def __init__(self, uri: Any = None, user: Any = None, password: Any = None) -> None:
            self.driver = None

        async def search_(self, query: str, config: Any = None) -> Any:
            ASKED.append(vars(config))
            found = [id_ for id_ in ranked(query) for _ in (1, 2)]
            edges = [Graphiti.EntityEdge([f"uuid-{id_}"]) for id_ in found]
            return Graphiti.SearchResults(edges)


def modules() -> dict[str, ModuleType]:
    """Return the stand-ins as modules, by the names that examples import."""
    names = {
        "hipporag": (Hipporag.HippoRAG,),
        "hipporag.utils": (),
        "hipporag.utils.config_utils": (Hipporag.BaseConfig,),
        "nano_graphrag": (NanoGraphrag.GraphRAG, NanoGraphrag.QueryParam),
        "fast_graphrag": (FastGraphrag.QueryParam,),
        "graphiti_core": (Graphiti.Graphiti,),
        "graphiti_core.nodes": (Graphiti.EpisodicNode,),
        "graphiti_core.search": (),
        "graphiti_core.search.search_config": (
            Graphiti.EdgeReranker,
            Graphiti.EdgeSearchConfig,
            Graphiti.EdgeSearchMethod,
            Graphiti.SearchConfig,
        ),
    }
    found = {name: ModuleType(name) for name in names}
    for name, classes in names.items():
        for one in classes:
            setattr(found[name], one.__name__, one)
    vars(found["fast_graphrag"])["GraphRAG"] = FastGraphrag.BaseGraphRAG
    return found


# Where the real ones lie: the package, the file in it, the class there, and the stand-in.
REAL: list[tuple[str, str, str, type]] = [
    ("hipporag", "HippoRAG.py", "HippoRAG", Hipporag.HippoRAG),
    ("hipporag", "utils/config_utils.py", "BaseConfig", Hipporag.BaseConfig),
    ("hipporag", "utils/misc_utils.py", "QuerySolution", Hipporag.QuerySolution),
    ("nano_graphrag", "graphrag.py", "GraphRAG", NanoGraphrag.GraphRAG),
    ("nano_graphrag", "base.py", "QueryParam", NanoGraphrag.QueryParam),
    ("fast_graphrag", "_graphrag.py", "BaseGraphRAG", FastGraphrag.BaseGraphRAG),
    ("fast_graphrag", "_graphrag.py", "QueryParam", FastGraphrag.QueryParam),
    ("fast_graphrag", "_types.py", "TChunk", FastGraphrag.TChunk),
    ("fast_graphrag", "_types.py", "TContext", FastGraphrag.TContext),
    ("fast_graphrag", "_types.py", "TQueryResponse", FastGraphrag.TQueryResponse),
    ("fast_graphrag", "__init__.py", "GraphRAG.Config", FastGraphrag.RankingPolicies),
    ("graphiti_core", "graphiti.py", "Graphiti", Graphiti.Graphiti),
    ("graphiti_core", "nodes.py", "EpisodicNode", Graphiti.EpisodicNode),
    ("graphiti_core", "edges.py", "EntityEdge", Graphiti.EntityEdge),
    ("graphiti_core", "search/search_config.py", "EdgeReranker", Graphiti.EdgeReranker),
    ("graphiti_core", "search/search_config.py", "EdgeSearchMethod", Graphiti.EdgeSearchMethod),
    ("graphiti_core", "search/search_config.py", "EdgeSearchConfig", Graphiti.EdgeSearchConfig),
    ("graphiti_core", "search/search_config.py", "SearchConfig", Graphiti.SearchConfig),
    ("graphiti_core", "search/search_config.py", "SearchResults", Graphiti.SearchResults),
]
