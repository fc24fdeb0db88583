"""Similarity of answers by hand: SQuAD's normalisation, CJK, ROUGE-L, functions from outside."""

from __future__ import annotations

import math
import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError, MetricError
from tuner.scoring.answer_metrics import (
    SIMILARITIES,
    Similarity,
    answer_tokens,
    exact_match,
    find_similarity,
    rouge_l,
    token_f1,
)


def squad_normalised(text):
    """The official evaluate-v1.1.py, step by step."""
    text = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def squad_f1(answer, expected):
    found, wanted = squad_normalised(answer).split(), squad_normalised(expected).split()
    common = sum((Counter(found) & Counter(wanted)).values())
    if not found or not wanted:
        return float(found == wanted)
    if common == 0:
        return 0.0
    precision, recall = common / len(found), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


ASCII_TEXT = st.text(st.sampled_from("aAnN tThHeE.,-_'$|~USb12 \n"), max_size=30)


@given(ASCII_TEXT, ASCII_TEXT)
def test_ascii_answers_score_as_in_squad(answer, expected):
    assert " ".join(answer_tokens(answer)) == squad_normalised(answer)
    assert exact_match(answer, expected) == (squad_normalised(answer) == squad_normalised(expected))
    assert token_f1(answer, expected) == pytest.approx(squad_f1(answer, expected))


def test_token_f1_counts_tokens_as_often_as_they_stand_there():
    # "new york new jersey" for "New York City": common new, york: P = 2/4, R = 2/3, F1 = 4/7.
    assert token_f1("New York, New Jersey", "New York City") == pytest.approx(4 / 7)
    assert token_f1("Oslo", "Lima") == 0.0
    assert token_f1("", "Lima") == 0.0
    assert token_f1("the", "an") == 1.0  # neither has a token (SQuAD 2.0)


def test_cjk_answers_are_compared_character_by_character():
    # At blanks alone 首都利马 and 利马 would share nothing. P = 2/4, R = 2/2, F1 = 2/3.
    assert token_f1("首都利马", "利马") == pytest.approx(2 / 3)
    assert exact_match("利马。", "利 马") == 1.0
    assert exact_match("「ＬＩＭＡ」", "lima") == 1.0
    assert exact_match("马利", "利马") == 0.0
    assert answer_tokens("iPhone15和AirPods") == ["iphone15", "和", "airpods"]


def test_accents_and_width_do_not_count():
    assert exact_match("Café  Ｂ", "cafe b") == 1.0
    assert exact_match("1,000", "1000") == 1.0


def test_rouge_l_is_the_longest_common_subsequence():
    # Lin 2004: "police killed the gunman"; "the gunman kill police": the, gunman: 2 of 4 and 4.
    assert rouge_l("the gunman kill police", "police killed the gunman") == pytest.approx(0.5)
    # a x b y c for a b c d: 3 of 5 and 4: 6 / 9. The article "a" counts here.
    assert rouge_l("a x b y c", "a b c d") == pytest.approx(6 / 9)
    assert rouge_l("", "a") == 0.0


TEXT = st.text(st.sampled_from("ab cd the 利马京.é "), max_size=20)


@given(TEXT, TEXT)
def test_similarities_are_symmetric_from_0_to_1_and_1_for_the_same(answer, expected):
    for function in SIMILARITIES.values():
        value = function(answer, expected)
        assert 0.0 <= value <= 1.0
        assert value == pytest.approx(function(expected, answer))
    assert token_f1(answer, answer) == exact_match(answer, answer) == 1.0
    # The order can only cost; exact match only where all else is right.
    assert exact_match(answer, expected) <= token_f1(answer, expected)


def test_the_best_of_the_accepted_answers_counts():
    similarity = find_similarity("token_f1")
    # Alias "Stanley Hall": 1; "G. Stanley Hall": P = 1, R = 2/3.
    assert similarity.score("Stanley Hall", ["G. Stanley Hall", "Stanley Hall"]) == 1.0
    assert similarity.score("Stanley Hall", ["G. Stanley Hall"]) == pytest.approx(0.8)
    with pytest.raises(MetricError, match="no expected answer"):
        similarity.score("Lima", [])


def test_functions_from_outside(tmp_path, monkeypatch):
    (tmp_path / "my_similarity.py").write_text(
        "import math\n"
        "VECTORS = {'Lima': (1.0, 0.0), 'Callao': (0.6, 0.8)}\n"
        "def cosine(answer, expected):\n"
        "    return sum(a * b for a, b in zip(VECTORS[answer], VECTORS[expected]))\n"
        "def judge(answer, expected, query):\n"
        "    return 1 if query.endswith('?') and answer[0] == expected[0] else 0\n"
        "def undefined(answer, expected):\n"
        "    return math.nan\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    cosine = find_similarity("my_similarity:cosine")
    assert cosine.score("Callao", ["Lima"]) == pytest.approx(0.6)
    judge = find_similarity("my_similarity:judge")
    assert (judge.takes_query, cosine.takes_query) == (True, False)
    assert judge.score("Lisbon", ["Lima"], "which city?") == 1.0
    assert judge.score("Lisbon", ["Lima"], "a city") == 0.0
    assert math.isnan(find_similarity("my_similarity:undefined").score("a", ["b"]))
    with pytest.raises(MetricError, match="my_similarity:cosine failed for 'Oslo': KeyError"):
        cosine.score("Oslo", ["Lima"])
    with pytest.raises(InputError, match="is of type int, which cannot be called"):
        find_similarity("my_similarity:number")
    with pytest.raises(InputError, match="your own is module:function; did you mean 'token_f1'"):
        find_similarity("tokenf1")
    with pytest.raises(InputError, match="cannot import"):
        find_similarity("no_such_module:f")


def test_an_infinite_similarity_is_refused():
    with pytest.raises(MetricError, match="infinite"):
        Similarity("odd", lambda answer, expected: math.inf).score("a", ["b"])
