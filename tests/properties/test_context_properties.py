"""What holds for metrics of context, graph and grades on any input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.core.rankings import Rankings
from tuner.core.words import split_words, terms
from tuner.metrics import Qrels, aggregate, aggregate_by, parse
from tuner.metrics.context import DISCOUNTS, discounted_precision, fit_discount, rank_weights
from tuner.metrics.grades import grade_share, level_recall, relevance_score
from tuner.metrics.graph import GraphLabels
from tuner.metrics.passages import FUNCTION_WORDS, GRAM, Passages

DOCUMENTS = [f"d{number}" for number in range(8)]
lists = st.lists(st.sampled_from(DOCUMENTS), unique=True, max_size=8)
judgements = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), max_size=8)
words = st.sampled_from(["art", "smart", "Boat", "the", "river", "北", "京", "大", ", "])
texts = st.lists(words, max_size=12).map(" ".join)
corpora = st.lists(texts, min_size=len(DOCUMENTS), max_size=len(DOCUMENTS))
batches = st.lists(st.tuples(texts, lists, judgements), min_size=1, max_size=3)
names = st.sampled_from(["Lima", "LIMA", "Peru", "Oslo", "Río", "rio"])
steps = st.tuples(names, st.sampled_from(["in", "of", "IN"]), names)
paths = st.lists(st.lists(steps, min_size=1, max_size=2), max_size=4)


def judged_of(grades, answers):
    ids = [str(row) for row in range(len(answers))]
    qrels = Qrels.build(dict(zip(ids, grades, strict=True)))
    return qrels.judge(Rankings.from_ids(ids, answers))


def contexts_of(corpus, batch):
    queries, answers, grades = zip(*batch, strict=True)
    ids = [str(row) for row in range(len(batch))]
    rankings = Rankings.from_ids(ids, answers)
    judged = Qrels.build(dict(zip(ids, grades, strict=True))).judge(rankings)
    return Passages.build(DOCUMENTS, corpus, queries).judge(rankings, judged)


@given(corpus=corpora, batch=batches)
def test_measured_contexts_agree_with_counting_by_hand(corpus, batch):
    text_of = dict(zip(DOCUMENTS, corpus, strict=True))
    judged = contexts_of(corpus, batch)
    for row, (query, answer, grades) in enumerate(batch):
        passages = [split_words(text_of[document]) for document in answer]
        grams = [
            tuple(tokens[start : start + GRAM])
            for tokens in passages
            for start in range(max(len(tokens) - GRAM + 1, bool(tokens)))
        ]
        wanted = set(terms(query)) - FUNCTION_WORDS
        held = {term for document in answer for term in terms(text_of[document])}
        assert judged.tokens[row] == sum(map(len, passages))
        assert (judged.grams[row], judged.different_grams[row]) == (len(grams), len(set(grams)))
        assert (judged.terms[row], judged.covered_terms[row]) == (len(wanted), len(wanted & held))
        relevant = sum(len(split_words(text_of[d])) for d in answer if grades.get(d, 0) >= 1)
        if any(grade >= 1 for grade in grades.values()):
            assert judged.relevant_tokens[row] == relevant
        else:
            assert np.isnan(judged.relevant_tokens[row])


@given(corpus=corpora, batch=batches, budget=st.integers(1, 40))
def test_context_metrics_stay_in_their_range_and_order_of_passages_changes_nothing(
    corpus, batch, budget
):
    turned = [(query, answer[::-1], grades) for query, answer, grades in batch]
    before, after = contexts_of(corpus, batch), contexts_of(corpus, turned)
    for name in ("density", "redundancy", "coverage", f"budget_use@{budget}"):
        values = parse(name).per_query(before)
        defined = values[~np.isnan(values)]
        assert ((defined >= 0) & (defined <= 1)).all(), name
        np.testing.assert_array_equal(values, parse(name).per_query(after))
    composite = parse("context_efficiency").per_query(before)
    within = parse(f"context_efficiency@{budget}").per_query(before)
    is_defined = ~np.isnan(composite)
    assert ((composite >= 0) & (composite <= 100))[is_defined].all()
    assert (within <= composite)[is_defined].all()


@given(corpus=corpora, batch=batches)
def test_another_passage_never_lowers_coverage(corpus, batch):
    full = [(query, [*answer, *(d for d in DOCUMENTS if d not in answer)], grades)
            for query, answer, grades in batch]  # fmt: skip
    few = np.nan_to_num(parse("coverage").per_query(contexts_of(corpus, batch)))
    all_ = np.nan_to_num(parse("coverage").per_query(contexts_of(corpus, full)))
    assert (all_ >= few).all()


@given(grades=judgements, answer=lists, cutoff=st.integers(1, 10))
def test_uniform_binary_discounted_precision_is_precision(grades, answer, cutoff):
    judged = judged_of([grades], [answer])
    ours = discounted_precision(judged, cutoff, discount="uniform", relevance="binary")
    np.testing.assert_allclose(ours, parse(f"precision@{cutoff}").per_query(judged))


@given(grades=judgements, answer=lists.filter(lambda answer: len(answer) > 1), data=st.data())
def test_a_better_passage_further_up_never_lowers_context_precision(grades, answer, data):
    place = data.draw(st.integers(0, len(answer) - 2))
    swapped = list(answer)
    if grades.get(answer[place], 0) < grades.get(answer[place + 1], 0):
        swapped[place : place + 2] = swapped[place : place + 2][::-1]
    else:
        swapped, answer = answer, [*answer[:place], *answer[place : place + 2][::-1],
                                   *answer[place + 2 :]]  # fmt: skip
    before, after = judged_of([grades], [answer]), judged_of([grades], [swapped])
    names = ["context_precision", "discounted_precision", "discounted_precision_binary"]
    names += [f"discounted_precision_{name}" for name in DISCOUNTS if name != "log"]
    for name in names:
        metric = parse(f"{name}@{len(answer)}")
        worse, better = metric.per_query(before), metric.per_query(after)
        assert np.isnan(worse).all() or better[0] >= worse[0] - 1e-12, name


@given(count=st.integers(1, 50), name=st.sampled_from(sorted(DISCOUNTS)))
def test_discounts_start_at_1_and_never_rise(count, name):
    weights = rank_weights(name, count)
    assert weights[0] == 1.0
    assert (np.diff(weights) <= 0).all()


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=8),
    st.floats(0.01, 10),
    st.integers(1, 3),
)
def test_a_fit_recovers_weights_that_were_measured_without_noise(rest, first, repeats):
    contributions = np.array([first, *rest])
    positions = np.arange(1, len(contributions) + 1)
    fitted = fit_discount(np.tile(positions, repeats), np.tile(contributions, repeats))
    assert fitted[0] == 1.0
    assert (fitted >= 0).all()
    np.testing.assert_allclose(fitted, contributions / first, rtol=1e-9)


@given(grades=judgements, answer=lists, cutoff=st.integers(1, 10))
def test_grades_of_the_first_ranks_add_up(grades, answer, cutoff):
    judged = judged_of([grades], [answer])
    counts = np.array([cutoff * grade_share(judged, cutoff, level=level)[0] for level in range(4)])
    if not any(grades.values()):
        assert np.isnan(counts).all()
        return
    assert counts.sum() == pytest.approx(cutoff)
    precision = parse(f"precision@{cutoff}").per_query(judged)[0]
    assert counts[1:].sum() == pytest.approx(precision * cutoff)
    for level in (1, 2, 3):
        value = level_recall(judged, cutoff, level=level)[0]
        judged_so = sum(grade >= level for grade in grades.values())
        assert np.isnan(value) == (judged_so == 0)
        assert judged_so == 0 or value * judged_so == pytest.approx(counts[level:].sum())


unit = st.one_of(st.just(float("nan")), st.floats(0, 1))


@given(text=unit, path=unit, entity=unit, hops=st.integers(0, 6))
def test_relevance_scores_stay_in_0_to_1_and_never_rise_with_the_distance(text, path, entity, hops):
    near = float(relevance_score(text=text, path=path, entity=entity, hops=hops))
    far = float(relevance_score(text=text, path=path, entity=entity, hops=hops + 1))
    if np.isnan([text, path, entity]).all():
        assert np.isnan(near)
    else:
        assert 0 <= far <= near <= 1


@settings(max_examples=60)
@given(
    grades=judgements,
    answer=lists,
    labelled=st.tuples(st.lists(names, max_size=4), paths),
    found=st.tuples(st.lists(names, max_size=6), paths),
    more=st.tuples(st.lists(names, max_size=3), paths),
)
def test_graph_recalls_grow_with_what_is_found_and_ignore_spelling(
    grades, answer, labelled, found, more
):
    judged = judged_of([grades], [answer])
    labels = GraphLabels.build(["0"], {"0": labelled[0]}, {"0": labelled[1]})
    before = labels.judge(judged, [found[0]], [found[1]])
    longer = labels.judge(judged, [[*found[0], *more[0]]], [[*found[1], *more[1]]])
    loud = labels.judge(
        judged,
        [[name.upper() for name in found[0]]],
        [[[tuple(map(str.upper, step)) for step in path] for path in found[1]]],
    )
    for name in ("entity_recall", "entity_recall@2", "path_recall", "route_recall",
                 "graphrag_recall", "graphrag_recall_by_route"):  # fmt: skip
        value = parse(name).per_query(before)
        np.testing.assert_array_equal(value, parse(name).per_query(loud))
        if not np.isnan(value[0]):
            assert 0 <= value[0] <= parse(name).per_query(longer)[0] <= 1
    parts = [parse(name).per_query(before)[0] for name in ("entity_recall", "path_recall")]
    if grades and max(grades.values()) >= 1:
        parts.append(sum(grades.get(d, 0) >= 1 for d in answer)
                     / sum(grade >= 1 for grade in grades.values()))  # fmt: skip
    whole = parse("graphrag_recall").per_query(before)[0]
    if np.isnan(parts).all():
        assert np.isnan(whole)
    else:
        assert np.nanmin(parts) - 1e-12 <= whole <= np.nanmax(parts) + 1e-12


@given(
    st.lists(
        st.tuples(st.one_of(st.just(float("nan")), st.floats(-10, 10)), st.sampled_from("abc")),
        min_size=1,
    )
)
def test_groups_add_up_to_the_whole(rows):
    values, labels = np.array([value for value, _ in rows]), [label for _, label in rows]
    whole, groups = aggregate(values), aggregate_by(values, labels)
    assert sum(group.count for group in groups.values()) == whole.count
    assert sum(group.undefined for group in groups.values()) == whole.undefined
    if whole.count:
        total = sum(group.mean * group.count for group in groups.values() if group.count)
        np.testing.assert_allclose(total / whole.count, whole.mean, atol=1e-9)
        spread = [whole.minimum, *whole.quantiles.values(), whole.maximum]
        assert (np.diff(spread) >= 0).all()
