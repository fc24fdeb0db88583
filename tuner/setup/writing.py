"""A configuration as a text with comments, from a data set and a system."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tuner.core.json_text import encodable
from tuner.retrieval.knobs import Knob, constraints_of, space_of
from tuner.run.split import FEWEST_IN_PARTS
from tuner.setup.data import OBJECTIVES, FoundData
from tuner.setup.system import FoundSystem
from tuner.setup.yaml_text import in_one_line, key_text
from tuner.tracking.base import EXPERIMENT
from tuner.tracking.uri import mask
from tuner.verdict.few_queries import FEWEST_TO_SPLIT

STORE = "sqlite:///mlflow.db"
STORE_VARIABLE = "MLFLOW_TRACKING_URI"
# Beyond this width a reader scrolls.
_WIDTH = 100


@dataclass(frozen=True)
class Draft:
    """What a configuration is to say: the study's name, and what it tunes on what."""

    name: str
    data: FoundData
    system: FoundSystem

    @property
    def text(self) -> str:
        """Return the configuration."""
        sections = (
            self._study(),
            self._dataset(),
            self._retriever(),
            self._space(),
            self._objective(),
            self._baseline(),
            self._backends(),
            self._costs(),
            self._tracking(),
        )
        return "\n".join("\n".join(lines) + "\n" for lines in map(list, sections) if lines)

    def _study(self) -> Iterator[str]:
        yield from _comment(
            "Written by `tuner init`: change what you like. docs/configuration.md explains each "
            "key, and `tuner check` says what is wrong."
        )
        yield ""
        yield "# The study's name, and the one seed of all that is random."
        yield f"study: {in_one_line({'name': self.name, 'seed': 42})}"

    def _dataset(self) -> Iterator[str]:
        data = self.data
        yield from _comment(f"Documents and judged queries ({data.told}): docs/your-data.md")
        yield "dataset:"
        yield f"  path: {in_one_line(data.path)}"
        if data.is_named:
            yield f"  format: {data.format}"
        if data.relevant_from != 1.0:
            yield "  # no grade reaches 1: documents are relevant from this grade on"
            yield f"  relevant_from: {in_one_line(data.relevant_from)}"
        if not data.is_split:
            yield from _comment(
                f"with fewer than {FEWEST_TO_SPLIT} queries none are held out, and the gain is "
                "corrected for the search's luck: docs/is-it-better.md",
                "  ",
            )
        else:
            yield "  # half of the queries decide in the end; the search never sees them"
            yield "  split:"
            yield "    holdout: 0.5"
            if data.labels:
                yield "    # both halves get the same share of each"
                yield f"    stratify_by: {in_one_line(list(data.labels))}"
        if not data.is_split and data.may_have_parts:
            yield from _comment(
                f"from {FEWEST_IN_PARTS} queries on all can decide, part by part, for five times "
                "the trials: split: {parts: 5}",
                "  ",
            )

    def _retriever(self) -> Iterator[str]:
        system = self.system
        yield from _comment(f"The system that is tuned ({system.told}): {system.page}")
        yield "retriever:"
        yield f"  kind: {in_one_line(system.kind)}"
        for name, value in system.options.items():
            yield f"  {key_text(name)}: {in_one_line(value)}"

    def _space(self) -> Iterator[str]:
        searched, others = self.system.searched, self.system.others
        yield from _comment(
            "What is searched: take a line away, and that parameter stays as it is today."
        )
        yield "space:"
        for knob in searched:
            yield from _comment(f"{knob.description or _yours(knob)}{_today(knob)}", "  ")
            yield f"  {key_text(knob.name)}: {in_one_line(space_of(searched)[knob.name])}"
        for stage, told in (
            ("query", "These can be searched too: take the # away."),
            ("index", "And these, with an index for each value: docs/index-knobs.md"),
        ):
            rest = [knob for knob in others if knob.stage == stage]
            if rest:
                yield ""
                yield f"  # {told}"
            for knob in rest:
                yield from self._other(knob)
        if constraints := constraints_of(searched):
            yield ""
            yield "# Rules between parameters that are searched."
            yield f"space_constraints: {in_one_line(constraints)}"

    def _other(self, knob: Knob) -> Iterator[str]:
        """Yield a knob as a comment: the whole line is one, so that taking the # away is enough."""
        together = [*self.system.searched, knob]
        spec = in_one_line(space_of(together)[knob.name])
        lost = {n: v for n, v in knob.when.items() if n not in {k.name for k in together}}
        only = [f"only with {name}: {', '.join(map(str, v))}" for name, v in lost.items()]
        ruled = [f"add to space_constraints: {knob.constraint}"] if knob.constraint else []
        first = re.split(r"[:;]", knob.description)[0]
        told = "; ".join(filter(None, [first, *only, *ruled]))
        yield f"  # {key_text(knob.name)}: {spec}   # {told}"

    def _objective(self) -> Iterator[str]:
        yield "# What is best: a weighted mean of metrics. docs/metrics.md lists them."
        yield "objective:"
        yield f"  maximize: {in_one_line(self.data.objective)}"
        if self.data.dataset.corpus.documents:
            yield "  # longer contexts are paid for: 1,000 tokens more have to gain 0.02"
            yield "  price: {context_tokens_per_1000: 0.02}"
        if self.data.objective != OBJECTIVES[0]:
            yield "# What is reported beside it; metrics of documents need labels of documents."
            yield "metrics: []"

    def _baseline(self) -> Iterator[str]:
        baseline = self.system.baseline
        if not baseline:
            return
        yield "# What runs today, and has to be beaten. Are these the values that you use?"
        yield "baseline:"
        for name, value in baseline.items():
            yield f"  {key_text(name)}: {in_one_line(value)}"

    def _backends(self) -> Iterator[str]:
        yield "# Who searches, each with so many trials. docs/configuration.md#backends"
        yield "backends:"
        for kind, told in (
            ("gp", "a Gaussian process: the best for few trials"),
            ("tpe", "Optuna's search: good with many choices and conditions"),
        ):
            yield f"  - {{kind: {kind}, trials: {10 if self.system.costs else 20}}}   # {told}"

    def _costs(self) -> Iterator[str]:
        if not self.system.costs:
            return
        yield from _comment(
            "Does a query cost money, or somebody's time? Take the # away, and write your prices "
            "and limits: a run then says what it spends, and ends in time. "
            "docs/slow-and-costly.md"
        )
        yield "# cost:   {per_query: 0.002, per_1000_tokens: 0.01}   # in your currency"
        yield "# budget: {query_evaluations: 8000, money: 25, minutes: 60}   # any of them"
        yield "# racing: {}   # stops trials early that fall behind: asks about half as much"

    def _tracking(self) -> Iterator[str]:
        own = os.environ.get(STORE_VARIABLE, "")
        yield from _comment(
            "Where MLflow keeps every trial; `tuner ui RUN_DIR` shows it; null: nowhere. "
            "docs/report-and-mlflow.md"
        )
        if own and mask(own) != own:
            yield f"# ${STORE_VARIABLE} holds a password, so it is not written here. Give it by:"
            yield f'#   --set tracking.uri="${STORE_VARIABLE}"'
        uri = own if own and mask(own) == own else STORE
        yield f"tracking: {in_one_line({'uri': encodable(uri), 'experiment': EXPERIMENT})}"


def study_name(*texts: str) -> str:
    """Return the first text that can be made the name of a study.

    >>> study_name("", "my data/"), study_name("…")
    ('my-data', 'study')
    """
    for text in texts:
        name = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-._")[:60].strip("-._")
        if name:
            return name
    return "study"


def _yours(knob: Knob) -> str:
    guessed = "" if knob.kind == "categorical" else ": its range is a guess"
    return f"a parameter of yours{guessed}"


def _today(knob: Knob) -> str:
    return "" if knob.default is None else f" (today {knob.default})"


def _comment(text: str, indent: str = "") -> Sequence[str]:
    start = f"{indent}# "
    return textwrap.wrap(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=start,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )
