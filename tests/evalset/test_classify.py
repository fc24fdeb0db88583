"""Types and difficulties by rule, in both languages, and rules of one's own."""

from pathlib import Path

import pytest

from tuner.core.errors import InputError
from tuner.datasets import open_dataset
from tuner.evalset.classify import classify, load_classifier


@pytest.mark.parametrize(
    ("text", "query_type", "difficulty"),
    [
        ("Who is older, Husserl or von Neumann?", "comparison", "medium"),
        ("What is the difference between BM25 and TF-IDF?", "comparison", "medium"),
        ("How do I reset my password?", "procedure", "easy"),
        ("Why is the sky blue?", "reason", "easy"),
        ("How many moons does Mars have?", "count", "medium"),
        ("List all rivers of France", "list", "medium"),
        ("In what year was Ada Lovelace born?", "time", "easy"),
        ("In which place did the author of Faust pass away?", "place", "easy"),
        ("Is Pluto a planet?", "yes-no", "easy"),
        ("Where was the author of Faust born?", "place", "easy"),
        ("Who wrote Faust?", "person", "easy"),
        ("Which river crosses the birthplace of the author of Faust?", "fact", "medium"),
        ("What is the capital of the state of the author of the book of Faust?", "fact", "hard"),
        ("ada lovelace biography", "keywords", "easy"),
        ("胡塞尔和冯诺依曼谁更年长？", "comparison", "medium"),
        ("如何重置密码？", "procedure", "easy"),
        ("为什么天空是蓝色的？", "reason", "easy"),
        ("巴黎有多少人口？", "count", "medium"),
        ("法国有哪些河流？", "list", "medium"),
        ("阿达出生于哪一年？", "time", "easy"),
        ("冥王星是行星吗？", "yes-no", "easy"),
        ("胡塞尔在哪里去世？", "place", "easy"),
        ("《浮士德》是谁写的？", "person", "easy"),
        ("《浮士德》的作者的出生地的河流是什么？", "fact", "hard"),
        ("阿达 传记", "keywords", "easy"),
    ],
)
def test_rules_by_example(text, query_type, difficulty):
    assert classify(text) == (query_type, difficulty)


@pytest.mark.parametrize("name", ["hotpotqa", "2wiki"])
def test_the_rules_find_most_comparisons_of_published_sets_and_little_else(name):
    folder = Path(__file__).resolve().parents[2] / "../shared/data" / name
    if not folder.is_dir():
        pytest.skip("the shared data sets are not beside this checkout (../shared/data)")
    queries = open_dataset(folder).queries
    right = {query.id for query in queries if "comparison" in query.query_type}
    found = {query.id for query in queries if classify(query.text).query_type == "comparison"}
    assert len(right & found) >= 0.85 * len(right)
    assert len(right & found) >= 0.85 * len(found)


def test_your_own_rules_are_used_and_checked(tmp_path, monkeypatch):
    (tmp_path / "own_rules.py").write_text(
        "LIMIT = 3\n"
        "def by_length(text):\n    return ('long' if len(text) > LIMIT else 'short', '')\n"
        "def wrong(text):\n    return 'long'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert load_classifier("own_rules:by_length")("ab") == ("short", "")
    with pytest.raises(InputError, match=r"own_rules:wrong returned 'long' for 'ab'; it must"):
        load_classifier("own_rules:wrong")("ab")
    with pytest.raises(InputError, match="which cannot be called; it must take a query"):
        load_classifier("own_rules:LIMIT")
    with pytest.raises(InputError, match="has no 'by_lenght'"):
        load_classifier("own_rules:by_lenght")
    with pytest.raises(InputError, match="'rules' must name the classifier as package"):
        load_classifier("rules")
    assert load_classifier(None) is classify
