"""The queries of a trial that differ most from the baseline, as its panel shows them."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.journal import read_per_query
from tuner.core.run_files import TUNE_QUERIES_FILE
from tuner.report.differing import MOST_OF_A_TRIAL, differing
from tuner.report.query_data import query_data
from tuner.report.review import read_review


def test_the_largest_differences_come_first_with_both_values(study):
    run_dir = study()
    review = read_review(run_dir)
    found = differing(review)
    number = review.chosen.trial
    mine, theirs = (
        0.6 * values["recall@10"] + 0.4 * values["ndcg@10"]
        for values in (read_per_query(run_dir / "journal.jsonl", n) for n in (number, 0))
    )
    order = np.argsort(-np.abs(mine - theirs), kind="stable")[:MOST_OF_A_TRIAL]
    rows = found["trials"][str(number)]
    assert len(rows) == MOST_OF_A_TRIAL
    for (_, value, base), row in zip(rows, order, strict=True):
        assert value == pytest.approx(mine[row], abs=1e-4)
        assert base == pytest.approx(theirs[row], abs=1e-4)
    # The texts of these queries are known where winner and baseline were compared on them.
    called = [found["queries"][place] for place, _, _ in rows]
    assert called == [[f"What is {n}?", f"t{n}"] for n in order]
    # All of them are in the page's list, to which the panel leads.
    listed = {id_ for block in query_data(review).index["blocks"] for id_ in block["id"]}
    assert {id_ for _, id_ in found["queries"]} <= listed
    (run_dir / TUNE_QUERIES_FILE).unlink()
    unknown = differing(read_review(run_dir))
    assert all(text.startswith("tune query") and id_ is None for text, id_ in unknown["queries"])


def test_texts_are_there_where_no_query_was_held_out(study):
    found = differing(read_review(study(has_holdout=False)))
    assert all(text.startswith("What is") for text, _ in found["queries"])


def test_nothing_without_values_by_query_or_without_a_baseline(study):
    assert differing(read_review(study(keeps_values=False))) is None
    assert differing(read_review(study(has_baseline=False))) is None
