"""Seven nights with a real MLflow server: promoted, kept, killed, overlapped, cut off, slipping.

The retriever is the built-in engine, which waits or gets worse where a file says so. The nights
have dates of their own, so nothing waits for a day to pass.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tuner.config import load_config
from tuner.core.journal import read_journal
from tuner.nightly.deciding import promote
from tuner.nightly.pruning import Locked
from tuner.tracking.history import read_history
from tuner.tracking.registry import Registry

pytestmark = pytest.mark.slow

RETRIEVER = '''
"""The built-in engine that waits at the fourth parameters, or loses its first answers."""
import time
from pathlib import Path
from tuner.core.rankings import Rankings
from tuner.retrieval.hybrid import Hybrid


class Gated:
    def __init__(self, inner, folder):
        self.inner, self.folder, self.seen = inner, folder, set()
        self.knobs, self.fingerprint = inner.knobs, inner.fingerprint

    @classmethod
    def build(cls, corpus, *, cache_dir, folder):
        return cls(Hybrid.build(corpus, cache_dir=cache_dir), Path(folder))

    def prepare(self, queries):
        self.inner.prepare(queries)

    def retrieve(self, queries, params):
        self.seen.add(str(params))
        gate = self.folder / "closed"
        while gate.exists() and len(self.seen) > 3:
            time.sleep(0.01)
        rankings = self.inner.retrieve(queries, params)
        if not (self.folder / "worse").exists():
            return rankings
        ids = [query.id for query in queries]
        return Rankings.from_ids(ids, [rankings.ids(row)[1:] for row in range(len(ids))])
'''


@pytest.mark.timeout(1500)  # a minute by itself; more on a machine that has other things to do
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_seven_nights(
    nights: Any,
    link: Any,
    wait_until: Callable[[Callable[[], bool]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (nights.folder / "gated.py").write_text(RETRIEVER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(nights.folder))
    nights.configure(
        retriever={"kind": "gated:Gated", "folder": str(nights.folder)},
        tracking={"uri": link.uri, "experiment": "nights"},
    )
    registry = Registry(link.uri, "small")

    # 1: the baseline is bad, so something better is in reach.
    first = nights("2026-03-01")
    assert (first["outcome"], first["exit_code"]) == ("promoted", 10)
    champion = registry.get("champion")
    assert champion is not None
    assert (champion.version, champion.study_id) == (1, first["challenger"]["study_id"])
    assert champion.params == first["challenger"]["params"]
    assert champion.tags["tuner.promoted_why"] == "the verdict of the night of 2026-03-01"

    # 2: the champion is the registry's; nothing is clearly better.
    second = nights("2026-03-02")
    assert second["outcome"] == "kept"
    assert second["champion"]["version"] == 1
    assert second["champion"]["source"] == "registry"
    nights.repeat_the_score(days=20)

    # 3: while it runs another job leaves; then it is killed, and goes on when called again.
    (nights.folder / "closed").touch()
    killed = nights.spawn("nightly", "config.yaml", "--date", "2026-03-03", "--quiet")
    wait_until(lambda: len(_told(nights)) >= 3)
    with pytest.raises(Locked):
        nights("2026-03-03")
    other = nights.spawn("nightly", "config.yaml", "--date", "2026-03-03")
    said, why = other.communicate(timeout=900)
    assert (other.returncode, said) == (3, "")
    assert "another nightly job is at work on 'small'" in why
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=900)
    before = _told(nights)
    (nights.folder / "closed").unlink()
    third = nights("2026-03-03")
    assert third["is_resumed"]
    assert _told(nights)[: len(before)] == before
    assert third["trials"]["evaluated"] + third["trials"]["shared"] == 10
    assert len(nights.events("begun")) == 3

    # 4: from now on the system gets worse, whatever its parameters; and MLflow is out of reach.
    (nights.folder / "worse").touch()
    link.cut()
    fourth = nights("2026-03-12")
    assert (fourth["outcome"], fourth["exit_code"]) == ("kept", 0)
    assert fourth["champion"]["params"] == second["champion"]["params"]
    assert fourth["champion"]["source"] == "nights"
    assert any("the last known one, version 1, counts" in note for note in fourth["notes"])
    assert any("was not told of the night" in note for note in fourth["notes"])
    assert link.uri.removeprefix("http://") in " ".join(fourth["notes"])
    link.restore()

    # 5 and 6: the third of three bad days in a week is an alarm.
    fifth, alarm = nights("2026-03-13"), nights("2026-03-14")
    assert (fifth["outcome"], fifth["exit_code"]) == ("kept", 0)
    assert fifth["champion"]["source"] == "registry"
    assert (alarm["outcome"], alarm["exit_code"]) == ("kept", 20)
    assert alarm["drift"]["status"] == "alarm"
    assert alarm["champion"]["score"] < 0.8 * second["champion"]["score"]
    assert {found["query_type"] for found in alarm["drift"]["alarms"]} >= {None, "direct"}
    (nights.folder / "worse").unlink()

    # 7: somebody has moved the champion meanwhile.
    registry.set_alias("champion", 2)
    seventh = nights("2026-03-15")
    assert seventh["champion"]["version"] == 2
    assert "the champion in the registry is version 2 now (version 1 before)" in seventh["notes"]
    assert nights.records.promotions[-1].who == "somebody, in the registry"

    # And somebody goes back, and says why.
    config, _ = load_config(nights.path)
    promote(config, "1", why="it read better", say=pytest.fail)
    went_back = registry.get("champion")
    assert went_back is not None
    assert (went_back.version, went_back.tags["tuner.promoted_why"]) == (1, "it read better")
    moves = [(move.to.version, move.why) for move in nights.records.promotions]
    assert moves == [
        (1, "the verdict of the night of 2026-03-01"),
        (2, "found as the champion in the registry"),
        (1, "it read better"),
    ]

    # What a reviewer sees: the study's run is tagged, and the scores by day are curves.
    runs = read_history(link.uri, "nights", tags={"tuner.night": "2026-03-01"})
    assert [run.run_id for run in runs] == [first["mlflow_run_id"]]
    assert runs[0].tags["tuner.night_outcome"] == "promoted"
    assert _curve(link.uri, "champion_score") == {
        0: first["champion"]["score"],
        1: second["champion"]["score"],
        2: third["champion"]["score"],
        11: fourth["champion"]["score"],  # made up for by the fifth
        12: fifth["champion"]["score"],
        13: alarm["champion"]["score"],
        14: seventh["champion"]["score"],
    }


def _told(nights: Any) -> list[tuple[int, float | None]]:
    """Return number and objective of the latest night's told trials, in the order of telling."""
    begun = nights.records.nights
    if len(begun) < 3:
        return []
    journal: Path = nights.runs_dir / begun[-1].run_dir / "journal.jsonl"
    trials = [trial for trial in read_journal(journal).trials.values() if trial.is_told]
    return [(trial.number, trial.objective) for trial in trials]


def _curve(uri: str, metric: str) -> dict[int, float]:
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    (run,) = read_history(uri, "nights", tags={"tuner.role": "nights"})
    return {one.step: one.value for one in client.get_metric_history(run.run_id, metric)}


@pytest.mark.timeout(1500)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_promotion_that_mlflow_missed_is_shown_by_the_next_night(nights: Any, link: Any) -> None:
    nights.configure(
        study={"name": "missed", "seed": 3},
        tracking={"uri": link.uri, "experiment": "missed"},
    )
    registry = Registry(link.uri, "missed")
    link.cut()
    first = nights("2026-03-01")
    assert (first["outcome"], first["exit_code"]) == ("promoted", 10)
    assert first["challenger"]["version"] is None
    assert not nights.records.promotions[-1].is_shown
    link.restore()
    assert registry.get("champion") is None
    second = nights("2026-03-02")
    assert second["champion"]["params"] == first["challenger"]["params"]
    shown = registry.get("champion")
    assert shown is not None
    assert (shown.study_id, shown.params) == (
        first["challenger"]["study_id"],
        first["challenger"]["params"],
    )
    assert second["champion"]["version"] == shown.version
    assert nights.records.promotions[-1].is_shown

    # To go back to the baseline is to have no champion in the registry.
    config, _ = load_config(nights.path)
    promote(config, "baseline", why="", say=pytest.fail)
    assert registry.get("champion") is None
    third = nights("2026-03-03", "budget.trials=0")
    assert third["champion"]["source"] == "config"
    assert third["champion"]["params"] == nights.config["baseline"]
