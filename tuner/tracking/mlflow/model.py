"""A study's winner as an MLflow model: parameters and configuration as data, no pickled code."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile
from typing import Any

import yaml

from tuner.core.digests import text_digest
from tuner.core.json_text import json_text
from tuner.core.run_files import BEST_FILE, CONFIG_FILE
from tuner.core.study_record import StudyHeader, StudySummary
from tuner.tracking.mlflow.files import uploadable
from tuner.tracking.mlflow.records import STUDY_ID, TRIAL
from tuner.tracking.mlflow.versions import OUTCOME, PARAMS, STUDIED_AT, SYSTEM, VersionContent

_DATA = (BEST_FILE, CONFIG_FILE)
_NEEDS = ("graphrag-tuner", "mlflow")
_LOADER = "tuner.serving"  # stands in every model that is registered: it may not move
_REFUSED_IN_NAMES = re.compile(r"[^\w .-]")
_LONGEST_NAME = 100


def model_name(header: StudyHeader) -> str:
    """Return the name of the registered model: as configured, else that of the study."""
    tracking = header.config.get("tracking")
    configured = tracking.get("model") if isinstance(tracking, Mapping) else None
    clean = _REFUSED_IN_NAMES.sub("_", str(configured or header.name))[:_LONGEST_NAME]
    return clean if clean.strip(" .") else "study"


def version_content(
    header: StudyHeader, summary: StudySummary, run_dir: Path
) -> VersionContent | None:
    """Describe the version that a study makes.

    None where it has no winner, where that is the baseline itself, or where it has not ended.
    """
    chosen, baseline = summary.chosen, summary.baseline
    has_files = all((run_dir / name).is_file() for name in _DATA)
    if summary.state != "finished" or chosen is None or not has_files:
        return None
    best = yaml.safe_load((run_dir / BEST_FILE).read_text(encoding="utf-8"))
    is_baseline = baseline is not None and chosen.params == baseline.params
    # A trial has what the space has, a baseline may set more: with that the two can be equal.
    if is_baseline or best["params"] == header.baseline:
        return None
    verdict = summary.verdict or {"outcome": "no verdict", "sentence": "No verdict."}
    scores = {"tune": chosen.tune_objective, "holdout": chosen.holdout_objective}
    tags = {
        STUDY_ID: header.study_id,
        TRIAL: str(chosen.trial),
        OUTCOME: str(verdict["outcome"]),
        PARAMS: json_text(best["params"]),
        SYSTEM: _system(header),
        STUDIED_AT: repr(header.created_at),
        "tuner.study": header.name,
        "tuner.arm": chosen.arm,
        **{f"tuner.{part}_objective": f"{x:.6g}" for part, x in scores.items() if x is not None},
    }
    return VersionContent(model_name(header), tags, str(verdict["sentence"]))


def _system(header: StudyHeader) -> str:
    text = json.dumps(header.config.get("retriever"), sort_keys=True, default=str)
    return text_digest(text)


def write_model(folder: Path, run_dir: Path, header: StudyHeader) -> None:
    """Write the model's folder: what ``mlflow.pyfunc.load_model`` reads.

    Not by ``mlflow.pyfunc.save_model``, which imports hundreds of modules, warns, and looks into
    the loader for what it needs. No signature: one with a column would refuse a list of queries.
    """
    from mlflow.models import Model

    data = folder / "data"
    data.mkdir(parents=True)
    for name in _DATA:
        with uploadable(run_dir / name, header) as file:
            copyfile(file, data / name)
    environment: dict[str, Any] = {
        "python": header.versions.get("python", platform.python_version()),
        "dependencies": ["-r requirements.txt"],
    }
    dataset = header.dataset.get("path")
    model = Model()
    model.add_flavor(
        "python_function",
        loader_module=_LOADER,
        data="data",
        env={"virtualenv": "python_env.yaml"},
        python_version=environment["python"],
        # load_model(…, model_config={"dataset": "/data/corpus"}) where the data lie elsewhere
        config={} if dataset is None else {"dataset": str(dataset)},
    )
    model.save(str(folder / "MLmodel"))
    needs = [f"{name}=={header.versions[name]}" for name in _NEEDS if name in header.versions]
    (folder / "requirements.txt").write_text("\n".join(needs) + "\n", encoding="utf-8")
    (folder / "python_env.yaml").write_text(yaml.safe_dump(environment), encoding="utf-8")
