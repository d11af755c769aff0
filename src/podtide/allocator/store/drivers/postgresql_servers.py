"""Which of the servers in a database's URL to use: the primary.

    postgresql://user@first:5432,second:5432/database

The allocator writes, so a standby is of no use to it, whatever the URL says of `target_session_attrs`. The server that was
found last is tried first, so that a machine that is gone costs its time limit once and not for every connection. asyncpg
can look for a server too, with one time limit for all: of several servers of which the first hangs it finds none.
"""

import re
from typing import Any

import asyncpg

NO_ANSWER = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
)
"""Errors that tell of a server that is away, not of what was asked."""
_TRY_NEXT = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.TargetServerAttributeNotMatched,
)
_EACH_SECONDS = 3.0
"""For each of several servers."""
_URL = re.compile(r"(?P<scheme>[a-z]+://)(?:(?P<user>[^/?#]*)@)?(?P<hosts>[^/?#@]*)(?P<rest>.*)", re.DOTALL)


class NoPrimary(ConnectionError):
    """No server took the connection, or none of them is a primary. The message says so of each."""


class PostgresqlServers:
    """The servers of a URL."""

    def __init__(self, url: str) -> None:
        self._urls = one_url_each(url)

    async def connect(self, *_dsn: str, timeout: float, **options: Any) -> "asyncpg.Connection[Any]":  # noqa: ASYNC109 - as asyncpg's pool calls it
        """Connect to the primary; called by asyncpg's pool in the place of `asyncpg.connect`."""
        seconds = timeout if len(self._urls) == 1 else min(timeout, _EACH_SECONDS)
        failures: dict[str, Exception] = {}
        for url in tuple(self._urls):
            try:
                connection = await asyncpg.connect(
                    url, timeout=seconds, target_session_attrs="primary", **options
                )
            except _TRY_NEXT as error:
                failures[url] = error
                continue
            self._urls = [url, *(each for each in self._urls if each != url)]
            return connection
        raise NoPrimary(_said_of(failures))


def one_url_each(url: str) -> list[str]:
    """A URL for each server of a URL with several, in their order."""
    parts = _URL.fullmatch(url)
    if parts is None:
        return [url]
    user = "" if parts["user"] is None else f"{parts['user']}@"
    return [f"{parts['scheme']}{user}{host}{parts['rest']}" for host in parts["hosts"].split(",")]


def _said_of(failures: dict[str, Exception]) -> str:
    if len(failures) == 1:
        return _said(*failures.values())
    parts = ((_URL.fullmatch(url), error) for url, error in failures.items())
    return ", ".join(f"{match['hosts'] if match else ''}: {_said(error)}" for match, error in parts)


def _said(error: Exception) -> str:
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "it is a standby, which takes no writes"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return " ".join(str(error).split()) or type(error).__name__
