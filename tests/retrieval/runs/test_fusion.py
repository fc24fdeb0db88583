"""Fusing legs: rankings by hand, and agreement with a plain dictionary loop."""

import random
from collections.abc import Mapping
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.retrieval.adapters.runs.fusion import best, fuse, make_knobs, read_params
from tuner.retrieval.adapters.runs.legs import Answer, Run, Table

A = {"d1": 4.0, "d2": 3.0, "d3": 2.0}
B = {"d2": 10.0, "d4": 0.0}
Z = (3 / 2) ** 0.5  # 1 / sd of A


def fused(runs: Mapping[str, Run], query: str = "q", **params: Any) -> list[tuple[str, float]]:
    table = Table.build(runs)
    depths = {name: s.shape[1] for name, s in zip(table.names, table.scores, strict=True)}
    knobs = make_knobs(depths, widest=table.pool.shape[1])
    settings = read_params(params, knobs, table.names)
    batch = table.batch([query])
    columns, scores = best(fuse(batch, settings), settings.top_k)
    return [
        (table.document_ids[batch.pool[0, column]], float(score))
        for column, score in zip(columns[0], scores[0], strict=True)
        if column >= 0
    ]


def two(a: Answer = A, b: Answer = B, **params: Any) -> list[tuple[str, float]]:
    return fused({"a": {"q": a}, "b": {"q": b}}, **params)


class TestByHand:
    @pytest.mark.parametrize(
        ("params", "expected"),
        [
            # d1 .5*1, d2 .5*.5 + .25*1, d3 and d4 nothing; of equals the greater id first
            (
                {"weight_a": 0.5, "weight_b": 0.25},
                [("d2", 0.5), ("d1", 0.5), ("d4", 0.0), ("d3", 0.0)],
            ),
            # A: Z, 0, -Z, missing -Z; B: 1, -1, missing -1
            (
                {"normalisation": "z"},
                [("d2", 1.0), ("d1", Z - 1), ("d4", -Z - 1), ("d3", -Z - 1)],
            ),
            # (z + 3) / 6, missing 0
            (
                {"normalisation": "dbsf"},
                [("d2", 0.5 + 4 / 6), ("d1", (Z + 3) / 6), ("d4", 2 / 6), ("d3", (3 - Z) / 6)],
            ),
            (
                {"normalisation": "max"},
                [("d2", 0.75 + 1), ("d1", 1.0), ("d3", 0.5), ("d4", 0.0)],
            ),
            (
                {"normalisation": "none"},
                [("d2", 13.0), ("d1", 4.0), ("d3", 2.0), ("d4", 0.0)],
            ),
            (
                {"fusion": "rrf"},
                [("d2", 1 / 62 + 1 / 61), ("d1", 1 / 61), ("d4", 1 / 62), ("d3", 1 / 63)],
            ),
            (
                {"fusion": "rrf", "rrf_k": 1, "weight_b": 0.5},
                [("d2", 1 / 3 + 1 / 4), ("d1", 1 / 2), ("d3", 1 / 4), ("d4", 1 / 6)],
            ),
            # A is cut to d1 1, d2 0 before it is normalised; nothing finds d3 any more
            ({"depth_a": 2}, [("d2", 1.0), ("d1", 1.0), ("d4", 0.0)]),
            ({"depth_a": 2, "fusion": "rrf", "weight_b": 0}, [("d1", 1 / 61), ("d2", 1 / 62)]),
            # one document is all there is: 1
            ({"depth_b": 1}, [("d2", 1.5), ("d1", 1.0), ("d3", 0.0)]),
            # a leg of weight 0 is left out, documents and all
            ({"weight_a": 0}, [("d2", 1.0), ("d4", 0.0)]),
            ({"top_k": 1}, [("d2", 1.5)]),
        ],
    )
    def test_rankings(self, params: dict[str, Any], expected: list[tuple[str, float]]) -> None:
        found = two(**params)
        assert [id_ for id_, _ in found] == [id_ for id_, _ in expected]
        assert [score for _, score in found] == pytest.approx(
            [score for _, score in expected], abs=1e-12
        )

    def test_a_leg_without_the_query_leaves_it_to_the_others(self) -> None:
        runs = {"a": {"q": A}, "b": {"other": B}}
        assert fused(runs, normalisation="z")[0] == ("d1", pytest.approx(Z))
        assert [id_ for id_, _ in fused(runs, "other")] == ["d2", "d4"]

    def test_a_query_that_no_leg_knows_has_an_empty_answer(self) -> None:
        assert fused({"a": {"q": A}, "b": {"q": B}}, "unheard of") == []

    def test_negative_scores_keep_their_order(self) -> None:
        # Distances with the sign turned: missing counts as the lowest, -8, and not as 0.
        distances = {"near": -1.0, "far": -8.0}
        found = two(distances, {"other": 0.5}, normalisation="none")
        assert found == [("near", -1.0), ("other", -7.5), ("far", -8.0)]

    def test_a_list_without_scores_counts_down_from_its_length(self) -> None:
        found = two(["x", "y", "w"], {"y": 1.0}, normalisation="none")
        assert found == [("y", 3.0), ("x", 3.0), ("w", 1.0)]

    def test_ties_within_a_leg_are_cut_by_descending_id(self) -> None:
        tied = {"d1": 1.0, "d3": 1.0, "d2": 1.0}
        found = two(tied, {"z": 1.0}, depth_a=2, fusion="rrf")
        assert found == [("z", 1 / 61), ("d3", 1 / 61), ("d2", 1 / 62)]

    def test_ties_are_in_byte_order(self) -> None:
        # UTF-8: "~" 7e, "é" c3 a9, "豆" e8 b1 86, "😀" f0 9f 98 80
        ids = ["é", "😀", "~", "豆", "10", "9"]
        found = two(dict.fromkeys(ids, 1.0), {"é": 1.0}, weight_b=0)
        assert [id_ for id_, _ in found] == ["😀", "豆", "é", "~", "9", "10"]

    def test_ties_at_the_last_place_across_queries(self) -> None:
        run = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}, "r": {"a": 3.0, "b": 2.0, "c": 1.0}}
        assert [id_ for id_, _ in fused({"x": run, "y": run}, "q", top_k=2)] == ["c", "b"]
        assert [id_ for id_, _ in fused({"x": run, "y": run}, "r", top_k=2)] == ["a", "b"]

    def test_the_order_of_the_legs_changes_nothing(self) -> None:
        legs = {"c": {"q": {"x": 0.1, "y": 0.3}}, "a": {"q": {"y": 0.1, "x": 0.2}}, "b": {"q": A}}
        assert fused(legs) == fused(dict(reversed(legs.items())))


class TestWrong:
    def test_all_weights_zero(self) -> None:
        with pytest.raises(InputError, match="weight_a, weight_b are all 0"):
            two(weight_a=0, weight_b=0)

    @pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf"), 1e101])
    def test_a_score_that_is_no_sensible_number(self, score: float) -> None:
        with pytest.raises(InputError, match=r"legs\.b: query 'q', document 'd4': the score is"):
            two(A, {"d2": 1.0, "d4": score})

    def test_a_leg_without_documents(self) -> None:
        with pytest.raises(InputError, match=r"legs\.b: the run holds no document"):
            two(A, {})

    def test_a_document_that_is_not_in_the_corpus(self) -> None:
        with pytest.raises(InputError, match=r"legs\.b: query 'q': the document 'd4' is not in"):
            Table.build({"a": {"q": A}, "b": {"q": B}}, tokens={"d1": 1, "d2": 1, "d3": 1})

    def test_params(self) -> None:
        with pytest.raises(InputError) as caught:
            two(weight_c=1, weight_a=1.5, normalisation="minmax", depth_b=3)
        assert len(caught.value.problems) == 4


def by_loop(runs: Mapping[str, Run], params: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the fused ranking of query "q", written as one would on a whiteboard."""
    total: dict[str, float] = {}
    per_leg = []
    for name in sorted(runs):
        weight = params.get(f"weight_{name}", 1.0)
        answer: dict[str, float] = dict(runs[name].get("q", {}))  # type: ignore[arg-type]
        ordered = sorted(((s, id_) for id_, s in answer.items()), reverse=True)
        cut = {id_: s for s, id_ in ordered[: params.get(f"depth_{name}", len(answer))]}
        if not weight or not cut:
            continue
        scores = list(cut.values())
        low, high, lacking = min(scores), max(scores), 0.0
        match params:
            case {"fusion": "rrf"}:
                k = params.get("rrf_k", 60)
                values = {id_: 1 / (k + rank) for rank, id_ in enumerate(cut, start=1)}
            case {"normalisation": "none"}:
                values = cut
            case _ if low == high:
                values = dict.fromkeys(cut, 1.0)
            case {"normalisation": "max"}:
                values = {id_: s / max(abs(low), abs(high)) for id_, s in cut.items()}
            case {"normalisation": "z" | "dbsf" as method}:
                mean, sd = fmean(scores), pstdev(scores)
                values = {id_: (s - mean) / sd for id_, s in cut.items()}
                if method == "dbsf":
                    values = {id_: min(max((z + 3) / 6, 0), 1) for id_, z in values.items()}
            case _:
                values = {id_: (s - low) / (high - low) for id_, s in cut.items()}
        if "rrf" not in params.values():
            lacking = min(0.0, *values.values(), 0.0)
        per_leg.append((weight, values, lacking))
    for document in {id_ for _, values, _ in per_leg for id_ in values}:
        total[document] = sum(w * values.get(document, lack) for w, values, lack in per_leg)
    ordered = sorted(((s, id_) for id_, s in total.items()), reverse=True)
    return [(id_, s) for s, id_ in ordered[: params.get("top_k", 10)]]


SETTINGS = st.fixed_dictionaries(
    {
        "weight_a": st.floats(0.01, 1.0),
        "normalisation": st.sampled_from(["min_max", "z", "dbsf", "max", "none"]),
        "fusion": st.sampled_from(["score", "rrf"]),
        "rrf_k": st.integers(1, 100),
        "depth_a": st.integers(1, 6),
        "top_k": st.integers(1, 12),
    }
)


@given(SETTINGS, st.integers(0, 10_000))
def test_agrees_with_a_plain_loop(params: dict[str, Any], seed: int) -> None:
    draw = random.Random(seed)
    runs: dict[str, Run] = {}
    for leg, size in (("a", 6), ("b", 3), ("c", 5)):
        ids = draw.sample([f"d{n}" for n in range(9)], size)
        runs[leg] = {"q": {id_: draw.uniform(-3, 9) for id_ in ids}}
    params["weight_b"], params["weight_c"] = draw.random(), draw.choice([0.0, draw.random()])
    expected = dict(by_loop(runs, params | {"top_k": 99}))
    found = fused(runs, **params)
    assert len(found) == min(params["top_k"], len(expected))
    for document, score in found:
        assert score == pytest.approx(expected[document], abs=1e-9)
    # The last digits of two sums may differ, so neighbours are compared with room for them.
    for (_, upper), (_, lower) in pairwise(found):
        assert upper >= lower
    left_out = [score for id_, score in expected.items() if id_ not in dict(found)]
    assert not left_out or max(left_out) <= found[-1][1] + 1e-9
