"""The tuned retriever behind a registered model: what ``mlflow.pyfunc.load_model`` loads.

model = mlflow.pyfunc.load_model("models:/graphrag-atlas@challenger")
model.predict(["Who wrote the charter of Lisfen?"])[0]["ids"]
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuner.config import Config, load_config
from tuner.config.params import read_params_file
from tuner.core.corpus import Query
from tuner.core.errors import InputError, TunerError
from tuner.core.policy import Policy, is_policy
from tuner.core.run_files import BEST_FILE, CONFIG_FILE
from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.datasets import open_dataset
from tuner.retrieval.base import Retriever, ready, serve_one
from tuner.retrieval.features import params_for
from tuner.retrieval.knobs import knob_params
from tuner.retrieval.wrapped.policy import PolicyRetriever
from tuner.run.systems import build_retriever

_ENGINE = "hybrid"


@dataclass(frozen=True)
class TunedRetriever:
    """Answers queries with a study's winner.

    ``retriever`` is None for a system that cannot be built on this machine: its answers then tell
    the parameters, for the system itself to use.
    """

    choice: Params | Policy
    retriever: Retriever | None

    def predict(self, data: Any, params: Any = None) -> list[dict[str, Any]]:  # noqa: ARG002
        """Answer a list of queries, or a table with a column ``query``; one mapping a query.

        Each holds the ``query``, the ``params`` that are used for it, and the documents' ``ids``
        and ``scores``, best first; None where the system is not here or gives no scores.
        ``params`` is MLflow's: this model has none.

        Raises:
            InputError: no queries, or something that is none.
        """
        return [self._answer(number, text) for number, text in enumerate(_texts(data))]

    def _answer(self, number: int, text: str) -> dict[str, Any]:
        chosen = self.choice
        # One by one, as a service would: a batch may draw on what was prepared for a study.
        query = Query(f"query-{number}", text)
        params = (
            params_for(chosen, self.retriever, [query])[0] if isinstance(chosen, Policy) else chosen
        )
        answer: dict[str, Any] = {"query": text, "params": dict(params), "ids": None}
        if self.retriever is None:
            return {**answer, "scores": None}
        found = serve_one(self.retriever, query, params)
        ids, scores = found.ids(0), found.scores
        values = None if scores is None else [float(score) for score in scores[0, : len(ids)]]
        return {**answer, "ids": ids, "scores": values}


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> TunedRetriever:
    """Load a registered model; MLflow finds this by its name.

    ``model_config={"dataset": PATH}`` says where the corpus lies on this machine.

    Raises:
        InputError: the built-in engine's corpus is not here, or what was found is not a model.
    """
    folder = Path(path)
    # The store that showed the study is not asked for, nor need its driver be here.
    settings = ["tracking=null"]
    config, _ = load_config(folder / CONFIG_FILE, settings)
    section = config.dataset
    if section is not None and model_config and model_config.get("dataset"):
        section = section.model_copy(update={"path": str(model_config["dataset"])})
        config = config.model_copy(update={"dataset": section})
    given = read_params_file(str(folder / BEST_FILE))
    # What is served takes the baseline's place: its index is the one that is built.
    retriever = _built(config.model_copy(update={"baseline": dict(given)}))
    if is_policy(given):
        policy = Policy.from_record(given)
        if retriever is not None:
            ready(PolicyRetriever(retriever, policy), {})
        return TunedRetriever(policy, retriever)
    params = dict(given) if retriever is None else knob_params(given, retriever.knobs)
    return TunedRetriever(params, retriever)


def _built(config: Config) -> Retriever | None:
    """Build the retriever over its corpus; None for another system that is not here."""
    kind = config.retriever.kind
    try:
        if config.dataset is None:
            raise InputError("it measures itself, so it answers no queries")
        # Judged documents that are missing do not matter here.
        section = config.dataset
        dataset = open_dataset(
            section.path, format=section.format, is_strict=False, scale=section.scale
        )
        space = SearchSpace.from_mapping(config.space, config.space_constraints)
        return build_retriever(config, space, dataset.corpus)
    except TunerError as error:
        if kind == _ENGINE:
            raise InputError(
                f"the tuned retriever needs its corpus: {error}; where it lies elsewhere, say so: "
                "mlflow.pyfunc.load_model(…, model_config={'dataset': PATH})"
            ) from error
        logging.getLogger(__name__).warning(
            "the retriever %r is not to be had here, so the model answers with its parameters: %s",
            kind,
            error,
        )
        return None


def _texts(data: Any) -> Sequence[str]:
    columns = getattr(data, "columns", None)  # a pandas table, whose import this need not cost
    if columns is not None or isinstance(data, Mapping):
        if "query" not in (data if columns is None else columns):
            raise InputError("the table has no column 'query'")
        data = data["query"]
    texts = [data] if isinstance(data, str) else list(data)
    if not texts:
        raise InputError("no queries")
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"a query is a text, but one is {text!r}")
    return [str(text) for text in texts]
