"""Reading query logs: which columns, which times, and what is wrong where."""

import gzip
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import InputError
from tuner.core.words import compare_key, normalise
from tuner.evalset.query_log import (
    read_query_log,
    since_date,
)


def write(folder, text, name="log.csv"):
    file = folder / name
    file.write_bytes(text.encode("utf-8"))
    return file


def test_usual_columns_are_found_whatever_their_case_and_order(tmp_path):
    file = write(
        tmp_path,
        "User ID,Timestamp,Search Query,clicked_ids,rank\n"
        'u1,2026-01-02T10:00:00,"Where, and when?",d1;d2,3\n'
        "u2,1767434400,Ada　Lovelace,,\n"
        'u3,1767434400000,x,"[""d 1"", ""d;2""]",\n',
    )
    log = read_query_log(file)
    assert log.columns == {
        "query": "Search Query", "time": "Timestamp", "user": "User ID", "clicked": "clicked_ids",
    }  # fmt: skip
    first, second, third = log.entries
    assert first.text == "Where, and when?"
    assert first.time == datetime(2026, 1, 2, 10, tzinfo=UTC)
    assert first.clicked == ("d1", "d2")
    assert (second.text, second.user, second.clicked) == ("Ada Lovelace", "u2", ())
    assert second.time == third.time == datetime(2026, 1, 3, 10, tzinfo=UTC)
    assert third.clicked == ("d 1", "d;2")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_and_chinese_headers(tmp_path, delimiter):
    rows = [["时间", "查询"], ["2026-01-02", "巴黎的人口是多少？"]]
    file = write(tmp_path, "\ufeff" + "\r\n".join(delimiter.join(row) for row in rows))
    (entry,) = read_query_log(file).entries
    assert entry.text == "巴黎的人口是多少?"


def test_json_lines_gzipped(tmp_path):
    file = tmp_path / "log.jsonl.gz"
    lines = [
        {"query": "who is Ada?", "user": 7, "clicked": ["d1", "d1"]},
        {"query": "  ", "time": None},
        {"query": None},
    ]
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    log = read_query_log(file)
    assert [(e.text, e.user, e.clicked) for e in log.entries] == [("who is Ada?", "7", ("d1",))]
    assert log.blank == 2


def test_emoji_are_queries_and_punctuation_alone_is_counted_as_that(tmp_path):
    file = write(tmp_path, "query,user\n🌵,a\n🥨🥨,b\nfog in Bled,c\n?!,d\n…,d\n,e\n  ,e\n€,f\n")
    log = read_query_log(file)
    assert [entry.text for entry in log.entries] == ["🌵", "🥨🥨", "fog in Bled", "€"]
    assert (log.blank, log.wordless) == (2, 2)


def test_columns_can_be_named(tmp_path):
    file = write(tmp_path, "query,typed\nrewritten,as typed\n")
    log = read_query_log(file, columns={"query": "typed"})
    assert log.entries[0].text == "as typed"
    with pytest.raises(InputError, match="no column 'tiped' for query; did you mean 'typed'"):
        read_query_log(file, columns={"query": "tiped"})
    with pytest.raises(InputError, match="no role 'querry'; did you mean 'query'"):
        read_query_log(file, columns={"querry": "typed"})


def test_a_log_without_a_column_of_queries_says_what_to_write(tmp_path):
    file = write(tmp_path, "a,b\n1,2\n")
    with pytest.raises(
        InputError, match=r"no column of queries among 'a', 'b'.*--column query=NAME"
    ):
        read_query_log(file)


def test_every_broken_line_is_named(tmp_path):
    file = write(tmp_path, "query,time\nhello, world,2026-01-01\nhi,yesterday\n")
    with pytest.raises(InputError) as caught:
        read_query_log(file)
    said = str(caught.value)
    assert "log.csv:2: 3 fields, but the header has 2; put what contains ','" in said
    assert "log.csv:3: 'time' is no time: 'yesterday'" in said

    file = write(tmp_path, '{"query": "a"}\n{"query": 7}\n[1]\n{"q', "log.jsonl")
    with pytest.raises(InputError) as caught:
        read_query_log(file)
    said = str(caught.value)
    assert "log.jsonl:2: 'query' must be a string, got the number 7; write" not in said
    assert "log.jsonl:2: 'query' must be a string, got the number 7" in said
    assert "log.jsonl:3: a line must be a JSON object" in said
    assert "log.jsonl:4: not valid JSON" in said

    file = write(tmp_path, '{"query": "a"}\n{"query": "caf\\udce9"}\n', "log.jsonl")
    with pytest.raises(InputError, match=r"log\.jsonl:2: holds half of a surrogate pair"):
        read_query_log(file)


@pytest.mark.parametrize("text", ["", "query\n", "query\n ?? \n"])
def test_a_log_without_queries_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="holds no query"):
        read_query_log(write(tmp_path, text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv: cannot be read: No such file"):
        read_query_log(tmp_path / "none.csv")


def test_a_corpus_is_no_log(tmp_path):
    file = tmp_path / "corpus.jsonl"
    file.write_text('{"_id": "d1", "title": "Ada", "text": "Ada studied."}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"holds documents .* write --column query=text"):
        read_query_log(file)
    assert read_query_log(file, columns={"query": "text"}).entries[0].text == "Ada studied."


def test_since_keeps_what_was_asked_from_then_on(tmp_path):
    file = write(tmp_path, "query,time\nold,2025-12-31\nnew,2026-01-01\nundated,\n")
    log = read_query_log(file)
    assert [entry.text for entry in since_date(log, "2026-01-01")] == ["new"]
    with pytest.raises(InputError, match="is no date"):
        since_date(log, "January")
    with pytest.raises(InputError, match="--column time=NAME"):
        since_date(read_query_log(write(tmp_path, "query\nx\n")), "2026-01-01")


def test_normalising_by_example():
    assert normalise(" Ｗho\u00a0 is\u200b\tAda？\n") == "Who is Ada?"
    assert compare_key("WHO is Ada？") == compare_key("who is ada")
    assert compare_key("C++ or C#?") != compare_key("C or C")


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)
    assert compare_key(normalise(text)) == compare_key(text)
