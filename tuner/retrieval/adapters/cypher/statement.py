"""One statement of Cypher: the names that it reads, and why it would not be sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tuner.core.checks import is_whole
from tuner.core.errors import TunerError
from tuner.core.shown import shortened

# What holds no clause, no name and no place: texts, quoted names, comments.
_ASIDE = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:``|[^`])*`|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
_UNCLOSED = re.compile(r"""['"`]|/\*""")
_PARAMETER = re.compile(r"\$(\w+)")
# A map literal has a colon, a map projection mostly a dot, and a pattern's quantifier digits.
_PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
_NAME = re.compile(f"{_PARAMETER.pattern}|{_PLACE.pattern}")
_WRITES = (
    "alter attach begin checkpoint commit copy create delete detach drop export foreach import "
    "insert install load merge remove rollback set truncate uninstall"
)
# Not a label, a property, a parameter, a key of a map or the property's owner of that name.
_WRITE = re.compile(
    rf"(?<![.:$|&\w])({'|'.join(_WRITES.split())})\b(?!\s*[:.])|\bcall\s+\w+\s*(=)", re.IGNORECASE
)
_CALL = re.compile(r"\bcall\s+(\w+(?:\s*\.\s*\w+)*)", re.IGNORECASE)
# What names of procedures begin with that write, in any of their parts, or reach out of the
# database: Memgraph runs these in a transaction that reads, too, and Neo4j those for files.
_DOES = frozenset(
    "add alter append assert atomic batch clear commit create custom dbms delete do drop export "
    "import install kill load lock merge migrate move mutate periodic refactor remove rename reset "
    "restore run save set stop submit systemdb terminate trigger truncate ttl uninstall unload "
    "update write".split()
)
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_COUNT = re.compile(r"\b(?:limit|skip|offset)\s+\$(\w+)", re.IGNORECASE)
_LIMIT = re.compile(r"\b(?:limit|skip|offset)\b", re.IGNORECASE)
_ORDER = re.compile(r"\border\s+by\b", re.IGNORECASE)
# Within the brackets of a relation: elsewhere it is a product.
_HOPS = re.compile(r"-\s*\[[^\]]*\*\s*(?:\d*\s*\.\.\s*)?\$(\w+)")
_SHOWN = 160


@dataclass(frozen=True)
class Statement:
    """A statement as it is written: ``$name`` is sent beside it, ``{name}`` is put into it."""

    text: str

    @cached_property
    def code(self) -> str:
        """Return the statement with blanks for texts, quoted names and comments."""
        return _ASIDE.sub(lambda found: " " * len(found[0]), self.text)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names that are sent beside it, each once.

        >>> Statement("MATCH (n {id: $id}) RETURN n.id AS id, '$no' LIMIT $k").parameters
        ('id', 'k')
        """
        return tuple(dict.fromkeys(_PARAMETER.findall(self.code)))

    @property
    def places(self) -> tuple[str, ...]:
        """Return the names that stand in braces, each once.

        >>> Statement("MATCH (a {id: $id})-[:Knows*1..{hops}]-(b) RETURN b.id AS id").places
        ('hops',)
        """
        return tuple(dict.fromkeys(_PLACE.findall(self.code)))

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names that it reads, each once, in their order."""
        found = _NAME.findall(self.code)
        return tuple(dict.fromkeys(sent or put for sent, put in found))

    @property
    def counts(self) -> tuple[str, ...]:
        """Return the parameters of which databases take whole numbers only."""
        return tuple(dict.fromkeys(_COUNT.findall(self.code)))

    @property
    def breaks_ties(self) -> bool:
        """Say whether rows that are cut are in one order, equal ones by their id.

        >>> Statement("RETURN n.id AS id ORDER BY score DESC LIMIT 3").breaks_ties
        False
        """
        if not _LIMIT.search(self.code):
            return True
        *_, last = _ORDER.split(self.code)
        return "id" in re.findall(r"\w+", _LIMIT.split(last)[0])

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with it, whatever its parameters are."""
        if _UNCLOSED.search(self.code):
            yield "a quote or a comment is not closed"
        if ";" in self.code.strip().removesuffix(";"):
            yield "holds several statements: write a step for each"
        for found in _WRITE.finditer(self.code):
            if found[2]:
                yield f"{found[0].strip()!r} sets an option of the database: leave it out"
                continue
            yield (
                f"{found[1].upper()} writes, or reaches out of the database, and it is only read: "
                f"leave it out (a name like this stands in backticks: `{found[1]}`)"
            )
        for name in filter(_does_something, _CALL.findall(self.code)):
            yield (
                f"CALL {name} may write, or reach out of the database, and it is only read: leave "
                "it out"
            )
        for name in _HOPS.findall(self.code):
            yield (
                f"no database takes hops as a parameter: write {{{name}}} in place of ${name}, "
                "which is put in as a whole number"
            )
        if _LIMIT.search(self.code) and not _ORDER.search(self.code):
            yield (
                "cuts what is in no order, so what is left is chance: write ORDER BY score DESC, "
                "id before it"
            )

    def filled(self, values: Mapping[str, Any]) -> str:
        """Return the text with whole numbers in its places.

        Raises:
            TunerError: a value is no whole number from 0 up.
        """
        parts, end = [], 0
        for found in _PLACE.finditer(self.code):
            value = values[found[1]]
            if not is_whole(value) or value < 0:
                raise TunerError(f"{{{found[1]}}} is {value!r}, no whole number from 0 up")
            parts += [self.text[end : found.start()], str(int(value))]
            end = found.end()
        return "".join([*parts, self.text[end:]])

    def __str__(self) -> str:
        """Return it in one line, cut where it is long."""
        return shortened(" ".join(self.text.split()), _SHOWN)


def _does_something(procedure: str) -> bool:
    """Say whether a procedure's name tells that it does more than find.

    >>> _does_something("apoc.create.node"), _does_something("db.index.vector.queryNodes")
    (True, False)
    """
    parts = (_WORD.match(part.strip(" _")) for part in procedure.split("."))
    return any(found is not None and found[0].lower() in _DOES for found in parts)
