"""What a night starts from, and what earlier looks have left of alpha.

Every look at the same queries has its share of alpha. Where the challengers of earlier nights met
the same champion, the looks are alike, and what those have spent on the same luck is handed out
again (``levels_of_looks``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from tuner.core.errors import TunerError
from tuner.core.rankings import FloatArray
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.shown import counted
from tuner.core.steps import Say, unsaid
from tuner.core.study_record import StudyHeader
from tuner.core.trial import Params
from tuner.nightly.data import judged_part, params_key, part_of
from tuner.nightly.records import Look, Night, Part, Records
from tuner.run.assembly import Assembly
from tuner.run.earlier import SAME, STARTING_POINTS, Earlier, gather
from tuner.stats.multiple import alpha_of_look, levels_of_looks
from tuner.verdict.looks import SHARE_THAT_COUNTS, query_digest
from tuner.verdict.measured import Measured

# So many trials tell a search where to look; the model of a Gaussian process costs their cube.
MOST_EARLIER_TRIALS = 300
NIGHTS = "earlier nights"


def warmed(assembly: Assembly, records: Records, *, say: Say) -> Earlier:
    """Return what the search starts from: the trials of the latest nights on the same data.

    Where there are none, since the data changed, the best of the latest nights before are asked
    again. What the configuration starts from comes first.
    """
    earlier = gather(assembly, say=say)
    found: list[str] = []
    trials, nights_before = 0, 0
    starts: dict[str, Params] = {}
    reason = ""
    is_apart = partial(_is_apart, assembly, records)
    for night in reversed(records.nights):
        run_dir = str(records.runs_dir / night.run_dir)
        is_there = Path(run_dir, JOURNAL_FILE).is_file()
        is_same = _is_on_the_same(assembly, night)
        has_enough = bool(found) or len(starts) >= STARTING_POINTS
        if run_dir in found or not is_there or (has_enough and not is_same):
            continue
        try:
            one = gather(_from(assembly, [run_dir]), say=unsaid, is_apart=is_apart)
        except TunerError as error:  # of something else, or a damaged journal
            reason = reason or str(error)
            continue
        if one.trials:
            found.append(run_dir)
            trials += len(one.trials)
        elif one.starts:
            nights_before += 1
            starts |= {params_key(params): params for params in one.starts}
        if trials >= MOST_EARLIER_TRIALS:
            break
    if found:
        nights = counted(len(found), "earlier night")
        say(f"{NIGHTS}: {counted(trials, 'trial')} of {nights} on the same data to learn from")
        return gather(_from(assembly, [*assembly.config.start_from, *found]), say=unsaid)
    again = tuple(starts.values())[:STARTING_POINTS]
    if again:
        best = "best configuration is" if len(again) == 1 else f"{len(again)} best are"
        say(
            f"{NIGHTS}: the data changed, so of {counted(nights_before, 'earlier night')} the "
            f"{best} asked again, and nothing else is taken over"
        )
    elif reason:
        say(f"{NIGHTS}: nothing is taken over from them: {reason}")
    return replace(earlier, starts=(*earlier.starts, *again))


def _is_on_the_same(assembly: Assembly, night: Night) -> bool:
    then, now = night.data["fingerprints"], assembly.fingerprints()
    return all(then.get(name) == now.get(name) for name in SAME)


def _is_apart(assembly: Assembly, records: Records, header: StudyHeader) -> bool:
    """Say whether a night was tuned on other queries than those held out now, but for a few."""
    night = next((one for one in records.nights if one.study_id == header.study_id), None)
    scores = [score for score in records.scores if night is not None and score.night == night.night]
    part = records.parts.get(scores[-1].part or "") if scores else None
    if part is None:
        return False
    held_out = {query_digest(query.text) for query in assembly.holdout_queries}
    return len(held_out.intersection(part.digests)) < SHARE_THAT_COUNTS * len(held_out)


def _from(assembly: Assembly, sources: Sequence[str | dict[str, Any]]) -> Assembly:
    config = assembly.config.model_copy(update={"start_from": sources})
    return replace(assembly, config=config)


_SAME = ("dataset", "retriever", "split")
_DIGITS = 6

Row = tuple[float | None, ...]


@dataclass
class Spending:
    """Gives a verdict its level, and writes the look down before the verdict is given.

    A pair of configurations that was judged on the same data and index before is no new look.
    ``look`` is tonight's, once there was one.
    """

    records: Records
    assembly: Assembly
    night: date
    look: Look | None = field(default=None, init=False)

    def __call__(self, winner: Measured, baseline: Measured) -> float:
        """Return the level for a winner against a baseline, measured on the judged queries."""
        first, second = (self.assembly.params(one.params) for one in (winner, baseline))
        most = float(self.assembly.config.verdict.alpha)
        if first == second:  # nothing is decided, so it is no look
            return most
        name, part = part_of(judged_part(self.assembly))
        hashes = self.assembly.fingerprints()
        same = {"pair": [first, second], "part": name, **{key: hashes[key] for key in _SAME}}
        pair = params_key(same)
        earlier = [look for look in self.records.looks if _is_of_these(self.records, look, part)]
        known = next((look for look in earlier if look.pair == pair), None)
        if known is not None:
            self.look = known
            return known.alpha
        # Where nothing is held out, the challenger was chosen by these very queries: what is alike
        # in its looks is no luck that it had no part in, and every look pays for itself.
        is_held_out = bool(self.assembly.holdout_queries)
        number = 1 + len(earlier)
        share = alpha_of_look(number, alpha=most)
        look = Look(
            self.night,
            pair,
            name,
            number,
            share=share,
            alpha=share,
            champion=params_key(second),
            composite=_row(winner.composite, baseline.composite) if is_held_out else (),
            objective=_row(winner.objective, baseline.objective) if is_held_out else (),
        )
        remember_part(self.records, name, part)
        self.look = replace(look, alpha=_level(look, earlier, self.records.parts))
        self.records.write("look", **{**asdict(self.look), "night": self.night.isoformat()})
        return self.look.alpha


def remember_part(records: Records, name: str, part: Part) -> None:
    """Write down what the queries of a part are, once."""
    if name not in records.parts:
        records.write("queries", part=name, digests=part.digests, types=part.types)


def _is_of_these(records: Records, look: Look, part: Part) -> bool:
    """Say whether a look was at a tenth of these queries or more, or nobody knows at which."""
    then = records.parts.get(look.part)
    now = set(part.digests)
    return then is None or len(now.intersection(then.digests)) >= SHARE_THAT_COUNTS * len(now)


def _row(winner: FloatArray | None, baseline: FloatArray | None) -> Row:
    if winner is None or baseline is None:
        return ()
    found = (round(float(value), _DIGITS) for value in winner - baseline)
    return tuple(None if math.isnan(value) else value for value in found)


def _level(look: Look, earlier: Sequence[Look], parts: Mapping[str, Part]) -> float:
    """Return the level that a look has together with the latest ones at the same champion.

    Also with those before the index or some of the queries changed: what was judged then is what
    they have written down. With a price there are two ways to a promotion, a better composite and
    a better objective; the lower of their levels keeps the promise for both.
    """
    before = [*takewhile(lambda one: one.champion == look.champion, reversed(earlier))]
    looks = [*reversed(before), look]
    both = [[(one, one.composite) for one in looks], [(one, one.objective) for one in looks]]
    return min((_joint(rows, parts) for rows in both if rows[-1][1]), default=look.share)


def _joint(rows: Sequence[tuple[Look, Row]], parts: Mapping[str, Part]) -> float:
    """Return the level of the last of the looks; those without values keep what they have spent."""
    shares, found = [], []
    for look, row in rows:
        part = parts.get(look.part)
        if part is not None and row and len(row) == len(part.digests):
            shares.append(look.share)
            found.append(_by_query(part, row))
    queries = list(dict.fromkeys(query for values in found for query in values))
    differences = [[values.get(query, math.nan) for query in queries] for values in found]
    return float(levels_of_looks(differences, shares)[-1])


def _by_query(part: Part, row: Row) -> dict[tuple[str, int], float]:
    """Return values by query; those of the same words are told apart by their order."""
    before: Counter[str] = Counter()
    found = {}
    for digest, value in zip(part.digests, row, strict=True):
        found[digest, before[digest]] = math.nan if value is None else value
        before[digest] += 1
    return found
