"""Who counts the tokens of contexts: the retriever, the data set's texts, or nobody."""

from __future__ import annotations

from dataclasses import replace

from tuner.config import Config
from tuner.core.steps import Say
from tuner.datasets import Dataset
from tuner.evaluation.system_metrics import CONTEXT_TOKENS
from tuner.metrics.efficiency import default_tokenizer
from tuner.metrics.passages import Passages
from tuner.retrieval.wrapped.counted import CountTokens
from tuner.run.planning import Plan


def token_counter(config: Config, plan: Plan, dataset: Dataset) -> CountTokens | None:
    """Return what counts tokens of contexts, where they cost something and nobody reports them.

    Kinds that ship report them; a tokenizer of the user's takes the place of that.
    """
    is_priced = config.cost is not None and config.cost.per_1000_tokens > 0
    is_reported = plan.tokenizer is None and ":" not in config.retriever.kind
    if not is_priced or is_reported or not dataset.corpus.documents:
        return None
    return Passages.build(
        [document.id for document in dataset.corpus.documents],
        [f"{document.title} {document.text}".strip() for document in dataset.corpus.documents],
        [],
        tokenizer=plan.tokenizer or default_tokenizer,
    ).context_tokens


def without_token_counts(plan: Plan, say: Say) -> Plan:
    """Return the plan without context_tokens, unless the objective is made of it."""
    if CONTEXT_TOKENS not in plan.metric_names or CONTEXT_TOKENS in plan.objective.metric_names:
        return plan
    say(f"note: the data set has no texts, so {CONTEXT_TOKENS} is not reported")
    names = tuple(name for name in plan.metric_names if name != CONTEXT_TOKENS)
    return replace(plan, metric_names=names)
