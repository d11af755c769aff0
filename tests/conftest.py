"""How tests run: coroutines on virtual time, unless they ask for the machine's own clock."""

import asyncio
import gc
import inspect
import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from podtide.runtime.virtual_time import VirtualTimeLoop

pytest_plugins = ["dealing_out", "left_out", "real_kubernetes", "allocator.postgres"]

settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("fast", deadline=None, print_blob=True, max_examples=20)
settings.load_profile("default")


def pytest_configure() -> None:
    """Undo what a shell does to its background jobs: they ignore SIGINT, and so would all programs that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def standard_logging() -> Iterator[None]:
    """Leave Python's own logging as it was: a program that a test runs in this process may take it over."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    logging.captureWarnings(capture=False)
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture(autouse=True)
def standard_interrupts() -> Iterator[None]:
    """Leave Python's own handler of SIGINT in place: uvloop keeps that of a closed loop, which ignores every later Ctrl-C."""
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: take them out of what every full garbage collection goes through.

    And collect as seldom as a simulation does (see `podtide.runtime.virtual_time`): most tests end before there is much.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests; sleeps in them take no time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    real_time = pyfuncitem.get_closest_marker("real_time") is not None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    with asyncio.Runner(loop_factory=None if real_time else VirtualTimeLoop) as runner:
        runner.run(pyfuncitem.obj(**arguments))
    if real_time:
        # A connection that was left open is the fault of this test, not of the one in which it would be found.
        gc.collect(1)
    return True
