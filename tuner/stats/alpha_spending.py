"""Judge one challenger after the other on the same held-out queries, and be wrong once at most.

A nightly job that tests its challenger at 5 % every night promotes one that is no better within a
few weeks, although every single verdict keeps its promise. So the looks at one set of queries share
one error rate: look k gets a part of it, and the parts add up to no more than the whole.

By the union bound (Bonferroni) that holds however the verdicts depend on each other, and they do:
they share their queries and the champion. It needs challengers that were chosen without the
held-out queries. Those are, although the job goes on for a year, since until the first promotion
every night has told the search one and the same thing: not promoted. This is the argument of the
Ladder (Blum and Hardt 2015, arXiv:1502.04585), and why a failed look needs no noise on its answer.

What else there is, and why it is not used: the Ladder's own bounds and those of the reusable
holdout (Dwork et al. 2015, Science 349(6248)) ask for thousands of queries before they say
anything; always-valid tests (``stats.sequential``) pay for data that grows, which a fixed holdout
does not; a joint sign-flip of all looks (Romano and Wolf 2005, Econometrica 73(4)) would use that
the verdicts are alike, and would have to keep every earlier challenger's value of every query and
begin anew with each champion. How much is given away: experiments/statistics/README.md.
"""

from __future__ import annotations

from tuner.core.errors import InputError
from tuner.stats.pairs import check_share

# The first study after a default configuration finds most; afterwards no night is special, and
# what is left for later years must not cost the first one much.
FIRST_LOOKS, FIRST_YEAR, LATER_YEARS = 0.5, 0.4, 0.1


def alpha_of_look(number: int, *, alpha: float, looks_a_year: int = 365) -> float:
    """Return the error rate at which look ``number``, counted from 1, may decide.

    Half of ``alpha`` goes to the first looks, 1 / (k (k + 1)) of it to look k, which is 1/2, 1/6,
    1/12, …; .4 is spread evenly over the first ``looks_a_year`` = n; the rest goes to all that
    follow, (n + 1) / (k (k + 1)) of it to look k. Each of the three sums to 1 at most, so all looks
    together never spend more than ``alpha``, whenever one stops. No look is given more than the one
    before. Beyond the first year the rates fall with the square of the number: it is time for
    queries that were not looked at, with which the count begins anew.

    A look is a pair of configurations on a set of queries and an index: the same again is none.

    alpha = .05: .05 (.25 + .4 / 365) = .0126 for the first look, .05 (.5 / 930 + .4 / 365) = .00008
    for the 30th and .00006 for the 365th, which is z = 2.5, 3.9 and 4.0 against 1.96.

    >>> [round(alpha_of_look(number, alpha=0.05), 5) for number in (1, 2, 30, 365, 366)]
    [0.01255, 0.00422, 8e-05, 5e-05, 1e-05]

    Raises:
        InputError: a number or a year of no whole number from 1 up, or alpha outside 0 to 1.
    """
    check_share("alpha", alpha)
    for name, value in (("number", number), ("looks_a_year", looks_a_year)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"must be a whole number from 1 up, got {value!r}", key=(name,))
    falling = 1.0 / (number * (number + 1))
    if number <= looks_a_year:
        return alpha * (FIRST_LOOKS * falling + FIRST_YEAR / looks_a_year)
    return alpha * falling * (FIRST_LOOKS + LATER_YEARS * (looks_a_year + 1))
