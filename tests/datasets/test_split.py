"""Splitting queries: exact totals, fair strata, whole groups, and nothing decided by order."""

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tuner.core.corpus import Query
from tuner.core.errors import InputError
from tuner.datasets.split import cut_queries, split_queries

BOTH = ("query_type", "difficulty")


def make(counts: dict[tuple[str, str], int]) -> list[Query]:
    return [
        Query(f"{query_type}-{difficulty}-{number:03}", "?", query_type, difficulty)
        for (query_type, difficulty), count in counts.items()
        for number in range(count)
    ]


def held_by(queries: Sequence[Query], held: Sequence[str], *fields: str) -> Counter[object]:
    chosen = set(held)
    return Counter(
        tuple(getattr(query, name) for name in fields) for query in queries if query.id in chosen
    )


def test_each_stratum_gives_its_share() -> None:
    queries = make({("bridge", "hard"): 20, ("bridge", "easy"): 10, ("comparison", "hard"): 30})
    tune, held = split_queries(queries, holdout=0.3, stratify_by=BOTH, seed=1)
    assert len(held) == 18  # 0.3 * 60
    assert len(tune) == 42
    assert held_by(queries, held, *BOTH) == {
        ("bridge", "hard"): 6,
        ("bridge", "easy"): 3,
        ("comparison", "hard"): 9,
    }


def test_the_example_of_the_docstring() -> None:
    queries = make({("a", "easy"): 3, ("a", "hard"): 2})
    _, held = split_queries(queries, holdout=0.5, stratify_by=BOTH, seed=7)
    assert held_by(queries, held, "difficulty") == {("easy",): 2, ("hard",): 1}


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_fraction_gets_what_is_left(seed: int) -> None:
    queries = make({("a", "x"): 19, ("b", "x"): 11})  # exact shares 1.9 and 1.1, total 3
    _, held = split_queries(queries, holdout=0.1, stratify_by=BOTH, seed=seed)
    assert held_by(queries, held, "query_type") == {("a",): 2, ("b",): 1}


def test_a_decimal_share_is_taken_as_written() -> None:
    # 0.3 is a little less than three tenths as a float: 5 * 0.3 would be less than 1.5.
    _, held = split_queries(make({("a", "x"): 5}), holdout=0.3, stratify_by=BOTH, seed=1)
    assert len(held) == 2


@pytest.mark.parametrize("seed", range(5))
def test_strata_of_one_query_are_pooled_in_their_type(seed: int) -> None:
    # Exact shares are 0.5 each. Rounded singly, a type could lose all of its queries or none.
    queries = make({(kind, str(level)): 1 for kind in "abc" for level in range(4)})
    _, held = split_queries(queries, holdout=0.5, stratify_by=BOTH, seed=seed)
    assert held_by(queries, held, "query_type") == {("a",): 2, ("b",): 2, ("c",): 2}


def test_the_seed_decides_and_is_all_that_does() -> None:
    queries = make({("a", "x"): 40, ("b", "y"): 41})
    first, again, other = (
        split_queries(queries, holdout=0.5, stratify_by=BOTH, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_known_answer() -> None:
    # A study must find the same split again with the next version and on another machine.
    queries = make({("a", "x"): 4, ("b", "x"): 4})
    _, held = split_queries(queries, holdout=0.5, stratify_by=BOTH, seed=42)
    assert held == ("a-x-000", "a-x-001", "b-x-001", "b-x-003")


def test_one_more_query_moves_few_others() -> None:
    queries = make({("a", "x"): 60})
    before = set(split_queries(queries, holdout=0.5, stratify_by=BOTH, seed=3)[1])
    more = [*queries, Query("new", "?", "a", "x")]
    after = set(split_queries(more, holdout=0.5, stratify_by=BOTH, seed=3)[1])
    assert len(before - after) <= 1


def test_holdout_zero_tunes_on_everything() -> None:
    queries = make({("a", "x"): 3})
    tune, held = split_queries(queries, holdout=0, stratify_by=BOTH, seed=1)
    assert tune == tuple(sorted(query.id for query in queries))
    assert held == ()


def test_without_strata() -> None:
    queries = make({("a", "x"): 5, ("b", "y"): 6})
    tune, held = split_queries(queries, holdout=0.5, stratify_by=(), seed=1)
    assert (len(tune), len(held)) == (5, 6)  # 5.5 rounds up for the holdout part


def test_a_group_goes_where_most_of_it_belongs_and_stays_whole() -> None:
    queries = make({("a", "x"): 20, ("b", "x"): 20})
    grouped = [Query(f"g{i}", "?", "b" if i else "a", "x", "together") for i in range(4)]
    for seed in range(10):
        tune, held = split_queries([*queries, *grouped], holdout=0.5, stratify_by=BOTH, seed=seed)
        assert len({query.id in held for query in grouped}) == 1
        assert abs(len(held) - 22) <= 2  # half of the largest group
        # Three of the four are of type b, so type a is 20 single queries and gives exactly half.
        assert sum(id_.startswith("a-") for id_ in held) == 10
        assert len(tune) + len(held) == 44


def test_a_group_named_like_a_query_is_not_that_query() -> None:
    queries = [Query("x", "?"), Query("y", "?", group="x"), Query("z", "?", group="x")]
    splits = [split_queries(queries, holdout=0.34, stratify_by=(), seed=seed) for seed in range(20)]
    assert any(held == ("x",) for _, held in splits)


@pytest.mark.parametrize(
    ("queries", "options", "message"),
    [
        ([], {}, "no queries to split"),
        (make({("a", "x"): 4}), {"holdout": 1.0}, "holdout=1.0 must be a share from 0 to below 1"),
        (make({("a", "x"): 4}), {"holdout": -0.1}, "holdout=-0.1 must be a share"),
        (make({("a", "x"): 4}), {"holdout": math.nan}, "holdout=nan must be a share"),
        (
            make({("a", "x"): 4}),
            {"holdout": 0.1},
            "holdout=0.1 of 4 queries leaves the holdout part empty; move it towards 0.5",
        ),
        (
            make({("a", "x"): 4}),
            {"holdout": 0.9},
            "holdout=0.9 of 4 queries leaves the tune part empty; move it towards 0.5",
        ),
        (make({("a", "x"): 1}), {}, "there is only one query: add more, or set holdout to 0"),
        (
            [Query(str(i), "?", group="g") for i in range(9)],
            {},
            "there is only one group of queries",
        ),
        (
            [Query(str(i), "?", group="gh"[i % 2]) for i in range(10)],
            {"holdout": 0.2},
            "they form 2 groups that stay together",
        ),
        (
            make({("a", "x"): 4}),
            {"stratify_by": ["query_typ"]},
            "cannot stratify by 'query_typ'; did you mean 'query_type'?",
        ),
        ([Query("a", "?"), Query("a", "!")], {}, "query 'a' is there more than once"),
    ],
)
def test_what_cannot_be_split(
    queries: list[Query], options: dict[str, object], message: str
) -> None:
    arguments = {"holdout": 0.5, "stratify_by": BOTH, "seed": 1, **options}
    with pytest.raises(InputError) as caught:
        split_queries(queries, **arguments)
    assert message in str(caught.value)


names = st.sampled_from(["", "a", "b", "ü"])
holdouts = st.integers(1, 99).map(lambda percent: percent / 100)
seeds = st.integers(-(2**40), 2**40)


@st.composite
def query_lists(draw: st.DrawFn, *, with_groups: bool) -> list[Query]:
    groups = st.sampled_from(["", "", "g1", "g2", "g3"]) if with_groups else st.just("")
    fields = draw(st.lists(st.tuples(names, names, groups), min_size=2, max_size=60))
    return [Query(f"q{number}", "?", *field) for number, field in enumerate(fields)]


@given(query_lists(with_groups=False), holdouts, seeds)
def test_every_stratum_and_every_type_is_within_one_of_its_share(
    queries: list[Query], holdout: float, seed: int
) -> None:
    assume(0 < math.floor(len(queries) * holdout + 0.5) < len(queries))
    assume(abs((len(queries) * holdout) % 1 - 0.5) > 1e-9)  # halves are tested above
    tune, held = split_queries(queries, holdout=holdout, stratify_by=BOTH, seed=seed)
    assert len(held) == round(len(queries) * holdout)
    assert sorted([*tune, *held]) == sorted(query.id for query in queries)
    for fields in (BOTH, ("query_type",)):
        sizes = Counter(tuple(getattr(query, name) for name in fields) for query in queries)
        taken = held_by(queries, held, *fields)
        for stratum, size in sizes.items():
            assert abs(taken[stratum] - size * holdout) < 1


@given(query_lists(with_groups=True), holdouts, seeds, st.randoms(use_true_random=False))
def test_groups_stay_together_and_the_order_of_the_input_is_nothing(
    queries: list[Query], holdout: float, seed: int, shuffler: random.Random
) -> None:
    try:
        tune, held = split_queries(queries, holdout=holdout, stratify_by=BOTH, seed=seed)
    except InputError:
        # Which part is refused as empty is tested above; here it must be a real lack of room.
        groups = Counter(query.group or query.id for query in queries)
        room = min(holdout, 1 - holdout) * len(queries)
        assert room <= 0.5 + max(groups.values()) / 2 + 1e-9
        return
    assert tune
    assert held
    assert not set(tune) & set(held)
    assert sorted([*tune, *held]) == sorted(query.id for query in queries)
    sizes = Counter(query.group for query in queries if query.group)
    largest = max(sizes.values(), default=1)
    assert abs(len(held) - len(queries) * holdout) <= 0.5 + largest / 2 + 1e-9
    for group in sizes:
        assert len({query.id in held for query in queries if query.group == group}) == 1
    shuffled = queries.copy()
    shuffler.shuffle(shuffled)
    again = split_queries(shuffled, holdout=holdout, stratify_by=BOTH, seed=seed)
    assert again == (tune, held)


def test_parts_hold_every_query_once_and_are_of_nearly_one_size() -> None:
    queries = make({("a", "easy"): 21, ("a", "hard"): 10, ("b", "hard"): 12})
    for parts in (2, 3, 5):
        cut = cut_queries(queries, parts, stratify_by=BOTH, seed=4)
        assert sorted(id_ for part in cut for id_ in part) == sorted(q.id for q in queries)
        sizes = [len(part) for part in cut]
        assert len(sizes) == parts
        assert max(sizes) - min(sizes) <= 1  # 43 queries
        easy = [held_by(queries, part, *BOTH)["a", "easy"] for part in cut]
        assert max(easy) - min(easy) <= 2


def test_the_first_of_two_parts_is_what_half_a_holdout_is() -> None:
    queries = make({("a", "easy"): 21, ("b", "hard"): 12})
    tune, held = split_queries(queries, holdout=0.5, stratify_by=BOTH, seed=4)
    assert cut_queries(queries, 2, stratify_by=BOTH, seed=4) == (held, tune)


def test_a_group_stays_in_one_part() -> None:
    queries = [
        Query(f"q{number:02}", "?", "a", "easy", group=f"g{number // 4}") for number in range(40)
    ]
    cut = cut_queries(queries, 5, stratify_by=BOTH, seed=0)
    groups = [{f"g{int(id_[1:]) // 4}" for id_ in part} for part in cut]
    assert sum(map(len, groups)) == len(set().union(*groups)) == 10


def test_one_part_is_none() -> None:
    with pytest.raises(InputError, match="parts=1: at least 2"):
        cut_queries(make({("a", "easy"): 9}), 1, stratify_by=BOTH, seed=0)
