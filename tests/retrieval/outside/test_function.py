"""The function adapter: every form of function, wrong ones explained, every kind of fault."""

from __future__ import annotations

import itertools
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tuner.core.corpus import Query
from tuner.core.errors import InputError, OutageError, TunerError
from tuner.core.space import Categorical, Integer, Real, SearchSpace
from tuner.core.trial import Outcome, Trial
from tuner.execution.local.processes import Processes
from tuner.retrieval.adapters.function import Function
from tuner.retrieval.wrapped.remembered import Remembered
from tuner.testing import RetrieverCase
from tuner.testing.retrievers import CHECKS

RANK = """
import asyncio, os

TEXTS = {"d0": "lima rimac", "d1": "cairo nile", "d2": "paris seine", "d3": "rome tiber"}


def ranked(query, top_k=4):
    words = set(query.lower().split())
    scored = sorted((-len(words & set(text.split())), id_) for id_, text in TEXTS.items())
    return [(id_, -score) for score, id_ in scored if score][:top_k]
"""
SEARCHES = {
    "mapping": "def search(query, params): return ranked(query, params['top_k'])",
    "named": "def search(query, top_k=4): return ranked(query, top_k)",
    "keywords": "def search(query, **params): return ranked(query, params['top_k'])",
    "parts": """
def search(query, top_k=4):
    return [{"id": id_, "score": score, "span": (0, 4)} for id_, score in ranked(query, top_k)]
""",
    "async": """
async def search(query, params):
    await asyncio.sleep(0)
    return ranked(query, params["top_k"])
""",
    "instance": """
class Searcher:
    def __call__(self, query, top_k): return ranked(query, top_k)
search = Searcher()
""",
    "async instance": """
class Searcher:
    async def __call__(self, query, top_k): return ranked(query, top_k)
search = Searcher()
""",
    "class": """
class search:
    def prepare(self, queries): self.count = len(queries)
    def retrieve(self, queries, params):
        return [ranked(query.text, params["top_k"]) for query in queries]
""",
    "async class": """
class search:
    async def retrieve(self, queries, params):
        await asyncio.sleep(0)
        return [ranked(query.text, params["top_k"]) for query in queries]
""",
    "rankings": """
from tuner.core.rankings import Rankings
class search:
    def retrieve(self, queries, params):
        found = [[id_ for id_, _ in ranked(q.text, params["top_k"])] for q in queries]
        return Rankings.from_ids([q.id for q in queries], found)
""",
    "own knobs": """
from tuner.retrieval.base import Knob
def search(query, params): return ranked(query, params["top_k"])
search.knobs = [Knob("top_k", "integer", 4, 1, 4)]
""",
}
SPACE = SearchSpace({"top_k": Integer(1, 4)})
numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("functions")


@pytest.fixture(scope="module")
def write(folder):
    """Write a module and return the full name of a thing in it."""

    def module(code: str, thing: str = "search") -> str:
        name = f"outside_function_{next(numbers)}"
        text = f"{RANK}\n{textwrap.dedent(code)}\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        return f"{name}:{thing}"

    return module


@pytest.fixture(scope="module")
def make(corpus, folder, write):
    def build(code: str, space: SearchSpace = SPACE, **options) -> Function:
        given = {"space": space, "baseline": {"top_k": 4}, "search_path": [str(folder)], **options}
        return Function.build(corpus, function=write(code), **given)

    return build


@pytest.fixture(scope="module", params=SEARCHES.values(), ids=SEARCHES.keys())
def case(request, make, corpus, queries):
    ids = {document.id for document in corpus.documents}
    return RetrieverCase(lambda: make(request.param), queries, ({}, {"top_k": 1}), document_ids=ids)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, case):
    check(case)


@pytest.mark.parametrize("name", SEARCHES)
def test_every_form_answers_alike(make, queries, name):
    found = make(SEARCHES[name]).retrieve(queries, {"top_k": 1})
    assert [found.ids(row) for row in range(4)] == [["d0"], ["d2"], ["d1"], []]
    assert found.context_tokens.tolist() == [8.0, 8.0, 8.0, 0.0]


FAULTS = SearchSpace({"fault": Categorical(("none", "other"))})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('no such collection')", "query 'q0': ValueError: no such collection"),
        ("if 'Rome' in query: raise KeyError('x')", "query 'q2': KeyError: 'x'"),
        ("return None", "query 'q0': a list of document ids is needed, the answer is nothing"),
        ("return ['zz']", "query 'q0': result 1: no document of the data set has the id 'zz'"),
        ("return [('d0', float('nan'))]", "query 'q0': the score of result 1 is nan"),
        ("return [('d0', 0.1), ('d1', 0.2)]", "query 'q0': the scores rise from 0.1 to 0.2"),
        ("return (id_ for id_ in ['d0'])", "query 'q0': a list of document ids is needed"),
    ],
)
@pytest.mark.parametrize("form", ["def", "async def"])
def test_a_fault_fails_the_trial_and_the_next_one_is_right(make, queries, form, body, reason):
    code = f"""
{form} search(query, fault):
    if fault == "other":
        {body}
    return ranked(query)
"""
    function = make(code, FAULTS, baseline={"fault": "none"})
    with pytest.raises(TunerError) as raised:
        function.retrieve(queries, {"fault": "other"})
    assert str(raised.value).startswith(reason)
    assert function.retrieve(queries, {}).ids(0) == ["d0"]


@pytest.mark.slow
def test_an_async_function_that_hangs_ends_at_the_time_limit(make, queries):
    code = """
async def search(query, fault):
    if fault == "other":
        await asyncio.sleep(600)
    return ranked(query)
"""
    function = make(code, FAULTS, baseline={"fault": "none"}, timeout_s=2, concurrency=2)
    with pytest.raises(TunerError, match=r"query 'q\d': no answer within 2 s"):
        function.retrieve(queries, {"fault": "other"})
    assert function.retrieve(queries, {}).ids(0) == ["d0"]


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_function_that_hangs_in_a_thread_is_left_behind(make, queries, concurrency):
    code = """
import threading
released = threading.Event()
def search(query, fault):
    if fault == "other" and "Paris" in query:
        released.wait(900)
    return ranked(query)
"""
    limits = {"timeout_s": 0.3, "concurrency": concurrency}
    function = make(code, FAULTS, baseline={"fault": "none"}, **limits)
    try:
        for _ in range(3):  # what hangs takes no place from those that come after it
            with pytest.raises(OutageError, match=r"query 'q1': no answer within 0\.3 s"):
                function.retrieve(queries, {"fault": "other"})
            assert function.retrieve(queries, {}).ids(0) == ["d0"]
    finally:
        sys.modules[function.target.name.partition(":")[0]].released.set()


def test_an_own_timeout_error_is_not_taken_for_the_limit(make, queries):
    code = "async def search(query, top_k): raise TimeoutError('the database')"
    with pytest.raises(TunerError, match="query 'q0': TimeoutError: the database"):
        make(code).retrieve(queries, {})


def test_async_calls_share_a_limit_and_reach_it(make):
    # Each call waits until three run; a fourth would be seen.
    code = """
running, most, three = 0, 0, asyncio.Event()
async def search(query, top_k):
    global running, most
    running += 1
    most = max(most, running)
    if running == 3:
        three.set()
    await three.wait()
    await asyncio.sleep(0)
    running -= 1
    return ranked(query)
"""
    function = make(code, concurrency=3)
    function.retrieve([Query(f"q{number}", "Lima") for number in range(20)], {})
    assert sys.modules[function.target.name.partition(":")[0]].most == 3


def test_calls_in_threads_share_a_limit_reach_it_and_keep_their_order(make, queries):
    code = """
import threading
running, most, lock, three = 0, 0, threading.Lock(), threading.Event()
def search(query, top_k):
    global running, most
    with lock:
        running += 1
        most = max(most, running)
        if running == 3:
            three.set()
    three.wait(900)
    with lock:
        running -= 1
    return ranked(query)
"""
    function = make(code, concurrency=3)
    asked = [Query(f"{query.id}-{n}", query.text) for n in range(4) for query in queries]
    with ThreadPoolExecutor(2) as trials:  # the limit is that of all trials together
        first, second = trials.map(lambda _: function.retrieve(asked, {}), range(2))
    assert sys.modules[function.target.name.partition(":")[0]].most == 3
    alone = make("def search(query, top_k): return ranked(query)").retrieve(asked, {})
    for found in (first, second):
        assert [found.ids(row) for row in range(16)] == [alone.ids(row) for row in range(16)]
        np.testing.assert_array_equal(found.scores, alone.scores)
    names = [thread.name for thread in threading.enumerate()]
    for _ in range(200):  # threads that have nothing left to do end by themselves
        if "retrieval" not in names:
            break
        time.sleep(0.01)
        names = [thread.name for thread in threading.enumerate()]
    assert "retrieval" not in names


@pytest.mark.parametrize("form", ["def", "async def"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_what_was_answered_before_a_failure_is_kept(make, tmp_path, form, concurrency):
    code = f"""
asked, is_away = [], True
{form} search(query, top_k):
    asked.append(query)
    if is_away and "7" in query:
        raise ConnectionRefusedError("nobody listens")
    {"import time; time.sleep(0.004)" if form == "def" else "await asyncio.sleep(0.004)"}
    return ["d0"]
"""
    function = make(code, concurrency=concurrency)
    module = sys.modules[function.target.name.partition(":")[0]]
    queries = [Query(f"q{n}", f"text {n}") for n in range(10)]
    remembered = Remembered(function, tmp_path)
    with pytest.raises(OutageError, match="query 'q7': ConnectionRefusedError: nobody listens"):
        remembered.retrieve(queries, {})
    module.is_away = False
    found = Remembered(function, tmp_path).retrieve(queries, {})
    assert [found.ids(row) for row in range(10)] == [["d0"]] * 10
    twice = [query for query in set(module.asked) if module.asked.count(query) > 1]
    if form == "def":
        assert twice == ["text 7"]  # calls under way in threads end, and are kept
    else:
        assert len(twice) <= 1 + concurrency  # those under way are cancelled


def test_an_exit_in_a_thread_costs_its_trial_only(make, queries):
    code = "def search(query, top_k): raise SystemExit('leaving')"
    with pytest.raises(TunerError, match="SystemExit: leaving"):
        make(code, concurrency=2).retrieve(queries, {})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("[['d0']]", "returned 1 answers to 4 queries"),
        ("{'q0': ['d0']}", "returned dict, not one list a query"),
        ("None", "returned NoneType, not one list a query"),
        ("Rankings.from_ids(['q0'], [['zz']])", "query 'q0': no document of the data set has"),
    ],
)
def test_batches_of_the_wrong_form_are_refused(make, queries, answer, reason):
    code = f"""
from tuner.core.rankings import Rankings
class search:
    def retrieve(self, queries, params): return {answer}
"""
    with pytest.raises(TunerError) as raised:
        make(code).retrieve(queries, {})
    assert reason in str(raised.value)


def test_a_killed_worker_costs_one_trial(make, queries):
    code = """
def search(query, fault):
    if fault == "other":
        os._exit(7)
    return ranked(query)
"""
    function = make(code, FAULTS, baseline={"fault": "none"})

    def evaluate(params):
        return Outcome(metrics={"found": float(len(function.retrieve(queries, params).ids(0)))})

    trials = [Trial(n, "a", {"fault": f}) for n, f in enumerate(["none", "other", "none"])]
    outcomes = {
        trial.number: outcome for trial, outcome in Processes(1).run(evaluate, iter(trials))
    }
    assert outcomes[0].metrics == outcomes[2].metrics == {"found": 1.0}
    assert "exit code 7" in outcomes[1].error


def test_what_cannot_be_pickled_is_imported_by_each_process(make, queries):
    function = make(
        """
import threading
class Searcher:
    lock = threading.Lock()
    def __call__(self, query, top_k): return ranked(query, top_k)
search = Searcher()
search.own = threading.Lock()
"""
    )
    payload = pickle.dumps(function)
    code = (
        "import pickle, sys\nfrom tuner.core.corpus import Query\n"
        "function = pickle.loads(sys.stdin.buffer.read())\n"
        "print(function.retrieve([Query('q', 'Lima')], {}).ids(0))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=payload, capture_output=True)
    assert done.stdout.decode().strip() == "['d0']", done.stderr.decode()


def test_a_function_with_names_has_no_other_knobs(make):
    space = SearchSpace({"top_q": Integer(1, 4)})
    function = make("def search(query, top_k=3, *, mode='a'): return []", space, baseline={})
    assert [(k.name, k.kind, k.default) for k in function.knobs] == [
        ("top_k", "integer", 3),
        ("mode", "categorical", "a"),
    ]


def test_knobs_of_the_space_have_its_kinds_and_no_bounds(make):
    space = SearchSpace(
        {
            "weight": Real(0.0, 1.0),
            "depth": Integer(1, 100, scale="log"),
            "mode": Categorical(("a", "b")),
        }
    )
    function = make("def search(query, params): return []", space, baseline={"depth": 500, "x": 1})
    kinds = [(k.name, k.kind, k.default, k.low, k.choices) for k in function.knobs]
    assert kinds == [
        ("weight", "real", 0.5, None, ()),  # the middle of its range
        ("depth", "integer", 500, None, ()),  # today's value, wherever it lies
        ("mode", "categorical", "a", None, ("a", "b")),
        ("x", "integer", 1, None, ()),
    ]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "class R:\n    def invoke(self, query):\n        return []\nsearch = R()",
            "        documents = search.invoke(query)\n        return [document.metadata",
        ),
        ("search = 3", "is of type int: neither a function nor an object with `retrieve`"),
        ("def find(query): return []", "has no 'search'"),
        ("def serch(query): return []", "did you mean 'serch'?"),
        ("def search(query): return []", "takes no parameter to tune"),
        ("def search(params): return {}", "takes no `query`, so it returns metrics"),
        ("def search(q, p, /): return []", "a parameter has no name to give it by"),
        ("search = dict.get", "a parameter has no name to give it by"),
        ("def search(query, top_k, user): return []", "needs 'user': name it in the space"),
        ("import no_such_module_here", "cannot be imported: No module named 'no_such_module_here'"),
        ("def search(query, params) return []", "cannot be imported: SyntaxError"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
        (
            "class search:\n  def __init__(self): raise OSError('no such index')",
            "cannot be called without arguments: OSError: no such index",
        ),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        (
            "class search:\n  def __init__(self, path): ...\n  def retrieve(self, q, p): ...",
            "cannot be called without arguments",
        ),
        (
            "class T:\n  def retrieve(self, str_or_query_bundle): return []\nsearch = T()",
            "retrieve takes (str_or_query_bundle), and would be given 2 arguments: queries, params",
        ),
        (
            "class Theirs:\n  def retrieve(self, query, k=3): return []\nsearch = Theirs()",
            "search(query, top_k): return [(n.node.node_id, n.score) for n in search.retrieve(",
        ),
        (
            "class search:\n  def retrieve(self, queries, params): ...\n  def prepare(self): ...",
            "prepare takes (), and would be given 1 argument: queries",
        ),
        (
            "def search(query, params): return []\nsearch.knobs = ['top_k']",
            ".knobs must be a list of tuner.retrieval.base.Knob",
        ),
    ],
)
def test_wrong_functions_are_explained(make, code, reason):
    with pytest.raises(InputError) as raised:
        make(code)
    (problem,) = raised.value.problems
    assert problem.key == ("function",)
    assert reason in problem.message


@pytest.mark.parametrize(
    ("options", "key", "reason"),
    [
        ({"function": "no_colon"}, "function", "write it as my_package.module:thing"),
        ({"function": 3}, "function", "write it as my_package.module:thing"),
        ({"function": "no_such_module_here:f"}, "function", "no module 'no_such_module_here' in /"),
        ({"function": "json:dumps", "search_path": "x"}, "search_path", "must be a list of"),
        ({"function": "json:dumps", "concurrency": 0}, "concurrency", "whole number from 1 up"),
        ({"function": "json:dumps", "concurrency": 1.5}, "concurrency", "whole number from 1 up"),
        ({"function": "json:dumps", "timeout_s": 0}, "timeout_s", "must be a number above 0"),
        ({"function": "json:dumps", "timeout_s": "1"}, "timeout_s", "must be a number above 0"),
    ],
)
def test_wrong_options_are_explained(corpus, options, key, reason):
    with pytest.raises(InputError) as raised:
        Function.build(corpus, **options)
    (problem,) = raised.value.problems
    assert problem.key == (key,)
    assert reason in problem.message


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("def search(params): return {'recall': params['top_k'] / 4}", {"recall": 0.5}),
        ("def search(top_k): return {'recall': top_k / 4}", {"recall": 0.5}),
        ("async def search(top_k): return top_k / 4", 0.5),
    ],
)
def test_a_function_without_a_query_measures_itself(write, folder, code, answer):
    system = Function.build_measure(
        function=write(code), search_path=[str(folder)], space=SPACE, baseline={}
    )
    assert system.measure({"top_k": 2}) == answer
    with pytest.raises(InputError, match="no parameter 'top_q'; did you mean 'top_k'"):
        system.measure({"top_q": 2})


def test_a_function_with_a_query_needs_a_data_set(write, folder):
    with pytest.raises(InputError, match="answers queries: add `dataset:`, where they are"):
        Function.build_measure(
            function=write("def search(query, top_k): return []"), search_path=[str(folder)]
        )


def test_the_source_decides_the_fingerprint(corpus, write, folder):
    name = write("def search(query, top_k): return []")
    path = folder / f"{name.partition(':')[0]}.py"

    def fingerprint() -> str:
        return Function.build(corpus, function=name, search_path=[str(folder)]).fingerprint

    first = fingerprint()
    assert fingerprint() == first
    path.write_text(path.read_text(encoding="utf-8") + "# changed", encoding="utf-8")
    assert fingerprint() != first


def test_folders_are_those_of_the_configuration_and_then_the_working_one(tmp_path):
    resolved = Function.resolve_options({"function": "a:b"}, tmp_path)
    assert resolved == {"function": "a:b", "search_path": [str(tmp_path), str(Path().resolve())]}
    assert Function.resolve_options(resolved, Path("elsewhere")) == resolved


@pytest.mark.parametrize(
    ("form", "at_once"),
    [("mapping", 1), ("named", 5), ("async", 5), ("async instance", 5), ("class", None)],
)
def test_queries_that_are_answered_one_by_one_say_so(make, form: str, at_once: int | None) -> None:
    options = {} if form == "class" or at_once == 1 else {"concurrency": 5}
    assert make(SEARCHES[form], **options).queries_at_once == at_once


def test_limits_are_not_for_objects_that_answer_batches(make) -> None:
    for options in ({"concurrency": 2}, {"timeout_s": 2}):
        with pytest.raises(InputError, match="is for functions that answer one query"):
            make(SEARCHES["class"], **options)


def test_what_an_object_raises_fails_the_trial_in_one_line(make, queries):
    function = make(
        "class search:\n  def retrieve(self, queries, params): raise KeyError('no such node')"
    )
    with pytest.raises(TunerError, match=r"search.retrieve raised KeyError: 'no such node'"):
        function.retrieve(queries, {"top_k": 2})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("'y' * 10**6", r"query '\w+': ValueError: y{400,}…$"),
        ("'caf\\udce9'", r"ValueError: caf\\udce9$"),
        ("'one\\ntwo'", "ValueError: one two$"),
        ("Unshown()", r"ValueError: \(its message cannot be shown\)$"),
    ],
)
def test_whatever_a_function_raises_is_told_in_a_line(make, queries, text, reason):
    function = make(
        "class Unshown:\n  def __str__(self): raise RuntimeError\n"
        f"def search(query, top_k=5): raise ValueError({text})"
    )
    with pytest.raises(TunerError) as raised:
        function.retrieve(queries, {"top_k": 2})
    assert re.search(reason, str(raised.value))
    assert len(str(raised.value)) < 600


def test_a_function_that_exits_fails_and_does_not_end_the_command(make, queries):
    function = make("def search(query, top_k=5): raise SystemExit(3)")
    with pytest.raises(TunerError, match=r"query '\w+': SystemExit: 3$"):
        function.retrieve(queries, {"top_k": 2})
