"""Several runs side by side, each in a process of its own: a run is one event loop, and keeps one core busy.

A process that is interrupted leaves no other behind: the runs ignore Ctrl-C, which reaches the whole group of a terminal, and
are ended by the process that started them; where that is killed, they see it and end by themselves. The outcomes of runs that
were finished by then are kept: they took minutes.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from podtide.core.errors import InvalidInput, PodtideError
from podtide.simulation.replay.figures import ReplayOutcome
from podtide.simulation.replay.story_replay import StoryLoad, replay_story
from podtide.simulation.replay.trace_replay import Tell, TraceLoad, replay_trace

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

_CONTEXT = multiprocessing.get_context("spawn")  # a fork would copy the threads of a progress bar, half done
_PARTS = 100


class ReplayRun(Struct, frozen=True):
    """One strategy with one batch, under a load."""

    strategy: str
    batch: int
    load: TraceLoad | StoryLoad


class ReplayFailed(PodtideError):
    """A run ended by an error."""


class ReplayInterrupted(PodtideError):
    """Ctrl-C came before all runs were finished."""

    def __init__(self, outcomes: Sequence[ReplayOutcome], asked: int) -> None:
        super().__init__(f"{len(outcomes)} of {asked} runs were finished")
        self.outcomes = tuple(outcomes)
        """Of the runs that were finished, in their order."""


class FailedRun(Struct, frozen=True):
    """The error of a run, as its process tells it."""

    words: str
    is_bad_input: bool


Progress: TypeAlias = Callable[[ReplayRun, float], None]
"""Called with a run and the part of it that is done, at most a hundred times."""


def replay(run: ReplayRun, tell: Tell) -> ReplayOutcome:
    """Carry out a run in this process."""
    tell(0.0)
    if isinstance(run.load, TraceLoad):
        return replay_trace(run.strategy, run.batch, run.load, tell)
    return replay_story(run.strategy, run.batch, run.load, tell)


def replay_all(runs: Sequence[ReplayRun], jobs: int, progress: Progress) -> list[ReplayOutcome]:
    """Carry out all runs, so many at a time; their outcomes in the order of the runs."""
    if jobs == 1 or len(runs) == 1:
        return _one_by_one(runs, progress)
    return _SideBySide(runs, progress).carry_out(jobs)


def _one_by_one(runs: Sequence[ReplayRun], progress: Progress) -> list[ReplayOutcome]:
    outcomes: list[ReplayOutcome] = []
    try:
        for run in runs:
            outcomes.append(replay(run, _Parts(partial(progress, run))))  # noqa: PERF401 - what is done is kept
    except KeyboardInterrupt:
        raise ReplayInterrupted(outcomes, len(runs)) from None
    return outcomes


class _Parts:
    """Passes on the part that is done, when it is another hundredth."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told = -1

    def __call__(self, part: float) -> None:
        if (done := int(part * _PARTS)) > self._told:
            self._told = done
            self._tell(done / _PARTS)


class _SideBySide:
    def __init__(self, runs: Sequence[ReplayRun], progress: Progress) -> None:
        self._runs = runs
        self._progress = progress
        self._outcomes: dict[int, ReplayOutcome] = {}
        self._active: dict[Connection, tuple[int, SpawnProcess]] = {}

    def carry_out(self, jobs: int) -> list[ReplayOutcome]:
        waiting = list(range(len(self._runs)))
        try:
            # The first process would start it, and starting it unblocks SIGINT, which that process must never see.
            resource_tracker.ensure_running()
            while waiting or self._active:
                while waiting and len(self._active) < jobs:
                    self._start(waiting.pop(0))
                for line in wait(list(self._active)):
                    assert isinstance(line, Connection)  # nothing else is waited for
                    self._hear(line)
        except KeyboardInterrupt:
            raise ReplayInterrupted(self._finished(), len(self._runs)) from None
        finally:
            self._end_all()
        return self._finished()

    def _finished(self) -> list[ReplayOutcome]:
        return [self._outcomes[number] for number in sorted(self._outcomes)]

    def _start(self, number: int) -> None:
        line, far_end = _CONTEXT.Pipe(duplex=False)
        process = _CONTEXT.Process(target=_work, args=(self._runs[number], far_end), daemon=True)
        with _interrupts_held_back():
            process.start()
            far_end.close()
            self._active[line] = (number, process)

    def _hear(self, line: Connection) -> None:
        number, process = self._active[line]
        run = self._runs[number]
        try:
            heard = line.recv()
        except EOFError:
            process.join()
            raise ReplayFailed(
                f"the process that replayed {run.strategy} with batch {run.batch} ended without an answer (status "
                f"{process.exitcode}): it may have lacked memory; try fewer --jobs"
            ) from None
        if isinstance(heard, float):
            self._progress(run, heard)
            return
        if isinstance(heard, FailedRun):
            raise (InvalidInput if heard.is_bad_input else ReplayFailed)(heard.words)
        self._outcomes[number] = heard
        del self._active[line]
        line.close()
        process.join()

    def _end_all(self) -> None:
        for _, process in self._active.values():
            process.kill()
        for line, (_, process) in self._active.items():
            process.join()
            line.close()
        self._active.clear()


def _work(run: ReplayRun, line: Connection) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        line.send(replay(run, _Parts(line.send)))
    except BrokenPipeError:
        os._exit(1)  # as below, a moment earlier
    except PodtideError as error:
        line.send(FailedRun(str(error), isinstance(error, InvalidInput)))


def _end_with_parent() -> None:
    """End this process at once when the one that started it is gone: there is nothing to tidy up, and no reader."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # it was started by one
    parent.join()
    os._exit(1)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """A process that is started meanwhile never sees SIGINT, and one that comes to this process takes effect at the end.

    A mask is inherited, as a handler is not. The handler is for a SIGINT that another thread of this process gets.
    """
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(signal.SIGINT, None)


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))
