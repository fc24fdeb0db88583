"""What two studies differ in: data, system, space, objective, search, winner, versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuner.core.study_facts import whole_params
from tuner.report.parts import MISSING, Section, Table, Text
from tuner.report.review import Review

# Enough of a hash to tell two apart.
HASH_LETTERS = 8
NOTHING_CHANGED = "nothing but chance: same data, system, space, objective and winner"


@dataclass(frozen=True)
class Change:
    """One subject that differs: only what is not the same in both, before and now."""

    subject: str
    before: str
    now: str


def section(studies: Sequence[Review], labels: Sequence[str]) -> Section:
    """Tabulate what changed from each study to the next; ``labels`` are their names."""
    rows: list[tuple[str, ...]] = []
    for label, before, now in zip(labels[1:], studies, studies[1:], strict=False):
        found = changes(before, now)
        rows += [(label, one.subject, one.before, one.now) for one in found]
        if not found:
            rows.append((label, NOTHING_CHANGED, "", ""))
    columns = ("study", "what changed", "before", "now")
    lead = "From each study to the next one, in the order in which they were begun."
    caption = "What is the same in both is left out"
    if len(studies) < 2:
        return Section("changed", "What changed", lead, (Text("There is one study only."),))
    return Section("changed", "What changed", lead, (Table(caption, columns, tuple(rows)),))


def changes(before: Review, now: Review) -> tuple[Change, ...]:
    """Return what differs between two studies, subject by subject; empty where nothing does."""
    found = []
    for subject, read in _SUBJECTS.items():
        one, other = read(before), read(now)
        names = [name for name in dict.fromkeys([*one, *other]) if one.get(name) != other.get(name)]
        if names:
            found.append(Change(subject, _told(one, names), _told(other, names)))
    return tuple(found)


def _told(values: Mapping[str, str], names: Sequence[str]) -> str:
    """Write the values that differ; a dash for what one of the two has not."""
    return "; ".join(f"{name} {values.get(name, MISSING)}".strip() for name in names)


def _data(review: Review) -> dict[str, str]:
    data = review.header.dataset
    if not data:
        return {}
    found = {"": f"{data.get('name')} ({str(data.get('fingerprint', ''))[:HASH_LETTERS]})"}
    for name, called in (("documents", "documents"), ("queries", "queries")):
        if name in data:
            found[called] = f"{data[name]:,}"
    if "labels" in data:
        found["labels"] = str(data["labels"].get("told", ""))
    return found


def _split(review: Review) -> dict[str, str]:
    data, settings = review.header.dataset, review.header.config.get("dataset") or {}
    found = {
        called: f"{data[name]:,}"
        for name, called in (("tune_queries", "to tune on"), ("holdout_queries", "held out"))
        if name in data
    }
    found |= _flat(settings.get("split") or {})
    return _with_hash(found, review, "split", "queries of the parts")


def _system(review: Review) -> dict[str, str]:
    found = _flat(review.header.config.get("retriever") or {})
    return _with_hash(found, review, "retriever", "its code or index")


def _space(review: Review) -> dict[str, str]:
    found = {name: _range(spec) for name, spec in review.header.space.items()}
    constraints = review.header.config.get("space_constraints")
    return {**found, "constraints": _text(constraints)} if constraints else found


def _objective(review: Review) -> dict[str, str]:
    return _flat(review.header.objective)


def _search(review: Review) -> dict[str, str]:
    header = review.header
    found = {f"{arm.name} ({arm.kind})": f"{arm.budget:,} trials" for arm in header.arms}
    names = ("budget", "stop", "racing", "free", "start_from")
    found |= _flat({name: header.config.get(name) for name in names})
    return {**found, "seed": str(header.seed)}


def _verdict_settings(review: Review) -> dict[str, str]:
    return _flat(review.header.config.get("verdict") or {})


def _baseline(review: Review) -> dict[str, str]:
    return {name: _text(value) for name, value in (review.header.baseline or {}).items()}


def _winner(review: Review) -> dict[str, str]:
    chosen = review.chosen
    if chosen is None:
        return {"": "none"}
    params = whole_params(review.header, review.summary, chosen)
    return {name: _text(value) for name, value in params.items()}


def _outcome(review: Review) -> dict[str, str]:
    return {"": str(review.verdict.get("outcome", f"none ({review.summary.state})"))}


def _versions(review: Review) -> dict[str, str]:
    return {name: str(value) for name, value in review.header.versions.items()}


# Subject: what is read of it, as name -> value; an empty name stands for the subject itself.
_SUBJECTS: Mapping[str, Callable[[Review], dict[str, str]]] = {
    "data": _data,
    "split": _split,
    "system": _system,
    "space": _space,
    "objective": _objective,
    "search": _search,
    "rules of the verdict": _verdict_settings,
    "baseline": _baseline,
    "winner": _winner,
    "verdict": _outcome,
    "versions": _versions,
}


def _with_hash(found: dict[str, str], review: Review, subject: str, called: str) -> dict[str, str]:
    """Add the fingerprint of a subject: what no setting tells may differ all the same."""
    known = review.header.fingerprints.get(subject)
    return found if known is None else {**found, called: f"({known[:HASH_LETTERS]})"}


def _flat(values: Mapping[str, Any]) -> dict[str, str]:
    return dict(_leaves(values, ""))


def _leaves(values: Mapping[str, Any], within: str) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        called = f"{within} {name}".strip()
        if isinstance(value, Mapping):
            yield from _leaves(value, called)
        elif value is not None and value != []:
            yield called, _text(value)


def _range(spec: Any) -> str:
    """Write a parameter's range.

    >>> _range({"type": "real", "low": 0.01, "high": 1.0, "scale": "log"})
    'real 0.01 to 1, scale log'
    >>> _range({"type": "categorical", "choices": ["a", "b"]})
    'categorical, choices a or b'
    """
    if not isinstance(spec, Mapping):
        return _text(spec)
    rest = {name: value for name, value in spec.items() if name not in ("type", "low", "high")}
    head = str(spec.get("type", ""))
    if "low" in spec and "high" in spec:
        head = f"{head} {_text(spec['low'])} to {_text(spec['high'])}"
    choices = rest.get("choices")
    if isinstance(choices, Sequence) and not isinstance(choices, str):
        rest["choices"] = " or ".join(map(_text, choices))
    return ", ".join([head, *(f"{name} {_text(value)}" for name, value in rest.items() if value)])


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
