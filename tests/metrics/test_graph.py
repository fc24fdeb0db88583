"""Graph metrics by hand: names and paths found, and the recall over all three classes."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.errors import MetricError
from tuner.core.rankings import Rankings
from tuner.metrics import Qrels, parse
from tuner.metrics.graph import (
    GraphLabels,
    graphrag_recall,
    normalise_name,
    normalise_path,
)

LIMA = [("Lima", "capital of", "Peru")]
RIVER = [("Lima", "lies on", "Rímac"), ("Rímac", "flows into", "Pacific Ocean")]
QUERIES = ["both", "names", "documents", "nothing"]
GRADES = {"both": {"a": 1, "b": 1}, "names": {"c": 1}, "documents": {"d": 1}, "nothing": {"e": 0}}
ENTITIES = {"both": ["Lima", "Peru", "Rímac", "Pacific Ocean"], "names": ["Oslo", "Norway"]}
PATHS = {"both": [LIMA, RIVER]}


def judge(answers, entities, paths, *, queries=QUERIES, labels=(ENTITIES, PATHS)):
    documents = Qrels.build(GRADES, query_ids=queries).judge(Rankings.from_ids(queries, answers))
    return GraphLabels.build(queries, *labels).judge(documents, entities, paths)


JUDGED = judge(
    [["a", "x"], ["c"], ["x", "d"], ["e"]],
    [["lima", "Chile", "PERU"], ["Norway"], ["Mars"], []],
    [[LIMA, [("Lima", "twinned with", "Peru")]], [], [RIVER], []],
)


def test_entity_recall_counts_labelled_names():
    # both: Lima and Peru of 4; names: Norway of 2; the others have no labelled names
    np.testing.assert_allclose(parse("entity_recall").per_query(JUDGED), [0.5, 0.5, np.nan, np.nan])
    # down to rank 2: Lima only; Norway
    np.testing.assert_allclose(
        parse("entity_recall@2").per_query(JUDGED), [0.25, 0.5, np.nan, np.nan]
    )


def test_names_that_are_equal_after_normalising_hold_one_rank():
    judged = judge([["a"]], [["Lima", "LIMA ", "Peru"]], [[]], queries=["both"])
    # Lima, Peru: 2 of 4 within the first 2 ranks, and never more than once each
    assert parse("entity_recall@2").per_query(judged).tolist() == [0.5]


def test_separate_id_spaces_an_entity_is_not_a_document():
    labels = ({"names": ["c"]}, {})
    retrieved_as_document = judge([["c"]], [["x"]], [[]], queries=["names"], labels=labels)
    assert parse("entity_recall").per_query(retrieved_as_document).tolist() == [0.0]
    # .4 * 1 + .3 * 0 over .7
    assert parse("graphrag_recall").per_query(retrieved_as_document) == pytest.approx([0.4 / 0.7])
    retrieved_as_entity = judge([["x"]], [["c"]], [[]], queries=["names"], labels=labels)
    assert parse("graphrag_recall").per_query(retrieved_as_entity) == pytest.approx([0.3 / 0.7])


def test_path_identity_is_the_normalised_sequence_of_steps():
    assert normalise_path([("Lima", "Capital  of", "Perú")]) == (("lima", "capital of", "peru"),)
    for followed, found in [
        ([("LIMA", "capital-of", "Peru")], 0.5),  # the same but for case and signs
        ([("Peru", "capital of", "Lima")], 0.0),  # the other way round
        ([("Lima", "is in", "Peru")], 0.0),  # another relation
        (RIVER, 0.5),
        (RIVER[:1], 0.0),  # part of a path
        (RIVER[::-1], 0.0),  # the same steps in another order
    ]:
        judged = judge([["a"]], [[]], [[followed]], queries=["both"])
        assert parse("path_recall").per_query(judged).tolist() == [found], followed


def test_where_a_path_names_no_relation_its_names_decide():
    unnamed = [(subject, "", object_) for subject, _, object_ in RIVER]
    half_named = [RIVER[0], ("Rimac", "", "Pacific Ocean")]
    wrong_half = [("Lima", "x", "Rimac"), ("Rimac", "", "Pacific Ocean")]
    for followed, found in [(unnamed, 0.5), (half_named, 0.5), (wrong_half, 0.0)]:
        judged = judge([["a"]], [[]], [[followed]], queries=["both"])
        assert parse("path_recall").per_query(judged).tolist() == [found], followed
    # Two labels with the same names: a path without relations agrees with both of them.
    labels = ({}, {"both": [LIMA, [("Lima", "largest city of", "Peru")]]})
    for relation, found in [("", 1.0), ("capital of", 0.5), ("in", 0.0)]:
        paths = [[[("Lima", relation, "Peru")]]]
        judged = judge([["a"]], [[]], paths, queries=["both"], labels=labels)
        assert parse("path_recall").per_query(judged).tolist() == [found], relation


@pytest.mark.parametrize("question", ["Where is Lima?", "Where is Lima ? ", "利马在哪里？"])
def test_a_labelled_relation_that_is_a_question_names_no_relation(question):
    labels = ({}, {"both": [[("Lima", question, "Peru")]]})
    judged = judge([["a"]], [[]], [[LIMA]], queries=["both"], labels=labels)
    assert parse("path_recall").per_query(judged).tolist() == [1.0]


def test_a_path_that_is_retrieved_twice_counts_once():
    judged = judge([["a"]], [[]], [[LIMA, LIMA, LIMA]], queries=["both"])
    assert parse("path_recall").per_query(judged).tolist() == [0.5]


def test_route_recall_leaves_the_relations_out():
    other_words = [
        [("Lima", "z", "Peru")],
        [("Lima", "x", "Rimac"), ("Rimac", "y", "Pacific Ocean")],
    ]
    judged = judge([["a"]], [[]], [other_words], queries=["both"])
    assert parse("path_recall").per_query(judged).tolist() == [0.0]
    assert parse("route_recall").per_query(judged).tolist() == [1.0]
    # .4 * 1/2 + .3 * 0 + .3 * 1
    assert parse("graphrag_recall_by_route").per_query(judged) == pytest.approx([0.5])
    backwards = judge([["a"]], [[]], [[[("Peru", "", "Lima")]]], queries=["both"])
    assert parse("route_recall").per_query(backwards).tolist() == [0.0]


def test_graphrag_recall_renormalises_over_the_classes_with_judgements():
    # both: .4 * 1/2 + .3 * 2/4 + .3 * 1/2; names: (.4 * 1 + .3 * 1/2) / .7; documents: .4 / .4
    expected = [0.5, 0.55 / 0.7, 1.0, np.nan]
    np.testing.assert_allclose(parse("graphrag_recall").per_query(JUDGED), expected)


def test_absent_classes_do_not_cap_the_score():
    # Everything there is to find was found: 1, and not .7 or .4.
    perfect = judge([["c"]], [["Oslo", "Norway"]], [[]], queries=["names"])
    assert parse("graphrag_recall").per_query(perfect).tolist() == [1.0]


def test_graphrag_recall_cuts_documents_and_names():
    # documents: d stands at rank 2; names: Norway at rank 1 of 2
    values = parse("graphrag_recall@1").per_query(JUDGED)
    # both: .4 * 1/2 + .3 * 1/4 + .3 * 1/2
    np.testing.assert_allclose(values, [0.425, 0.55 / 0.7, 0.0, np.nan])


def test_weights_of_ones_own():
    values = graphrag_recall(JUDGED, weights={"documents": 1.0, "entities": 1.0})
    np.testing.assert_allclose(values, [0.5, 0.75, 1.0, np.nan])
    for weights in ({"documents": -1.0}, {"documents": 0.0}, {"passages": 1.0}, {}):
        with pytest.raises(MetricError, match="weights"):
            graphrag_recall(JUDGED, weights=weights)


def test_names_are_compared_by_their_words():
    assert normalise_name(" Café-Royal, the ") == "cafe royal the"
    assert normalise_name("北京") == normalise_name("北 京")
    assert normalise_name("+") == "+"
    assert normalise_name("Peru") != normalise_name("Per")


def test_a_label_that_leaves_a_name_open_is_no_label():
    # Who or what is the subject? No retrieved path could be told to be this one.
    open_label = [("", "Who published it?", "Peru")]
    labels = ({}, {"both": [open_label, LIMA]})
    judged = judge([["a"]], [[]], [[LIMA]], queries=["both"], labels=labels)
    assert parse("path_recall").per_query(judged).tolist() == [1.0]
    judged = judge([["a"]], [[]], [[LIMA]], queries=["both"], labels=({}, {"both": [open_label]}))
    assert np.isnan(parse("path_recall").per_query(judged)).all()


def test_what_the_system_does_not_report_is_an_error_never_0():
    documents = Qrels.build(GRADES, query_ids=["both"]).judge(Rankings.from_ids(["both"], [["a"]]))
    labels = GraphLabels.build(["both"], ENTITIES, PATHS)
    only_names = labels.judge(documents, [["Lima"]], None)
    assert parse("entity_recall").per_query(only_names).tolist() == [0.25]
    for name in ("path_recall", "route_recall", "graphrag_recall"):
        with pytest.raises(MetricError, match="needs the retriever to report paths"):
            parse(name).per_query(only_names)
    with pytest.raises(MetricError, match="needs the retriever to report names"):
        parse("entity_recall@5").per_query(labels.judge(documents, None, [[]]))
    with pytest.raises(MetricError, match="names of 2 queries for labels of 1"):
        labels.judge(documents, [[], []], [[]])
