"""Script times of a page, from a browser's trace: processor time on the thread that draws, each script counted once."""

from typing import Any

from page_trace import ScriptTimes, script_times

MAIN, OTHER = 7, 8


def event(name: str, start: int, end: int, spent: int, thread: int = MAIN) -> dict[str, Any]:
    return {"ph": "X", "name": name, "ts": start, "dur": end - start, "tdur": spent, "pid": 1, "tid": thread}


TASK = "ThreadControllerImpl::RunTask"


def test_a_frame_is_as_long_as_its_scripts_took_a_processor_and_not_as_the_clock_says() -> None:
    found = script_times(
        [
            event(TASK, 0, 90_000, 9_000),
            event("FireAnimationFrame", 1_000, 80_000, 4_000),
            event("FunctionCall", 2_000, 70_000, 3_900),  # within the frame: counted with it
            event("RunMicrotasks", 81_000, 82_000, 500),
            event("Layout", 83_000, 89_000, 4_000),  # no script
            event(TASK, 100_000, 110_000, 7_000),
            event("TimerFire", 100_500, 109_000, 6_000),
            event(TASK, 0, 200_000, 150_000, OTHER),
            event("FunctionCall", 0, 200_000, 150_000, OTHER),
        ]
    )
    assert found == ScriptTimes(longest_frame=4.5, longest_task=6.0, frames=1, total=10.5)


def test_a_trace_without_frames_has_no_times() -> None:
    assert script_times([event(TASK, 0, 10, 10)]) == ScriptTimes(
        longest_frame=0.0, longest_task=0.0, frames=0, total=0.0
    )
