"""What a configuration says of free parameters: which they are, and how."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import isfinite
from typing import Any

from tuner.core.checks import is_number
from tuner.core.errors import Problem, did_you_mean, refuse
from tuner.core.json_text import digest_of
from tuner.core.shown import shortened
from tuner.retrieval.adapters.runs.fusion import NORMALISATIONS
from tuner.retrieval.free import FreeKnobs, Mixing, Share

PREFIX, CUTOFF, RRF = "prefix", "cutoff", "rrf"
MIXES, NORMALISATION = "mixes", "normalisation"
# What a leg's scores are multiplied by: a parameter's value, or 1 less it; or a number.
_SHARES = {"value": False, "rest": True}
_EXAMPLE = f"{{{MIXES}: {{graph: value, text: rest}}}}"


def declared_free(given: Mapping[str, Any], searched: Collection[str]) -> FreeKnobs:
    """Read the mapping ``free``: parameter -> how it is free.

    ``{top_k: prefix}``, ``{min_score: cutoff}``, or ``{graph_weight: {mixes: {graph: value, text:
    rest}, normalisation: min_max}}``: which legs of an answer it mixes, each by its value, by 1
    less it, or by a number. ``{rrf_k: rrf}``: legs count by their ranks.

    Args:
        given: the mapping.
        searched: the names of the space.

    Raises:
        InputError: a parameter that is not searched, or that is free in no such way; everything
            that is wrong, at once.
    """
    refuse(_problems(given, searched))
    prefixes, cutoffs, constants = (
        tuple(name for name, how in given.items() if how == sort) for sort in (PREFIX, CUTOFF, RRF)
    )
    mixes = {name: how for name, how in given.items() if isinstance(how, Mapping)}
    shares = {
        leg: _share(name, share) for name, how in mixes.items() for leg, share in how[MIXES].items()
    }
    if not shares and not constants:
        return FreeKnobs(prefixes, None, cutoffs)
    methods = [_method(how) for how in mixes.values()]
    mixing = Mixing(
        shares,
        normalisation="" if constants else methods[0],
        rrf_k=constants[0] if constants else "",
    )
    return FreeKnobs(prefixes, mixing, cutoffs)


def _share(name: str, share: str | float) -> Share:
    return Share(name, _SHARES[share]) if isinstance(share, str) else Share(constant=float(share))


def _method(how: Mapping[str, Any]) -> str:
    return str(how.get(NORMALISATION, "none"))


def _problems(given: Mapping[str, Any], searched: Collection[str]) -> Iterator[Problem]:
    if not given:
        yield Problem("names no parameter; write {top_k: prefix}, on or off")
    mixed_by: dict[str, str] = {}
    methods: dict[str, str] = {}
    constants: list[str] = []
    for name, how in given.items():
        if name not in searched:
            hint = did_you_mean(str(name), searched)
            yield Problem(f"is no parameter of the space{hint}", key=(str(name),))
            continue
        if how in (PREFIX, CUTOFF, RRF):
            constants += [name] if how == RRF else []
            continue
        if not isinstance(how, Mapping) or not isinstance(how.get(MIXES), Mapping):
            got = shortened(repr(how), 60)
            sorts = f"{PREFIX}, {CUTOFF}, {RRF} or {_EXAMPLE}"
            yield Problem(f"must be {sorts}, got {got}", key=(name,))
            continue
        yield from _mixing_problems(name, how)
        for leg in how[MIXES]:
            if leg in mixed_by:
                message = f"{mixed_by[leg]!r} mixes this leg already"
                yield Problem(message, key=(name, MIXES, str(leg)))
            mixed_by[leg] = name
        methods[_method(how)] = name
    for name in constants[1:]:
        yield Problem(f"{constants[0]} is {RRF} already: ranks have one constant", key=(name,))
    if constants and set(methods) - {"none"}:
        name = next(name for method, name in methods.items() if method != "none")
        message = f"legs count by their ranks ({constants[0]}: {RRF}): leave it out"
        yield Problem(message, key=(name, NORMALISATION))
    elif len(methods) > 1:
        told = " and ".join(f"{name}: {method}" for method, name in methods.items())
        yield Problem(f"all legs are normalised alike, and these are not: {told}")


def _mixing_problems(name: str, how: Mapping[str, Any]) -> Iterator[Problem]:
    for key in how:
        if key not in (MIXES, NORMALISATION):
            hint = did_you_mean(str(key), (MIXES, NORMALISATION))
            yield Problem(f"unknown key{hint}", key=(name, str(key)))
    if not how[MIXES]:
        yield Problem(f"names no leg; write {_EXAMPLE}", key=(name, MIXES))
    for leg, share in how[MIXES].items():
        is_share = isfinite(share) if is_number(share) else isinstance(share, str)
        if not is_share or (isinstance(share, str) and share not in _SHARES):
            message = f"must be value, rest (1 less the value) or a number, got {share!r}"
            yield Problem(message, key=(name, MIXES, str(leg)))
    if how[MIXES] and all(map(is_number, how[MIXES].values())):
        yield Problem(f"mixes no leg by its value; write {_EXAMPLE}", key=(name, MIXES))
    if _method(how) not in NORMALISATIONS:
        hint = did_you_mean(_method(how), NORMALISATIONS)
        message = f"unknown normalisation {_method(how)!r}{hint}"
        yield Problem(message, key=(name, NORMALISATION))


def fingerprint_of_free(free: str | dict[str, Any]) -> dict[str, str]:
    """Return what of the key ``free`` must not change when a study is resumed."""
    if isinstance(free, dict):
        return {"free": digest_of(free)}
    return {} if free == "off" else {"free": free}
