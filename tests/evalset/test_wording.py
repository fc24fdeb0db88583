"""How relations become questions, in two languages and by hand."""

from pathlib import Path

import pytest

from tuner.core.errors import InputError
from tuner.evalset.facts import name_key, relation_key
from tuner.evalset.wording import (
    Wording,
    is_chinese,
    load_wording,
    read_relations,
    vague_relations,
)


@pytest.fixture(scope="module")
def english() -> Wording:
    return load_wording("english")


@pytest.mark.parametrize(
    ("relation", "question"),
    [
        ("mother", "What is the mother of Ada?"),
        ("capital of", "Ada is capital of what?"),
        ("part of", "Ada is part of what?"),
        ("from", "Ada is from what?"),
        ("born in", "Ada was born in what?"),
        ("was born in", "Ada was born in what?"),
        ("first published in", "Ada was first published in what?"),
        ("financed by", "Ada was financed by what?"),
        ("lived in", "Ada lived in what?"),
        ("became King of", "Ada became King of what?"),
        ("removed mention of", "Ada removed mention of what?"),
        ("won", "Ada won what?"),
        ("has daughter named", "Ada has daughter named what?"),
        ("on", "Ada is on what?"),
        ("affiliated with", "Ada was affiliated with what?"),
        ("hottest month is", "What is the hottest month of Ada?"),
    ],
)
def test_one_step_in_english(english, relation, question):
    assert english.path("Ada", [relation]) == question


def test_steps_in_english(english):
    assert english.path("Ada", ["mother", "birthplace"]) == (
        "What is the birthplace of the mother of Ada?"
    )
    assert english.path("Ada", ["mother", "born in"]) == "The mother of Ada was born in what?"
    assert english.path("Ada", ["born in", "mayor", "won"]) == (
        "Ada was born in something whose mayor is something that won what?"
    )


def test_relations_of_either_language_may_be_too_vague_to_ask_about():
    assert {"is", "also known as", "属于"} <= vague_relations()


def test_steps_in_chinese():
    chinese = load_wording("chinese")
    assert chinese.path("红楼梦", ["作者", "出生地"]) == "红楼梦的“作者”的“出生地”是什么？"
    assert chinese.intersection([("导演", "张艺谋"), ("主演", "巩俐")]) == (
        "什么事物的“导演”是张艺谋，并且“主演”是巩俐？"
    )
    assert chinese.comparison("earlier", "成立", "北大", "清华") == (
        "北大和清华，哪个的“成立”更早？"
    )
    assert (chinese.answer("yes"), chinese.answer("no")) == ("是", "否")


def test_comparisons_and_intersections_in_english(english):
    assert english.comparison("earlier", "founded in", "A", "B") == (
        "Which was founded earlier: A or B?"
    )
    assert english.comparison("same", "owner", "A", "B") == "Do A and B have the same owner?"
    assert english.comparison("same", "owned by", "A", "B") == (
        "Is what A was owned by the same as what B was owned by?"
    )
    assert english.intersection([("owned by", "X"), ("owner", "Y")]) == (
        "What was owned by X and also has Y as owner?"
    )


def test_braces_in_names_are_left_alone(english):
    assert english.path("{relation}", ["mother"]) == "What is the mother of {relation}?"


def test_relations_worded_by_hand(tmp_path: Path):
    file = tmp_path / "relations.yaml"
    file.write_text(
        'Was written by: {phrase: "the author of {subject}", verb: "was penned by"}\n'
        '"on": {verb: "stands on"}\n',
        encoding="utf-8",
    )
    wording = load_wording("english", relations=read_relations(file))
    assert wording.path("Emma", ["written by"]) == "What is the author of Emma?"
    assert wording.path("Emma", ["written by", "on"]) == "The author of Emma stands on what?"
    assert wording.intersection([("written by", "X"), ("on", "Y")]) == (
        "What was penned by X and also stands on Y?"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be a mapping of relations"),
        ("a: {phrase: [", "invalid YAML"),
        ("a: {frase: x}", "unknown form 'frase'; did you mean 'phrase'"),
        ("a: {phrase: the author}", "does not hold {subject}"),
        ("a: {verb: 3}", "verb must be a string"),
        ("on: {verb: stands on}", "must be a string, put it in quotation marks"),
        ("a: {}", "phrase, verb or both"),
    ],
)
def test_broken_relations_are_reported(tmp_path: Path, text, message):
    file = tmp_path / "relations.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_relations(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_missing_file_and_an_unknown_language(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read"):
        read_relations(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="did you mean 'english'"):
        load_wording("englisch")


def test_keys():
    assert name_key(" ＡＢＣ  d\te ") == "abc d e"
    assert relation_key("is located in") == relation_key("Located_in") == "located in"
    assert relation_key("has been") == "has been"  # nothing would be left
    assert is_chinese("在 x")
    assert not is_chinese("x")
