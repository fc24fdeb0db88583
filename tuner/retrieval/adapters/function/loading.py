"""From ``my_package.module:thing`` to the object, imported once in each process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Annotated, Any

from tuner.core.errors import InputError, did_you_mean, one_line

KEY = ("function",)
SearchPath = Annotated[
    Sequence[str] | None,
    "the folders that hold the module; left out: that of the configuration, and the working folder",
]
"""An option of every kind that imports what the user names."""


@lru_cache(maxsize=32)
def load_object(name: str, search_path: tuple[str, ...]) -> Any:
    """Import an object; a class is called, without arguments.

    The module itself is looked for in the folders of ``search_path`` first; for what it imports,
    and all others do, they come last: a numpy.py there is not taken for numpy.

    Raises:
        InputError: not written as ``module:thing``, no such module or thing, an import that fails,
            or a class that cannot be called without arguments.
    """
    found = find_object(name, search_path, key=KEY)
    if not isinstance(found, type):
        return found
    try:
        return found()
    except TypeError as error:
        raise InputError(
            f"the class {name!r} cannot be called without arguments ({error}); name an instance, "
            "or give the class a `build` and name it as the retriever's kind",
            key=KEY,
        ) from error
    except (Exception, SystemExit) as error:  # whatever the user's class does
        message = f"the class {name!r} cannot be called without arguments: {one_line(error)}"
        raise InputError(message, key=KEY) from error


def find_object(name: str, search_path: tuple[str, ...], *, key: tuple[str, ...]) -> Any:
    """Import what a name says, in the module that is found as ``load_object`` finds it.

    Raises:
        InputError: not written as ``module:thing``, no such module or thing, or an import that
            fails; ``key`` is the option that holds the name.
    """
    module_name, separator, attribute = name.partition(":")
    if not separator or not module_name or not attribute:
        raise InputError(f"{name!r}: write it as my_package.module:thing", key=key)
    sys.path.extend(folder for folder in search_path if folder not in sys.path)
    module = _import(module_name, search_path, key)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [known for known in vars(found) if not known.startswith("_")]
            hint = did_you_mean(part, names)
            raise InputError(f"module {module_name!r} has no {attribute!r}{hint}", key=key)
        found = getattr(found, part)
    return found


def source_digest(name: str, search_path: tuple[str, ...]) -> str:
    """Return a hash of the file that holds an object; of its name where there is no file."""
    find_object(name, search_path, key=KEY)
    file = getattr(sys.modules[name.partition(":")[0]], "__file__", None)
    digest = sha256(name.encode())
    if file is not None and Path(file).is_file():
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def _import_from(name: str, folders: Sequence[str]) -> None:
    """Import a module or package from the folders, where they have it and nobody has another."""
    spec = None if name in sys.modules else PathFinder.find_spec(name, list(folders))
    if spec is None or spec.loader is None:
        return
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise


def _import(module_name: str, search_path: Sequence[str], key: tuple[str, ...]) -> Any:
    try:
        _import_from(module_name.partition(".")[0], search_path)
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            places = ", ".join(search_path)
            raise InputError(f"no module {module_name!r} in {places}", key=key) from error
        message = f"module {module_name!r} cannot be imported: {error}"
        raise InputError(message, key=key) from error
    except (Exception, SystemExit) as error:  # whatever the user's module does when imported
        reason = one_line(error)
        message = f"module {module_name!r} cannot be imported: {reason}"
        raise InputError(message, key=key) from error
