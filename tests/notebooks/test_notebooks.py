"""The notebooks run from top to bottom, and are kept without what their last run printed."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need the extra 'test'")
nbclient = pytest.importorskip("nbclient", reason="notebooks need the extra 'test'")
kernelspec = pytest.importorskip("ipykernel.kernelspec", reason="notebooks need the extra 'test'")

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# Each takes about ten seconds; a machine under load takes its time.
TIMEOUT_S = 900


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, index_dir: Path) -> str:
    """A kernel of this very environment, whatever is installed on the machine."""
    with warnings.catch_warnings():
        # Jupyter says on import that its folders will move.
        warnings.simplefilter("ignore", DeprecationWarning)
        kernelspec.write_kernel_spec(str(tmp_path / "jupyter" / "kernels" / "python3"))
    settings = {
        "JUPYTER_PATH": "jupyter",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTER_CONFIG_DIR": "config",
        "IPYTHONDIR": "ipython",
        "TMPDIR": "tmp",
    }
    for name, folder in settings.items():
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("TUNER_CACHE_DIR", str(index_dir))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel has its own
    return "python3"


def execute(notebook: Any, kernel: str, folder: Path) -> None:
    client = nbclient.NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        startup_timeout=TIMEOUT_S,
        kernel_name=kernel,
        resources={"metadata": {"path": str(folder)}},
    )
    # Its execute() leaves an event loop open, which turns a test red that comes long afterwards.
    asyncio.run(client.async_execute())


def outputs_of(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def printed(notebook: Any) -> str:
    return "".join(o.text for o in outputs_of(notebook) if o.get("name") == "stdout")


def test_there_are_notebooks() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_of_a_run_is_kept(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert outputs_of(notebook) == []
    for cell in notebook.cells:
        assert cell.get("execution_count") is None
        assert cell.metadata == {}
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.language_info == {"name": "python"}


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.filterwarnings("ignore::DeprecationWarning:zmq", "ignore::DeprecationWarning:jupyter")
def test_a_study_shows_its_progress_below_its_cell(kernel: str, tmp_path: Path) -> None:
    source = (
        "import tuner\n"
        "space = {'x': {'type': 'integer', 'low': 0, 'high': 9}}\n"
        "tuner.tune(lambda p: p['x'] / 10, space, backends=['grid'], trials=10)\n"
        "_ = tuner.tune(lambda p: p['x'], space, backends=['grid'], trials=10, progress=False)"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    execute(notebook, kernel, tmp_path)
    (shown,) = outputs_of(notebook)
    assert shown["output_type"] == "display_data"
    assert "grid       " + "█" * 24 + " 10/10  best 0.9000" in shown["data"]["text/plain"]
    assert shown["data"]["text/html"].startswith("<pre>")


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.filterwarnings("ignore::DeprecationWarning:zmq", "ignore::DeprecationWarning:jupyter")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, kernel: str, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    execute(notebook, kernel, tmp_path)
    errors = [o.text for o in outputs_of(notebook) if o.get("name") == "stderr"]
    assert errors == []
    pictures = [o for o in outputs_of(notebook) if "image/png" in o.get("data", {})]
    assert pictures
    text = printed(notebook)
    if path.stem.startswith("01"):
        assert "203 held-out queries" in text
        assert "queries better" in text
    else:
        assert "95 % interval" in text
        assert "report.html" in text
