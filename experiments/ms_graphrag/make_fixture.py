"""Makes a real GraphRAG output folder with Microsoft's package and a stub model, without network.

    pip install '.[graphrag]' && python experiments/ms_graphrag/make_fixture.py [CORPUS.jsonl] [OUT]

The whole of GraphRAG's standard pipeline runs except the embedding of texts: chunking, extraction,
summaries, communities (hierarchical Leiden) and reports. Only the language model is a stub: it
answers the extraction prompt with the capitalised phrases of the text, each pair in one sentence
being a relationship, and the other prompts with what it was given. The passages under
tests/retrieval/data/ms_graphrag/data are invented for this purpose.

Chunks are 70 tokens, so that longer passages fall into two text units.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "tests" / "retrieval" / "data" / "ms_graphrag"
# The tokenizer's table comes with litellm; without this it would be downloaded.
LITELLM = importlib.util.find_spec("litellm")
if LITELLM is None or LITELLM.origin is None:
    raise SystemExit("pip install '.[graphrag]'")
TOKENIZERS = Path(LITELLM.origin).parent / "litellm_core_utils" / "tokenizers"
os.environ["TIKTOKEN_CACHE_DIR"] = str(TOKENIZERS)
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from graphrag.api import build_index  # noqa: E402
from graphrag.config.models.graph_rag_config import GraphRagConfig  # noqa: E402
from graphrag_llm.completion.completion import LLMCompletion  # noqa: E402
from graphrag_llm.completion.completion_factory import register_completion  # noqa: E402
from graphrag_llm.utils import (  # noqa: E402
    create_completion_response,
    structure_completion_response,
)

TABLES = (
    "documents",
    "text_units",
    "entities",
    "relationships",
    "communities",
    "community_reports",
)
WORKFLOWS = [
    "load_input_documents",
    "create_base_text_units",
    "create_final_documents",
    "extract_graph",
    "finalize_graph",
    "create_communities",
    "create_final_text_units",
    "create_community_reports",
]
NAME = re.compile(r"\b[A-Z]\w+(?:(?: of)? [A-Z]\w+)*")
OPENERS = {"It", "Its", "Her", "His", "She", "He", "The", "After", "In", "Among", "All", "Until"}
OPENERS |= {"Critics", "Barges", "Granite", "Middle Ages"}


class StubModel(LLMCompletion):
    """Answers GraphRAG's prompts by rules."""

    def __init__(self, *, tokenizer: Any, metrics_store: Any, **_: Any) -> None:
        self._tokenizer, self._metrics_store = tokenizer, metrics_store

    @property
    def metrics_store(self) -> Any:
        return self._metrics_store

    @property
    def tokenizer(self) -> Any:
        return self._tokenizer

    def completion(self, /, **arguments: Any) -> Any:
        messages = arguments["messages"]
        prompt = messages if isinstance(messages, str) else messages[-1]["content"]
        format = arguments.get("response_format")
        response = create_completion_response(answer(prompt, is_report=format is not None))
        if format is not None:
            response.formatted_response = structure_completion_response(response.content, format)
        return response

    async def completion_async(self, /, **arguments: Any) -> Any:
        return self.completion(**arguments)


def answer(prompt: str, *, is_report: bool) -> str:
    if is_report:
        return report(prompt)
    if "Description List:" in prompt:
        described = re.search(r"Description List: (.*?)\n#######", prompt, re.DOTALL)
        assert described is not None
        return " ".join(json.loads(described[1]))
    text = prompt.rsplit("Text:", 1)[1].split("######################")[0].strip()
    return extraction(text)


def extraction(text: str) -> str:
    records: dict[str, None] = {}
    for sentence in re.split(r"(?<=[.!?])\s+", text):
        names = list(dict.fromkeys(names_in(sentence)))
        for name in names:
            records[f'("entity"<|>{name}<|>CONCEPT<|>{sentence})'] = None
        for source, target in pairwise(names):
            records[f'("relationship"<|>{source}<|>{target}<|>{sentence}<|>1)'] = None
    return "\n##\n".join([*records, "<|COMPLETE|>"])


def names_in(sentence: str) -> list[str]:
    found = []
    for match in NAME.finditer(sentence):
        first, _, rest = match.group().partition(" ")
        name = rest if first in OPENERS else match.group()
        if len(name) > 2 and name not in OPENERS:
            found.append(name)
    return found


def report(prompt: str) -> str:
    tables = prompt.rsplit("Text:", 1)[1]
    names = list(dict.fromkeys(re.findall(r"^\d+,([A-Z][A-Z ]+),", tables, re.MULTILINE)))
    title = ", ".join(name.title() for name in names[:3]) or "A community"
    facts = list(dict.fromkeys(re.findall(r"[A-Z][^.,\n]{20,}\.", tables)))[:3]
    findings = [{"summary": fact, "explanation": fact} for fact in facts]
    return json.dumps(
        {
            "title": title,
            "summary": f"A community of {len(names)} names: {title}.",
            "findings": findings,
            "rating": 5.0,
            "rating_explanation": "Every community of this corpus matters alike.",
        }
    )


def main(corpus: Path, out: Path) -> None:
    register_completion("stub", StubModel)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "input").mkdir()
        shutil.copy(corpus, root / "input" / "corpus.jsonl")
        model = {"type": "stub", "model_provider": "stub", "model": "stub"}
        config = GraphRagConfig.model_validate(
            {
                "completion_models": {"default_completion_model": model},
                "embedding_models": {"default_embedding_model": model},
                "input": {
                    "type": "jsonl",
                    "file_pattern": r".*\.jsonl$",
                    "id_column": "_id",
                    "title_column": "title",
                    "text_column": "text",
                },
                "input_storage": {"base_dir": str(root / "input")},
                "output_storage": {"base_dir": str(root / "output")},
                "cache": {"type": "none"},
                "reporting": {"type": "file", "base_dir": str(root / "logs")},
                "chunking": {"size": 70, "overlap": 10},
                "extract_graph": {"max_gleanings": 0},
                "extract_claims": {"enabled": False},
                "concurrent_requests": 1,
                "workflows": WORKFLOWS,
            }
        )
        for result in asyncio.run(build_index(config)):
            if result.error is not None:
                raise SystemExit(f"{result.workflow}: {result.error}")
        out.mkdir(parents=True, exist_ok=True)
        for table in TABLES:
            shutil.copy(root / "output" / f"{table}.parquet", out)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:]]
    main(*given, *(DATA / "data" / "corpus.jsonl", DATA / "output")[len(given) :])
