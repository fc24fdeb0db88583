"""From a study, or a configuration, and what answers, to how metrics go with the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuner.answers.answerer import Answerer
from tuner.answers.asking import Asking, Plan, Replies, ask_all
from tuner.answers.configurations import (
    Configuration,
    named_in_config,
    named_in_study,
    of_config,
    of_study,
)
from tuner.answers.contexts import (
    Retrieved,
    can_be_weighted,
    check_answers_queries,
    check_texts,
    metrics_to_compare,
    pairs_by_position,
    retrieve,
    stacked,
)
from tuner.answers.correlation import Correlated, correlate
from tuner.answers.quality_files import Qualities, read_qualities
from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.core.journal import JournalContent
from tuner.core.rankings import FloatArray
from tuner.core.steps import Advance, Say, unheard
from tuner.run.assembly import Assembly


def drawn(queries: tuple[Query, ...], count: int | None, seed: int) -> tuple[Query, ...]:
    """Draw so many of the queries, in their order; all where that is None or there are fewer."""
    if count is None or count >= len(queries):
        return queries
    places = np.random.default_rng(seed).permutation(len(queries))[:count]
    return tuple(queries[place] for place in sorted(places))


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked for: of which configurations, on which queries.

    Attributes:
        content: the study's journal, None where there is no study.
        count: how many configurations are chosen, where no file names them.
        sample: so many queries are drawn; None: all that are tuned on.
        passages: so many of a ranking are read; None: all.
        metrics: further ones.
    """

    assembly: Assembly
    content: JournalContent | None
    count: int = 8
    sample: int | None = None
    passages: int | None = None
    metrics: tuple[str, ...] = ()

    @property
    def seed(self) -> int:
        """Return the study's seed, by which everything is drawn."""
        return self.assembly.config.study.seed

    def queries(self) -> tuple[Query, ...]:
        """Return the queries, in the order of the data set."""
        return drawn(self.assembly.tune_queries, self.sample, self.seed)

    def configurations(self) -> list[Configuration]:
        """Return those that are chosen where no file names them."""
        if self.content is None:
            return of_config(self.assembly, self.count)
        return of_study(self.assembly, self.content, self.count)


@dataclass(frozen=True)
class Outcome:
    """What came of it; ``replies`` is None where the qualities are from files."""

    correlated: Correlated
    configurations: tuple[Configuration, ...]
    replies: Replies | None
    undefined: tuple[str, ...]
    left_out: int = 0

    def to_record(self) -> dict[str, Any]:
        """Return it as a JSON-ready mapping."""
        record = self.correlated.to_record()
        for shown, configuration in zip(record["configurations"], self.configurations, strict=True):
            shown.update(configuration.to_record())
        return {
            **record,
            "undefined_metrics": list(self.undefined),
            "queries_without_quality": self.left_out,
            "answers": None if self.replies is None else self.replies.to_record(),
        }


def correlate_asked(
    asked: Asked,
    answerer: Answerer,
    plan: Plan,
    kept: Path,
    *,
    say: Say,
    advance: Advance = unheard,
) -> Outcome:
    """Ask for answers from what each configuration retrieves, and correlate their quality.

    Raises:
        TunerError: see ``ask_all``; also where the system does not answer.
        InputError: data or configurations that do not fit.
    """
    check_answers_queries(asked.assembly)
    check_texts(asked.assembly)
    queries, configurations = asked.queries(), asked.configurations()
    retrieved, undefined = _retrieved(asked, configurations, queries)
    askings = [
        Asking(query.id, query.text, context)
        for one in retrieved
        for query, context in zip(queries, one.contexts, strict=True)
    ]
    replies = ask_all(askings, answerer, plan, kept, say=say, advance=advance)
    quality = np.array(replies.values).reshape(len(retrieved), len(queries))
    found = _correlated(asked, retrieved, quality, queries)
    return Outcome(found, tuple(configurations), replies, tuple(undefined))


def correlate_files(asked: Asked, paths: Sequence[Path]) -> Outcome:
    """Correlate qualities that files hold; what they name is asked of the system again.

    Raises:
        InputError: files that are wrong, or do not fit.
    """
    assembly = asked.assembly
    check_answers_queries(assembly)
    given = read_qualities(
        paths,
        [query.id for query in assembly.tune_queries],
        {query.id for query in assembly.holdout_queries},
    )
    configurations = _named(asked, given)
    by_id = {query.id: query for query in assembly.tune_queries}
    queries = tuple(by_id[id_] for id_ in given.query_ids)
    retrieved, undefined = _retrieved(asked, configurations, queries)
    quality = np.array(
        [[of[query.id] for query in queries] for of in given.by_configuration.values()]
    )
    found = _correlated(asked, retrieved, quality, queries)
    return Outcome(found, tuple(configurations), None, tuple(undefined), given.left_out)


def _named(asked: Asked, given: Qualities) -> list[Configuration]:
    if asked.content is None:
        return named_in_config(asked.assembly, given.names)
    found = named_in_study(asked.assembly, asked.content, given.names)
    trials: dict[int | None, str] = {}
    for one in found:
        if one.trial in trials:
            raise InputError(f"{trials[one.trial]!r} and {one.name!r} are one trial; name it once")
        trials[one.trial] = one.name
    return found


def _retrieved(
    asked: Asked, configurations: Sequence[Configuration], queries: Sequence[Query]
) -> tuple[list[Retrieved], list[str]]:
    names, undefined = metrics_to_compare(asked.assembly, asked.metrics, queries, asked.passages)
    retrieved = [
        retrieve(asked.assembly, configuration, queries, names, asked.passages)
        for configuration in configurations
    ]
    return retrieved, undefined


def _correlated(
    asked: Asked, retrieved: Sequence[Retrieved], quality: FloatArray, queries: Sequence[Query]
) -> Correlated:
    names = list(retrieved[0].values)
    weights = asked.assembly.plan.objective.weights
    return correlate(
        {name: stacked(retrieved, name) for name in names},
        quality,
        configurations=[one.configuration.name for one in retrieved],
        # The flag keeps a group named like a query's id apart from that query.
        clusters=[(bool(query.group), query.group or query.id) for query in queries],
        pairs=pairs_by_position(names),
        candidates=[name for name in names if can_be_weighted(name)],
        today={name: float(weight) for name, weight in weights.items() if weight},
        seed=asked.seed,
    )
