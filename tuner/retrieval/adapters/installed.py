"""Is the package installed that an adapter works with, and is it new enough?"""

from __future__ import annotations

import re
from importlib import metadata

from tuner.core.errors import InputError


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
