"""A small trained embedding model that comes with its weights in a package: nothing to download."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def wordllama(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Embed texts with wordllama's l2_supercat (pip install wordllama); shape (texts, 256)."""
    vectors: npt.NDArray[np.float32] = _model().embed(list(texts)).astype(np.float32)
    return vectors


@lru_cache(maxsize=1)
def _model() -> Any:
    import wordllama as package
    from wordllama import WordLlama

    installed = Path(package.__file__).parent
    # The package looks for its files in a cache folder, and would else download them.
    with tempfile.TemporaryDirectory() as folder:
        for part in ("weights", "tokenizers"):
            shutil.copytree(installed / part, Path(folder) / part)
        return WordLlama.load(cache_dir=Path(folder), disable_download=True)
