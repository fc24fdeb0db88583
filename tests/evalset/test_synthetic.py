"""Questions from small graphs, of which every one can be written down."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.corpus import Corpus, Document, Triple
from tuner.core.errors import InputError
from tuner.datasets import Dataset, open_dataset
from tuner.evalset.drafts import Draft, Drafts
from tuner.evalset.facts import FactGraph, documents_of, size_of
from tuner.evalset.synthetic import BIAS, Options, build_from_graph

SHARED_DATA = Path(__file__).resolve().parents[2] / "../shared/data"

CHAIN = [
    ("d1", "Hamlet", "written by", "Shakespeare"),
    ("d2", "Shakespeare", "born in", "Stratford"),
    ("d3", "Stratford", "located in", "England"),
]


def corpus_of(rows: list[tuple[str, str, str, str]], **entities: tuple[str, ...]) -> Corpus:
    ids = sorted({row[0] for row in rows})
    documents = tuple(Document(id_, "", f"text of {id_}") for id_ in ids)
    return Corpus(documents, tuple(Triple(*row) for row in rows), dict(entities))


def built(rows: list[tuple[str, str, str, str]], *kinds: str, **options) -> Dataset:
    return build_from_graph(corpus_of(rows), "here", options=Options(kinds=kinds, **options))


def asked(dataset: Dataset) -> dict[str, tuple[tuple[str, ...], set[str]]]:
    return {q.text: (dataset.answers[q.id], set(dataset.qrels[q.id])) for q in dataset.queries}


def test_every_path_of_a_chain_is_asked_once():
    dataset = built(CHAIN, "1hop", "2hop", "3hop")
    assert asked(dataset) == {
        "Hamlet was written by what?": (("Shakespeare",), {"d1"}),
        "Shakespeare was born in what?": (("Stratford",), {"d2"}),
        "Stratford was located in what?": (("England",), {"d3"}),
        "Hamlet was written by something that was born in what?": (("Stratford",), {"d1", "d2"}),
        "Shakespeare was born in something that was located in what?": (
            ("England",),
            {"d2", "d3"},
        ),
        "Hamlet was written by something that was born in something that was located in what?": (
            ("England",),
            {"d1", "d2", "d3"},
        ),
    }
    assert [q.query_type for q in dataset.queries] == ["1hop"] * 3 + ["2hop"] * 2 + ["3hop"]
    levels = {(q.query_type, q.difficulty) for q in dataset.queries}
    assert levels == {("1hop", "easy"), ("2hop", "medium"), ("3hop", "hard")}


def test_a_question_carries_its_path_its_names_and_its_group():
    dataset = built(CHAIN, "2hop")
    query = next(q for q in dataset.queries if q.text.startswith("Hamlet"))
    assert dataset.evidences[query.id].paths == (
        (("Hamlet", "written by", "Shakespeare"), ("Shakespeare", "born in", "Stratford")),
    )
    assert dataset.evidences[query.id].entities == ("Hamlet", "Shakespeare", "Stratford")
    assert query.group == "Hamlet"


def test_all_neighbours_that_satisfy_the_question_are_answers():
    rows = [*CHAIN, ("d4", "Hamlet", "written by", "Marlowe"), ("d5", "Marlowe", "born in", "Kent")]
    found = asked(built(rows, "2hop"))
    text = "Hamlet was written by something that was born in what?"
    assert found[text] == (("Kent", "Stratford"), {"d1", "d2", "d4", "d5"})
    assert text not in asked(built(rows, "2hop", most_answers=1))


def test_every_document_that_states_a_fact_is_relevant_however_it_spells_it():
    rows = [*CHAIN, ("d4", "HAMLET", "was  Written by", "shakespeare")]
    found = asked(built(rows, "1hop"))
    assert [docs for text, (_, docs) in found.items() if text.lower().startswith("hamlet")] == [
        {"d1", "d4"}
    ]
    with pytest.raises(InputError, match=r"supported by more than 1 documents"):
        built(rows[:1] + rows[3:], "1hop", most_documents=1)


def test_steps_that_stand_in_one_document_are_not_two_hops():
    rows = [("d1", *CHAIN[0][1:]), ("d1", *CHAIN[1][1:])]
    with pytest.raises(InputError, match=r"1 drafts have all facts of a path in one document"):
        built(rows, "2hop")
    # Where another document states one of them, that one will do for both: still not two hops.
    with pytest.raises(InputError, match="one document"):
        built([*rows, CHAIN[1]], "2hop")


def test_a_path_that_comes_back_is_not_asked():
    rows = [("d1", "Ada", "spouse", "William"), ("d2", "William", "spouse", "Ada")]
    with pytest.raises(InputError, match="no question can be made"):
        built(rows, "2hop")


def test_an_answer_that_the_question_names_is_not_asked():
    rows = [("d1", "Lake Victoria", "named after", "Victoria")]
    with pytest.raises(InputError, match="1 drafts name their answer"):
        built(rows, "1hop")


def test_vague_relations_are_not_asked():
    with pytest.raises(InputError, match="say too little"):
        built([("d1", "Ada", "is", "Poet"), ("d1", "Ada", "has", "Engine")], "1hop")


def test_listed_entities_say_what_is_a_name():
    rows = [*CHAIN, ("d4", "the play", "performed in", "London")]
    corpus = corpus_of(rows, d1=("Hamlet", "Shakespeare"), d2=("Stratford",))
    dataset = build_from_graph(corpus, "here", options=Options(kinds=("1hop", "2hop")))
    starts = {query.group for query in dataset.queries}
    assert starts == {"Hamlet", "Shakespeare", "Stratford"}  # "the play" is not listed
    corpus = corpus_of(rows, d1=("Hamlet",))
    dataset = build_from_graph(corpus, "here", options=Options(kinds=("1hop",)))
    assert [query.text for query in dataset.queries] == ["Hamlet was written by what?"]
    with pytest.raises(InputError):  # the way would lead through what is no name
        build_from_graph(corpus, "here", options=Options(kinds=("2hop",)))


def test_comparisons_of_years_numbers_and_equal_values():
    rows = [
        ("d1", "Ada", "born in", "10 December 1815"),
        ("d2", "Ben", "born in", "1791"),
        ("d3", "Lima", "population", "10,092,000"),
        ("d4", "Oslo", "population", "717,710"),
        ("d5", "Emil", "country", "Peru"),
        ("d6", "Fay", "country", "Peru"),
        ("d7", "Gus", "country", "Chile"),
        ("d8", "Hal", "country", "Cuba"),
    ]
    dataset = built(rows, "comparison")
    sized, same = {}, {}
    for query in dataset.queries:
        answer, docs = dataset.answers[query.id], set(dataset.qrels[query.id])
        (same if "same" in query.text else sized)[query.text] = (answer, docs)
    dates, numbers = sorted(sized, key=lambda text: "larger" in text)
    assert dates in {f"Which was born earlier: {a} or {b}?" for a, b in BOTH_PEOPLE}
    assert sized[dates] == (("Ben",), {"d1", "d2"})
    assert numbers in {f"Which has the larger population: {a} or {b}?" for a, b in BOTH_CITIES}
    assert sized[numbers] == (("Lima",), {"d3", "d4"})
    # One pair has the same country, so one pair with different ones is asked: as many yes as no.
    assert sorted(answer for answer, _ in same.values()) == [("no",), ("yes",)]
    assert next(docs for answer, docs in same.values() if answer == ("yes",)) == {"d5", "d6"}


BOTH_PEOPLE = [("Ada", "Ben"), ("Ben", "Ada")]
BOTH_CITIES = [("Lima", "Oslo"), ("Oslo", "Lima")]


def test_years_are_compared_in_chinese():
    rows = [("d1", "红楼梦", "成书年份", "1791年"), ("d2", "西游记", "成书年份", "1592年")]
    ((text, (answers, documents)),) = asked(built(rows, "comparison")).items()
    assert text.endswith("哪个的“成书年份”更早？")
    assert (answers, documents) == (("西游记",), {"d1", "d2"})


def test_a_relation_with_two_values_is_not_compared():
    rows = [
        ("d1", "Ada", "born in", "1815"),
        ("d2", "Ada", "born in", "1816"),
        ("d3", "Ben", "born in", "1791"),
    ]
    with pytest.raises(InputError, match="no question"):
        built(rows, "comparison")


def test_sizes():
    assert size_of("1,200.5 m") == (1200.5, "m")
    assert size_of("january 1960") == (1960.0, "year")
    assert size_of("850") == (850.0, "")
    assert size_of("1,200 square miles") == (1200.0, "square miles")
    assert size_of("1791年") == size_of("1791年5月3日") == size_of("约1791年") == (1791.0, "year")
    assert size_of("1200米") == (1200.0, "米")
    assert size_of("on may 3rd, 1791") == size_of("c. 1791") == (1791.0, "year")
    none = ("paris 2024", "12th century", "1940s", "lima", "room 12b", "850年", "公元前1046年")
    assert [size_of(text) for text in none] == [None] * len(none)


def test_years_among_plain_numbers_are_not_compared():
    rows = [(f"d{n}", f"Hill {n}", "height", str(n)) for n in (850, 1500)]
    with pytest.raises(InputError, match="no question"):
        built(rows, "comparison")


def test_numbers_that_are_no_quantity_are_not_compared():
    codes = [("d1", "Saratoga", "zip code", "82331"), ("d2", "Greencreek", "zip code", "83533")]
    with pytest.raises(InputError, match="no question"):
        built(codes, "comparison")
    ((text, _),) = asked(
        built([(d, s, "number of seats", n) for d, s, _, n in codes], "comparison")
    ).items()
    assert text.startswith("Which has the larger number of seats: ")
    with_unit = [("d1", "Lech", "flows", "250 km"), ("d2", "Isar", "flows", "295 km")]
    assert len(built(with_unit, "comparison").queries) == 1


def test_two_names_of_one_thing_are_not_compared():
    rows = [
        ("d1", "2010 United States Census", "population", "1,200"),
        ("d2", "2010 Census", "population", "1,100"),
    ]
    with pytest.raises(InputError, match="no question"):
        built(rows, "comparison")


def test_the_first_question_of_a_relation_is_not_always_one_to_say_yes_to():
    rows = [
        (f"d{r}{s}", f"Name {r}{s}", f"colour {r}", "red" if s in "ab" else s)
        for r in range(20)
        for s in "abcd"
    ]
    answers = [*built(rows, "comparison", count=20).answers.values()]
    assert {answer for (answer,) in answers} == {"yes", "no"}


MEETING = [
    ("d1", "Jordanow", "near", "Lesser Poland"),
    ("d2", "Jordanow", "visited by", "Wojtyla"),
    ("d3", "Krakow", "near", "Lesser Poland"),
    ("d4", "Gdansk", "visited by", "Wojtyla"),
]


def test_an_intersection_of_what_follows_from_each_other_is_not_asked():
    assert len(built(MEETING, "intersection").queries) == 1
    related = [
        [("d5", "Wojtyla", "born in", "Lesser Poland")],
        [("d5", "Lesser Poland", "home of", "Wojtyla")],
        [("d5", "Wojtyla", "born in", "Wadowice"), ("d6", "Wadowice", "lies", "Lesser Poland")],
    ]
    for facts in related:
        texts = [query.text for query in built([*MEETING, *facts], "1hop", "intersection").queries]
        assert not any("and also" in text for text in texts)


@pytest.mark.parametrize(
    ("relations", "names"),
    [
        (("near", "visited by"), ("Poland", "Lesser Poland")),
        (("located in", "is part of"), ("Alps", "Poland")),
        (("位于", "坐落于"), ("四川", "中国")),
    ],
)
def test_an_intersection_of_a_place_and_what_it_lies_in_is_not_asked(relations, names):
    renamed = dict(zip(("near", "visited by", "Lesser Poland", "Wojtyla"), (*relations, *names),
                       strict=True))  # fmt: skip
    rows = [(d, s, renamed[r], renamed[o]) for d, s, r, o in MEETING]
    with pytest.raises(InputError, match="no question"):
        built(rows, "intersection")


def test_an_intersection_needs_both_conditions_and_counts_all_answers():
    rows = [
        ("d1", "Alien", "directed by", "Scott"),
        ("d2", "Gladiator", "directed by", "Scott"),
        ("d3", "Hannibal", "directed by", "Scott"),
        ("d4", "Alien", "starring", "Weaver"),
        ("d5", "Avatar", "starring", "Weaver"),
        ("d6", "Hannibal", "starring", "Weaver"),
    ]
    dataset = built(rows, "intersection")
    assert asked(dataset) == {
        "What was directed by Scott and also has Weaver as starring?": (
            ("Alien", "Hannibal"),
            {"d1", "d3", "d4", "d6"},
        )
    }
    paths = dataset.evidences[dataset.queries[0].id].paths
    assert paths[0] == (("Alien", "directed by", "Scott"),)
    assert len(paths) == 4
    # Everything with Weaver is by Scott now: "by Scott" would ask nothing more.
    with pytest.raises(InputError, match="no question"):
        built([row for row in rows if row[1] != "Avatar"], "intersection")


def test_chinese_names_are_asked_in_chinese():
    rows = [("d1", "红楼梦", "作者", "曹雪芹"), ("d2", "曹雪芹", "出生地", "南京")]
    assert asked(built(rows, "1hop", "2hop")) == {
        "红楼梦的“作者”是什么？": (("曹雪芹",), {"d1"}),
        "曹雪芹的“出生地”是什么？": (("南京",), {"d2"}),
        "红楼梦的“作者”的“出生地”是什么？": (("南京",), {"d1", "d2"}),
    }
    english = asked(built(rows, "2hop", language="english"))
    assert list(english) == ["What is the 出生地 of the 作者 of 红楼梦?"]


def test_hubs_make_a_question_harder():
    # Shakespeare has two neighbours, Hamlet one. Of one hop from a hub: easy becomes medium.
    dataset = built(CHAIN, "1hop", "3hop", hub_degree=2)
    assert {query.text.split()[0]: query.difficulty for query in dataset.queries[:3]} == {
        "Hamlet": "easy",
        "Shakespeare": "medium",
        "Stratford": "medium",
    }
    assert dataset.queries[3].difficulty == "hard"  # there is nothing above


def test_kinds_share_the_count_and_a_shortage_is_told():
    dataset = built(CHAIN, "1hop", "2hop", "3hop", count=5)
    assert [q.query_type for q in dataset.queries] == ["1hop", "1hop", "2hop", "2hop", "3hop"]
    dataset = built(CHAIN, "1hop", "comparison", count=9)
    assert "only 3 of 9 questions could be made: 3 1hop, 0 comparison" in dataset.warnings


def test_the_bias_of_such_questions_is_told_first():
    assert built(CHAIN, "1hop", count=3).warnings == (BIAS,)
    assert "favour retrievers that use this graph" in BIAS


def test_names_that_another_document_links_otherwise_are_counted():
    rows = [*CHAIN, ("d9", "Shakespeare", "creator of", "Hamlet")]
    dataset = built(rows[:1] + rows[3:], "1hop")
    told = [text for text in dataset.warnings if "another relation" in text]
    assert len(told) == 1
    assert told[0].startswith("2 questions")  # each of the two facts is the other one's


def test_the_seed_draws_and_the_same_seed_draws_the_same():
    rows = [(f"d{n}", f"City {n} town", "capital of", f"Land {n}") for n in range(40)]
    texts = [[q.text for q in built(rows, "1hop", count=8, seed=s).queries] for s in (1, 1, 2)]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_wrong_options_are_refused():
    with pytest.raises(InputError, match="count=0: must be at least 1"):
        Options(count=0)
    with pytest.raises(InputError, match="did you mean '2hop'"):
        Options(kinds=("2hops",))
    with pytest.raises(InputError, match="name each kind of question once"):
        Options(kinds=("1hop", "1hop"))
    with pytest.raises(InputError, match="unknown language 'latin'"):
        Options(language="latin")
    with pytest.raises(InputError, match="there are no triples"):
        build_from_graph(Corpus((Document("d1", "", "text"),)), "here")


NAMES = [f"n{i}" for i in range(6)]
FACTS = st.lists(
    st.tuples(
        st.sampled_from(["d1", "d2", "d3"]),
        st.sampled_from(NAMES),
        st.sampled_from(["r0", "r1"]),
        st.sampled_from(NAMES),
    ),
    max_size=14,
)


@given(FACTS, st.integers(1, 3))
def test_answers_and_documents_are_those_of_a_plain_join(rows, hops):
    graph = FactGraph.build(corpus_of(rows))
    drafts = Drafts(graph, lambda key: repr(key).encode(), frozenset(), most_answers=99)
    for draft in drafts.paths(hops):
        joined = joins(rows, draft)
        assert set(draft.answers) == {chain[-1][3] for chain in joined}
        stated = documents_of(fact for path in draft.paths for fact in path)
        assert set(stated) == {row[0] for chain in joined for row in chain}
        assert draft.named[0] not in draft.answers


@given(FACTS)
def test_intersections_have_every_answer_and_its_documents(rows):
    graph = FactGraph.build(corpus_of(rows))
    drafts = Drafts(graph, lambda key: repr(key).encode(), frozenset(), most_answers=99)
    real = [row for row in rows if row[1] != row[3]]
    for draft in drafts.intersections():
        conditions = list(zip(draft.relations, draft.named, strict=True))
        meets = [{row[1] for row in real if row[2:] == condition} for condition in conditions]
        assert set(draft.answers) == meets[0] & meets[1]
        assert len(draft.answers) < min(map(len, meets))  # neither condition suffices
        stated = documents_of(fact for path in draft.paths for fact in path)
        assert set(stated) == {
            row[0] for row in real if row[1] in draft.answers and row[2:] in conditions
        }


def joins(rows: list[tuple[str, str, str, str]], draft: Draft) -> list[tuple]:
    """Every chain of rows along the draft's relations, found by trying all."""
    real = [row for row in rows if row[1] != row[3]]
    return [
        chain
        for chain in product(real, repeat=len(draft.relations))
        if chain[0][1] == draft.named[0]
        and all(row[2] == relation for row, relation in zip(chain, draft.relations, strict=True))
        and all(chain[i][3] == chain[i + 1][1] for i in range(len(chain) - 1))
    ]


@pytest.mark.slow
def test_a_real_graph_gives_all_kinds():
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data sets are not beside this checkout (../shared/data)")
    source = open_dataset(SHARED_DATA / "musique")
    dataset = build_from_graph(source.corpus, "musique", options=Options(count=50))
    kinds = [query.query_type for query in dataset.queries]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(Options().kinds, 10)
    assert len({query.text.casefold() for query in dataset.queries}) == 50
    triples = {(t.subject.casefold(), t.object.casefold()) for t in source.corpus.triples}
    for evidence in dataset.evidences.values():
        for path in evidence.paths:
            assert all((step[0].casefold(), step[2].casefold()) in triples for step in path)
