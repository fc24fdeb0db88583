"""What an adapter's index was made from, as hashes: no other code, corpus or model takes it up."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from importlib.resources import files

from tuner.retrieval.hybrid.sources import code_digest as shared_code_digest


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
