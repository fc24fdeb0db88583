"""scipy.stats, whole: an import that was once interrupted must not cost a study its verdict."""

from __future__ import annotations

import importlib
import sys
from typing import Any

_BELOW = "scipy.stats."


def whole_stats() -> Any:
    """Return scipy.stats; where an earlier import of it ended half way, import it anew.

    Python forgets a package whose import ends early, as by Ctrl-C in a notebook, but not those of
    its modules that were ready. At the next import they become part of the new package and still
    hold the old half: "module 'scipy.stats' has no attribute 'quantile'", when a search was paid.
    """
    import scipy.stats

    below = [name for name in list(sys.modules) if name.startswith(_BELOW)]
    own = (name.removeprefix(_BELOW) for name in below)
    # A module that was imported together with its package is an attribute of it.
    if all(hasattr(scipy.stats, name) for name in own if "." not in name):
        return scipy.stats
    for name in (*below, "scipy.stats"):
        sys.modules.pop(name, None)
    del scipy.stats
    return importlib.import_module("scipy.stats")
