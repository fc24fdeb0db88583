"""Context efficiency by hand: tokens, density, redundancy, coverage, budget, composite."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.core.errors import InputError, MetricError
from tuner.core.rankings import Rankings
from tuner.core.words import count_tokens, terms
from tuner.metrics import Qrels, parse
from tuner.metrics.base import MetricOptions
from tuner.metrics.efficiency import budget_use, load_tokenizer, span_density
from tuner.metrics.names import depth_needed
from tuner.metrics.passages import Passages

TEXTS = {
    "a": "Lima is the capital of Peru",  # 6 words
    "b": "Lima is the capital of Peru and its port",  # 9 words, 4 of 7 trigrams stand in a
    "c": "a smart river boat",  # 4 words
    "e": "",
}
CHINESE = "秘鲁的首都是利马"


def contexts(query, answer, *, grades, texts=TEXTS, **options):
    passages = Passages.build(list(texts), list(texts.values()), [query], **options)
    rankings = Rankings.from_ids(["q"], [answer])
    return passages.judge(rankings, Qrels.build({"q": grades}).judge(rankings))


def value(name, query, answer, *, grades=None, texts=TEXTS, **options):
    judged = contexts(query, answer, grades=grades or {"a": 1}, texts=texts, **options)
    return float(parse(name).per_query(judged)[0])


def test_density_is_relevant_tokens_of_all_tokens():
    # a relevant, 6 words of 6 + 4
    assert value("density", "Peru", ["a", "c"]) == pytest.approx(0.6)
    assert value("density", "Peru", ["c"]) == 0.0
    assert value("density", "Peru", []) == 0.0
    assert np.isnan(value("density", "Peru", ["a"], grades={"a": 0}))


def test_redundancy_is_the_share_of_repeated_trigrams():
    # a has 4 trigrams, b 7 of which 4 are those of a: 4 of 11 repeat
    assert value("redundancy", "Peru", ["a", "b"]) == pytest.approx(4 / 11)
    assert value("redundancy", "Peru", ["a", "c"]) == 0.0
    assert value("redundancy", "Peru", []) == 0.0
    assert value("redundancy", "Peru", ["e"]) == 0.0


def test_repetition_within_one_passage_counts():
    # "x y x y x y": trigrams xyx, yxy, xyx, yxy: 2 of 4 repeat
    assert value("redundancy", "x", ["a"], texts={"a": "x y x y x y"}) == pytest.approx(0.5)


def test_a_chinese_phrase_repeated_20_times_is_not_0_redundant():
    # 8 characters, 20 times: 158 trigrams, 8 different ones, since the phrase follows itself
    texts = {"a": CHINESE * 20}
    assert value("redundancy", "利马", ["a"], texts=texts) == pytest.approx(150 / 158)


def test_coverage_matches_whole_tokens_art_is_not_in_smart():
    assert value("coverage", "art boat", ["c"]) == pytest.approx(0.5)
    assert value("coverage", "smart boat", ["c"]) == pytest.approx(1.0)


def test_coverage_counts_each_term_once_and_no_function_words():
    # capital, peru, harbour; "what is the … of …" does not count
    query = "What is the capital of Peru, the harbour of the capital?"
    assert value("coverage", query, ["a", "b"]) == pytest.approx(2 / 3)
    assert np.isnan(value("coverage", "what is the", ["a"]))
    assert value("coverage", "Peru", []) == 0.0


def test_coverage_of_chinese_is_by_character_bigrams():
    texts = {"a": CHINESE, "b": "马利", "c": "利 马"}
    assert terms("利马首都") == ["利马", "马首", "首都"]
    # 利马 and 首都 stand in the passage, 马首 does not
    assert value("coverage", "利马首都", ["a"], texts=texts) == pytest.approx(2 / 3)
    # the same characters in another order are another word
    assert value("coverage", "利马", ["b"], texts=texts) == 0.0


def test_tokens_of_137_chinese_characters_are_137_not_34():
    text = (CHINESE * 18)[:137]
    assert len(text) // 4 == 34
    assert count_tokens(text) == 137
    passages = Passages.build(["a"], [text], ["利马"])
    assert passages.context_tokens(Rankings.from_ids(["q"], [["a"]])).tolist() == [137.0]


def test_tokens_by_a_tokenizer_of_ones_own():
    letters = Passages.build(list(TEXTS), list(TEXTS.values()), ["Peru"], tokenizer=list)
    rankings = Rankings.from_ids(["q"], [["a", "c"]])
    assert letters.context_tokens(rankings).tolist() == [27.0 + 18.0]
    assert value("density", "Peru", ["a", "c"], tokenizer=list) == pytest.approx(27 / 45)


def test_over_budget_costs_and_padding_up_to_it_earns_nothing():
    # 6 words; 6 + 4 = 10 words
    assert value("budget_use@10", "Peru", ["a"]) == 1.0
    assert value("budget_use@10", "Peru", ["a", "c"]) == 1.0
    # 19 words in a budget of 10
    assert value("budget_use@10", "Peru", ["a", "b", "c"]) == pytest.approx(10 / 19)
    lean = value("context_efficiency@10", "capital of Peru", ["a"])
    padded = value("context_efficiency@10", "capital of Peru", ["a", "c"])
    assert padded < lean


def test_composite_from_0_to_100():
    # a alone: density 1, coverage 1, nothing repeated
    assert value("context_efficiency", "capital of Peru", ["a"]) == pytest.approx(100.0)
    # a and b: density 6/15, coverage 1, redundancy 4/11; budget 10 for 15 words
    expected = 100 * (0.4 + 1.0) / 2 * (7 / 11)
    assert value("context_efficiency", "capital of Peru", ["a", "b"]) == pytest.approx(expected)
    assert value("context_efficiency@10", "capital of Peru", ["a", "b"]) == pytest.approx(
        expected * 10 / 15
    )


def test_an_empty_context_is_worth_nothing():
    assert value("context_efficiency", "Peru", []) == 0.0
    assert value("context_efficiency@100", "Peru", []) == 0.0


def test_density_is_not_the_relevance_score_again():
    # Same grades and ranks, longer irrelevant passage: only density can tell.
    short = {"a": "Lima", "x": "boat"}
    long = {"a": "Lima", "x": "boat " * 9}
    assert value("density", "Lima", ["a", "x"], texts=short) == pytest.approx(1 / 2)
    assert value("density", "Lima", ["a", "x"], texts=long) == pytest.approx(1 / 10)


def test_density_from_spans():
    # "Lima" and "Peru", the second marked twice: 2 of 4 + 3 words
    spans = [[(11, 15), (0, 4), (11, 15)], []]
    assert span_density(["Lima is in Peru.", "More text here"], spans) == pytest.approx(2 / 7)
    assert np.isnan(span_density([""], [[]]))
    with pytest.raises(MetricError, match="leaves a text of 3"):
        span_density(["abc"], [[(0, 4)]])
    with pytest.raises(MetricError, match="spans of 0 passages"):
        span_density(["abc"], [])


def test_a_context_that_cannot_be_measured_is_an_error():
    with pytest.raises(MetricError, match="'z' was retrieved, but its text is not in the corpus"):
        contexts("Peru", ["a", "z"], grades={"a": 1})
    with pytest.raises(MetricError, match="1 texts for 2 documents"):
        Passages.build(["a", "b"], ["x"], [])
    passages = Passages.build(["a"], ["x"], ["one", "two"])
    rankings = Rankings.from_ids(["q"], [["a"]])
    judged = Qrels.build({"q": {"a": 1}}).judge(rankings)
    with pytest.raises(MetricError, match="1 rankings for 2 queries"):
        passages.judge(rankings, judged)
    one = contexts("Peru", ["a"], grades={"a": 1})
    with pytest.raises(MetricError, match="budget is 0"):
        budget_use(one, 0)


def test_contexts_are_measured_on_whole_rankings_only():
    passages = Passages.build(list(TEXTS), list(TEXTS.values()), ["Peru"])
    rankings = Rankings.from_ids(["q"], [["a", "b", "c"]])
    cut = Qrels.build({"q": {"a": 1}}).judge(rankings, depth=2)
    with pytest.raises(MetricError, match="context metrics need the whole rankings judged"):
        passages.judge(rankings, cut)


def test_the_k_of_a_text_metric_is_a_budget_and_no_depth():
    assert depth_needed([parse("budget_use@5"), parse("ndcg@10")]) is None
    assert depth_needed([parse("recall@5"), parse("ndcg@10")]) == 10


def test_queries_of_a_batch_do_not_mix():
    passages = Passages.build(list(TEXTS), list(TEXTS.values()), ["Peru capital", "boat", "Peru"])
    rankings = Rankings.from_ids(["1", "2", "3"], [["a", "b"], ["c"], []])
    qrels = Qrels.build({"1": {"a": 1}, "2": {"c": 1}, "3": {"a": 1}})
    judged = passages.judge(rankings, qrels.judge(rankings))
    np.testing.assert_allclose(parse("coverage").per_query(judged), [1.0, 1.0, 0.0])
    np.testing.assert_allclose(parse("redundancy").per_query(judged), [4 / 11, 0.0, 0.0])
    np.testing.assert_allclose(parse("density").per_query(judged), [6 / 15, 1.0, 0.0])


def test_a_tokenizer_is_named_in_full():
    assert load_tokenizer("tuner.core.words:split_words")("Lima, Peru") == ["lima", "peru"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("split_words", "must name the tokenizer as package.module:function"),
        ("no_such_module:encode", "cannot import the tokenizer 'no_such_module:encode'"),
        ("tuner.core.words:encode", "module 'tuner.core.words' has no 'encode'"),
        ("tuner.core.words:count_tokens", "must turn a text into a list of tokens"),  # a number
        ("math:pi", "must turn a text into a list of tokens"),
    ],
)
def test_a_tokenizer_that_is_none_is_refused(name, message):
    with pytest.raises(InputError, match=message):
        load_tokenizer(name)


def test_a_text_on_which_the_tokenizer_fails_is_named():
    def encode(text: str) -> list[str]:
        if "boat" in text:
            raise ValueError("a boat")
        return text.split()

    with pytest.raises(MetricError, match="failed on document 'c': ValueError: a boat"):
        Passages.build(list(TEXTS), list(TEXTS.values()), ["Peru"], tokenizer=encode)


def test_context_efficiency_by_weights_of_ones_own():
    # a is relevant: density 6 / 10, one of two terms, nothing repeated, 10 tokens of 8
    judged = contexts("Peru boats", ["a", "c"], grades={"a": 1})
    weights = {"density": 2, "coverage": 1, "redundancy": 1, "budget": 4}

    def value_of(name, weights):
        metric = parse(name).with_options(MetricOptions(efficiency=weights))
        return float(metric.per_query(judged)[0])

    expected = 100 * (2 * 0.6 + 0.5 + 1.0 + 4 * 0.8) / 8
    assert value_of("context_efficiency@8", weights) == pytest.approx(expected)
    # Without a budget the three others share the weight.
    assert value_of("context_efficiency", weights) == pytest.approx(100 * (1.2 + 0.5 + 1) / 4)
    assert value_of("context_efficiency", {"density": 5}) == pytest.approx(60.0)
    empty = parse("context_efficiency").with_options(MetricOptions(efficiency={"redundancy": 1}))
    assert float(empty.per_query(contexts("Peru", [], grades={"a": 1}))[0]) == 0.0


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"densty": 1}, "no part 'densty'; did you mean 'density'"),
        ({"density": 0.0}, "not all 0"),
        ({"density": float("nan")}, "numbers from 0 up"),
    ],
)
def test_weights_of_context_efficiency_that_are_none_are_refused(weights, message):
    with pytest.raises(MetricError, match=message):
        parse("context_efficiency").check_options(MetricOptions(efficiency=weights))
