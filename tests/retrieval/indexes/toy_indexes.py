"""A kind of retriever with an index, for tests: what it builds, it writes down."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.core.corpus import Corpus, Query
from tuner.core.errors import InputError
from tuner.core.rankings import Rankings
from tuner.core.steps import Advance
from tuner.core.trial import Params
from tuner.retrieval.base import Knob
from tuner.retrieval.indexes import building
from tuner.retrieval.indexes.record import IndexRecord

LOG = "TOY_INDEX_LOG"


@dataclass(frozen=True)
class Toy:
    """Answers with the first ``size`` documents, from the file that ``build`` wrote."""

    folder: Path
    size: int
    index_cost: dict[str, float]
    how: str = "well"

    knobs = (Knob("top_k", "integer", 2, low=1, high=10),)
    fingerprint = "toy-1"

    @classmethod
    def declare_knobs(cls, *, size: int = 1, how: str = "well", log: str = "") -> tuple[Knob, ...]:
        choices = ("well", "raise", "refuse", "die", "wait", "outage", "loud", "exit", "prepare")
        return (
            Knob("size", "integer", size, low=1, high=10, stage="index"),
            Knob("how", "categorical", how, choices=choices, stage="index"),
        )

    @classmethod
    def identify_index(cls, settings: Params, *, log: str) -> str:
        return "toy"

    @classmethod
    def build(
        cls, corpus: Corpus, *, cache_dir: Path, size: int = 1, how: str = "well", log: str = ""
    ) -> Toy:
        with Path(log).open("a") as told:
            told.write(f"{size} {how} {os.getpid()}\n")
        if how == "raise":
            raise ValueError("no such model")
        if how == "refuse":
            raise InputError("no such folder", key=("folder",))
        if how == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "wait":
            time.sleep(60)
        if how == "outage":
            raise ConnectionRefusedError("nobody listens")
        if how == "exit":
            raise SystemExit(3)
        if how == "loud":
            print('{"built": false}\nnot json')
        ids = [document.id for document in corpus.documents][:size]
        (cache_dir / "ids.txt").write_text("\n".join(ids))
        return cls(cache_dir, size, {"tokens": 10 * size}, how)

    def prepare(self, queries: Sequence[Query]) -> None:
        if self.how == "prepare":
            time.sleep(60)
        (self.folder / "prepared.txt").write_text(str(len(queries)))

    def retrieve(self, queries: Sequence[Query], params: Params) -> Rankings:
        assert set(params) <= {"top_k"}
        ids = (self.folder / "ids.txt").read_text().split("\n")
        ranked = ids[: int(params.get("top_k", 2))]  # type: ignore[arg-type]
        return Rankings.from_ids([query.id for query in queries], [ranked] * len(queries))


@dataclass(frozen=True)
class Make:
    """Builds the toy in a folder. It stands here since the builder's process must find it."""

    log: str

    def __call__(self, corpus: Corpus, folder: Path, settings: Params, advance: Advance) -> Toy:
        folder.mkdir(parents=True, exist_ok=True)
        advance(1, 2)
        return Toy.build(corpus, cache_dir=folder, log=self.log, **settings)


@dataclass(frozen=True)
class Dying:
    """Builds the toy; the process that builds another size than 1 is killed in a moment, once.

    In the moment ``"full"`` it finds no room on the disk instead.
    """

    log: str
    moment: str

    def __call__(self, corpus: Corpus, folder: Path, settings: Params, advance: Advance) -> Toy:
        once = Path(f"{self.log}.{self.moment}")
        if settings["size"] != 1 and not once.exists():
            once.touch()
            if self.moment == "begun":
                _die()
            _wound(self.moment)
        return Make(self.log)(corpus, folder, settings, advance)


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _wound(moment: str) -> None:
    """Change this process, which builds one index and ends, so that it dies in a moment."""
    write_record = building.write_record

    def recorded(folder: Path, record: IndexRecord) -> None:
        write_record(folder, record)
        _die()

    match moment:
        case "built":
            Toy.prepare = _die  # type: ignore[method-assign, assignment]
        case "prepared":
            building.Pickler.dump = _die  # type: ignore[method-assign, assignment]
        case "pickled":
            building.files_of = _die  # type: ignore[assignment]
        case "recorded":
            building.write_record = _die
        case "over":
            building.write_record = recorded
        case "full":
            import resource  # not on Windows

            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
