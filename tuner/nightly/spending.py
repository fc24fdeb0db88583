"""The level of tonight's verdict: what earlier looks at the same queries have left of alpha."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from tuner.assemble import Assembly
from tuner.core.trial import Params
from tuner.nightly.data import judged_part, params_key, part_of
from tuner.nightly.records import Look, Part, Records, append
from tuner.stats.alpha_spending import alpha_of_look
from tuner.study.looks import SHARE_THAT_COUNTS

_SAME = ("dataset", "retriever", "split")


@dataclass
class Spending:
    """Gives a verdict its level, and writes the look down before the verdict is given.

    A pair of configurations that was judged on the same data and index before is no new look.
    ``look`` is tonight's, once there was one.
    """

    runs_dir: Path
    records: Records
    assembly: Assembly
    night: date
    look: Look | None = field(default=None, init=False)

    def __call__(self, winner: Params, baseline: Params) -> float | None:
        """Return the level for a winner against a baseline; None where no queries are judged."""
        first, second = (self.assembly.params(params) for params in (winner, baseline))
        queries = judged_part(self.assembly)
        if not queries:
            return None
        most = float(self.assembly.config.verdict.alpha)
        if first == second:  # nothing is decided, so it is no look
            return most
        name, part = part_of(queries)
        hashes = self.assembly.fingerprints()
        same = {"pair": [first, second], "part": name, **{key: hashes[key] for key in _SAME}}
        pair = params_key(same)
        earlier = [look for look in self.records.looks if _is_of_these(self.records, look, part)]
        known = next((look for look in earlier if look.pair == pair), None)
        if known is not None:
            self.look = known
            return known.alpha
        number = 1 + len(earlier)
        alpha = alpha_of_look(number, alpha=most)
        self.look = Look(self.night, pair, name, number, alpha)
        self.records.looks.append(self.look)
        remember_part(self.runs_dir, self.records, name, part)
        append(
            self.runs_dir,
            "look",
            self.records.study,
            night=self.night.isoformat(),
            pair=pair,
            part=name,
            number=number,
            alpha=alpha,
        )
        return alpha


def remember_part(runs_dir: Path, records: Records, name: str, part: Part) -> None:
    """Write down what the queries of a part are, once."""
    if name not in records.parts:
        records.parts[name] = part
        detail: dict[str, Iterable[str]] = {"digests": part.digests, "types": part.types}
        append(runs_dir, "queries", records.study, part=name, **detail)


def _is_of_these(records: Records, look: Look, part: Part) -> bool:
    """Say whether a look was at a tenth of these queries or more, or nobody knows at which."""
    then = records.parts.get(look.part)
    now = set(part.digests)
    return then is None or len(now.intersection(then.digests)) >= SHARE_THAT_COUNTS * len(now)
