"""Read the size of what a fact says, where it has one: a year, or a number with its unit."""

from __future__ import annotations

import re

# "1941", "27 September 1941", "1941年", "1941年9月27日"; but not 公元前, before Christ, nor what
# is named after a year, such as "Paris 2024"
_DATE_WORDS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|spring|summer|autumn|fall|"
    r"winter|early|mid|late|in|on|of|the|year|about|around|circa|ca|c|(?:mon|tues|wednes|thurs|"
    r"fri|satur|sun)day|\d{1,2}(?:st|nd|rd|th)?|公元|西元|约|約"
)
_YEAR = re.compile(
    rf"(?:(?:{_DATE_WORDS})(?:[\s,.-]+|(?<=[元约約])))*"
    r"([12]\d{3})(?:年(?:\d{1,2}月(?:\d{1,2}[日号])?)?)?"
)
# "12th century", "1940s" and "850年" are neither years nor numbers.
_NO_UNITS = ("st", "nd", "rd", "th", "s", "'s", "年")
_NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?\s*(\D*)")


def size_of(text: str) -> tuple[float, str] | None:
    """Return a year or a number with its unit, or None for anything else.

    >>> size_of("27 september 1941"), size_of("1,200 m"), size_of("lima")
    ((1941.0, 'year'), (1200.0, 'm'), None)
    """
    year = _YEAR.fullmatch(text)
    if year:
        return float(year[1]), "year"
    number = _NUMBER.fullmatch(text)
    if number is None or (number[3].startswith(_NO_UNITS) and text[number.start(3) - 1] != " "):
        return None
    return float(number[1].replace(",", "") + (number[2] or "")), number[3].strip()
