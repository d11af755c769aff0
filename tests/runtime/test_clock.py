import time

from podtide.runtime.clock import SystemClock


def test_monotonic_time_only_grows_and_counts_the_time_asleep() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(100)]
    assert readings == sorted(readings)
    assert readings[0] >= time.monotonic() - 60, "never behind the clock that stands still in sleep"


def test_wall_time_is_the_machines() -> None:
    before = time.time()
    assert before <= SystemClock().wall() <= time.time()
