"""Write the tables that a script prints as CSV files.

    python experiments/racing/racing.py builtin:atlas | python experiments/tables.py FILE.csv [FILE.csv …]

The first table of Markdown on the input goes to the first file, the second to the second, and so on; `-`
leaves one out. Tables of the same columns are one, with the headings above them as its first column. What
is printed passes through. A cell becomes what a program can read: `1,720` is 1720, `.39` is 0.39, `+0.1` is 0.1, `–` is
empty; of a column in percent the sign stands in its name; `0.2 ± 0.1` and `0.2 [0.1, 0.3]` become
two and three columns.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

NUMBER = r"[+-]?(?:\d[\d,]*)?\.?\d+"
WITH_ERROR = re.compile(rf"({NUMBER})( ?%)? ± ({NUMBER})( ?%)?")
WITH_INTERVAL = re.compile(rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\]")
IN_PERCENT = re.compile(rf"({NUMBER}) ?%")
EMPTY = ("", "–")

Table = list[list[str]]


def tables(lines: Iterable[str]) -> list[Table]:
    """Return each table as its rows, the names of the columns first."""
    found: dict[tuple[str, ...], list[tuple[str, Table]]] = {}
    heading, rows = "", []
    for line in [*lines, ""]:
        if line.startswith("#"):
            heading = re.split(r"[:,]", line.lstrip("# "))[0]
        if line.startswith("|"):
            cells = [cell.strip().strip("*") for cell in line.strip()[1:-1].split("|")]
            if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                rows.append(cells)
        elif rows:
            found.setdefault(tuple(rows[0]), []).append((heading, rows[1:]))
            rows = []
    return [_together(list(names), parts) for names, parts in found.items()]


def _together(names: list[str], parts: Sequence[tuple[str, Table]]) -> Table:
    if len(parts) == 1:
        return [names, *parts[0][1]]
    return [["section", *names], *([heading, *row] for heading, rows in parts for row in rows)]


def plain(cell: str) -> str:
    """Return a cell as a program reads it.

    >>> plain("+1,720"), plain("-.39"), plain("–"), plain("days, r = .3")
    ('1720', '-0.39', '', 'days, r = 0.3')
    """
    if cell in EMPTY:
        return ""
    if re.fullmatch(NUMBER, cell):
        cell = cell.removeprefix("+").replace(",", "")
    return re.sub(r"(?<![\w.])\.(?=\d)", "0.", cell)


def column(name: str, cells: Sequence[str]) -> Iterator[list[str]]:
    """Yield what becomes of a column: one column, or two or three, each with its name first.

    >>> list(column("deploy", ["2.3 ± 0.5 %", ""]))
    [['deploy %', '2.3', ''], ['deploy % ±', '0.5', '']]
    """
    name = plain(name).replace("`", "")
    in_percent_name = name if name.endswith("%") else f"{name} %"
    there = [cell for cell in cells if cell not in EMPTY]
    if there and all(WITH_ERROR.fullmatch(cell) for cell in there):
        found = [WITH_ERROR.fullmatch(cell) for cell in cells]
        in_percent = any(one and (one[2] or one[4]) for one in found)
        shown = in_percent_name if in_percent else name
        yield [shown, *(plain(one[1]) if one else "" for one in found)]
        yield [f"{shown} ±", *(plain(one[3]) if one else "" for one in found)]
    elif there and all(WITH_INTERVAL.fullmatch(cell) for cell in there):
        intervals = [WITH_INTERVAL.fullmatch(cell) for cell in cells]
        for part, ending in enumerate(("", ", low", ", high"), start=1):
            yield [f"{name}{ending}", *(plain(one[part]) if one else "" for one in intervals)]
    elif there and all(IN_PERCENT.fullmatch(cell) for cell in there):
        shares = [IN_PERCENT.fullmatch(cell) for cell in cells]
        yield [in_percent_name, *(plain(one[1]) if one else "" for one in shares)]
    else:
        yield [name, *map(plain, cells)]


def write(table: Table, path: Path) -> None:
    names, *rows = table
    columns = [
        made
        for number, name in enumerate(names)
        for made in column(name or "what", [row[number] for row in rows])
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(zip(*columns, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="a CSV file for each table, or -")
    files = parser.parse_args().files
    lines = []
    for line in sys.stdin:
        print(line, end="", flush=True)
        lines.append(line.rstrip("\n"))
    found = tables(lines)
    if len(found) < len(files):
        raise SystemExit(f"{len(files)} files, but only {len(found)} tables")
    for table, file in zip(found, files, strict=False):
        if file != "-":
            write(table, Path(file))


if __name__ == "__main__":
    main()
