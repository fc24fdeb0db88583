"""Text as it may be shown: in a terminal, in a cell of a spreadsheet, and without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# What a terminal acts on instead of showing it (but for tab and line feed), what turns the text
# after it around, what ends a line in some programs only, and halves of surrogate pairs.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# A spreadsheet runs what begins like this; the wide forms too, where the input method is Chinese.
_FORMULA = re.compile(r"'*[=+\-@＝＋－＠\t\r]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def shown(text: object) -> str:
    """Return a text of which a terminal shows every character: others are written ``\\u001b``.

    JSON stays what it is, as it is written like this there too.

    >>> print(shown("red \\x1b[31m, a\\r\\nline"))
    red \\u001b[31m, a
    line
    """
    return _UNSEEN.sub(_written, str(text).replace("\r\n", "\n"))


def shortened(text: str, longest: int) -> str:
    """Cut a text that is too long for its place.

    >>> shortened("graph and text", 6), shortened("graph", 6)
    ('graph…', 'graph')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def figure(value: float | None, form: str = ".4f") -> str:
    """Write a number in a form of Python's, and a dash for one that is undefined.

    >>> figure(0.71234), figure(0.0123, "+.4f"), figure(None), figure(float("nan"))
    ('0.7123', '+0.0123', '–', '–')
    """
    return "–" if value is None or value != value else format(value, form)


def as_percent(value: float | None, form: str = ".0%") -> str:
    """Write a share as percent, in a form of Python's for that, and a dash where it is undefined.

    >>> as_percent(0.153), as_percent(-0.0712, "+.1%"), as_percent(None)
    ('15 %', '-7.1 %', '–')
    """
    return figure(value, form).replace("%", " %")


def shown_p(p_value: float | None) -> str:
    """Write a p-value to four digits; one that would round to 0 as ``<0.0001``."""
    return "<0.0001" if p_value is not None and p_value < 0.0001 else figure(p_value)


def counted(count: int, one: str, many: str = "") -> str:
    """Write a count with its noun.

    >>> counted(1, "query", "queries"), counted(1200, "trial"), counted(2, "process")
    ('1 query', '1,200 trials', '2 processes')
    """
    plural = many or (f"{one}es" if one.endswith("s") else f"{one}s")
    return f"{count:,} {one if count == 1 else plural}"


def joined(names: Sequence[str]) -> str:
    """Write names as a sentence lists them.

    >>> joined(["a", "b", "c"]), joined(["a"]), joined([])
    ('a, b and c', 'a', '')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def number_ranges(numbers: Iterable[int]) -> str:
    """Return whole numbers in ascending order, each once, runs of them as ranges.

    >>> number_ranges([7, 3, 4, 5, 9, 10, 5])
    '3-5, 7, 9, 10'
    """
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )


def is_formula(text: str) -> bool:
    """Say whether a spreadsheet would run a cell, or, with its leading quote off, might."""
    return _FORMULA.match(text) is not None


def csv_cell(value: object) -> object:
    """Return a value for a CSV file that a spreadsheet only shows; a number stays one.

    >>> csv_cell("=1+1"), csv_cell("-0.5"), csv_cell(-0.5), csv_cell("Ada")
    ("'=1+1", '-0.5', -0.5, 'Ada')
    """
    if isinstance(value, str) and is_formula(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def _written(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


STARS = "***"
# A number, a date or a truth value: no secret, whatever it is called.
OPEN_VALUE = re.compile(r"[-+.:\d]{1,12}|true|false", re.IGNORECASE)
# What is left of a secret that was cut off says less than this many letters of it.
SHORTEST_BEGINNING = 4


def starred(text: str, secrets: Iterable[str], *, whole_word_below: int = 0) -> str:
    """Return the text with stars for each secret, the longest first.

    So are their beginnings where the text was cut short in the middle of one. One of fewer letters
    than ``whole_word_below`` is looked for as a whole word only: a text must stay readable without
    its "e".

    >>> starred("no answer to word-of-mine, wor… or a", ["word", "a"], whole_word_below=3)
    'no answer to ***-of-mine, wor… or ***'
    """
    for secret in sorted(secrets, key=lambda secret: (-len(secret), secret)):
        found = re.escape(secret)
        found = found if len(secret) >= whole_word_below else rf"(?<!\w){found}(?!\w)"
        text = re.sub(found, STARS, text)
        for length in range(len(secret) - 1, SHORTEST_BEGINNING - 1, -1):
            text = text.replace(f"{secret[:length]}…", f"{STARS}…")
    return text
