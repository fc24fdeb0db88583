"""Config -> system: the retriever that a configuration names, built or opened from the cache."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tuner.config import Config, Source
from tuner.config.model import (
    RetrieverSection,
)
from tuner.core import registry
from tuner.core.corpus import Corpus, Document
from tuner.core.errors import InputError, Problem, TunerError, did_you_mean, one_line
from tuner.core.json_text import digest_of
from tuner.core.logs import adopt
from tuner.core.policy import is_policy
from tuner.core.space import SearchSpace
from tuner.core.steps import Advance, unheard
from tuner.core.trial import Params
from tuner.datasets.run_files import read_run
from tuner.retrieval.base import (
    DeclaresKnobs,
    Knob,
    Measures,
    ResolvesOptions,
    Retriever,
)
from tuner.retrieval.build_options import GIVEN, BuildOption, build_options, with_index
from tuner.retrieval.indexes import Indexed


def cache_dir() -> Path:
    """Return the folder of built indexes: ``$TUNER_CACHE_DIR``, else one below the user's cache."""
    own = os.environ.get("TUNER_CACHE_DIR")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphrag-tuner"


def declared_knobs(kind_name: str, options: Mapping[str, Any]) -> tuple[Knob, ...]:
    """Return the knobs of a kind of retriever, as far as its options tell them.

    Raises:
        InputError: no such kind, or options that are missing or wrong.
    """
    kind = registry.load("retrieval", kind_name)
    if isinstance(kind, DeclaresKnobs):
        reading = _named(kind.declare_knobs, {"read_run": _read_run})
        declaring = _declaring(kind, options)
        return tuple(registry.construct(kind.declare_knobs, declaring, **reading))
    declared = getattr(kind, "knobs", None)
    if isinstance(declared, tuple):
        if callable(getattr(kind, "build", None)):
            _refuse_unknown(kind, options)
        return declared
    # A kind that tells its knobs only when it is built: over nothing, or where it refuses that,
    # over the least that can be indexed.
    section = RetrieverSection(kind=kind_name, **options)
    documents = (Document("1", "Lima", "Lima lies in Peru."), Document("2", "Peru", "A country."))
    with TemporaryDirectory() as folder:
        try:
            return _build(kind, section, Corpus(()), cache_dir=Path(folder)).knobs
        except InputError:
            return _build(kind, section, Corpus(documents), cache_dir=Path(folder)).knobs


def options_of(kind_name: str) -> tuple[BuildOption, ...]:
    """Return the options of a kind's section, none where its ``build`` does not tell them.

    Raises:
        InputError: no such kind.
    """
    kind = registry.load("retrieval", kind_name)
    return build_options(kind) if callable(getattr(kind, "build", None)) else ()


def _declaring(kind: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that decide about knobs; one that ``build`` does not know is an error."""
    _refuse_unknown(kind, options)
    declaring = inspect.signature(kind.declare_knobs).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in declaring):
        return dict(options)
    return _named(kind.declare_knobs, options)


def _refuse_unknown(kind: Any, options: Mapping[str, Any]) -> None:
    build = inspect.signature(kind.build).parameters.values()
    known = {p.name for p in build if p.kind is p.KEYWORD_ONLY} - GIVEN
    is_open = any(p.kind is p.VAR_KEYWORD for p in build)
    problems = [
        Problem(f"unknown option{did_you_mean(name, known)}", key=(name,))
        for name in options
        if name not in known and not is_open
    ]
    if problems:
        raise InputError(problems=problems)


def resolved(config: Config, source: Source) -> Config:
    """Return the configuration with the retriever's options as they hold from any folder."""
    kind = registry.load("retrieval", config.retriever.kind)
    if not isinstance(kind, ResolvesOptions):
        return config
    folder = Path(source.file).parent
    options = kind.resolve_options(config.retriever.options, folder)
    section = RetrieverSection(kind=config.retriever.kind, **options)
    return config.model_copy(update={"retriever": section})


def build_retriever(
    config: Config, space: SearchSpace, corpus: Corpus, advance: Advance = unheard
) -> Retriever:
    """Build the configured retriever over a corpus, or open its index from the cache.

    ``advance`` is told how far that is, where the kind's ``build`` names it.

    Raises:
        InputError: a kind that answers no queries, or options that are wrong.
        TunerError: the system could not start.
    """
    kind = registry.load("retrieval", config.retriever.kind)
    if not callable(getattr(kind, "build", None)):
        message = f"{config.retriever.kind!r} has no `build`; see tuner/retrieval/base.py"
        raise InputError(message, key=("kind",))
    given = {
        "space": space,
        "baseline": _today(config),
        "index_timeout_s": config.index.limits.timeout_s,
    }
    with explained(config):
        built = _opened(config, kind, corpus, given, advance)
        adopt()
        calls = {"prepare": (("queries",), ()), "retrieve": (("queries", "params"), ())}
        _check_system(built, config.retriever.kind, calls)
    return built


@dataclass(frozen=True)
class Recipe:
    """Builds a configured retriever with parameters of its index. Must survive pickling."""

    section: RetrieverSection
    given: Mapping[str, Any]

    def __call__(
        self, corpus: Corpus, folder: Path, settings: Params, advance: Advance
    ) -> Retriever:
        """Build it over a corpus, into a folder; ``settings`` take the place of its options."""
        kind = registry.load("retrieval", self.section.kind)
        options, given = with_index(kind, self.section.options, settings)
        section = RetrieverSection(kind=self.section.kind, **options)
        given |= {**self.given, "advance": advance}
        return _build(kind, section, corpus, cache_dir=folder, **given)


def _opened(
    config: Config, kind: Any, corpus: Corpus, given: Mapping[str, Any], advance: Advance
) -> Retriever:
    section, options = config.retriever, config.retriever.options
    knobs = _index_knobs(kind, options, given)
    if not knobs:
        return _build(kind, section, corpus, cache_dir=cache_dir(), advance=advance, **given)
    names = {knob.name for knob in knobs}
    today = given["baseline"].items()
    identify = getattr(kind, "identify_index", None)
    return Indexed(
        digest_of([section.kind, options]),
        Recipe(section, given),
        corpus,
        cache_dir(),
        knobs=knobs,
        first={name: value for name, value in today if name in names},
        identify=None if identify is None else partial(identify, **options),
        limits=config.index.limits,
        keeps_time="index_timeout_s" in inspect.signature(kind.build).parameters,
        advance=advance,
    )


def _index_knobs(
    kind: Any, options: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[Knob, ...]:
    if isinstance(kind, DeclaresKnobs):
        today = _named(kind.declare_knobs, given)
        declared = registry.construct(kind.declare_knobs, _declaring(kind, options), **today)
    else:
        declared = getattr(kind, "knobs", ())
    knobs = declared if isinstance(declared, tuple) else ()
    return tuple(knob for knob in knobs if isinstance(knob, Knob) and knob.stage == "index")


def measured(config: Config, space: SearchSpace) -> Measures:
    """Build the configured system that measures itself.

    Raises:
        InputError: options that are wrong.
        TunerError: the system could not start.
    """
    kind = registry.load("retrieval", config.retriever.kind)
    with explained(config):
        given = _named(kind.build_measure, {"space": space, "baseline": _today(config)})
        system: Measures = registry.construct(kind.build_measure, config.retriever.options, **given)
        _check_system(system, config.retriever.kind, {"measure": (("params",), ())})
    return system


def _check_system(
    system: Any, kind: str, calls: Mapping[str, tuple[Sequence[str], Sequence[str]]]
) -> None:
    """Refuse what was built where it could not be asked: now, and not in the middle of a run."""
    called, see = f"what {kind!r} builds", "tuner/retrieval/base.py"
    registry.check_can(system, called, calls, see=see)
    knobs = getattr(system, "knobs", None)
    if not isinstance(knobs, list | tuple) or not all(isinstance(knob, Knob) for knob in knobs):
        message = f"{called} has no `knobs`, a tuple of tuner.retrieval.base.Knob; see {see}"
        raise InputError(message, key=("kind",))
    if not isinstance(getattr(system, "fingerprint", None), str):
        message = f"{called} has no `fingerprint`, a text that changes with its answers; see {see}"
        raise InputError(message, key=("kind",))


def _today(config: Config) -> Params:
    """Return the baseline's parameters; of a policy those that hold where no type is known."""
    if not isinstance(config.baseline, Mapping):
        return {}
    if not is_policy(config.baseline):
        return dict(config.baseline)
    default = config.baseline.get("default")
    return dict(default) if isinstance(default, Mapping) else {}


def _build(
    kind: Any, section: RetrieverSection, corpus: Corpus, *, cache_dir: Path, **today: Any
) -> Retriever:
    # Rooms of families do not import each other, so a retriever is handed what reads files.
    given = _named(kind.build, {"read_run": _read_run, **today})
    retriever: Retriever = registry.construct(
        kind.build, section.options, corpus=corpus, cache_dir=cache_dir, **given
    )
    return retriever


def _named(build: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of what can be given that ``build`` names."""
    names = inspect.signature(build).parameters
    return {name: value for name, value in given.items() if name in names}


def _read_run(path: Path) -> Mapping[str, Any]:
    return read_run(path).answers


@contextmanager
def explained(config: Config) -> Iterator[None]:
    """Turn whatever a retriever of the user's raises while it starts into one line."""
    try:
        yield
    except TunerError:
        raise
    except Exception as error:
        raise TunerError(
            f"the retriever {config.retriever.kind!r} could not start: {one_line(error)}"
        ) from error
