"""The sentences on top of an opened query: which passage moved, and by what others passed it."""

from __future__ import annotations

from dataclasses import replace

from tuner.report.query_change import why_it_changed
from tuner.run.side_by_side import Passage, Side, SideBySide

NO_LEGS = " No scores by leg are told, so which leg moved it is not known."


def side(composite, answer, *, is_kept=True, **found):
    """An answer of passages as id=(graph, text), or without legs."""
    passages = tuple(
        Passage(
            id_,
            f"Title {id_}",
            False,
            legs={} if legs is None else dict(zip(("graph", "text"), legs, strict=True)),
        )
        for id_, legs in answer.items()
    )
    return Side(composite, {}, passages, found, is_kept)


def row(winner, baseline, relevant=("a",)):
    return SideBySide("q1", "Which?", "", "holdout", relevant, winner, baseline)


AT_FIRST = side(1.0, {"a": (0.7, 1.0), "d": (0.0, 0.8)}, a=1)
AT_THIRD = side(0.5, {"b": (0.96, 0.4), "c": (1.0, 0.3), "a": (0.35, 1.0)}, a=3)


def test_a_fall_names_who_is_before_it_now_and_by_which_leg():
    assert why_it_changed(row(AT_THIRD, AT_FIRST)) == (
        "“Title a” fell from rank 1 to 3. "
        "Before it now by graph: “Title b” 0.96, “Title c” 1 (it has 0.35)."
    )


def test_a_rise_names_who_was_before_it_with_the_baseline():
    assert why_it_changed(row(AT_FIRST, AT_THIRD)) == (
        "“Title a” rose from rank 3 to 1. "
        "Before it with the baseline by graph: “Title b” 0.96, “Title c” 1 (it had 0.35)."
    )


def test_passages_are_told_apart_by_the_legs_in_which_they_have_more():
    mixed = side(
        0.4,
        {"b": (0.9, 0.1), "c": (0.1, 0.9), "d": (0.9, 0.9), "e": (0.1, 0.1), "a": (0.5, None)},
        a=5,
    )
    assert why_it_changed(row(mixed, side(1.0, {"a": None}, a=1))).endswith(
        # Where a leg did not find what is relevant, any score there is more.
        "Before it now by graph and text: “Title b” 0.9 and 0.1, “Title d” 0.9 and 0.9 "
        "(it has 0.5 and not found); by text: “Title c” 0.9, “Title e” 0.1 (it has not found)."
    )
    reranked = side(0.4, {"b": (0.1, 0.1), "a": (0.5, 0.5)}, a=2)
    assert why_it_changed(row(reranked, AT_FIRST)).endswith("now by no leg: “Title b”.")


def test_where_no_legs_are_told_none_are_named():
    winner = side(0.5, dict.fromkeys("bcdefa"), a=6)
    assert why_it_changed(row(winner, side(1.0, {"b": None, "a": None}, a=2))) == (
        # b was before it already; f is the fifth of the others.
        "“Title a” fell from rank 2 to 6. "
        f"Before it now: “Title c”, “Title d”, “Title e”, “Title f”.{NO_LEGS}"
    )
    winner = side(0.5, dict.fromkeys("bcdefga"), a=7)
    said = why_it_changed(row(winner, side(1.0, {"a": None}, a=1)))
    assert said.endswith(f"and 2 more.{NO_LEGS}")


def test_what_fell_out_says_whether_it_was_passed_or_the_answer_is_shorter():
    tenth = side(0.2, dict.fromkeys("bcdefghij"))
    full = replace(tenth, retrieved=(*tenth.retrieved, Passage("k", "Title k", False)))
    assert why_it_changed(row(full, AT_FIRST)) == (
        "“Title a” fell from rank 1 out of the answer. Before it now: “Title b”, “Title c”, "
        "“Title d”, “Title e” and 6 more. It had graph 0.7, text 1 with the baseline."
    )
    short = side(0.0, {"b": None})
    assert why_it_changed(row(short, AT_THIRD)) == (
        "“Title a” fell from rank 3 out of the answer. The winner's answer ends at rank 1. "
        "It had graph 0.35, text 1 with the baseline."
    )
    assert why_it_changed(row(AT_THIRD, short)) == (
        "“Title a” came in at rank 3. The baseline's answer ends at rank 1. "
        "It has graph 0.35, text 1 now."
    )


def test_of_several_the_one_that_moved_most_is_explained():
    winner = side(0.3, dict.fromkeys("xayb"), a=2, b=4)
    baseline = side(0.9, dict.fromkeys("azb"), a=1, b=3)
    # a: 1/1 - 1/2 = 0.5; b: 1/3 - 1/4 = 0.08
    assert why_it_changed(row(winner, baseline, ("b", "a"))) == (
        "“Title a” fell from rank 1 to 2 and “Title b” fell from rank 3 to 4. "
        f"Before “Title a” now: “Title x”.{NO_LEGS}"
    )


def test_of_many_that_moved_three_are_named_and_the_others_counted():
    winner = side(0.3, dict.fromkeys("vwxyz"), d=9, e=10)
    baseline = side(0.9, dict.fromkeys("abcde"), a=1, b=2, c=3, d=4, e=5)
    assert why_it_changed(row(winner, baseline, tuple("edcba"))).startswith(
        "“Title a” fell from rank 1 out of the answer, “Title b” fell from rank 2 out of the "
        "answer, “Title c” fell from rank 3 out of the answer and 2 other relevant passages fell "
        "too. Before “Title a” now: “Title v”"
    )


def test_what_moved_the_other_way_is_told_too():
    winner = side(0.5, {"c": (0.9, 0.9), "b": (0.8, 0.2), "a": (0.1, 0.3)}, a=3, b=2)
    baseline = side(0.9, {"a": (0.1, 0.9), "c": (0.0, 0.5), "b": (0.0, 0.2)}, a=1, b=3)
    assert why_it_changed(row(winner, baseline, ("a", "b"))) == (
        "“Title a” fell from rank 1 to 3. Before it now by graph and text: “Title c” 0.9 and 0.9 "
        "(it has 0.1 and 0.3); by graph: “Title b” 0.8 (it has 0.1). "
        "But “Title b” rose from rank 3 to 2."
    )


def test_a_difference_that_no_rank_explains_is_said_to_be_so():
    ranks = "ranks do not explain this difference."
    unmoved = replace(AT_FIRST, composite=0.5)
    assert why_it_changed(row(unmoved, AT_FIRST)) == f"No relevant passage fell: {ranks}"
    assert why_it_changed(row(AT_FIRST, unmoved)) == f"No relevant passage rose: {ranks}"
    assert why_it_changed(row(replace(AT_THIRD, composite=2.0), AT_FIRST)) == (
        f"No relevant passage rose: {ranks} But “Title a” fell from rank 1 to 3."
    )
    # Tables of MLflow have no ranks: nothing is said of what is not known.
    without = replace(AT_FIRST, found={})
    assert why_it_changed(row(replace(without, composite=0.5), without)) == ""


def test_who_was_before_a_deep_one_is_not_guessed():
    baseline = side(0.9, dict.fromkeys("bcdefghijk"), a=11)
    assert why_it_changed(row(side(0.5, {"z": None}, a=20), baseline)) == (
        f"“a” fell from rank 11 to 20.{NO_LEGS}"
    )


def test_passages_with_the_same_title_have_their_ids():
    same = replace(AT_THIRD, retrieved=tuple(replace(p, title="Selby") for p in AT_THIRD.retrieved))
    before = replace(AT_FIRST, retrieved=(replace(AT_FIRST.retrieved[0], title="Selby"),))
    said = why_it_changed(row(same, before))
    assert said.startswith("“Selby” (a) fell from rank 1 to 3. Before it now by graph: “Selby” (b)")


def test_nothing_is_said_where_nothing_explains_the_change():
    assert why_it_changed(row(AT_FIRST, AT_FIRST)) == ""
    assert (
        why_it_changed(row(replace(AT_THIRD, composite=1.0), AT_FIRST)) == ""
    )  # as good as before
    assert why_it_changed(row(replace(AT_THIRD, composite=None), AT_FIRST)) == ""
    assert why_it_changed(row(side(0.5, {}, is_kept=False), AT_FIRST)) == ""
