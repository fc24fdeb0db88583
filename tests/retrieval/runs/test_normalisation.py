"""Normalising the scores of one leg: values by hand, and what no input may break."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.retrieval.adapters.runs.fusion import NORMALISATIONS, missing, normalise

# mean 3, sd = sqrt((1 + 0 + 1) / 3)
THREE = [4.0, 3.0, 2.0]
SD = (2 / 3) ** 0.5


def one(method: str, scores: list[float], *, filling: int = 0) -> list[float]:
    row = np.array([[*scores, *[0.0] * filling]])
    return normalise(row, np.array([len(scores)]), method)[0, : len(scores)].tolist()


def lacking(method: str, scores: list[float]) -> float:
    lengths = np.array([len(scores)])
    return float(missing(normalise(np.array([scores]), lengths, method), lengths)[0, 0])


class TestByHand:
    @pytest.mark.parametrize(
        ("method", "scores", "expected"),
        [
            ("min_max", THREE, [1.0, 0.5, 0.0]),
            ("min_max", [2.0, -2.0, -6.0], [1.0, 0.5, 0.0]),
            ("z", THREE, [1 / SD, 0.0, -1 / SD]),
            # z = 1 and -1: (1 + 3) / 6 and (-1 + 3) / 6
            ("dbsf", [10.0, 0.0], [4 / 6, 2 / 6]),
            # 19 zeros and a 1: mean .05, sd = sqrt(.05 * .95) = .2179, z = 4.36: cut to 1
            ("dbsf", [1.0, *[0.0] * 19], [1.0, *[0.5 - (0.05 / 0.05**0.5 / 0.95**0.5) / 6] * 19]),
            ("max", [4.0, 3.0, 0.0], [1.0, 0.75, 0.0]),
            # By the largest absolute value, so that the order stays.
            ("max", [-1.0, -2.0, -4.0], [-0.25, -0.5, -1.0]),
            ("max", [1.0, -2.0], [0.5, -1.0]),
            ("none", [7.0, -3.0], [7.0, -3.0]),
        ],
    )
    def test_values(self, method: str, scores: list[float], expected: list[float]) -> None:
        assert one(method, scores) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("method", ["min_max", "z", "dbsf", "max"])
    @pytest.mark.parametrize("scores", [[5.0, 5.0], [0.0], [-3.0, -3.0, -3.0]])
    def test_equal_scores_are_one_and_what_is_missing_below_them(
        self, method: str, scores: list[float]
    ) -> None:
        assert one(method, scores) == [1.0] * len(scores)
        assert lacking(method, scores) == 0.0

    def test_equal_scores_stay_under_none(self) -> None:
        assert one("none", [5.0, 5.0]) == [5.0, 5.0]

    @pytest.mark.parametrize(
        ("method", "scores", "expected"),
        [
            ("min_max", THREE, 0.0),
            ("dbsf", THREE, 0.0),
            ("max", THREE, 0.0),
            ("none", THREE, 0.0),
            ("z", THREE, -1 / SD),
            ("max", [1.0, -2.0], -1.0),
            ("none", [1.0, -2.0], -2.0),
        ],
    )
    def test_missing_is_the_lowest_but_at_most_zero(
        self, method: str, scores: list[float], expected: float
    ) -> None:
        assert lacking(method, scores) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("method", NORMALISATIONS)
    def test_filling_changes_nothing(self, method: str) -> None:
        assert one(method, THREE, filling=4) == one(method, THREE)

    @pytest.mark.parametrize("method", NORMALISATIONS)
    def test_a_query_without_documents_counts_zero(self, method: str) -> None:
        lengths = np.array([0])
        values = normalise(np.zeros((1, 3)), lengths, method)
        assert missing(values, lengths).tolist() == [[0.0]]

    def test_unknown(self) -> None:
        with pytest.raises(InputError, match="did you mean 'min_max'"):
            one("minmax", THREE)


SCORES = st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=12)


@given(SCORES, st.sampled_from(NORMALISATIONS))
def test_finite_ordered_and_never_above_what_is_there(scores: list[float], method: str) -> None:
    ordered = sorted(scores, reverse=True)
    values = one(method, ordered)
    assert np.isfinite(values).all()
    assert values == sorted(values, reverse=True)
    assert lacking(method, ordered) <= min(values)
    if method in ("min_max", "dbsf"):
        assert 0.0 <= min(values) <= max(values) <= 1.0


@given(
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=12, unique=True),
    st.sampled_from(["min_max", "z", "dbsf"]),
    st.integers(-50, 50),
)
def test_place_and_scale_of_a_leg_do_not_matter(scores: list[int], method: str, shift: int) -> None:
    ordered = sorted((float(score) for score in scores), reverse=True)
    moved = [4.0 * score + shift for score in ordered]
    assert one(method, moved) == pytest.approx(one(method, ordered), abs=1e-9)
