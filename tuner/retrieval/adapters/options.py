"""What adapters check before they begin: the package they need, their code, and their paths.

An index is that of its adapter's code, as hashes: no other code, corpus or model takes it up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

from tuner.core.errors import InputError
from tuner.retrieval.hybrid.sources import code_digest as shared_code_digest


def installed_version(
    package: str, *, oldest: tuple[int, ...], kind: str, extra: str | None = None
) -> str:
    """Return a package's installed version, for the retriever ``kind``.

    ``extra`` is the extra of this project that brings the package along, by default the kind.

    Raises:
        InputError: it is not installed, or older than ``oldest``.
    """
    install = f"pip install 'graphrag-tuner[{extra or kind}]'"
    try:
        version = str(metadata.version(package))
    except metadata.PackageNotFoundError as error:
        message = f"the retriever {kind!r} needs {package}: {install}"
        raise InputError(message, key=("kind",)) from error
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[: len(oldest)])
    if numbers < oldest:
        wanted = ".".join(map(str, oldest))
        message = f"{package} {version} is installed; {wanted} or newer is needed: {install}"
        raise InputError(message, key=("kind",))
    return version


@lru_cache(maxsize=8)
def code_digest(name: str) -> str:
    """Hash the source of an adapter, ``name`` being its module or package in this folder.

    What adapters share is hashed with it: embedding, and the engine's splitting into words.
    """
    folder = files(__package__)
    own, embedding = folder / name, folder / "embedding.py"
    sources = [*own.iterdir()] if own.is_dir() else [folder / f"{name}.py"]
    sources = [path for path in sources if path.name.endswith(".py")]
    digest = sha256(shared_code_digest().encode())
    for path in (*sorted(sources, key=lambda path: path.name), embedding):
        digest.update(f"\n{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def path_from_root(*names: str, default: str | None = None) -> Any:
    """Return a ``resolve_options`` that writes the paths called ``names`` from the root.

    Each starts at the current folder. Of a mapping, or a mapping of such, all paths do; what is no
    text is left as it is.
    """

    def resolve_options(_: type, options: Mapping[str, Any], folder: Path) -> dict[str, Any]:  # noqa: ARG001
        given = {name: options.get(name, default) for name in names}
        return {**options, **{name: _from_root(v) for name, v in given.items() if v is not None}}

    return classmethod(resolve_options)


def _from_root(path: Any) -> Any:
    if isinstance(path, Mapping):
        return {name: _from_root(one) for name, one in path.items()}
    return str(Path(path).expanduser().resolve()) if isinstance(path, str) else path
