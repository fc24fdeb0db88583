"""What a framework is to this project: three functions, and what else differs between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from tuner.core.trial import Scalar
from tuner.retrieval.adapters.frameworks.matching import Hit
from tuner.retrieval.adapters.frameworks.settings import Setting


class Seam(Protocol):
    """One framework. Small and picklable: it travels with the retriever."""

    @property
    def kind(self) -> str:
        """Return the kind's name in a configuration."""
        ...

    def version(self) -> str:
        """Return the versions of the framework's packages that are installed.

        Raises:
            InputError: one is not there, or too old.
        """
        ...

    def check(self, made: Any, name: str) -> None:
        """Refuse what a factory made where the framework cannot ask it.

        Raises:
            InputError: what it is, and what is needed.
        """
        ...

    def settings(self, made: Any) -> Iterable[Setting]:
        """Return what an object can be set to, with today's values."""
        ...

    def bound(self, made: Any, values: Mapping[str, Scalar]) -> Any:
        """Return an object of a trial's own, with values set; ``made`` stays as it is.

        Whatever this returns is given to ``ask`` and ``ask_async``.
        """
        ...

    def ask(self, bound: Any, query: str) -> list[Hit]:
        """Return what is found, best first."""
        ...

    def can_wait(self, made: Any) -> bool:
        """Say whether an object has a way of its own to be awaited."""
        ...

    async def ask_async(self, bound: Any, query: str) -> list[Hit]:
        """Return what is found, best first, and let others work meanwhile."""
        ...

    def counts(self, made: Any) -> Mapping[str, int]:
        """Return how many documents lie in each store that can be counted without a search."""
        ...
