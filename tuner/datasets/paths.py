"""Join single relations into the paths that lead from a question to its answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tuner.datasets.dataset import Step


def join_steps(steps: Sequence[Step]) -> tuple[tuple[Step, ...], ...]:
    """Return chains in which the object of each step is the subject of the next.

    Letter case does not count, and an empty string joins nothing. Each step is in exactly one
    chain: where two could follow, the first one does, and the other begins a chain of its own.

    >>> join_steps([("Ada", "mother", "Anne"), ("Ben", "born", "Rye"), ("anne", "died", "UK")])
    ((('Ada', 'mother', 'Anne'), ('anne', 'died', 'UK')), (('Ben', 'born', 'Rye'),))
    """
    unique = list(dict.fromkeys(steps))
    left = list(unique)
    chains = []
    while left:
        # First the steps that follow none; what they do not take along are branches and circles.
        first = (step for step in left if not any(_joins(other, step) for other in unique))
        chain = [next(first, left[0])]
        left.remove(chain[0])
        while following := next((step for step in left if _joins(chain[-1], step)), None):
            left.remove(following)
            chain.append(following)
        chains.append(tuple(chain))
    return tuple(chains)


def names_in(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return every subject and object once, in the order of the steps."""
    names = (name for subject, _, object_ in steps for name in (subject, object_))
    return tuple(dict.fromkeys(filter(None, names)))


def _joins(step: Step, following: Step) -> bool:
    return bool(step[2]) and step[2].casefold() == following[0].casefold()
