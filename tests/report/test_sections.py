"""What the sections say, against figures that were added up by hand."""

from __future__ import annotations

import csv
import math
from dataclasses import replace

import pytest

import tuner
from tuner.core.run_files import JOURNAL_FILE
from tuner.core.space import Categorical, Integer, Real
from tuner.core.trial import Trial, TrialState
from tuner.report import comparison, convergence, failures, provenance, queries, tradeoff
from tuner.report.chart import arm_places
from tuner.report.comparison import compare
from tuner.report.convergence import best_so_far
from tuner.report.headline import headline
from tuner.report.page_view import wrapped
from tuner.report.places import axis, edges, place, shown_trials
from tuner.report.review import read_review, rows_of
from tuner.report.slices import cell, surface
from tuner.report.tradeoff import cheapest_best
from tuner.report.writing import make_page, write_report
from tuner.run.side_by_side import read_side_by_side
from tuner.study.failures import by_cause
from tuner.tracking.mlflow.results import query_table


def trial(number, objective, *, violation=0.0, arm="grid"):
    state = TrialState.FAILED if objective is None else TrialState.FINISHED
    return Trial(number, arm, {}, state, objective, violation)


def test_the_best_so_far_rises_over_failures_and_ties():
    objectives = [None, 0.5, 0.4, 0.5, 0.7, None]
    steps = best_so_far([trial(n, objective) for n, objective in enumerate(objectives)])
    assert [(count, best.objective) for count, best in steps] == [(2, 0.5), (5, 0.7)]


@pytest.mark.parametrize(
    ("count", "found_at", "said"),
    [
        (40, 5, "No arm improved in the last tenth of its trials"),  # 4 trials
        (20, 5, "With so few trials"),  # 2 trials
        (20, 18, "grid still improved in its last trials"),
        (40, 37, "grid still improved in its last trials"),
        (40, 36, "No arm improved in the last tenth of its trials"),
        (6, 6, "With so few trials"),
    ],
)
def test_a_search_has_settled_only_where_enough_trials_say_so(study, count, found_at, said):
    review = read_review(study())
    trials = [trial(n, 0.9 if n == found_at else 0.5) for n in range(1, count + 1)]
    told = convergence.section(replace(review, trials=tuple(trials)))
    (chart,) = told.blocks[0].charts
    assert chart.caption.startswith(said)


def test_how_long_the_last_session_took_adds_up_and_all_of_them_are_beside_it(study):
    review = read_review(study())
    summary = replace(
        review.summary, seconds=95.2, seconds_by_phase={"search": 9.9}, seconds_in_all=106.0
    )
    facts = headline(replace(review, summary=summary)).facts
    remark = "finished; 1 min 46 s with the sessions before; search 9.9 s, the rest 85.3 s"
    assert ("took", "95.2 s up to the report", remark) in facts


def test_what_keeps_the_constraints_goes_before_what_is_better():
    trials = [trial(0, 0.9, violation=0.3), trial(1, 0.4), trial(2, 0.8, violation=0.1)]
    assert [best.number for _, best in best_so_far(trials)] == [0, 1]


def test_a_front_is_what_none_beats_in_both():
    points = [(3.0, 0.9), (1.0, 0.2), (2.0, 0.5), (2.0, 0.6), (3.0, 0.9), (4.0, 0.7)]
    assert [points[n] for n in cheapest_best(points)] == [(1.0, 0.2), (2.0, 0.6), (3.0, 0.9)]
    assert cheapest_best([]) == []


def test_between_two_trials_of_a_front_the_line_claims_nothing(study):
    section = tradeoff.section(read_review(study()))
    (chart,) = (chart for chart in section.blocks[0].charts if chart.name == "quality-by-tokens")
    (line,) = (series for series in chart.series if series.role == "front")
    assert line.form == "steps"
    assert list(line.x) == sorted(line.x)
    assert list(line.y) == sorted(line.y)


def test_values_have_their_places():
    log = Real(0.01, 1.0, scale="log")
    assert place(log, 0.1) == pytest.approx(-1.0)
    assert place(log, 0.0) is None
    assert place(Categorical((True, 1, "a")), 1) == 1.0  # 1 is not True
    assert place(Categorical(("a",)), "b") is None
    assert place(Integer(1, 5), "many") is None
    assert [label for _, label in axis("t", log).ticks][::3] == ["0.01", "0.1", "1"]
    assert axis("k", Integer(1, 3)).ticks == ((1.0, "1"), (2.0, "2"), (3.0, "3"))


def test_a_range_is_cut_into_cells_around_its_values():
    assert edges(Integer(1, 3)) == [0.5, 1.5, 2.5, 3.5]
    assert edges(Categorical(("a", "b"))) == [-0.5, 0.5, 1.5]
    assert edges(Integer(4, 4)) == [3.5, 4.5]
    assert edges(Real(0.0, 1.0)) == pytest.approx([n / 10 for n in range(11)])
    whole = edges(Real(0.01, 1.0, scale="log"))
    assert (whole[0], whole[-1]) == pytest.approx((-2.0, 0.0))
    halves = edges(Integer(1, 4, scale="log"))
    assert halves == sorted(halves)
    assert [cell(halves, math.log10(n)) for n in (1, 2, 3, 4)] == [0, 1, 2, 3]


def test_of_many_trials_the_best_are_shown_and_none_twice():
    trials = [trial(n, (n * 7919 % 1000) / 1000) for n in range(1000)]
    found = shown_trials(trials, 300)
    assert len(found) == len({t.number for t in found}) == 300
    assert {t.number for t in sorted(trials, key=lambda t: -(t.objective or 0))[:100]} <= {
        t.number for t in found
    }


def test_long_texts_are_broken_at_their_separators():
    text = wrapped("grid #1: 0.5; " + ", ".join(f"parameter_{n} {n}" for n in range(9)))
    lines = text.split("<br>")
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80
    assert wrapped("<b>") == "&lt;b&gt;"


def test_differences_are_paired_on_the_queries_of_both(study):
    review = read_review(study())
    found = {one.name: one for one in compare(review)}
    rows = review.rows
    changes = [row.winner.metrics["recall@10"] - row.baseline.metrics["recall@10"] for row in rows]
    recall = found["recall@10"]
    assert recall.difference == pytest.approx(sum(changes) / len(changes))
    # The plain formula, with n - 1 = 39 degrees of freedom at most: t is 2.0227 or more.
    mean = sum(changes) / 40
    error = math.sqrt(sum((c - mean) ** 2 for c in changes) / 39 / 40)
    assert recall.interval[0] <= mean - 2.0226 * error < mean + 2.0226 * error <= recall.interval[1]
    assert (recall.paired.wins, recall.paired.losses) == (40, 0)
    # Tokens are a cost: more of them is worse, and no query has fewer.
    tokens = found["context_tokens"]
    assert tokens.reading == "worse"
    assert (tokens.paired.wins, tokens.paired.losses) == (0, 40)
    assert found["composite"].paired.mean_difference == pytest.approx(
        review.verdict["comparison"]["mean_difference"]
    )


def test_what_failed_is_marked_on_the_axis_with_its_reason(study):
    review = read_review(study(failing=3))
    page = make_page(review)
    charts = {c.name: c for group in page.groups for c in group.charts}
    for name in ("graph_weight", "max_hops", "temperature", "mode"):
        chart = charts[f"slice-{name}"]
        (failed,) = [one for one in chart.series if one.role == "failed"]
        assert len(failed.x) == 3
        assert set(failed.y) == {chart.y.span[0]}
        assert all("failed: the index is on fire; graph_weight" in text for text in failed.texts)
        assert sum(row[-1] == "the index is on fire" for row in chart.numbers.rows) == 3
    (failed,) = [one for one in charts["surface"].series if one.role == "failed"]
    assert failed.x == tuple(one.params["graph_weight"] for one in review.trials if one.error)
    assert not [one for one in charts["convergence"].series if one.role == "failed"]


def test_the_axes_are_those_of_the_space_and_hold_what_lies_outside(study):
    review = read_review(study())
    (slices,) = [group for group in make_page(review).groups if group.name == "slices"]
    spans = {chart.title: chart.x.span for chart in slices.charts}
    assert spans["graph_weight"] == pytest.approx((-0.04, 1.04))
    assert spans["temperature"] == pytest.approx((-2.08, 0.08))  # log10 of .01 to 1
    assert spans["max_hops"] == pytest.approx((0.34, 4.66))
    assert spans["mode"] == pytest.approx((-0.58, 1.58))
    # A baseline may lie outside.
    low, high = axis("t", Real(0.01, 1.0, scale="log"), [-3.0]).span
    assert low < -3.0 < 0.0 < high
    assert axis("t", Real(0.01, 1.0, scale="log"), [-3.0]).ticks[0] == (-3.0, "0.001")


def test_cells_in_which_all_failed_are_not_called_untried(study):
    review = read_review(study())
    hops = {name: Integer(1, 2) for name in ("a", "b")}
    space = {"a": {"type": "integer", "low": 1, "high": 2}}
    header = replace(review.header, space={**space, "b": space["a"]})
    review = replace(review, header=header, summary=replace(review.summary, winner=None, best=None))
    review = replace(review, summary=replace(review.summary, baseline=None))
    assert review.space.parameters == hops

    def at(number, a, b, objective, **more):
        return replace(trial(number, objective, **more), params={"a": a, "b": b})

    scored = [at(0, 1, 1, 0.5)]
    cases = [
        ([], [], "Empty cells were not tried."),
        ([], [at(1, 2, 2, None)], "Every trial in 1 of the empty cells failed or broke"),
        ([at(1, 2, 1, 0.7, violation=1.0)], [at(2, 2, 2, None)], "Every trial in 2 of the empty"),
        (
            [at(1, 2, 1, 0.7, violation=1.0)],
            [at(2, 2, 2, None), at(3, 1, 2, None)],
            "Every trial in an empty cell failed or broke a constraint. A broad",
        ),
        ([at(1, 1, 2, 0.1), at(2, 2, 1, 0.1), at(3, 2, 2, 0.1)], [], "dots are trials. A broad"),
    ]
    for known, failed, words in cases:
        caption = surface(review, [*scored, *known], failed, "a", "b").caption
        assert words in caption
        assert ("crosses failed ones" in caption) == bool(failed)
        assert ("the others were not tried" in caption) == ("of the empty" in words)


def test_an_arm_looks_the_same_whatever_runs_beside_it():
    alone = {name: arm_places({name: name})[name] for name in ("grid", "tpe", "gp", "random")}
    assert len(set(alone.values())) == 4
    for kinds in (
        {"tpe": "tpe", "grid": "grid"},
        {"random": "random", "tpe": "tpe", "gp": "gp", "grid": "grid"},
        {"wide": "tpe", "mine": "my_package.search:Mine", "tpe": "tpe", "gp": "gp"},
    ):
        places = arm_places(kinds)
        assert len(set(places.values())) == len(kinds)
        assert {n: at for n, at in places.items() if n in alone}.items() <= alone.items()
        assert arm_places(dict(reversed(kinds.items()))) == places
    mine = {"mine": "my_package.search:Mine"}
    assert arm_places(mine)["mine"] == places["mine"]
    many = arm_places({f"arm-{n}": "tpe" for n in range(12)})
    assert len(many) == 12
    assert set(many.values()) == set(range(8))


def test_an_arm_has_its_colour_in_the_reports_of_all_studies(study):
    both = {
        series.name: series.place
        for chart in (c for g in make_page(read_review(study())).groups for c in g.charts)
        for series in chart.series
        if series.role == "arm"
    }
    alone = make_page(read_review(study(arms=(("tpe", 12),))))
    places = {s.place for g in alone.groups for c in g.charts for s in c.series if s.role == "arm"}
    assert places == {both["tpe"]}
    assert both["grid"] != both["tpe"]


@pytest.mark.parametrize(
    "pair",
    [
        ("no answer after 3.2 s", "no answer after 41 s"),
        ("HTTP 503 from http://a:80/search?q=1", "HTTP 503 from http://b:81/find"),
        ("cannot read /data/1/x.txt", "cannot read ~/data/other.bin"),
        ("<Index at 0x7f01> is gone", "<Index at 0xdeadbeef> is gone"),
        (
            "request 123e4567-e89b-12d3-a456-426614174000",
            "request 00000000-e89b-12d3-a456-0123456789ab",
        ),
        ("query q17: alpha=-0.5", "query q4: alpha=1e-07"),
    ],
)
def test_failures_of_one_cause_are_one_row_whatever_their_numbers(study, pair):
    review = read_review(study())
    failed = [
        replace(trial(n, None), error=error)
        for n, error in enumerate([*pair, pair[0], "a cause of its own"])
    ]
    assert [len(one) for one in by_cause(failed)] == [3, 1]
    rows = failures.section(replace(review, trials=tuple(failed))).blocks[1].rows
    assert [row[1] for row in rows] == ["3", "1"]
    assert rows[0][0] == f"{pair[0]} (numbers or names in it differ from trial to trial)"
    assert rows[1][0] == "a cause of its own"


def test_a_status_is_a_cause_and_not_a_number():
    pairs = [
        ("HTTP 503", "HTTP 404"),
        ("status 429", "status 401"),
        ("[Errno 2] x", "[Errno 13] x"),
    ]
    for one, other in pairs:
        failed = [replace(trial(n, None), error=error) for n, error in enumerate((one, other))]
        assert len(by_cause(failed)) == 2


def test_what_is_added_up_is_said(study):
    run_dir = study()
    path = run_dir / "journal.jsonl"
    text = path.read_text()
    assert '"price": {}' in text
    path.write_text(text.replace('"price": {}', '"price": {"context_tokens_per_1000": 0.02}', 1))
    section = comparison.section(read_review(run_dir))
    notes = [block.text for block in section.blocks if block.kind == "text"]
    assert notes == [
        "Composite = 0.6 × recall@10 + 0.4 × ndcg@10. "
        "Objective = composite − 0.02 × context_tokens / 1000."
    ]


def test_where_the_data_set_is_known_it_is_named(study):
    review = read_review(study())
    data = review.header.dataset

    def rows(review):
        tables = [block for block in provenance.section(review).blocks if block.kind == "table"]
        return dict(next(table for table in tables if table.caption == "Study").rows)

    found = rows(review)
    assert found["data set"] == f"{data['name']} ({data['path']})"
    split = f"{data['tune_queries']} queries to tune on, {data['holdout_queries']} held out"
    assert found["queries"] == split
    unknown = rows(replace(review, header=replace(review.header, dataset={})))
    assert set(found) - set(unknown) == {"data set", "queries"}


def test_without_any_values_by_query_the_means_alone_are_compared(study, tmp_path):
    review = read_review(study())
    (tmp_path / JOURNAL_FILE).write_text("")
    found = compare(replace(review, rows=(), run_dir=tmp_path))
    assert found[0].name == "objective"
    summary = review.summary
    assert (found[0].winner, found[0].baseline) == (
        summary.chosen.tune_objective,
        summary.baseline.tune_objective,
    )
    assert [one.name for one in found].count("objective") == 1
    assert all(one.interval is None for one in found)


@pytest.mark.parametrize("has_it", ["winner", "baseline"])
def test_a_metric_that_one_of_both_lacks_is_not_compared(study, has_it):
    review = read_review(study())
    summary = replace(review.summary, winner=review.summary.chosen)
    one = getattr(summary, has_it)
    more = replace(one, holdout_metrics={**one.holdout_metrics, "extra": 1.0})
    found = compare(replace(review, summary=replace(summary, **{has_it: more})))
    assert {one.name for one in found} == {one.name for one in compare(review)}


def test_without_answers_the_tune_values_are_compared(study):
    run_dir = study()
    (run_dir / "per_query.jsonl").unlink()
    review = read_review(run_dir)
    found = {one.name: one for one in compare(review)}
    assert found["recall@10"].interval is not None
    section = comparison.section(review)
    assert "they flatter what it chose" in section.lead


def test_the_queries_that_changed_most_come_first(study):
    run_dir = study()
    review = read_review(run_dir)
    rows = list(review.rows)
    # Three queries lose by a known amount, the others stay as they were.
    for row, loss in ((3, 0.5), (7, 0.25), (11, 0.125)):
        side = replace(rows[row].winner, composite=rows[row].baseline.composite - loss)
        rows[row] = replace(rows[row], winner=side)
    rows[20] = replace(rows[20], winner=replace(rows[20].winner, composite=None))
    section = queries.section(replace(review, rows=tuple(rows)))
    gained, lost = (block for block in section.blocks if block.kind == "queries")
    assert gained.title == "Gained: the 10 queries that gained most, of 36"
    assert lost.title == "Lost: the 3 queries that lost most, of 3"
    assert [card.change for card in lost.cards] == ["−0.5000", "−0.2500", "−0.1250"]
    assert lost.cards[0].facts == "q3, comparison; 1 relevant passage"
    assert [one.is_relevant for one in lost.cards[0].winner].index(True) == 1
    assert [one.is_relevant for one in lost.cards[0].baseline].index(True) == 8
    changes = [float(card.change.replace("−", "-")) for card in gained.cards]
    assert changes == sorted(changes, reverse=True)


def test_csv_files_hold_what_was_measured(study):
    run_dir = study()
    write_report(run_dir, with_plots=False)
    review = read_review(run_dir)
    with (run_dir / "figures" / "slice-temperature.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["temperature"]) for row in rows] == [
        one.params["temperature"] for one in review.trials
    ]
    with (run_dir / "figures" / "quality-by-tokens.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    best = max(review.trials, key=lambda one: one.objective or 0.0)
    assert {row["trial"]: row["is_on_front"] for row in rows}[str(best.number)] == "True"


def test_the_table_in_mlflow_says_the_same_but_for_titles(study):
    rows = read_side_by_side(study())
    table = query_table([row.to_record() for row in rows])
    back = {row.query_id: row for row in rows_of(table)}
    assert set(back) == {row.query_id for row in rows}
    for row in rows:
        found = back[row.query_id]
        assert (found.change, found.relevant, found.part) == (row.change, row.relevant, row.part)
        assert found.winner.metrics == row.winner.metrics
        assert [(p.id, p.relevant) for p in found.baseline.retrieved] == [
            (p.id, p.relevant) for p in row.baseline.retrieved
        ]


def test_a_study_from_python_has_a_report_too(tmp_path):
    tuner.tune(
        lambda params: -((params["x"] - 0.3) ** 2),
        {"x": {"type": "real", "low": 0.0, "high": 1.0}},
        backends={"random": 12},
        baseline={"x": 0.9},
        run_dir=tmp_path / "run",
    )
    page = make_page(read_review(tmp_path / "run"))
    assert page.headline.outcome == "No verdict"
    assert "the system measures itself" in page.headline.sentence
    assert [chart.name for group in page.groups for chart in group.charts] == [
        "convergence",
        "importance",
        "slice-x",
    ]
