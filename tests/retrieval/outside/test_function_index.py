"""Indexes of a user's object: which parameters shape them, where they are kept, what goes wrong."""

from __future__ import annotations

import itertools
import pickle
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuner.core.corpus import Corpus, Document, Query
from tuner.core.errors import InputError, OutageError, TunerError
from tuner.core.space import Categorical, Integer, SearchSpace
from tuner.retrieval.adapters.function import Function
from tuner.retrieval.indexes.pickling import Pickler, open_pickle
from tuner.testing import IndexCase
from tuner.testing.indexes import CHECKS

DOCUMENTS = (
    Document("d0", "Lima", "Lima lies on a river called Rimac."),
    Document("d1", "Cairo", "Cairo lies on a river called Nile."),
    Document("d2", "Paris", "Paris lies on a river called Seine."),
)
CORPUS = Corpus(DOCUMENTS, fingerprint="three-cities")
QUERIES = (Query("q0", "lima"), Query("q1", "nile"), Query("q2", "zymurgy"))
SPACE = SearchSpace({"field": Categorical(("title", "text")), "top_k": Integer(1, 3)})
ENGINE = """
class Engine:
    def build(self, documents, field="title", length=20):
        print("building", field)
        words = {}
        for document in documents:
            for word in getattr(document, field).lower().rstrip(".").split()[:length]:
                words.setdefault(word, []).append(document.id)
        return words

    def search(self, index, query, top_k=2):
        return index.get(query, [])[:top_k]
"""
WITH_FOLDER = """
import json

class Engine:
    def build(self, documents, folder, field="title"):
        (folder / "ids.json").write_text(
            json.dumps({getattr(d, field).lower().rstrip(".").split()[-1]: d.id for d in documents})
        )

    def search(self, index, query, top_k=2):
        found = json.loads((index / "ids.json").read_text())
        return [found[query]] if query in found else []
"""
ASYNC = """
import asyncio

class Engine:
    async def build(self, documents, field="title"):
        await asyncio.sleep(0)
        return [(getattr(d, field).lower(), d.id) for d in documents]

    async def search(self, index, query, top_k=2):
        return [id_ for text, id_ in index if query in text][:top_k]
"""
OPEN = """
class Engine:
    @staticmethod
    def build(corpus, *, field="title"):
        return [(getattr(d, field).lower(), d.id) for d in corpus.documents]

    @staticmethod
    def search(index, query, **params):
        assert set(params) == {"top_k"}, params
        return [id_ for text, id_ in index if query in text][: params["top_k"]]
"""
FORMS = {"returned": ENGINE, "folder": WITH_FOLDER, "async": ASYNC, "open": OPEN}
numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="module")
def options(folder: Path) -> Callable[..., dict[str, Any]]:
    """Write a module, and return the options that name a thing in it."""

    def write(code: str, thing: str = "Engine") -> dict[str, Any]:
        name = f"outside_engine_{next(numbers)}"
        (folder / f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")
        return {"function": f"{name}:{thing}", "search_path": [str(folder)]}

    return write


@pytest.fixture
def built(options: Callable[..., dict[str, Any]], tmp_path: Path) -> Callable[..., Function]:
    def build(code: str, thing: str = "Engine", **more: Any) -> Function:
        given = {"space": SPACE, "baseline": {"top_k": 2}, "cache_dir": tmp_path}
        return Function.build(CORPUS, **{**options(code, thing), **given, **more})

    return build


def ids(retriever: Function, **params: Any) -> list[list[str]]:
    rankings = retriever.retrieve(QUERIES, params)
    return [rankings.ids(row) for row in range(3)]


@pytest.fixture(scope="module", params=FORMS.values(), ids=FORMS.keys())
def case(request: pytest.FixtureRequest, options: Callable[..., dict[str, Any]]) -> IndexCase:
    return IndexCase(
        Function,
        CORPUS,
        QUERIES,
        first={"field": "title"},
        other={"field": "text"},
        options=options(request.param),
        space=SPACE,
    )


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[IndexCase], None], case: IndexCase) -> None:
    check(case)


@pytest.mark.parametrize("code", FORMS.values(), ids=FORMS.keys())
def test_every_form_builds_and_searches(built: Callable[..., Function], code: str) -> None:
    assert ids(built(code)) == [["d0"], [], []]
    assert ids(built(code, index_params={"field": "text"}))[1] == ["d1"]


def test_the_signatures_say_which_parameter_belongs_where(
    options: Callable[..., dict[str, Any]],
) -> None:
    knobs = Function.declare_knobs(**options(ENGINE), space=SPACE, baseline={"top_k": 3})
    assert [(knob.name, knob.stage, knob.default) for knob in knobs] == [
        ("top_k", "query", 3),
        ("field", "index", "title"),
        ("length", "index", 20),
    ]


def test_what_both_take_is_of_the_index_and_handed_to_both(
    built: Callable[..., Function],
) -> None:
    code = """
    class Engine:
        def build(self, documents, field):
            return field

        def search(self, index, query, field, top_k):
            assert index == field
            return ["d0"] if field == "text" else ["d1"]
    """
    engine = built(code, index_params={"field": "text"})
    assert [knob.name for knob in engine.knobs] == ["top_k"]
    assert ids(engine, top_k=1) == [["d0"]] * 3


def test_an_index_is_built_once_and_opened_once(
    built: Callable[..., Function], capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path
) -> None:
    engine = built(ENGINE)
    name = engine.target.name
    again = Function.build(
        CORPUS, function=name, search_path=[str(folder)], space=SPACE, cache_dir=tmp_path
    )
    assert ids(again) == ids(engine)
    assert capsys.readouterr().out.count("building") == 1
    assert engine.index is not None
    assert again.index is not None
    assert engine.index.opened() is again.index.opened()


def test_an_index_is_built_anew_where_the_code_has_changed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"space": SPACE, "cache_dir": tmp_path, "search_path": [str(folder)]}
    module = folder / "outside_engine_that_changes.py"
    for code in (ENGINE, ENGINE + "# better\n"):
        module.write_text(code, encoding="utf-8")
        Function.build(CORPUS, function=f"{module.stem}:Engine", **given)
    assert capsys.readouterr().out.count("building") == 2


def test_a_copy_opens_the_index_where_it_lies(built: Callable[..., Function]) -> None:
    engine = built(ENGINE)
    copy: Function = pickle.loads(pickle.dumps(engine))
    assert ids(copy) == ids(engine)


def test_what_cannot_be_pickled_is_refused_with_what_to_write(
    built: Callable[..., Function],
) -> None:
    code = """
    import threading

    class Engine:
        def build(self, documents, field="title"):
            return threading.Lock()

        def search(self, index, query, top_k=2):
            return []
    """
    with pytest.raises(InputError, match=r"cannot be pickled .*: let it name `folder`"):
        built(code)


@pytest.mark.parametrize(
    ("body", "reason", "kind"),
    [
        ("raise ValueError('no model')", r"Engine.build raised ValueError: no model", TunerError),
        ("raise SystemExit(3)", r"Engine.build raised SystemExit: 3", TunerError),
        (
            "raise OSError(28, 'No room')",
            r"cannot be kept in .*: No room; give .*CACHE_DIR",
            TunerError,
        ),
        ("raise ConnectionRefusedError('db')", r"build raised ConnectionRefusedError", OutageError),
        ("return None", r"Engine.build returned nothing: let it return the index", InputError),
    ],
)
def test_a_build_that_fails_says_why_and_leaves_nothing(
    built: Callable[..., Function], tmp_path: Path, body: str, reason: str, kind: type
) -> None:
    code = f"""
    class Engine:
        def build(self, documents, field="title"):
            {body}

        def search(self, index, query, top_k=2):
            return []
    """
    with pytest.raises(kind, match=reason):
        built(code)
    assert not list(tmp_path.rglob("manifest.json"))


@pytest.mark.parametrize(
    ("build", "search", "reason"),
    [
        ("self, documents, **index", "self, index, query, top_k", "Engine.build takes any param"),
        ("self, documents, field", "self, query, top_k", "Engine.search takes .*needs `index`"),
        ("self, docs, field", "self, index, query, top_k", r"build takes \(docs, .*`documents`"),
        ("self, documents, dim", "self, index, query, top_k", "Engine' needs 'dim': name it in"),
    ],
)
def test_what_cannot_be_told_from_a_signature_is_refused(
    built: Callable[..., Function], build: str, search: str, reason: str
) -> None:
    code = f"""
    class Engine:
        def build({build}):
            return 1

        def search({search}):
            return []
    """
    with pytest.raises(InputError, match=reason):
        built(code)


def test_an_index_answers_from_wherever_its_folder_was_brought(
    built: Callable[..., Function], tmp_path: Path
) -> None:
    for code in (ENGINE, WITH_FOLDER):
        place = tmp_path / "place"
        engine = built(code, cache_dir=place)
        with (place / "kept.pickle").open("wb") as stream:
            Pickler(stream, place).dump(engine)
        place.rename(tmp_path / "elsewhere")
        assert ids(open_pickle(tmp_path / "elsewhere" / "kept.pickle")) == [["d0"], [], []]
        shutil.rmtree(tmp_path / "elsewhere")


@pytest.mark.slow
def test_a_study_with_other_parameters_of_queries_takes_up_an_index(
    case_of: Callable[..., IndexCase], tmp_path: Path
) -> None:
    first = case_of(SearchSpace({"field": Categorical(("title", "text"))}))
    second = case_of(SPACE)
    assert first.opened(tmp_path, {"field": "title"}).ready({"field": "text"}).is_new
    asked = second.opened(tmp_path, {"field": "title"})
    assert not asked.ready({"field": "text"}).is_new
    found = asked.retrieve(QUERIES, {"field": "text", "top_k": 1})
    assert [found.ids(row) for row in range(3)] == [["d0"], ["d1"], []]


@pytest.fixture
def case_of(options: Callable[..., dict[str, Any]]) -> Callable[..., IndexCase]:
    named = options(
        OPEN.replace('assert set(params) == {"top_k"}, params', "").replace(
            'params["top_k"]', 'params.get("top_k", 2)'
        )
    )

    def make(space: SearchSpace) -> IndexCase:
        return IndexCase(
            Function,
            CORPUS,
            QUERIES,
            first={"field": "title"},
            other={"field": "text"},
            options=named,
            space=space,
        )

    return make


PLAIN = """
from pathlib import Path

HERE = Path(__file__).with_suffix("")


def search(query, field="title", top_k=2):
    HERE.mkdir(exist_ok=True)
    if not (HERE / field).exists():
        (HERE / field).write_text("built")
    return ["d0" if field == "title" else "d1"][:top_k]
"""


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract_of_a_function_that_keeps_its_index(
    check: Callable[[IndexCase], None], plain_case: IndexCase
) -> None:
    check(plain_case)


@pytest.fixture(scope="module")
def plain_case(options: Callable[..., dict[str, Any]]) -> IndexCase:
    return IndexCase(
        Function,
        CORPUS,
        QUERIES,
        first={"field": "title"},
        other={"field": "text"},
        options={**options(PLAIN, "search"), "index": ["field"]},
        space=SPACE,
    )


def test_a_function_that_keeps_its_index_is_asked_the_first_query_to_build_it(
    built: Callable[..., Function], folder: Path
) -> None:
    engine = built(PLAIN, "search", index=["field"], index_params={"field": "text"})
    place = folder / engine.target.name.partition(":")[0]
    assert [knob.name for knob in engine.knobs] == ["top_k"]
    assert not place.exists()
    engine.prepare(QUERIES)
    assert [path.name for path in place.iterdir()] == ["text"]
    assert ids(engine) == [["d1"]] * 3


@pytest.mark.parametrize(
    ("code", "thing", "index", "reason"),
    [
        (PLAIN, "search", ["feild"], "has no parameter 'feild'; did you mean 'field'?"),
        ("def search(query, params): return []", "search", ["dim"], "'dim' has no value: name it"),
        (PLAIN, "search", "field", "must be a list of parameters"),
        (ENGINE, "Engine", ["field"], "leave it out: the parameters of .*Engine.build are those"),
    ],
)
def test_an_index_option_that_says_nothing_is_refused(
    built: Callable[..., Function], code: str, thing: str, index: Any, reason: str
) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        built(code, thing, index=index)
    assert caught.value.problems[0].key == ("index",)
