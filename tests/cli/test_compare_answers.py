"""Two context strategies by their answers, from the command line."""

from __future__ import annotations

import json

import pytest

ANSWERS = '''
def city(context, query):
    """Answers with the city of the best passage."""
    return context.split("\\n")[0]

def last_title(context, query):
    return context.split("\\n\\n")[-1].split("\\n")[0]

def first_word(context, query):
    return context.split()[0].lower() + " and more"

def judge(answer, expected, query):
    return float(expected in answer and expected in query)
'''


@pytest.fixture
def compare(tuner_here):
    """The command in this process, on the small data set with expected answers."""
    folder = tuner_here.folder / "data"
    samples = []
    for line in (folder / "queries.jsonl").read_text().splitlines():
        query = json.loads(line)
        city = query["text"].split()[-1].strip("?")
        document = f"{city}-{query['query_type']}"
        samples.append(
            {
                "id": query["_id"], "query": query["text"], "query_type": query["query_type"],
                "relevant_docs": [document], "expected_answer": f"the city of {city}",
                "answer_aliases": [city],
            }
        )  # fmt: skip
    (folder / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    (folder / "queries.jsonl").unlink()
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels").rmdir()
    (tuner_here.folder / "city_answers.py").write_text(ANSWERS)

    def run(*arguments, code=0):
        return tuner_here("compare", *arguments, code=code)

    return run


def test_one_function_answers_from_the_contexts_of_two_configurations(compare, tmp_path):
    # The passages of a city are the two best for its queries, so the last of 2 has the right title,
    # and the last of 12 another one: 1 against 0.
    done = compare(
        "config.yaml", "--a", '{"top_k": 12}', "--b", '{"top_k": 2}',
        "--answers", "city_answers:last_title", "--similarity", "exact_match",
        "--similarity", "city_answers:judge", "--keep-answers", "kept", "--json",
    )  # fmt: skip
    record = json.loads(done.stdout)
    assert record["queries"] == 10  # held out
    exact = record["metrics"]["exact_match"]
    assert (exact["control_mean"], exact["treatment_mean"]) == (0.0, 1.0)
    assert record["sentence"].startswith("Take B: exact_match 1.000 against 0.000, +1.000")
    assert record["metrics"]["city_answers:judge"]["treatment_mean"] == 1.0
    kept = (tmp_path / "kept" / "b.jsonl").read_text().splitlines()
    assert len(kept) == 10
    assert all(json.loads(line)["answer"] for line in kept)
    # The answers that were kept give the same figures again.
    again = json.loads(
        compare(
            "config.yaml", "--answers", "kept/a.jsonl", "--answers", "kept/b.jsonl",
            "--similarity", "exact_match", "--json",
        ).stdout
    )  # fmt: skip
    assert again["metrics"]["exact_match"]["mean_difference"] == 1.0


def test_two_functions_answer_from_the_same_context(compare):
    done = compare(
        "config.yaml", "--queries", "all",
        "--answers", "city_answers:first_word", "--answers", "city_answers:city",
    )  # fmt: skip
    # A: "lima and more" for "Lima": P = 1/3, R = 1, F1 = .5, and never an exact match.
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.strip()}
    assert rows["token_f1"][1:3] == ["0.5000", "1.0000"]
    assert rows["exact_match"][1:3] == ["0.0000", "1.0000"]
    assert "Take B: token_f1 1.000 against 0.500, +0.500" in done.stdout
    assert "gained most" in done.stdout
    assert "lost most" not in done.stdout


def test_a_comparison_with_itself_is_no_look_at_the_held_out_queries(compare, tmp_path):
    looks = tmp_path / "runs" / "holdouts.jsonl"
    first, one = ["--a", '{"top_k": 2}'], ["--answers", "city_answers:city"]
    compare("config.yaml", *first, *one, *one, "--keep-answers", "kept")
    compare("config.yaml", *first, "--b", '{"top_k": 2}', *one)
    compare("config.yaml", *["--answers", "kept/a.jsonl"] * 2)
    assert not looks.exists()
    other = ["--answers", "city_answers:last_title"]
    done = compare("config.yaml", *first, *one, *other)
    assert "remembered as a look at the 10 held-out queries" in done.stderr
    assert "looked at" not in done.stderr
    assert len(looks.read_text().splitlines()) == 1
    # The same answers, by whatever they were made, tell nothing new.
    assert "no further look" in compare("config.yaml", *first, *one, *other).stderr
    done = compare("config.yaml", *first, "--b", '{"top_k": 12}', *other)
    assert "remembered" in done.stderr
    (tmp_path / "b.json").write_text(json.dumps({"q0-river": "Lima", "q0-market": "Lima"}))
    done = compare("config.yaml", "--answers", "kept/a.jsonl", "--answers", "b.json")
    assert "they had been looked at once before" in done.stderr
    assert len(looks.read_text().splitlines()) == 3


def test_files_of_answers_need_the_data_set_alone(compare, tmp_path):
    lines = [json.dumps({"query_id": f"q{n}-river", "answer": "Lima"}) for n in range(8)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.json").write_text(json.dumps({"q0-river": "Lima", "q1-river": "Oslo", "x": ""}))
    done = compare("data", "--answers", "a.jsonl", "--answers", "b.json", "--json")
    record = json.loads(done.stdout)
    assert record["queries"] == 8  # those that one of the two answers
    assert record["metrics"]["exact_match"]["control_mean"] == pytest.approx(1 / 8)
    assert record["metrics"]["exact_match"]["treatment_mean"] == pytest.approx(2 / 8)
    assert record["remarks"] == ["B gave no answer to 6 queries; each is scored as an empty one"]
    assert "1 ids are of no query" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["config.yaml"], "give --b, what might replace A; or --answers"),
        (["config.yaml", "--b", "{}", "--similarity", "rouge_l"], "belong to --answers"),
        (["config.yaml", "--answers", "city_answers:city"], "give --b, the other context"),
        (["config.yaml", "--answers", "none.jsonl"], "none.jsonl: there is no such file"),
        (["config.yaml", "--answers", "one.jsonl"], "give a second --answers"),
        (["config.yaml", *["--answers", "m:f"] * 3], "at most two"),
        (["config.yaml", *["--answers", "city_answers:nothing"] * 2], "has no 'nothing'"),
        (["config.yaml", *["--answers", "city_answers:ANSWER"] * 2], "has no 'ANSWER'"),
        (["data", "--answers", "one.jsonl", "--answers", "m:f"], "'data' is a data set"),
        (["data", *["--answers", "other.jsonl"] * 2], "answers no query of the data set"),
        (
            ["data", *["--answers", "twice.jsonl"] * 2],
            "twice.jsonl:2: query 'q0-river' is answered",
        ),
        (["data", *["--answers", "broken.jsonl"] * 2], "broken.jsonl:1: not valid JSON"),
        (["data", *["--answers", "wide.jsonl"] * 2], "wide.jsonl: is UTF-16; save it as UTF-8"),
        (["data", *["--answers", "latin.jsonl"] * 2], "latin.jsonl:1: invalid UTF-8"),
        (["data", *["--answers", "keys.jsonl"] * 2], "needs an id and an answer; the keys are: q"),
        (["data", *["--answers", "one.jsonl"] * 2, "--similarity", "f1"], "unknown similarity"),
        (["data", *["--answers", "one.jsonl"] * 2, "--keep-answers", "x"], "these are files"),
        (["config.yaml", "--answers", "m:f", "--keep-answers", "one.jsonl"], "this is a file"),
    ],
)
def test_bad_input_is_told_with_exit_code_2(compare, tmp_path, arguments, message):
    line = '{"id": "q0-river", "answer": "Lima"}\n'
    (tmp_path / "one.jsonl").write_text(line)
    (tmp_path / "twice.jsonl").write_text(line + line)
    (tmp_path / "other.jsonl").write_text('{"id": "z", "answer": "Lima"}\n')
    (tmp_path / "broken.jsonl").write_text('{"id": \n{"id": "q0-river", "answer": "a"}\n')
    (tmp_path / "wide.jsonl").write_bytes(line.encode("utf-16"))
    (tmp_path / "latin.jsonl").write_bytes(line.replace("Lima", "Málaga").encode("latin-1"))
    (tmp_path / "keys.jsonl").write_text('{"q": "q0-river", "answer": "a"}\n')
    assert message in compare(*arguments, code=2).stderr
