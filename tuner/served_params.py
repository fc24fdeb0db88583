"""What a service is to use: ``tuner.best_params(…)``, and by query ``tuner.params_by_query(…)``.

A file is read without anything heavy, so that a service may ask at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.config.source import read_source
from tuner.core.errors import InputError, did_you_mean
from tuner.core.policy_record import is_policy
from tuner.core.run_files import BEST_FILE, JOURNAL_FILE, SO_FAR

if TYPE_CHECKING:  # the address of these two loads numpy
    from tuner.core.trial import Params, Scalar
    from tuner.tracking.registry import ModelVersion

_MODEL = "models:/"
_DEPLOY = "deploy"
_LATEST = "latest"
_INFEASIBLE = "meets no constraint of the study's objective: it is the closest that was found"


def best_params(source: str | Path, *, tracking: str | None = None) -> dict[str, Scalar]:
    """Return the parameters that a service is to use.

    ``source`` is a run directory, a file such as ``best.yaml``, or a registered model's URI, such
    as ``"models:/graphrag-atlas@champion"``; of the latter ``tracking`` is the store's URI, by
    default as of ``load_study``. A file of yours with parameters and no verdict is taken at its
    word, and so is an alias of yours: who set it has approved. Of a study without a verdict, as
    there was no baseline, it is the best that was found.

    Raises:
        InputError: nothing is there, the study failed, has not ended, keeps its baseline, cannot
            tell, or meets no constraint: then there is no advice. A policy, which
            ``params_by_query`` reads.
        TunerError: the store cannot be reached.

    Example:
        ``my_search(query, **tuner.best_params("runs/mine"))``
    """
    found = _chosen(source, tracking)
    if is_policy(found):
        raise InputError(
            f"{source} holds a policy, whose parameters depend on the query: read it once with "
            "tuner.params_by_query(source), and call what that returns with each query's text"
        )
    return _checked(found, source)


def params_by_query(
    source: str | Path, *, tracking: str | None = None
) -> Callable[[str], dict[str, Scalar]]:
    """Return a function from a query's text to its parameters, for a policy; read once.

    ``source`` is as of ``best_params``; where it holds the same parameters for all queries, the
    function returns these. What a policy wants to know of a query beyond its words, and only the
    retriever can tell, counts as it is on average; a warning names it.

    Raises:
        InputError: as ``best_params`` does, or what should be a policy is none.
        TunerError: the store cannot be reached.

    Example:
        ``choose = tuner.params_by_query("runs/mine/policy.yaml")``, then ``choose("Who …?")``
    """
    found = _chosen(source, tracking)
    if not is_policy(found):
        fixed = _checked(found, source)
        return lambda query: dict(fixed)  # noqa: ARG005  # the form of a policy's
    return _policy(found)


def _policy(record: Mapping[str, Any]) -> Callable[[str], Params]:
    import warnings

    from tuner.core.corpus import Query
    from tuner.core.feature_rule import FeatureRule
    from tuner.core.policy import Policy
    from tuner.core.seen import text_features
    from tuner.retrieval.features import params_for

    policy = Policy.from_record(record)
    rule = policy.rule
    if isinstance(rule, FeatureRule) and not rule.function:
        unseen = sorted(set(rule.features) - set(text_features("")))
        if unseen:
            names = ", ".join(unseen)
            warnings.warn(f"only the retriever can tell {names}: taken as average", stacklevel=3)
    return lambda query: dict(params_for(policy, None, [Query("query", query)])[0])


def _chosen(source: str | Path, tracking: str | None) -> Mapping[str, Any]:
    if str(source).startswith(_MODEL):
        return _of_model(str(source), tracking)
    path = Path(source).expanduser()
    if path.is_dir() and not (path / BEST_FILE).is_file() and (path / JOURNAL_FILE).is_file():
        return _of_journal(path)
    if path.is_dir():
        path /= BEST_FILE
        if not path.is_file():
            raise InputError(f"{source}: this folder holds no {BEST_FILE}, and no {JOURNAL_FILE}")
    return _of_file(path)


def _of_file(path: Path) -> Mapping[str, Any]:
    data = read_source(path).data
    params = data.get("params", data)
    if not isinstance(params, dict):
        raise InputError("must be a mapping of parameters", file=str(path), key=("params",))
    if {"retriever", "space"} & data.keys():
        raise InputError(
            f"{path} is a configuration, which tells what is searched and not what was found: give "
            "the directory of its run, such as runs/…, or the best.yaml in it"
        )
    is_of_a_study = params is not data or is_policy(data)
    if not is_of_a_study:
        return params
    where = f"tuner.load_study({str(path.parent)!r})"
    if path.read_text(encoding="utf-8").startswith(SO_FAR):
        raise InputError(
            f"{path} is the best so far of an interrupted study, without a verdict: go on with "
            f"tuner resume {path.parent}; what was found so far: {where}.best_params"
        )
    _refuse_no_advice(path, where, data, is_feasible=data.get("is_feasible") is not False)
    return params


def _of_journal(run_dir: Path) -> Mapping[str, Any]:
    """Return the best of a study that wrote no file of it: one that failed, or ``tuner.tune``'s."""
    from tuner.loaded import load_study

    study = load_study(run_dir)
    if study.state != "finished":
        so_far = "" if study.summary.chosen is None else f"; so far: load_study({str(run_dir)!r})"
        raise InputError(
            f"{run_dir} gives no advice: {study.headline}{so_far}", file=str(run_dir / JOURNAL_FILE)
        )
    chosen, where = study.summary.chosen, f"tuner.load_study({str(run_dir)!r})"
    is_feasible = chosen is None or chosen.violation <= 0.0
    verdict = study.verdict or {}
    found = {"outcome": verdict.get("outcome"), "verdict": verdict.get("sentence")}
    _refuse_no_advice(run_dir, where, found, is_feasible=is_feasible)
    return study.best_params


def _refuse_no_advice(
    source: Path, where: str, found: Mapping[str, Any], *, is_feasible: bool
) -> None:
    """Refuse what a verdict did not approve, or no constraint allows; ``where`` has it still."""
    outcome = found.get("outcome")
    if outcome not in (None, _DEPLOY):
        advice = _no_advice(source, outcome, found.get("verdict"))
        raise InputError(f"{advice}: {where}.best_params")
    if not is_feasible:
        raise InputError(f"{source}: {_INFEASIBLE}; all the same: {where}.best_params")


def _of_model(uri: str, tracking: str | None) -> Mapping[str, Any]:
    from tuner.tracking.registry import CHALLENGER, Registry
    from tuner.tracking.uri import mask

    name, wanted = _named(uri)
    store = _store(tracking)
    versions = Registry(store, name).versions()
    if not versions:
        raise InputError(f"{uri}: the store {mask(store)} has no model {name!r}")
    version = _version(versions, wanted)
    if version is None:
        known = [alias for one in versions for alias in one.aliases]
        known += [str(one.version) for one in versions]
        raise InputError(
            f"{uri}: no version of the model is {wanted!r}{did_you_mean(wanted, known)}"
        )
    if not version.params:
        raise InputError(f"{uri}: this version was not made by a study; it tells no parameters")
    is_approved = wanted in version.aliases and wanted != CHALLENGER
    if not is_approved and version.outcome not in (_DEPLOY, "no verdict"):
        advice = _no_advice(uri, version.outcome, version.description)
        raise InputError(f"{advice}: promote it, and name its alias: models:/{name}@champion")
    if not is_approved and not version.is_feasible:
        alias = f"models:/{name}@champion"
        raise InputError(f"{uri}: {_INFEASIBLE}; all the same: promote it, and name {alias}")
    return version.params


def _named(uri: str) -> tuple[str, str]:
    text = uri.removeprefix(_MODEL).strip("/")
    name, at, wanted = text.rpartition("@")
    if not at:
        name, _, wanted = text.rpartition("/")
    if not name or not wanted:
        example = "models:/graphrag-atlas@champion or models:/graphrag-atlas/3"
        raise InputError(f"{uri!r} names no version of a model; write it as {example}")
    return name, wanted


def _version(versions: list[ModelVersion], wanted: str) -> ModelVersion | None:
    """Return a version by its number, an alias, or ``latest``; versions are the newest first."""
    for version in versions:
        if wanted in version.aliases or wanted in (str(version.version), _LATEST):
            return version
    return None


def _store(tracking: str | None) -> str:
    from tuner.loaded import store_uri

    return store_uri(tracking)


def _no_advice(source: object, outcome: object, sentence: object) -> str:
    said = f" ({sentence})" if sentence else ""
    return (
        f"{source} gives no advice, its verdict is {outcome!r}{said}. What was found all the same"
    )


def _checked(params: Mapping[str, Any], source: object) -> dict[str, Scalar]:
    strange = [n for n, v in params.items() if not isinstance(v, bool | int | float | str | None)]
    if strange:
        kind = type(params[strange[0]]).__name__
        message = (
            f"{source}: a parameter is a number, a text or true or false, and this is a {kind}"
        )
        raise InputError(message, key=(strange[0],))
    return dict(params)
