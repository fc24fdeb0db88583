"""What is free where the values of other parameters decide it, as under ``when``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tuner.core.space import SearchSpace
from tuner.core.trial import Params
from tuner.retrieval.free import FreeKnobs

# Values that decide which parameters are there, and the names of the others that then are.
Declared = Callable[[Params, Sequence[str]], FreeKnobs]

# So many combinations of values that decide are looked at, and checked, one by one.
MOST_BRANCHES = 32


def with_branches(space: SearchSpace, base: FreeKnobs, declared: Declared) -> FreeKnobs:
    """Return what is free with the conditional parameters among it, in a branch for each case.

    A conditional parameter is free where it is so in every branch that has it, the parameters that
    decide are asked, and no other stops being free. Else ``base`` is returned.

    Args:
        space: of all that is searched.
        base: what is declared where no value is known of what is searched.
        declared: what is declared where some values are.
    """
    conditional = {name for name, one in space.parameters.items() if one.when}
    deciding = {other for one in space.parameters.values() for other in one.when}
    if not conditional:
        return base
    # What decides may itself depend on another.
    part = SearchSpace({n: one for n, one in space.parameters.items() if n in deciding})
    branches_in_all = part.size()
    if branches_in_all is None or branches_in_all > MOST_BRANCHES:
        return base
    branches, elsewhere = [], set[str]()
    for values in part.points():
        there = [
            name
            for name, one in space.parameters.items()
            if name not in deciding and space.is_active(one, values)
        ]
        free = declared(values, there).only(there)
        branches.append((values, free))
        elsewhere |= {name for name in there if name not in free.names}
    whole = FreeKnobs.of_branches(branches)
    whole = whole.only([name for name in whole.names if name not in elsewhere])
    is_more = bool(conditional & set(whole.names))
    return whole if is_more and set(base.names) - deciding <= set(whole.names) else base
