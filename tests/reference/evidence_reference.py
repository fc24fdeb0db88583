"""What `judge: evidence` counts, in plain Python: texts compared as texts, without positions.

Slow and meant to be read. It shares with the engine only where documents are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def gains(
    retrieved: Sequence[tuple[str, str]],
    grades: Mapping[str, float],
    supports: Mapping[str, Sequence[str]],
) -> list[float]:
    """Return the grade that each retrieved document is worth.

    ``retrieved`` are documents' ids, best first, each with the text that stands for it. A grade
    counts where all supporting texts of the document are in that text, or where it has none.
    """
    return [
        max(grades.get(id_, 0.0), 0.0)
        if all(wanted in text for wanted in supports.get(id_, ()))
        else 0.0
        for id_, text in retrieved
    ]
