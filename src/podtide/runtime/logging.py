"""Logs: one JSON object per line for programs to read, plain lines on a terminal for people.

A program makes one logger and hands it to its parts, which `bind` what they are about. Nothing is configured
globally, so that two simulated programs in one process write to two places, each with its own time.
`capture_standard_logging` is for the one thing that is global by nature: what libraries say through Python's
`logging`.
"""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO

import msgspec

from podtide.core.errors import InvalidInput
from podtide.runtime.clock import Clock
from podtide.runtime.log_rate import CHATTER, COMPLAINTS, LogRate


@contextmanager
def _hidden(*modules: str) -> Iterator[None]:
    """A context in which imports do not find these modules, unless they are imported already."""
    absent = [module for module in modules if module not in sys.modules]
    for module in absent:
        sys.modules[module] = None  # type: ignore[assignment]  # Python's own way to say that there is none
    try:
        yield
    finally:
        for module in absent:
            del sys.modules[module]


# structlog imports them where they are installed, for what podtide does not use: 6 MB in every agent.
with _hidden("rich", "greenlet", "colorama"):
    import structlog
    from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

Logger = FilteringBoundLogger
"""What parts of a program are handed. `log.info("granted", node="a", addresses=16)`."""

LEVELS = ("debug", "info", "warning", "error")
_COMPLAINING = frozenset({"warning", "error", "critical"})


def make_logger(stream: TextIO, clock: Clock, *, level: str = "info", rate: LogRate | None = None) -> Logger:
    """A logger that writes to `stream`: for people if it is a terminal, else JSON.

    Its timestamps are the clock's, so that a simulation logs the time it simulates. With a rate it writes no more of
    one event than that allows: for programs that answer others.
    """
    if level.lower() not in LEVELS:
        raise InvalidInput(f"log level {level!r} is unknown: give one of {', '.join(LEVELS)}")
    logger: Logger = structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[
            *([_bounded(rate, clock)] if rate is not None else []),
            _add_time(clock),
            structlog.processors.add_log_level,
            *_renderers(stream),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
    ).bind()
    return logger


def capture_standard_logging(logger: Logger) -> None:
    """Forward what libraries log (warnings and worse) to `logger`. To be called once, by a program's main."""
    logging.basicConfig(level=logging.WARNING, handlers=[_Forwarder(logger)], force=True)
    logging.captureWarnings(capture=True)


class _Forwarder(logging.Handler):
    """Hands standard log records to a structlog logger."""

    def __init__(self, logger: Logger) -> None:
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._logger.log(
                record.levelno, record.getMessage(), library=record.name, exc_info=record.exc_info
            )
        except Exception:  # noqa: BLE001 - a line that cannot be written must not break the library that logs it
            self.handleError(record)


def _bounded(rate: LogRate, clock: Clock) -> Processor:
    def bound(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        budget = COMPLAINTS if method in _COMPLAINING else CHATTER
        unlogged = rate.spend(str(event.get("library", event["event"])), budget, clock.monotonic())
        if unlogged is None:
            raise structlog.DropEvent
        return {**event, "unlogged": unlogged} if unlogged else event

    return bound


def _add_time(clock: Clock) -> Processor:
    def add(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        moment = datetime.fromtimestamp(clock.wall(), UTC)
        return {"at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"), **event}

    return add


def _renderers(stream: TextIO) -> list[Processor]:
    if stream.isatty():
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(timestamp_key="at", exception_formatter=plain)]
    return [structlog.processors.format_exc_info, _render_json]


def _render_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """One line of JSON: structs as objects, and what has no JSON form as text."""
    try:
        return msgspec.json.encode(event, enc_hook=str).decode()
    except (TypeError, ValueError):
        # Keys that are not strings, or strings that are not valid Unicode. A log line must not fail, nor be lost.
        return json.dumps({name: repr(value) for name, value in event.items()})
