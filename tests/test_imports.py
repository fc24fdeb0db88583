"""What is heavy is loaded when it is used, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "dask", "httpx", "jmespath", "joblib", "mlflow", "numpy", "optuna", "pandas",
    "pydantic", "ray", "rich", "scipy", "skopt", "sklearn", "yaml",
}  # fmt: skip


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=900
    )
    return set(done.stdout.splitlines()[-1].split())


def test_import_tuner_loads_nothing_heavy():
    assert not modules_after("import tuner") & HEAVY


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments):
    code = f"from tuner.cli import main\ntry: main({arguments!r})\nexcept SystemExit: pass"
    assert not modules_after(code) & HEAVY


def test_public_names_are_all_there():
    import tuner

    for name in tuner.__all__:
        assert getattr(tuner, name) is not None
    assert dir(tuner) == tuner.__all__
    with pytest.raises(AttributeError, match="no attribute 'tun'"):
        _ = tuner.tun


def test_a_service_that_reads_a_file_of_parameters_loads_nothing_heavy(tmp_path):
    path = tmp_path / "best.yaml"
    path.write_text("params: {top_k: 10}\noutcome: deploy\n")
    code = f"import tuner\nassert tuner.best_params({str(path)!r}) == {{'top_k': 10}}"
    assert modules_after(code) & HEAVY == {"yaml"}
