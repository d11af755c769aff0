"""What commands share that run a program until a signal stops it: settings, logs, the cluster, signals."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable
from functools import wraps
from typing import Any, NoReturn, TypeVar

import click

from podtide.core.errors import PodtideError, StopError
from podtide.runtime.clock import SystemClock
from podtide.runtime.log_rate import LogRate
from podtide.runtime.logging import LEVELS, Logger, capture_standard_logging, make_logger
from podtide.runtime.port_limits import raise_descriptor_limit
from podtide.runtime.settings import SETTINGS, Setting, load_settings

Command = TypeVar("Command", bound=Callable[..., Any])


class UnexpectedError(StopError):
    """An error that no code handles. The log has the traceback."""


def setting_options(*names: str) -> Callable[[Command], Command]:
    """Adds a flag for each of these settings; the command gets all settings, from flags and environment, as `settings`."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_settings(**given: Any) -> Any:
            flags = {name: given.pop(name) for name in names}
            stated = {name: text for name, text in flags.items() if text is not None}
            return command(settings=load_settings(os.environ, stated), **given)

        for setting in reversed([_setting(name) for name in names]):
            with_settings = _option(setting)(with_settings)
        return with_settings  # type: ignore[return-value]  # its options are the command's and these

    return decorate


def _setting(name: str) -> Setting:
    return next(setting for setting in SETTINGS if setting.name == name)


def _option(setting: Setting) -> Callable[[Command], Command]:
    purpose = setting.about.purpose
    return click.option(
        setting.flag,
        setting.name,
        metavar="VALUE",
        show_default=setting.show(setting.default),
        help=f"{purpose[0].upper()}{purpose[1:]}.",
    )


def log_option(command: Command) -> Command:
    """Adds `--log-level`; the command gets a logger as `log`, which also gets what libraries log."""

    @wraps(command)
    def with_log(*, log_level: str, **others: Any) -> Any:
        log = make_logger(sys.stderr, SystemClock(), level=log_level, rate=LogRate())
        capture_standard_logging(log)
        return command(log=log, **others)

    option = click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        show_default=True,
        help="The least severe level that is logged.",
    )
    return option(with_log)  # type: ignore[return-value]  # its options are the command's and this one


def run(program: Callable[[], Coroutine[Any, Any, None]], log: Logger) -> None:
    """Run a program to its end. An unexpected error is logged with its traceback and reported in one line."""
    raise_descriptor_limit()
    try:
        asyncio.run(program())
    except PodtideError:
        raise
    except Exception as error:
        log.exception("failed", error=str(error))
        raise UnexpectedError(
            f"stopped by an unexpected error ({type(error).__name__}): see the traceback in the log, and please report it"
        ) from error


class Signals:
    """SIGTERM and SIGINT, caught from now on."""

    def __init__(self) -> None:
        self._received: asyncio.Queue[str] = asyncio.Queue()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._received.put_nowait, number.name)

    async def next(self) -> str:
        """The name of the next signal."""
        return await self._received.get()


async def until_told(signals: Signals, tasks: Iterable["asyncio.Task[NoReturn]"], log: Logger) -> None:
    """Wait until a signal says to stop. If one of the tasks ends before, its error is raised."""
    told = asyncio.create_task(signals.next())
    try:
        done, _ = await asyncio.wait({told, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {told}:
            task.result()
        log.info("stopping", signal=told.result())
    finally:
        told.cancel()


async def stop(task: "asyncio.Task[NoReturn]", signals: Signals) -> None:
    """Cancel a program's task and wait until it has ended; a second signal tells it not to wait for answers any more."""
    task.cancel()
    again = asyncio.create_task(signals.next())
    await asyncio.wait({task, again}, return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    task.cancel()
    await asyncio.wait({task})
