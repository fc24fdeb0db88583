"""Several studies on one page: winners on common queries, what changed, and who was champion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.core.errors import InputError
from tuner.report.across.beside import labels_of
from tuner.report.across.changed import changes
from tuner.report.across.page import Nights, make_page, write_across
from tuner.report.across.timeline import Step, steps_of
from tuner.report.across.winners import common_queries, duels
from tuner.report.across.winners import section as winners_section
from tuner.report.page_view import figure
from tuner.report.review import read_review
from tuner.report.writing import write_report
from tuner.stats import compare_paired

DAY = 86_400.0


@pytest.fixture
def review(study):
    return read_review(study())


def later(review, days=1.0, **header):
    header = replace(review.header, created_at=review.header.created_at + DAY * days, **header)
    return replace(review, header=header)


def worth(review, by, *, among=None):
    """The review, whose winner is worth more by so much on each of its queries."""
    rows = []
    for number, row in enumerate(review.rows):
        more = by[number % len(by)] if among is None or number in among else 0.0
        metrics = {name: value + more for name, value in row.winner.metrics.items()}
        rows.append(replace(row, winner=replace(row.winner, metrics=metrics)))
    return replace(review, rows=tuple(rows))


def changed_rows(review, **fields):
    """The review with other fields in the first three of its rows."""
    rows = (*(replace(row, **fields) for row in review.rows[:3]), *review.rows[3:])
    return replace(review, rows=rows)


def test_the_difference_is_that_of_the_winners_query_by_query(review):
    by = (0.1, 0.2, -0.1, 0.0)
    (duel,) = duels([review, worth(review, by)], ["a", "b"])
    # 40 queries, ten of each: (0.1 + 0.2 - 0.1 + 0.0) / 4 = 0.05
    assert duel.paired.mean_difference == pytest.approx(0.05)
    assert (duel.paired.wins, duel.paired.losses, duel.paired.ties) == (20, 10, 10)
    same = compare_paired(np.tile(by, 10), np.zeros(40), seed=0, permutations=0, resamples=0)
    assert duel.paired.p_value == pytest.approx(same.p_value)
    assert (duel.called, duel.reading) == ("b less a", "better")


def test_all_comparisons_are_corrected_together(review):
    # The third is like the second: its test has nothing to find, and counts all the same.
    by = (0.1, 0.2, -0.1, 0.0)
    second = later(worth(review, by), 1)
    third = later(worth(review, (0.1, 0.2, -0.1, 0.01)), 2)
    found = duels([review, second, third], ["a", "b", "c"])
    assert [(one.before, one.now) for one in found] == [("a", "b"), ("b", "c"), ("a", "c")]
    raw = [one.paired.p_value for one in found]
    # Holm: the least of three is multiplied by 3.
    least = min(range(3), key=lambda n: raw[n])
    assert found[least].adjusted_p == pytest.approx(3 * raw[least])
    assert all(one.adjusted_p > one.paired.p_value for one in found[:1])
    (table,) = [b for b in winners_section(found, [review]).blocks if b.kind == "table"]
    assert "corrected for the 3 comparisons of this table by Holm's method" in table.caption


def test_one_comparison_alone_is_corrected_for_nothing(review):
    (duel,) = duels([review, worth(review, (0.1, 0.0))], ["a", "b"])
    assert duel.adjusted_p == pytest.approx(duel.paired.p_value)
    (table,) = [b for b in winners_section([duel], [review]).blocks if b.kind == "table"]
    assert "Holm" not in table.caption


def test_a_difference_that_is_clear_alone_may_not_be_among_many(review):
    # Of 40 queries 12 gain 0.1 and 3 lose it: p is between 0.05 / 3 and 0.05.
    by = (0.1,) * 12 + (-0.1,) * 3 + (0.0,) * 25
    second = worth(review, by)
    alone = duels([review, second], ["a", "b"])[0]
    assert 0.05 / 3 < alone.paired.p_value < 0.05
    assert alone.reading == "better"
    among = duels([review, second, review], ["a", "b", "c"])
    assert among[0].paired == alone.paired
    assert among[0].reading == "not clear"


def test_queries_are_known_by_their_words_and_not_by_their_ids(review):
    renamed = replace(
        review, rows=tuple(replace(row, query_id=f"x{row.query_id}") for row in review.rows)
    )
    assert common_queries(review, renamed).now.size == 40
    reworded = changed_rows(review, query="Something else?")
    # Three of one study ask the same words, which the other has not.
    found = common_queries(review, reworded)
    assert (found.now.size, found.twice, found.judged_otherwise) == (37, 0, 0)


def test_words_that_stand_for_several_queries_are_left_out(review):
    # The first three rows all ask what the first one asks; rows 1 and 2 of the other are alone.
    found = common_queries(review, changed_rows(review, query=review.rows[0].query))
    assert (found.now.size, found.twice) == (37, 1)


def test_queries_that_are_judged_otherwise_are_left_out_and_counted(review):
    other = changed_rows(review, relevant=("d9",))
    found = common_queries(review, other)
    assert (found.now.size, found.judged_otherwise) == (37, 3)
    two = duels([review, other], ["a", "b"])
    texts = [b.text for b in winners_section(two, [review, other]).blocks if b.kind == "text"]
    assert texts[0] == "b less a: left out are 3 common queries judged otherwise since."


def test_queries_that_were_tuned_on_are_named(review):
    other = changed_rows(worth(review, (0.1, 0.0)), part="tune")
    (duel,) = duels([review, other], ["a", "b"])
    assert duel.common.tuned_on == 3
    assert duel.reading == "better; 3 of these queries were tuned on"
    page = make_page([review, later(other)])
    assert "on queries it may know" in page.headline.outcome
    assert page.headline.tone == "open"
    assert "40 common queries, 3 of which were tuned on" in page.headline.sentence


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda one: replace(one, rows=()), "no values by query were kept of one of them"),
        (
            lambda one: replace(
                one, header=replace(one.header, config={"context": {"tokenizer": "words"}})
            ),
            "their metrics are not measured alike",
        ),
        (
            lambda one: replace(
                one,
                header=replace(one.header, objective={"maximize": {"mrr@10": 1.0}}),
            ),
            "the earlier study did not measure mrr@10",
        ),
        (
            lambda one: replace(
                one, rows=tuple(replace(row, query=f"{row.query} Why?") for row in one.rows)
            ),
            "no query is common to both",
        ),
        (
            lambda one: replace(
                one, rows=tuple(replace(row, relevant=("d9",)) for row in one.rows)
            ),
            "every common query is judged otherwise",
        ),
    ],
)
def test_what_cannot_be_compared_is_said_and_not_tested(review, change, why):
    (duel,) = duels([review, change(review)], ["a", "b"])
    assert (duel.paired, duel.adjusted_p, duel.reading) == (None, None, why)
    page = make_page([review, later(change(review))])
    assert page.headline.outcome == "Cannot be compared"
    assert why in page.headline.sentence


def test_the_same_winner_is_the_same(review):
    (duel,) = duels([review, review], ["a", "b"])
    assert duel.reading == "the same"


def test_only_what_differs_is_listed(review):
    assert changes(review, review) == ()
    header = replace(
        review.header,
        dataset={**review.header.dataset, "documents": 12, "fingerprint": "beef"},
        space={
            **review.header.space,
            "max_hops": {"type": "integer", "low": 1, "high": 6},
            "rerank": {"type": "categorical", "choices": ["none", "cross"]},
        },
        objective={**review.header.objective, "maximize": {"recall@10": 1.0}},
        versions={**review.header.versions, "graphrag-tuner": "0.2.0"},
    )
    found = {
        one.subject: (one.before, one.now)
        for one in changes(review, replace(review, header=header))
    }
    assert found == {
        "data": ("data (f00d); documents 10", "data (beef); documents 12"),
        "space": (
            "max_hops integer 1 to 4; rerank –",
            "max_hops integer 1 to 6; rerank categorical, choices none or cross",
        ),
        "objective": (
            "maximize recall@10 0.6; maximize ndcg@10 0.4",
            "maximize recall@10 1; maximize ndcg@10 –",
        ),
        "versions": ("graphrag-tuner 0.1.0", "graphrag-tuner 0.2.0"),
    }


def test_a_baseline_that_was_a_winner_before_is_called_so(study):
    first = read_review(study())
    chosen = first.chosen
    baseline = replace(first.baseline, params=chosen.params)
    second = replace(first, summary=replace(first.summary, baseline=baseline))
    one, two = steps_of([first, second], ["a", "b"])
    assert (one.champion, two.champion) == ("the baseline", "winner of a")
    assert one.difference == first.verdict["comparison"]["mean_difference"]
    assert one.is_promoted == (first.verdict["outcome"] == "deploy")


def test_the_page_has_the_studies_in_the_order_in_which_they_were_begun(study, tmp_path):
    texts = "<script>alert(1)</script>"
    one, two = (read_review(study(texts=texts, seed=seed)) for seed in (1, 2))
    page = make_page([later(two), one])
    (table,) = [b for b in page.sections[0].blocks if b.kind == "table"]
    assert [row[0] for row in table.rows] == [one.run_dir.name, two.run_dir.name]
    assert [section.id for section in page.sections] == [
        "champions", "winners", "changed", "compared",
    ]  # fmt: skip
    target = write_across([one, later(two)], output=tmp_path / "both.html")
    text = target.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    names = {path.name for path in (tmp_path / "both-figures").iterdir()}
    assert {"champions.csv", "verdicts.csv", "winners.csv", "compared.csv"} <= names


def test_studies_of_one_name_are_called_by_their_time(review):
    def named(*names):
        return [replace(review, run_dir=review.run_dir.with_name(name)) for name in names]

    assert labels_of(named("study-1", "study-2")) == ["1", "2"]
    assert labels_of(named("study-1", "copy-of-1")) == ["study-1", "copy-of-1"]
    assert labels_of(named("study-1", "study-")) == ["study-1", "study-"]
    assert labels_of(named("study-1", "study-1")) == ["1 (1)", "1 (2)"]
    other = replace(review, header=replace(review.header, name="other"))
    both = [*named("study-1"), replace(other, run_dir=review.run_dir.with_name("other-1"))]
    assert labels_of(both) == ["study-1", "other-1"]


def test_each_row_of_a_figure_names_both_studies_in_a_line_of_its_own(review):
    found = duels([review] * 3, ["20261120-020000", "20261121-020000", "20261122-020000"])
    (group,) = [b for b in winners_section(found, [review] * 3).blocks if b.kind == "charts"]
    labels = [label for _, label in group.charts[0].y.ticks]
    assert labels[0] == "20261122-020000\nless 20261120-020000"
    assert len(set(labels)) == 3
    drawn = figure(group.charts[0])["layout"]["yaxis"]["ticktext"]
    assert drawn[0] == "20261122-020000<br>less 20261120-020000"


def test_studies_that_never_compared_anything_have_a_page_too(study):
    kinds = [{"state": None}, {"has_baseline": False}, {"has_dataset": False}]
    reviews = [later(read_review(study(**kind)), n) for n, kind in enumerate(kinds)]
    page = make_page(reviews)
    (table,) = [b for b in page.sections[0].blocks if b.kind == "table"]
    assert len(table.rows) == 3
    assert page.headline.outcome == "Cannot be compared"


def test_nights_whose_directories_are_gone_keep_their_place(review):
    steps = (
        Step("2026-11-27", "the baseline", 0.80, "version 1", 0.82, 0.03, (0.01, 0.05), "deploy",
             "promoted", is_promoted=True),
        Step("2026-11-28", "version 1", 0.82, outcome="failed"),
    )  # fmt: skip
    page = make_page([review], Nights("small", steps, ("Champion: version 1",), ("a note",)))
    assert page.title == "Nights of small"
    assert page.subtitle.startswith("2 nights, 1 study still kept")
    table, items = page.sections[0].blocks[1:]
    assert (table.rows[0][1:6], table.strong) == (
        ("the baseline", "0.8000", "version 1", "0.8200", "+0.0300"), {0},
    )  # fmt: skip
    assert items.texts == ("Champion: version 1", "a note")
    assert make_page([], Nights("small", steps)).sections[0].id == "champions"


def test_a_report_beside_others_compares_the_winners_too(study, tmp_path):
    first, second = study(), study(seed=2)
    page = write_report(first, compare=[second], output=tmp_path / "page.html", with_plots=False)
    text = page.read_text(encoding="utf-8")
    for title in ("Studies side by side", "Is the later winner better?", "What changed"):
        assert f"{title}</h2>" in text
    with pytest.raises(InputError, match="cannot write the report"):
        write_across([read_review(first)], output=tmp_path / "nowhere" / "page.html")
