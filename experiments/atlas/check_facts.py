"""Check the hand-written fact tables on people, works, discoveries and institutions.

Run ``python experiments/atlas/check_facts.py``; it exits with 1 when a table is broken. Names are
compared with every table in ``facts/``, because a name must be unique over all of them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

FACTS = Path(__file__).resolve().parent / "facts"

COLUMNS = {
    "people": (
        "name aliases occupation birth_year birth_city birth_country death_year death_city field "
        "known_for spouse teacher student_of_university award award_year"
    ).split(),
    "works": "name aliases form creator year language setting location subject based_on".split(),
    "discoveries": (
        "name aliases form discoverer year country field named_after symbol note"
    ).split(),
    "institutions": "name aliases form city country founded_year founder note".split(),
}
REQUIRED = {
    "people": ("name", "occupation", "field", "known_for"),
    "works": ("name", "form", "creator", "subject"),
    "discoveries": ("name", "form", "field", "note"),
    "institutions": ("name", "form", "city", "country", "note"),
}
# Columns whose values are names in the table of people, wherever that person is listed.
PERSON_COLUMNS = (("works", "creator"), ("discoveries", "discoverer"), ("people", "teacher"))
YEAR_COLUMNS = ("birth_year", "death_year", "year", "founded_year", "award_year")
EARLIEST_YEAR, LATEST_YEAR = -600, 2025
LONGEST_LIFE_YEARS = 105

Row = dict[str, str]


def values(cell: str) -> list[str]:
    """Split a many-valued cell: ``"a|b"`` gives ``["a", "b"]``, an empty cell gives ``[]``."""
    return cell.split("|") if cell else []


def is_year(text: str) -> bool:
    """Tell whether a text is a whole year in range; years before the common era are negative."""
    try:
        return EARLIEST_YEAR <= int(text) <= LATEST_YEAR
    except ValueError:
        return False


def read_table(kind: str, errors: list[str]) -> list[Row]:
    """Read one fact table; a wrong header or a row of the wrong width goes to ``errors``."""
    path = FACTS / f"{kind}.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()
    columns = COLUMNS[kind]
    if lines[0].split("\t") != columns:
        errors.append(f"{path.name}:1: header is {lines[0]!r}; write {' '.join(columns)!r}")
        return []
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if len(cells) != len(columns):
            errors.append(f"{path.name}:{number}: {len(cells)} cells instead of {len(columns)}")
            continue
        rows.append(dict(zip(columns, cells, strict=True)))
    return rows


def row_errors(kind: str, row: Row) -> Iterator[str]:
    """Yield what is wrong in one row: empty required cells, stray blanks, implausible years."""
    for column in REQUIRED[kind]:
        if not row[column]:
            yield f"{column} is empty"
    for column, cell in row.items():
        if any(part != part.strip() or not part for part in values(cell)):
            yield f"{column} {cell!r} has a blank or empty part"
    for column in YEAR_COLUMNS:
        for text in values(row.get(column, "")):
            if not is_year(text):
                yield f"{column} {text!r} is not a year from {EARLIEST_YEAR} to {LATEST_YEAR}"
    if row["name"] in values(row["aliases"]):
        yield "its name is repeated among its aliases"
    birth, death = row.get("birth_year", ""), row.get("death_year", "")
    if is_year(birth) and is_year(death) and not 0 < int(death) - int(birth) <= LONGEST_LIFE_YEARS:
        yield f"a life from {birth} to {death}"
    if len(values(row.get("award", ""))) != len(values(row.get("award_year", ""))):
        yield "award and award_year have different counts"


def all_names() -> Counter[str]:
    """Count every name over all tables in the folder, those of other subjects included."""
    return Counter(
        line.split("\t", 1)[0]
        for path in sorted(FACTS.glob("*.tsv"))
        for line in path.read_text(encoding="utf-8").splitlines()[1:]
    )


def unknown_people(tables: dict[str, list[Row]]) -> dict[str, list[str]]:
    """List, by ``table.column``, the people who are named there and have no row of their own."""
    known = {row["name"] for row in tables["people"]}
    return {
        f"{kind}.{column}": sorted(
            {name for row in tables[kind] for name in values(row[column]) if name not in known}
        )
        for kind, column in PERSON_COLUMNS
    }


def main() -> int:
    """Print the counts, the information and the errors; give 1 when there are errors, else 0."""
    errors: list[str] = []
    tables = {kind: read_table(kind, errors) for kind in COLUMNS}
    for kind, rows in tables.items():
        errors += [f"{kind}: {row['name']}: {e}" for row in rows for e in row_errors(kind, row)]
    names = all_names()
    errors += [f"name {name!r} stands {n} times" for name, n in names.items() if n > 1]
    for row in tables["works"]:
        if row["based_on"] and row["based_on"] not in names:
            errors.append(f"works: {row['name']}: based_on {row['based_on']!r} has no row")

    for kind, rows in tables.items():
        print(f"{kind}: {len(rows)} rows, {sum(bool(row['aliases']) for row in rows)} with aliases")
    for place, missing in unknown_people(tables).items():
        print(f"information: {place}: {len(missing)} not in people: {', '.join(missing)}")
    alias_counts = Counter(
        alias for rows in tables.values() for row in rows for alias in values(row["aliases"])
    )
    shared = sorted(a for a, n in alias_counts.items() if n > 1 or a in names)
    print(f"information: {len(shared)} aliases mean several things: {', '.join(shared)}")
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
