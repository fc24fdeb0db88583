"""An embedding function of the user's: named, imported, and its vectors checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError, TunerError, one_line
from tuner.core.rankings import Float32Array
from tuner.core.registry import call_problem, load_outside

_PROBE = "Which river flows through the town where the film's director was born?"


class Embedder(Protocol):
    """Turns texts into vectors, shape (texts, dimensions); one row a text, in their order."""

    def __call__(self, texts: Sequence[str], /) -> npt.NDArray[Any]:
        """Embed the texts."""
        ...


def load_embedder(name: str) -> Embedder:
    """Import ``package.module:function``, a function from texts to a matrix of numbers.

    Raises:
        InputError: no such module or function.
    """
    found: Embedder = load_outside("embedder", name, key=("embedder",))
    if problem := call_problem(found, "texts"):
        message = f"{name!r} {problem}; write a function from a list of texts to their vectors"
        raise InputError(message, key=("embedder",))
    return found


def embed(
    embedder: Embedder, texts: Sequence[str], label: Callable[[int], str], *, dimensions: int = 0
) -> Float32Array:
    """Embed texts and check every vector; ``label(i)`` names the text of row i in an error.

    Zero and NaN vectors are refused: a vector search ranks them by accident, and silently.

    Raises:
        TunerError: the embedder failed, or returned something else than one finite, non-zero
            vector a text, of ``dimensions`` numbers where that is given.
    """
    if not texts:
        return np.zeros((0, dimensions), dtype=np.float32)
    try:
        answer = np.asarray(embedder(list(texts)))
    except TunerError:
        raise
    except Exception as error:
        raise TunerError(f"the embedder failed: {one_line(error)}") from error
    if answer.ndim != 2 or len(answer) != len(texts) or answer.dtype.kind not in "fiu":
        raise TunerError(
            f"the embedder returned shape {answer.shape} of {answer.dtype} for {len(texts)} texts; "
            "it must return a matrix of numbers, one row a text"
        )
    if dimensions and answer.shape[1] != dimensions:
        raise TunerError(
            f"the embedder returned vectors of {answer.shape[1]} numbers, but those of the index "
            f"have {dimensions}: it is another model than the one that made the index"
        )
    vectors = answer.astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1)
    broken = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(broken):
        kind = "all zeros" if lengths[broken[0]] == 0 else "not finite"
        more = f" ({len(broken)} texts in all)" if len(broken) > 1 else ""
        raise TunerError(f"the embedder's vector of {label(int(broken[0]))} is {kind}{more}")
    return vectors


def own_identity(name: str) -> str:
    """Return what changes when another model stands behind the name of a function.

    A model repeats itself only up to rounding, so of its vector of one sentence only the size and
    the place of the largest number count.

    Raises:
        InputError: there is no such function.
        TunerError: it failed, or its vector is zero or not finite.
    """
    vector = embed(load_embedder(name), [_PROBE], lambda _: "a test sentence")[0]
    return f"{name} {len(vector)} {np.abs(vector).argmax()}"
