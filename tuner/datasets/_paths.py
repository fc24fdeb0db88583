"""Join single relations into the paths that lead from a question to its answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tuner.datasets.dataset import Step


def join_steps(steps: Sequence[Step]) -> tuple[tuple[Step, ...], ...]:
    """Return the longest chains in which the object of each step is the subject of the next.

    Letter case does not count, and an empty string joins nothing. Every step is in at least one
    chain, none twice in the same; the chains are in the order of their first steps.

    >>> join_steps([("Ada", "mother", "Anne"), ("Ben", "born", "Rye"), ("anne", "died", "UK")])
    ((('Ada', 'mother', 'Anne'), ('anne', 'died', 'UK')), (('Ben', 'born', 'Rye'),))
    """
    unique = list(dict.fromkeys(steps))
    after = {step: [other for other in unique if _joins(step, other)] for step in unique}
    has_before = {other for others in after.values() for other in others}
    chains: list[tuple[Step, ...]] = []
    reached: set[Step] = set()
    # First the steps that begin a chain; whatever they do not reach lies on a circle.
    for step in [s for s in unique if s not in has_before] + unique:
        if step not in reached:
            grown = _grow((step,), after)
            reached.update(part for chain in grown for part in chain)
            chains += grown
    return tuple(sorted(chains, key=lambda chain: unique.index(chain[0])))


def names_in(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return every subject and object once, in the order of the steps."""
    names = (name for subject, _, object_ in steps for name in (subject, object_))
    return tuple(dict.fromkeys(filter(None, names)))


def _joins(step: Step, other: Step) -> bool:
    return step != other and bool(step[2]) and step[2].casefold() == other[0].casefold()


def _grow(chain: tuple[Step, ...], after: dict[Step, list[Step]]) -> list[tuple[Step, ...]]:
    ahead = [step for step in after[chain[-1]] if step not in chain]
    return [grown for step in ahead for grown in _grow((*chain, step), after)] or [chain]
