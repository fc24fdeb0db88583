"""Tracking URIs: what cannot work is said before a study starts, and passwords are never shown."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from mlflow import MlflowClient

from tuner.core.errors import InputError
from tuner.tracking.mlflow.quiet import message_of
from tuner.tracking.mlflow.server import ui_command, ui_environment
from tuner.tracking.mlflow.tracker import Mlflow
from tuner.tracking.uri import absolute, holds_password, mask, without_password


@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:///mlflow.db",
        "http://localhost:5000",
        "https://mlflow.example.org/base",
        "databricks",
        "databricks://profile",
    ],
)
def test_usable_uris_pass(uri):
    Mlflow.check(uri)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("htp://localhost:5000", "unknown scheme 'htp'; did you mean 'http'?"),
        ("http://", "has no host; write http://host:5000"),
        ("mlruns", "is a folder, .*write sqlite:///mlflow.db"),
        ("", "is a folder, "),
        ("file:///tmp/mlruns", "is a folder, "),
        ("sqlite://", "names no file; write sqlite:///mlflow.db"),
        ("sqlite:///:memory:", "names no file"),
        ("http://[::1", "cannot be read"),
    ],
)
def test_other_uris_are_explained(uri, message):
    with pytest.raises(InputError, match=message):
        Mlflow.check(uri)


def test_a_directory_is_no_sqlite_store(tmp_path):
    with pytest.raises(InputError, match="is a directory; name a file in it"):
        Mlflow.check(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize("name", ["", "  ", "x" * 501])
def test_experiment_names_are_checked(name):
    with pytest.raises(InputError, match="the MLflow experiment"):
        Mlflow.check("sqlite:///mlflow.db", name)


def test_sqlite_paths_become_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert absolute("sqlite:///a/mlflow.db?timeout=5") == (
        f"sqlite:///{tmp_path}/a/mlflow.db?timeout=5"
    )
    assert absolute("http://localhost:5000") == "http://localhost:5000"


def test_a_sqlite_store_needs_its_directory(tmp_path):
    with pytest.raises(InputError, match=r"there is no directory '.*/typo'; make it, or"):
        Mlflow.check(f"sqlite:///{tmp_path}/typo/mlflow.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("scheme", "module"),
    [
        ("postgresql", "psycopg2"),
        ("postgresql+psycopg", "psycopg"),
        ("mysql", "MySQLdb"),
        ("mysql+mysqlconnector", "mysql"),
        ("mssql", "pyodbc"),
    ],
)
def test_a_database_needs_its_driver(scheme, module, monkeypatch, tmp_path):
    uri = f"{scheme}://me:s3cret@host/db"
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(InputError, match=rf"needs {module}.*: pip install '") as raised:
        Mlflow.check(uri)
    assert "s3cret" not in str(raised.value)

    (tmp_path / f"{module}.py").write_text("raise ImportError('checking must not import')")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    Mlflow.check(uri)


def test_a_driver_that_nobody_knows_is_explained():
    with pytest.raises(InputError, match=r"no driver 'psycog2' here; did you mean 'psycopg2'\?"):
        Mlflow.check("postgresql+psycog2://host/db")


PASSWORDS = ["s3cret", "p", "p[x]y", "p#x", "p/x", "p?x", "p@x", "p:x", "p%2Fx"]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize(
    "uri", ["http://me:{}@host:5000", "postgresql://:{}@host/db", "me:{}@host", "https://t:{}@[::1"]
)
def test_the_password_of_a_user_is_hidden(uri, password):
    whole = uri.format(password)
    assert holds_password(whole)
    assert without_password(f"no answer from {whole}", whole) == (
        f"no answer from {uri.format('***')}"
    )


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("postgresql://host/db?user=me&password=p#x", "postgresql://host/db?user=me&password=***"),
        ("mysql://host/db?passwd=word&ssl=1", "mysql://host/db?passwd=***&ssl=1"),
        (
            "mssql+pyodbc:///?odbc_connect=UID%3Dme%3BPWD%3Ds3cr%2Bet%3BServer%3Dhost",
            "mssql+pyodbc:///?odbc_connect=UID%3Dme%3BPWD%3D***%3BServer%3Dhost",
        ),
        (
            "mssql+pyodbc:///?odbc_connect=UID=me;PWD={a b};Server=host",
            "mssql+pyodbc:///?odbc_connect=UID=me;PWD=***;Server=host",
        ),
        ("https://host/base?access_token=abcdefgh", "https://host/base?access_token=***"),
        ("https://host/base?v=2&k=tiger&x=true", "https://host/base?v=2&k=***&x=true"),
        ("https://tiger@host:5000/base", "https://***@host:5000/base"),
    ],
)
def test_a_password_among_the_parameters_is_hidden(uri, shown):
    assert holds_password(uri)
    assert mask(uri) == shown


def test_a_password_is_hidden_decoded_too():
    uri = "postgresql://me:pass%2Fword@host/db"
    assert without_password("login failed: pass/word", uri) == "login failed: ***"


def test_a_short_password_leaves_the_text_readable():
    assert without_password("cannot open e: e", "http://me:e@host") == "cannot open ***: ***"


def test_the_beginning_of_a_password_is_out_of_sight_too():
    uri = "http://me:correct-horse@host:5000"
    cut = message_of(OSError(f"no answer from {uri}/api"), longest=35)
    assert cut == "no answer from http://me:correct-h…"
    assert without_password(cut, uri) == "no answer from http://me:***…"


@pytest.mark.parametrize(
    "uri", ["sqlite:////home/me:x@y/mlflow.db", "http://host:5000/base", "databricks://profile"]
)
def test_other_uris_are_shown_whole(uri):
    assert not holds_password(uri)
    assert mask(uri) == uri


@given(st.text("aZ9/?#[]%@:;&= ", min_size=1, max_size=12))
def test_no_password_survives_where_it_stood(password):
    for uri in (f"http://me:{password}@host/base", f"odd://me:{password}@host"):
        assert f":{password}@" not in mask(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://me:s3cret@host",
        "postgres://me:s3cret@host/db",
        "http://:s3cret@",
        "https://me:s3cret@[::1",
        "http://me:s3[cr]et@host",
        "me:s3cret@host",
        "sqlite://me:s3cret@host",
        "file://me:s3cret@host/mlruns",
        "postgresql+nothing://me:s3cret@host/db",
    ],
)
def test_a_uri_that_is_refused_is_not_shown_with_its_password(uri):
    with pytest.raises(InputError) as raised:
        Mlflow.check(uri)
    assert not [part for part in ("s3cret", "s3[", "cr]et") if part in str(raised.value)]


@pytest.mark.slow
def test_no_uploaded_file_holds_the_password(study, store_uri, tmp_path):
    uri = "postgresql://me:s3cret@host/db?option=é"
    config = {"study": {"name": "graphrag-atlas"}, "tracking": {"uri": uri, "experiment": "x"}}
    study = replace(study, header=replace(study.header, config=config))
    lines = [
        json.dumps({"event": "header", **study.header.to_record()}),
        *(json.dumps({"event": "told", "trial": n, "id": "me:s3"}) for n in range(3)),
    ]
    journal = "\n".join(lines) + '\n{"event": "to'
    (study.run_dir / "journal.jsonl").write_text(journal)
    (study.run_dir / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True))
    before = (study.run_dir / "config.yaml").read_text()
    tracker = Mlflow(store_uri, "atlas", in_thread=True)
    tracker.sync(study.header, study.trials, study.summary, study.run_dir)

    uploaded = {path.name: path.read_text() for path in (tmp_path / "mlruns").rglob("*.*")}
    assert {"config.yaml", "journal.jsonl", "study.json", "best.yaml"} <= set(uploaded)
    shown = {**config, "tracking": {"uri": uri.replace("s3cret", "***"), "experiment": "x"}}
    assert yaml.safe_load(uploaded["config.yaml"]) == shown
    assert json.loads(uploaded["study.json"])["config"] == shown
    header, *others = uploaded["journal.jsonl"].splitlines()
    assert json.loads(header)["config"] == shown
    assert others == journal.splitlines()[1:]
    assert not [name for name, text in uploaded.items() if "s3cret" in text]
    assert (study.run_dir / "config.yaml").read_text() == before, "resume needs the password"
    client = MlflowClient(store_uri)
    runs = client.search_runs([client.get_experiment_by_name("atlas").experiment_id])
    assert "s3cret" not in str([run.to_dictionary() for run in runs])


def test_without_its_file_the_configuration_is_uploaded_masked(study, store_uri, tmp_path):
    config = {"tracking": {"uri": "http://me:s3cret@host", "experiment": "x"}}
    study = replace(study, header=replace(study.header, config=config))
    (study.run_dir / "config.yaml").unlink()
    tracker = Mlflow(store_uri, "atlas", in_thread=True)
    tracker.sync(study.header, study.trials, study.summary, study.run_dir)
    [uploaded] = (tmp_path / "mlruns").rglob("config.yaml")
    assert yaml.safe_load(uploaded.read_text())["tracking"]["uri"] == "http://me:***@host"


def test_the_ui_serves_the_same_store_without_showing_its_password(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    command = ui_command("sqlite:///mlflow.db", port=5050)
    assert command[:4] == [sys.executable, "-m", "mlflow", "ui"]
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--port") + 1] == "5050"
    environment = ui_environment("sqlite:///mlflow.db")
    assert environment["MLFLOW_BACKEND_STORE_URI"] == f"sqlite:///{tmp_path}/mlflow.db"
    assert environment["PATH"] == os.environ["PATH"]
    secret = ui_environment("postgresql://me:s3cret@host/db")
    assert secret["MLFLOW_BACKEND_STORE_URI"] == "postgresql://me:s3cret@host/db"
    assert not [word for word in command if "sqlite" in word], "every user sees the command"
