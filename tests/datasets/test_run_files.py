"""Runs and judgements in every format: the same content reads the same, and bad files say why."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.datasets.run_files import look_like_grades, look_like_scores, read_qrels, read_run
from tuner.metrics.ordering import top_documents

GRADES = {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d3": 1.0}}
QRELS = {
    "trec": "q1 0 d1 2\nq1 0 d2 0\nq2\t0\td3\t1\n",
    "tsv": "q1\td1\t2\nq1\td2\t0\nq2\td3\t1\n",
    "tsv with a header": "query-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td2\t0\r\nq2\td3\t1\r\n",
    "tsv in quotes": '"query-id"\t"corpus-id"\t"score"\n"q1"\t"d1"\t2\n"q1"\t"d2"\t"0"\n'
    '"q2"\t"d3"\t1\n',
    "json": json.dumps(GRADES),
    "json indented": json.dumps(GRADES, indent=2),
    "json array": '[{"qid": "q1", "docs": {"d1": 2, "d2": 0}}, {"qid": "q2", "docs": {"d3": 1}}]',
    "jsonl": '{"query_id": "q1", "grades": {"d1": 2, "d2": 0}}\n\n{"query": "q2", '
    '"relevant_docs": ["d3"]}\n',
    "jsonl of rows": '{"query_id": "q1", "doc_id": "d1", "relevance": 2}\n'
    '{"query_id": "q1", "doc_id": "d2", "relevance": 0}\n'
    '{"query_id": "q2", "doc_id": "d3", "relevance": 1}\n',
    "samples": '{"id": "q1", "query": "who?", "relevant_docs": ["d1"], '
    '"grades": {"d1": 2, "d2": 0}}\n{"id": "q2", "query": "what?", "relevant_docs": ["d3"]}\n',
}

SCORES = {"q1": {"d1": 0.5, "d9": 0.25}, "q2": {"d3": -1.0}}
LISTS = {"q1": ["d1", "d9"], "q2": ["d3"]}
SCORED_RUNS = {
    "trec": "q1 Q0 d1 7 0.5 x\nq1\tQ0\td9\t2\t0.25\tx\nq2 Q0 d3 1 -1 x\n",
    "tsv": "q1\td1\t0.5\nq1\td9\t0.25\nq2\td3\t-1\n",
    "tsv with a header": "query-id\tcorpus-id\tscore\nq1\td1\t0.5\nq1\td9\t0.25\nq2\td3\t-1\n",
    "tsv in quotes": '"q1"\t"d1"\t0.5\n"q1"\t"d9"\t"0.25"\n"q2"\t"d3"\t-1\n',
    "json": json.dumps(SCORES),
    "json indented": json.dumps(SCORES, indent=1),
    "json array": json.dumps([{"query_id": q, "results": r} for q, r in SCORES.items()]),
    "jsonl": "".join(json.dumps({"qid": q, "docs": r}) + "\n" for q, r in SCORES.items()),
    "jsonl of hits": '{"query_id": "q1", "results": [{"doc_id": "d1", "score": 0.5}, '
    '{"doc_id": "d9", "score": 0.25}]}\n'
    '{"query_id": "q2", "results": [{"doc_id": "d3", "score": -1}]}\n',
    "jsonl of pairs": '{"query_id": "q1", "results": [["d1", 0.5], ["d9", 0.25]]}\n'
    '{"query_id": "q2", "results": [["d3", -1]]}\n',
    "jsonl of rows": '{"query_id": "q1", "doc_id": "d1", "score": 0.5}\n'
    '{"query_id": "q1", "doc_id": "d9", "score": 0.25}\n'
    '{"query_id": "q2", "doc_id": "d3", "score": -1}\n',
}
LISTED_RUNS = {
    "json": json.dumps(LISTS),
    "jsonl": "".join(json.dumps({"query": q, "docs": r}) + "\n" for q, r in LISTS.items()),
    "jsonl of ids": '{"query_id": "q1", "hits": [{"id": "d1"}, {"id": "d9"}]}\n'
    '{"query_id": "q2", "hits": [{"id": "d3"}]}\n',
    "ranks": "q1\td1\t1\nq1\td9\t2\nq2\td3\t1\n",
    "ranks with a header": "qid\tpid\trank\nq1\td9\t2\nq1\td1\t1\nq2\td3\t1\n",
}


@pytest.fixture
def written(tmp_path):
    def write(content: str | bytes, name: str = "file"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def messages(read, path) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    return str(caught.value).replace(f"{path}:", "file:")


@pytest.mark.parametrize("name", ["file", "file.gz"])
@pytest.mark.parametrize("layout", QRELS)
def test_judgements_read_the_same_in_every_format(written, layout, name):
    assert read_qrels(written(QRELS[layout], name)).grades == GRADES


@pytest.mark.parametrize("name", ["file", "file.gz"])
@pytest.mark.parametrize("layout", SCORED_RUNS)
def test_scores_read_the_same_in_every_format(written, layout, name):
    assert read_run(written(SCORED_RUNS[layout], name)).answers == SCORES


@pytest.mark.parametrize("layout", LISTED_RUNS)
def test_rankings_read_the_same_in_every_format(written, layout):
    assert read_run(written(LISTED_RUNS[layout])).answers == LISTS


def test_trap_three_columns_of_ranks_are_not_taken_for_scores(written):
    assert read_run(written(LISTED_RUNS["ranks"])).format == "tsv of ranks"
    # A header that says score is believed, and so are values that do not count up.
    header = "query-id\tcorpus-id\tscore\n" + LISTED_RUNS["ranks"]
    assert read_run(written(header)).answers["q1"] == {"d1": 1.0, "d9": 2.0}
    assert read_run(written("q1\td1\t2\nq1\td9\t1\n")).answers["q1"] == {"d1": 2.0, "d9": 1.0}


def test_ids_may_hold_blanks_in_tabs_and_be_whole_numbers_in_json(written):
    assert read_run(written("q 1\tdoc 1\t0.5\n")).answers == {"q 1": {"doc 1": 0.5}}
    assert read_run(written('{"query_id": 7, "docs": [12, 3]}')).answers == {"7": ["12", "3"]}


INDEX = "an index column stands before query-id; write the table without it"
TABLES = {
    "pandas": ("\tquery-id\tcorpus-id\tscore\n0\tq1\td1\t2\n1\tq2\td3\t1\n", INDEX),
    "pandas, read and written": ("Unnamed: 0\tquery-id\tdoc\tscore\n0\tq1\td1\t2\n", INDEX),
    "R": ('"query-id"\t"doc"\t"score"\n"1"\t"q1"\t"d1"\t2\n"2"\t"q2"\t"d3"\t1\n', INDEX),
    "a German spreadsheet": ("query-id;doc;score\nq1;d1;2\n", "are separated by ';'"),
    "csv": ("query-id,doc,score\nq1,d1,2\nq2,d3,1\n", "the fields are separated by ','; write"),
    "R, in quotes and blanks": ('"q1" "0" "d1" 2\n"q2" "0" "d3" 1\n', "the fields are in quotes"),
}


@pytest.mark.parametrize("read", [read_qrels, read_run])
@pytest.mark.parametrize("written_by", TABLES)
def test_what_other_tools_add_to_a_table_is_named_once(written, read, written_by):
    content, reason = TABLES[written_by]
    if read is read_run and "blanks" in written_by:
        content = '"q1" "Q0" "d1" 1 2.5 "x"\n"q2" "Q0" "d3" 1 1.5 "x"\n'
    told = messages(read, written(content))
    assert reason in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("read", [read_qrels, read_run])
def test_one_line_that_is_too_long_is_no_index_column(written, read):
    told = messages(read, written("query-id\tdoc\tscore\nq1\td1\t2\n2\tq2\td3\t1\n"))
    assert "index column" not in told
    assert "file:3: " in told


@pytest.mark.parametrize("header", ["", "query-id\tdoc\tscore\t\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_tab_at_the_end_of_every_line_is_no_column(written, header, end):
    file = written(f"{header}q1\td1\t2\t\nq2\td3\t1\t\n".replace("\n", end))
    assert read_qrels(file).grades == {"q1": {"d1": 2.0}, "q2": {"d3": 1.0}}
    assert read_run(file).answers == {"q1": {"d1": 2.0}, "q2": {"d3": 1.0}}


def test_an_empty_ranking_is_a_ranking(written):
    assert read_run(written('{"q1": [], "q2": {}}')).answers == {"q1": [], "q2": {}}


@given(
    st.dictionaries(
        st.text(min_size=1).filter(str.strip),
        st.dictionaries(
            st.text(min_size=1).filter(str.strip), st.floats(allow_nan=False, allow_infinity=False)
        ),
        min_size=1,
    )
)
def test_any_json_of_finite_scores_reads_as_python_reads_it(tmp_path_factory, scores):
    path = tmp_path_factory.mktemp("run") / "run.json"
    path.write_text(json.dumps(scores), encoding="utf-8")
    assert read_run(path).answers == scores


BAD_RUNS = {
    "NaN in TREC": ("q1 Q0 d1 1 0.5 x\nq1 Q0 d2 2 nan x\n", "file:2: invalid score 'nan'"),
    "NaN in tsv": ("q1\td1\t0.5\nq1\td2\tNaN\n", "file:2: invalid score 'NaN'"),
    "NaN in JSON": (
        '{\n "q1": {"d2": 1},\n "q2": {\n  "d1": 1,\n  "d2": NaN}}',
        "file:5: q2.d2: the score of query 'q2' and document 'd2' must be a finite number",
    ),
    "NaN in JSON lines": (
        '{"qid": "q1", "docs": ["d1"]}\n{"qid": "q2", "docs": {"d2": NaN}}\n',
        "file:2: docs: the score of query 'q2' and document 'd2' must be a finite number",
    ),
    "infinity": ('{"q1": {"d1": Infinity}}', "must be a finite number"),
    "hundreds of digits": ('{"q1": {"d1": 1' + "0" * 400 + "}}", "must be a finite number"),
    "a string": ('{"q1": {"d1": "0.5"}}', "must be a finite number, got a string"),
    "true": ('{"q1": {"d1": true}}', "must be a finite number, got true or false"),
    "twice in TREC": ("q1 Q0 d1 1 2 x\nq1 Q0 d1 2 1 x\n", "file:2: duplicate ranking"),
    "twice in tsv": ("q1\td1\t0.5\nq1\td1\t0.4\n", "file:2: duplicate ranking"),
    "twice in a JSON object": (
        '{"q1": {\n"d1": 1,\n"d1": 2}}',
        "file:3: q1.d1: the document 'd1' of query 'q1' is there twice",
    ),
    "twice in a JSON list": (
        '{"q0": ["d1"],\n"q1": ["d1",\n"d2",\n"d1"]}',
        "file:4: q1.d1: the document 'd1' is there twice",
    ),
    "a query twice in JSON": (
        '{"q1": ["d1"],\n"q1": ["d2"]}',
        "file:2: q1: the query 'q1' is there twice",
    ),
    "a query twice in lines": (
        '{"qid": "q1", "docs": ["d1"]}\n{"qid": "q1", "docs": ["d2"]}\n',
        "file:2: docs: the query 'q1' is there twice, first on line 1",
    ),
    "twice in rows": (
        '{"qid": "q1", "doc_id": "d1", "score": 1}\n{"qid": "q1", "doc_id": "d1", "score": 1}\n',
        "file:2: d1: the document 'd1' of query 'q1' is there twice",
    ),
    "broken JSON": ('{"q1": {"d1": 1},\n "q2" {"d1": 1}}', "file:2: invalid JSON"),
    "a broken line": (
        '{"qid": "q1", "docs": ["d1"]}\n{"qid": "q2", "docs": [}\n',
        "file:2: invalid JSON",
    ),
    "a line of another kind": ('{"qid": "q1", "docs": ["d"]}\n[1]\n', "file:2: must be an object"),
    "no query": ('{"qid": "q1", "docs": ["d1"]}\n{"docs": ["d1"]}\n', "file:2: 'query_id' is miss"),
    "no documents": ('{"qid": "q1", "docs": ["d1"]}\n{"qid": "q2"}\n', "file:2: none of 'docs'"),
    "an empty id": ('{"q1": ["d1", " "]}', "'document id' is empty"),
    "half a pair": ('{"q1": ["\\ud800"]}', "half of a surrogate pair"),
    "half a pair in a query": ('{"\\ud800": ["d1"]}', "half of a surrogate pair"),
    "a number": ('{"q1": 3}', "must be {document: score}, a list of document ids"),
    "too few fields": ("q1\td1\t0.5\nq1\td2\n", "file:2: expected query id, document id and score"),
    "commas": ("query,doc,score\nq1,d1,0.5\n", "file:1: not a known format of run"),
    "nothing": ("", "file: is empty"),
    "an empty object": ("{}", "file: holds no ranking"),
    "only a header": ("query-id\tcorpus-id\tscore\n", "file: holds no ranking"),
    "judgements": (QRELS["trec"], "file: holds judgements (query, iteration, document, grade)"),
}


@pytest.mark.parametrize("case", BAD_RUNS)
def test_a_broken_run_says_what_and_where(written, case):
    content, expected = BAD_RUNS[case]
    assert expected in messages(read_run, written(content))


BAD_QRELS = {
    "a run": (SCORED_RUNS["trec"], "is a run (query, Q0, document, rank, score, name)"),
    "a list": (LISTED_RUNS["json"], "did you swap --qrels and --run?"),
    "scores": ("q1\td1\t0.5\nq1\td2\t0.25\n", "are fractions, like scores; is this file a run?"),
    "JSON of scores": ('{"q1": {"d1": 0.5}}', "no document is relevant"),
    "NaN": ('{"q1": {"d1": NaN}}', "the grade of query 'q1' and document 'd1' must be a finite"),
    "twice": ("q1 0 d1 1\nq1 0 d1 1\n", "file:2: duplicate judgement"),
    "twice in JSON": ('{"q1": {"d1": 1, "d1": 1}}', "'d1' of query 'q1' is there twice"),
    "nothing relevant": ("q1 0 d1 0\n", "no document is relevant"),
    "an empty object": ("{}", "holds no judgement"),
    "no grade": ('{"qid": "q1", "doc_id": "d1"}', "'grade' is missing; the keys are: qid, doc_id"),
    "words": ("hello\n", "not a known format of judgements: 'hello'"),
}


@pytest.mark.parametrize("case", BAD_QRELS)
def test_broken_judgements_say_what_and_where(written, case):
    content, expected = BAD_QRELS[case]
    assert expected in messages(read_qrels, written(content))


def test_every_problem_is_reported_at_once(written):
    found = messages(read_run, written("q1 Q0 d1 1 nan x\nq1 Q0 d2\nq1 Q0 d3 1 1 x\n"))
    assert sorted(line.split(": ")[0] for line in found.splitlines()) == ["file:1", "file:2"]


def test_missing_files_and_folders_point_to_what_was_meant(tmp_path, written):
    path = written(SCORED_RUNS["trec"], "first.run")
    assert "no such file; did you mean 'first.run'?" in messages(read_run, tmp_path / "frist.run")
    assert messages(read_run, tmp_path / "other").endswith("no such file")
    assert "is a folder; give the file of the run" in messages(read_run, path.parent)
    (tmp_path / "qrels").mkdir()
    written(QRELS["tsv"], "qrels/test.tsv")
    assert "such as" in messages(read_qrels, tmp_path)
    assert "test.tsv" in messages(read_qrels, tmp_path)


def test_compressed_files_that_are_none_or_do_not_say_so(written):
    content = gzip.compress(SCORED_RUNS["trec"].encode(), mtime=0)
    assert "let its name end in .gz" in messages(read_run, written(content, "run"))
    # with this date in its head, the first line has four words, as judgements have
    dated = gzip.compress(SCORED_RUNS["trec"].encode(), mtime=0x6B0DAE0B)
    assert "let its name end in .gz" in messages(read_run, written(dated, "dated"))
    path = written("", "run.gz")
    path.write_bytes(content[:20])
    assert "corrupt gzip file" in messages(read_run, path)


def test_what_grades_and_scores_look_like():
    assert look_like_scores({"q": {"a": 0.5, "b": 0.25, "c": 1.0}})
    assert not look_like_scores({"q": {"a": 0.5, "b": 0.0, "c": 1.0}})
    assert look_like_grades({"q": {"a": 1.0, "b": 0.0}})
    assert not look_like_grades({"q": {"a": 1.5}})
    assert not look_like_grades({"q": ["a"]})


@pytest.mark.parametrize("name", ["trec_qrels.txt", "trec_qrels_graded.txt"])
def test_published_files_of_trec(published, name):
    grades = read_qrels(published.sample(name)).grades
    run = read_run(published.sample("trec_run.txt"))
    assert run.format == "trec"
    topics = {"601", "602", "603"} if published.is_ours else {"301", "302", "303"}
    assert set(grades) == set(run.answers) == topics
    assert sum(map(len, run.answers.values())) == (30 if published.is_ours else 1500)


def test_a_published_file_of_beir(published):
    found = read_qrels(published.sample("beir_qrels.tsv"))
    lines = published.sample("beir_qrels.tsv").read_text().splitlines()
    assert found.format == "tsv"
    assert sum(map(len, found.grades.values())) == len(lines) - 1


GRAPH_ROWS = [
    {"query_id": "q1", "docs": ["d1"], "entities": ["Lima"], "paths": [[["a", "r", "b"]]]},
    {"query_id": "q2", "docs": [], "entities": None},
]


@pytest.mark.parametrize("form", ["lines", "array"])
def test_a_run_may_tell_the_names_and_paths_of_its_graph(tmp_path, form):
    path = tmp_path / "run.json"
    lines = "".join(json.dumps(row) + "\n" for row in GRAPH_ROWS)
    path.write_text(lines if form == "lines" else json.dumps(GRAPH_ROWS))
    run = read_run(path)
    assert run.answers == {"q1": ["d1"], "q2": []}
    assert run.entities == {"q1": ("Lima",), "q2": ()}
    assert run.paths == {"q1": ((("a", "r", "b"),),)}


def test_a_run_that_tells_nothing_is_told_from_one_that_found_nothing(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"query_id": "q1", "docs": ["d1"]}\n')
    assert (read_run(path).entities, read_run(path).paths) == (None, None)
    path.write_text('{"query_id": "q1", "docs": ["d1"], "entities": [], "paths": []}\n')
    assert (read_run(path).entities, read_run(path).paths) == ({"q1": ()}, {"q1": ()})


def test_names_and_paths_of_another_shape_are_reported_with_their_line(tmp_path):
    path = tmp_path / "run.jsonl"
    rows = [
        {"query_id": "q1", "docs": ["d1"], "entities": "Lima"},
        {"query_id": "q2", "docs": ["d1"], "entities": ["Lima", 3]},
        {"query_id": "q3", "docs": ["d1"], "paths": [["a", "r", "b"]]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError) as caught:
        read_run(path)
    text = str(caught.value)
    assert "run.jsonl:1: entities: 'entities' must be a list of names, got a string" in text
    assert "run.jsonl:2: entities: 'entities' must be a list of names, each a string" in text
    assert "run.jsonl:3: paths: 'paths' must be a list of paths" in text


@pytest.mark.parametrize("form", ["lines", "array"])
def test_scores_beside_the_documents_order_them(tmp_path, form):
    rows = [{"query_id": "q1", "docs": ["d1", "d2", "d3"], "scores": [0.1, 0.9, 0.9]}]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(rows[0]) + "\n" if form == "lines" else json.dumps(rows))
    answers = read_run(path).answers
    assert answers == {"q1": {"d1": 0.1, "d2": 0.9, "d3": 0.9}}
    # score descending, then id descending, as trec_eval
    assert top_documents(["q1"], [answers["q1"]], depth=3, duplicates="error") == [
        ["d3", "d2", "d1"]
    ]


def test_scores_that_fit_no_documents_are_reported_with_their_line(tmp_path):
    path = tmp_path / "run.jsonl"
    lines = [
        '{"query_id": "q1", "docs": ["d1"], "scores": [1, 2, 3]}',
        '{"query_id": "q2", "docs": ["d1", "d2"], "scores": [1, NaN]}',
        '{"query_id": "q3", "docs": ["d1"], "scores": 1}',
        '{"query_id": "q4", "docs": {"d1": 2}, "scores": [1]}',
        '{"query_id": "q5", "docs": ["d1"], "scores": null}',
    ]
    path.write_text("\n".join(lines) + "\n")
    found = messages(read_run, path).splitlines()
    assert len(found) == 4
    assert "file:1: scores: must be one for each document: 1 documents, 3 scores" in found[0]
    assert "file:3: scores: must be a list of numbers" in found[1]
    assert "file:4: scores: belongs beside a list of document ids" in found[2]
    assert "file:2: " in found[3]
    assert "must be a finite number" in found[3]
