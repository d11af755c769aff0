"""Runs side by side in processes of their own: the same outcomes, and one sentence for what goes wrong."""

import multiprocessing
import multiprocessing.context
import signal
from pathlib import Path

import pytest

from podtide.core.errors import InvalidInput
from podtide.simulation.replay.pod_trace import PodTrace
from podtide.simulation.replay.processes import ReplayInterrupted, ReplayRun, replay_all
from podtide.simulation.replay.story_replay import StoryLoad
from podtide.simulation.replay.trace_replay import TraceLoad

LOAD = TraceLoad(
    trace=PodTrace(columns=("pods",), times=(0.0, 30.0), counts=((2,), (9,)), step_seconds=30.0),
    nodes=("node-1",),
    subnet="10.0.0.0/24",
)
RUNS = [ReplayRun(strategy, 16, LOAD) for strategy in ("reactive", "adaptive")]


def test_side_by_side_comes_to_the_same_as_one_after_the_other() -> None:
    told: dict[str, float] = {}

    def note(run: ReplayRun, part: float) -> None:
        told[run.strategy] = part

    together = replay_all(RUNS, 2, note)
    assert told == {"reactive": 1.0, "adaptive": 1.0}
    assert together == replay_all(RUNS, 1, note)
    assert [outcome.figures.strategy for outcome in together] == ["reactive", "adaptive"]


def test_what_a_run_refuses_is_refused_by_all(tmp_path: Path) -> None:
    missing = StoryLoad(tmp_path / "none.yaml")
    with pytest.raises(InvalidInput, match=r"none\.yaml: cannot be read"):
        replay_all([ReplayRun(each.strategy, 16, missing) for each in RUNS], 2, lambda _run, _part: None)


def test_an_interrupt_ends_every_process() -> None:
    def interrupt(_run: ReplayRun, _part: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(ReplayInterrupted) as raised:
        replay_all(RUNS, 2, interrupt)
    assert (str(raised.value), raised.value.outcomes) == ("0 of 2 runs were finished", ())
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_was_finished_before_an_interrupt_is_kept(jobs: int) -> None:
    runs = [ReplayRun(strategy, 16, LOAD) for strategy in ("fixed", "reactive", "adaptive")]
    ended: set[str] = set()

    def interrupt(run: ReplayRun, part: float) -> None:
        if part == 1.0:
            ended.add(run.strategy)
        if run.strategy == "adaptive":  # the third is not begun before one of the others is finished
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(ReplayInterrupted) as raised:
        replay_all(runs, jobs, interrupt)
    kept = [outcome.figures.strategy for outcome in raised.value.outcomes]
    assert kept
    assert set(kept) <= ended
    assert kept == replayed(kept)


def replayed(strategies: list[str]) -> list[str]:
    """In the order of the runs."""
    return [each for each in ("fixed", "reactive", "adaptive") if each in strategies]


def test_an_interrupt_while_a_process_is_started_takes_effect_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = multiprocessing.context.SpawnProcess.start

    def interrupted(process: multiprocessing.context.SpawnProcess) -> None:
        signal.raise_signal(signal.SIGINT)
        start(process)

    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", interrupted)
    with pytest.raises(ReplayInterrupted, match="0 of 2 runs"):
        replay_all(RUNS, 2, lambda _run, _part: None)
    assert multiprocessing.active_children() == []
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
