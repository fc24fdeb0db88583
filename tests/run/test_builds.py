"""What is built while a study searches is told one at a time, and timed once."""

from __future__ import annotations

from tuner.core.steps import Step
from tuner.retrieval.indexes.building import Building
from tuner.run.builds import Builds
from tuner.run.progress import Lines


class Heard:
    """Hears steps, by a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps: list[Step] = []
        self.builds = Builds(self.steps.append, clock=lambda: self.now)

    def take(self, seconds: float, name: str, **told) -> None:
        self.now = seconds
        self.builds.take(Building(name, {"k1": name}, **told))


def test_the_baselines_index_is_the_first_so_others_count_from_two() -> None:
    heard = Heard()
    heard.take(0.0, "a")
    heard.take(1.0, "a", done=1, of=4)
    heard.take(4.0, "a", is_over=True)
    heard.take(5.0, "b")
    assert heard.steps == [
        Step("index 2: k1=a"),
        Step("index 2: k1=a", 1, 4),
        Step("index 2: k1=a", is_over=True),
        Step("index 3: k1=b"),
    ]


def test_what_another_study_had_built_meanwhile_is_not_counted() -> None:
    heard = Heard()
    heard.take(0.0, "a")
    heard.take(1.0, "b")
    assert heard.builds.ledger.total.sent == 2
    heard.take(4.0, "a", is_over=True, is_found=True)
    heard.take(9.0, "b", is_over=True, is_new=True)
    assert heard.builds.ledger.total.sent == 1


def test_of_two_at_once_the_first_is_told_and_their_time_counts_once() -> None:
    heard = Heard()
    heard.take(0.0, "a")
    heard.take(2.0, "b")
    heard.take(5.0, "a", is_over=True)
    assert [step.phase for step in heard.steps] == ["index 2: k1=a"] * 3 + ["index 3: k1=b"]
    heard.take(9.0, "b", is_over=True)
    heard.take(20.0, "c")
    heard.now = 21.0
    assert heard.builds.seconds == 9.0 + 1.0


def test_a_log_says_which_index_trials_wait_for(capsys) -> None:
    heard = Heard()
    lines = Lines(clock=lambda: heard.now)
    heard.take(0.0, "0.9")
    heard.take(3.0, "0.9", done=1, of=4)
    for step, now in zip(heard.steps, (0.0, 12.0), strict=True):
        heard.now = now
        lines.step(step)
        lines.tick()
    assert capsys.readouterr().err == "index 2: k1=0.9: 25 %, about 36.0 s left\n"
