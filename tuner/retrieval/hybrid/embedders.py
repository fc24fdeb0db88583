"""What turns passages and queries into dense vectors: the embedders that an index can be built on.

``lsa`` is made from the corpus, ``wordllama`` is a small static model that comes with its package,
``module:function`` is the user's own, and any other name is a model of sentence-transformers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import file_digest, sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt

from tuner.core.errors import InputError
from tuner.core.rankings import Float32Array
from tuner.core.steps import Advance, unheard
from tuner.retrieval.embedder import Embedder, embed, load_embedder, own_identity
from tuner.retrieval.hybrid.text import analyse

NONE, LSA, WORDLLAMA = "none", "lsa", "wordllama"
EMBEDDERS = (NONE, LSA, WORDLLAMA)
LSA_DIMENSIONS = 256
_LSA_FILE = "lsa.joblib"
_BLOCK = 4096  # texts between two words about how far it is


class Lsa:
    """Latent semantic analysis: tf-idf of stems, projected on the corpus's main directions.

    Term frequencies count by ``1 + log(tf)``. The leading directions explain most, so the first
    few numbers of a vector are a coarser vector. Chance comes from a fixed seed.
    """

    def __init__(self, vectorizer: Any, projection: Any) -> None:
        self._vectorizer = vectorizer
        self._projection = projection

    @classmethod
    def fit(cls, texts: Sequence[str], *, dimensions: int) -> Lsa:
        """Learn from all passages; has fewer dimensions where these have fewer terms or rows.

        Raises:
            InputError: no passage has a word.
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(analyzer=_terms, sublinear_tf=True, dtype=np.float32)
        try:
            weights = vectorizer.fit_transform(texts)
        except ValueError as error:  # of an empty vocabulary
            raise InputError("embedder: lsa needs passages with words") from error
        count = min(dimensions, *weights.shape)
        projection = TruncatedSVD(count, random_state=0).fit(weights)
        return cls(vectorizer, projection)

    def __call__(self, texts: Sequence[str], /) -> npt.NDArray[Any]:
        """Embed texts; one without a word of the corpus is all zeros."""
        vectors: npt.NDArray[Any] = self._projection.transform(self._vectorizer.transform(texts))
        return vectors

    def save(self, directory: Path) -> None:
        """Write what was learned into ``directory``."""
        joblib.dump((self._vectorizer, self._projection), directory / _LSA_FILE)

    @classmethod
    def load(cls, directory: Path) -> Lsa:
        """Read what ``save`` wrote."""
        return cls(*joblib.load(directory / _LSA_FILE))


def _terms(text: str) -> list[str]:
    return analyse([text])[0]


def make(name: str, texts: Sequence[str], *, dimensions: int) -> Embedder:
    """Return an embedder for a new index over ``texts``.

    Raises:
        InputError: no such embedder, or it is not installed.
    """
    if name == LSA:
        return Lsa.fit(texts, dimensions=dimensions or LSA_DIMENSIONS)
    return _opened(name)


def reopen(name: str, directory: Path) -> Embedder:
    """Return the embedder of the index in ``directory``."""
    return Lsa.load(directory) if name == LSA else _opened(name)


@lru_cache(maxsize=2)
def _opened(name: str) -> Embedder:
    """Load a model once a process."""
    if name == WORDLLAMA:
        return _wordllama()
    if ":" in name:
        function = load_embedder(name)
        return lambda texts: embed(function, texts, lambda row: f"text {row + 1} of {len(texts)}")
    return _sentence_transformer(name)


def vectors_of(
    embedder: Embedder, texts: Sequence[str], name: str, advance: Advance = unheard
) -> Float32Array:
    """Embed texts block by block; ``advance`` is told how many are done."""
    blocks = []
    for start in range(0, len(texts), _BLOCK):
        advance(start, len(texts))
        blocks.append(np.asarray(embedder(texts[start : start + _BLOCK]), dtype=np.float32))
    widths = {block.shape[1] for block in blocks}
    if len(widths) > 1:
        raise InputError(f"embedder {name!r} gives vectors of different lengths: {sorted(widths)}")
    return np.concatenate(blocks) if blocks else np.zeros((0, 0), dtype=np.float32)


def may_be_silent(name: str) -> bool:
    """Say whether an embedder gives zeros for a text that it knows no word of.

    From a trained model zeros are a fault, and refused.
    """
    return name in (LSA, WORDLLAMA)


def identity(name: str) -> str:
    """Return what changes when another model stands behind an embedder's name.

    Raises:
        InputError: no such function.
    """
    if ":" in name:
        return own_identity(name)
    packages = {LSA: "scikit-learn", WORDLLAMA: "wordllama"}
    if name in packages:
        return f"{name} {_version(packages[name])}"
    return f"{name} {_content(Path(name))}" if Path(name).is_dir() else name


def _content(folder: Path) -> str:
    """Return a digest of the files of a model."""
    digest = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        told = path.stat()
        of_file = _file_content(path, told.st_size, told.st_mtime_ns)
        digest.update(f"{path.relative_to(folder)} {of_file}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=256)
def _file_content(path: Path, size: int, changed_ns: int) -> str:  # noqa: ARG001
    """Return a file's digest, read once as long as it is not changed: models are large."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _wordllama() -> Embedder:
    with _log_as_before():
        try:
            import wordllama
        except ImportError as error:
            raise InputError(
                "embedder: wordllama is not installed: pip install 'graphrag-tuner[wordllama]'"
            ) from error
        # The package looks for its tokenizer below a cache, and downloads it there. Its own folder
        # has the layout of such a cache, with both files, so that no network is needed.
        folder = Path(str(wordllama.__file__)).parent
        model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    return lambda texts: model.embed(list(texts))


@contextmanager
def _log_as_before() -> Iterator[None]:
    """Undo what importing a package does to the root logger."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _sentence_transformer(name: str) -> Embedder:
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar
    except ImportError as error:
        raise InputError(
            "dense vectors from a model need sentence-transformers: "
            "pip install 'graphrag-tuner[dense]'"
        ) from error
    # A bar of its own for loading weights would run through the lines of a study.
    disable_progress_bar()
    try:
        encoder = SentenceTransformer(name)
    except OSError as error:  # of a name that is none, or without a network
        raise InputError(f"cannot load dense model {name!r}: {error}") from error
    return lambda texts: encoder.encode(list(texts), show_progress_bar=False)
