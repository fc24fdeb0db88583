"""Days as people write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from tuner.core.shown import shortened


def parse_day(text: str) -> date:
    """Return the day of an ISO 8601 date or time; one with an offset counts in UTC.

    >>> parse_day("2024-03-01T23:30:00-02:00")
    datetime.date(2024, 3, 2)

    Raises:
        ValueError: it is not one, in words.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo is None else moment.astimezone(UTC)).date()
    except (ValueError, OverflowError):  # the first and the last day have no day before and after
        shown = shortened(text, 40)
        message = f"{shown!r} is not a date; write 2024-03-01, or 2024-03-01T08:00:00+00:00"
        raise ValueError(message) from None
