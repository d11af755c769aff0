"""Waiting for what other processes bring about. Patience is generous: a slow machine is no fault of podtide's."""

import time
from collections.abc import Callable

from patience import PATIENCE_SECONDS

POLL_SECONDS = 0.1


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Come back when it holds; `what` is what was waited for in vain."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"after {PATIENCE_SECONDS:.0f} s: {what}"
        time.sleep(POLL_SECONDS)
