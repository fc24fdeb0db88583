"""The registered model in MLflow: a version for each configuration found, and which is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from tuner.core.errors import InputError
from tuner.tracking.mlflow.client import sole_opener
from tuner.tracking.mlflow.quiet import message_of, reaching
from tuner.tracking.mlflow.versions import (
    CHALLENGER,
    CHAMPION,
    ModelVersion,
    find_versions,
    model_name,
)
from tuner.tracking.uri import absolute, check_uri, mask, sqlite_path, without_password

__all__ = ["CHALLENGER", "CHAMPION", "ModelVersion", "Registry", "model_name"]


class Registry:
    """The versions of one registered model in the MLflow store at ``uri``.

    Reading makes nothing: a store or a model that does not exist yet has no versions.
    """

    def __init__(self, uri: str, name: str) -> None:
        """Check the URI; nothing is opened.

        Raises:
            InputError: a URI that MLflow would refuse.
        """
        check_uri(uri)
        self.name = name
        self._uri = absolute(uri)

    def versions(self) -> list[ModelVersion]:
        """Return all versions, newest first.

        Raises:
            TunerError: the store cannot be reached.
        """
        path = sqlite_path(self._uri)
        if path is not None and not path.is_file():
            return []
        with self._opened("read") as client:
            return find_versions(client, self.name)

    def of_study(self, study_id: str, params: Mapping[str, Any]) -> ModelVersion | None:
        """Return the version of what a study found, which a later one may have found again.

        Raises:
            TunerError: the store cannot be reached.
        """
        versions = self.versions()
        own = [one for one in versions if one.study_id == study_id and one.params == params]
        return next(iter(own or [one for one in versions if one.params == params]), None)

    def get(self, alias_or_version: str | int) -> ModelVersion | None:
        """Return the version with an alias such as ``"champion"``, or a number; None if none has.

        Raises:
            TunerError: the store cannot be reached.
        """
        wanted = str(alias_or_version)
        is_number = wanted.isdecimal()
        for version in self.versions():
            if (str(version.version) == wanted) if is_number else (wanted in version.aliases):
                return version
        return None

    def set_alias(self, alias: str, version: int) -> None:
        """Move an alias to a version, from whichever had it.

        Raises:
            InputError: no such version, or an alias that MLflow refuses.
            TunerError: the store cannot be reached.
        """
        self._check(version)
        with self._opened("write to") as client:
            client.set_registered_model_alias(self.name, alias, str(version))

    def remove_alias(self, alias: str) -> None:
        """Take an alias from whichever version has it; nothing happens where none has.

        Raises:
            TunerError: the store cannot be reached.
        """
        if self.get(alias) is not None:
            with self._opened("write to") as client:
                client.delete_registered_model_alias(self.name, alias)

    def tag(self, version: int, tags: Mapping[str, str]) -> None:
        """Set tags of a version, new or changed.

        Raises:
            InputError: no such version, or a tag that MLflow refuses.
            TunerError: the store cannot be reached.
        """
        self._check(version)
        with self._opened("write to") as client:
            for key, value in tags.items():
                client.set_model_version_tag(self.name, str(version), key, value)

    def _check(self, version: int) -> None:
        known = [one.version for one in self.versions()]
        if version not in known:
            there = f"the newest is {known[0]}" if known else "it has none yet"
            raise InputError(f"the model {self.name!r} has no version {version}; {there}")

    @contextmanager
    def _opened(self, what_for: str) -> Iterator[Any]:
        with reaching(self._uri, f"cannot {what_for} MLflow's registry at {mask(self._uri)}"):
            from mlflow import MlflowClient
            from mlflow.exceptions import MlflowException

            path = sqlite_path(self._uri)
            with sole_opener(path) if path else nullcontext():
                client = MlflowClient(tracking_uri=self._uri)
                client.search_registered_models(max_results=1)  # opens it
            try:
                yield client
            except MlflowException as error:
                if error.error_code == "INVALID_PARAMETER_VALUE":
                    raise InputError(without_password(message_of(error), self._uri)) from error
                raise
