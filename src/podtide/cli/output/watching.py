"""`--watch`: an answer that is looked up again and again, and printed again when it has changed.

On a terminal the screen is redrawn. Anywhere else only answers that differ from the one before are printed, one after
the other, so that a pipe gets every change once.
"""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar

import click
from msgspec import Struct

from podtide.cli.options.numbers import INTERVAL
from podtide.cli.output.formats import warn
from podtide.core.errors import RetryError

Command = TypeVar("Command", bound=Callable[..., Any])

_CLEAR = "\x1b[H\x1b[2J"


class Watching(Struct, frozen=True):
    """How often to look again."""

    interval_seconds: float


def watch_options(command: Command) -> Command:
    """Adds `--watch` and `--interval`; the command gets a `Watching` as `watching`, or None without --watch."""

    @wraps(command)
    def with_watching(*, watch: bool, interval: float, **others: Any) -> Any:
        return command(watching=Watching(interval) if watch else None, **others)

    for option in (
        click.option(
            "--interval",
            type=INTERVAL,
            default=2.0,
            show_default="2s",
            help="How often --watch looks again.",
        ),
        click.option("-w", "--watch", is_flag=True, help="Look again and again, and print what has changed."),
    ):
        with_watching = option(with_watching)
    return with_watching  # type: ignore[return-value]  # its options are the command's and these


def print_answer(produce: Callable[[], Awaitable[str]], watching: Watching | None) -> None:
    """Print what `produce` returns, once, or until Ctrl-C whenever it has changed."""
    if watching is None:
        sys.stdout.write(asyncio.run(_once(produce)))
    else:
        asyncio.run(_keep_looking(produce, watching.interval_seconds))


async def _once(produce: Callable[[], Awaitable[str]]) -> str:
    return await produce()


async def _keep_looking(produce: Callable[[], Awaitable[str]], interval_seconds: float) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    before: str | None = None
    while not stopped.is_set():
        try:
            answer = await produce()
        except RetryError as error:
            if before is None:
                raise  # there is nothing to keep on the screen
            warn([f"as of before: {error}"])
            answer = before
        if answer != before:
            sys.stdout.write(f"{_CLEAR}{answer}" if sys.stdout.isatty() else answer)
            sys.stdout.flush()
            before = answer
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), interval_seconds)
