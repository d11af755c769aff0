"""The SQLite driver: one connection with one user, write-ahead log, every change on disk before it is answered.

All calls that wait at one moment, of whichever subnets, share a transaction. Other processes may use the same file: each
transaction that writes takes the file's lock first, and waits for it for some seconds.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.store.container_writes import SubnetOperation, serve
from podtide.allocator.store.drivers.executors import Executor
from podtide.allocator.store.drivers.group_commit import GroupCommit
from podtide.allocator.store.drivers.mark import MarkFile
from podtide.allocator.store.rules import StoreRules
from podtide.allocator.store.script import Query, Rows, Script, Statement
from podtide.runtime.clock import Clock

T = TypeVar("T")

IN_MEMORY = ":memory:"
LARGEST_GROUP = 256
_BUSY_SECONDS = 5.0
_TO_WRITE = "BEGIN IMMEDIATE"


class _SubnetCall(NamedTuple):
    network: str
    subnet: str
    call: SubnetOperation[Any]


class SqliteDatabase:
    """A SQLite file, or `:memory:`."""

    def __init__(self, path: str, *, clock: Clock, rules: StoreRules, executor: Executor) -> None:
        self.name = path
        self._clock = clock
        self._rules = rules
        self._executor = executor
        self._calls = GroupCommit(self._commit, LARGEST_GROUP)
        self._open = True
        self._connection = _connect(path)
        self.mark = None if path == IN_MEMORY else MarkFile(path)

    async def read(self, script: Callable[[float], Script[T]]) -> T:
        """Run a read-only script."""
        return await self._run("BEGIN", script)

    async def write(self, script: Callable[[float], Script[T]]) -> T:
        """Run a script in a transaction of its own."""
        return await self._run(_TO_WRITE, script)

    async def migrate(self, script: Callable[[float], Script[T]]) -> T:
        """`write`, which has no time limit here."""
        return await self.write(script)

    async def call(self, network: str, subnet: str, call: SubnetOperation[T]) -> T:
        """Carry out an operation together with all others that wait."""
        self._refuse_when_closed()
        return cast("T", await self._calls.submit(_SubnetCall(network, subnet, call)))

    async def close(self) -> None:
        """Finish what is in flight, and close the file."""
        self._open = False
        await self._calls.finish()
        await self._executor.run(self._connection.close)
        self._executor.close()

    async def _run(self, begin: str, script: Callable[[float], Script[T]]) -> T:
        self._refuse_when_closed()
        now = self._clock.wall()

        def work() -> T:
            with self._transaction(begin):
                return _carry_out(self._connection, script(now))

        return await self._executor.run(work)

    async def _commit(self, calls: Sequence[_SubnetCall]) -> list[object]:
        now = self._clock.wall()
        return await self._executor.run(lambda: self._serve(calls, now))

    def _serve(self, calls: Sequence[_SubnetCall], now: float) -> list[object]:
        try:
            return self._serve_together(calls, now)
        except AllocatorUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - of one call, whichever it is: the others must not fail for it
            if len(calls) == 1:
                return [error]
            return [outcome for call in calls for outcome in self._serve([call], now)]

    def _serve_together(self, calls: Sequence[_SubnetCall], now: float) -> list[object]:
        by_subnet: dict[tuple[str, str], list[int]] = {}
        for number, (network, subnet, _call) in enumerate(calls):
            by_subnet.setdefault((network, subnet), []).append(number)
        outcomes: list[object] = [None] * len(calls)
        with self._transaction(_TO_WRITE):
            for (network, subnet), numbers in by_subnet.items():
                script = serve(network, subnet, [calls[n].call for n in numbers], now, self._rules)
                for number, outcome in zip(numbers, _carry_out(self._connection, script), strict=True):
                    outcomes[number] = outcome
        return outcomes

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with _readable_errors(self.name):
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
                if self.mark is not None and begin == _TO_WRITE:
                    self.mark.follow(self._connection)
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _refuse_when_closed(self) -> None:
        if not self._open:
            raise AllocatorUnavailable(f"{self.name} is closed: the allocator is stopping, try again")


def read_untouched(path: str, script: Script[T]) -> T:
    """The result of a read-only script on a file that is not changed by it, not even by a byte.

    `_connect` turns whatever it opens into a database with a write-ahead log: that is for a file that is known to be
    ours.
    """
    file = Path(path).absolute()
    with _readable_errors(path):
        connection = sqlite3.connect(
            f"{file.as_uri()}?{_how_to_look(file)}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None
        )
        with closing(connection):
            return _carry_out(connection, script)


def _how_to_look(file: Path) -> str:
    """The URI options to open a file with: without a log, as immutable, so that no other file is created beside it."""
    log = file.with_name(f"{file.name}-wal")
    return "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"


def _carry_out(connection: sqlite3.Connection, script: Script[T]) -> T:
    try:
        statement = next(script)
        while True:
            statement = script.send(_execute(connection, statement))
    except StopIteration as end:
        return cast("T", end.value)


def _execute(connection: sqlite3.Connection, statement: Statement) -> Rows:
    if isinstance(statement, Query):
        parameters = (
            json.dumps(value) if isinstance(value, list) else value for value in statement.parameters
        )
        return connection.execute(_spell(statement.sql), tuple(parameters)).fetchall()
    for sql, rows in statement.each:
        connection.executemany(_spell(sql), rows)
    return ()


def _connect(path: str) -> sqlite3.Connection:
    with _readable_errors(path):
        # The executor runs one thing at a time, in whichever thread it likes.
        connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def _readable_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise AllocatorUnavailable(
            f"the database {path} could not be used: {error}; what was asked was not done, try again"
        ) from error


@lru_cache(maxsize=512)
def _spell(sql: str) -> str:
    """A script's SQL in SQLite's dialect (see `script`)."""
    sql = re.sub(r"/\*index (\w+)\*/", r"INDEXED BY \1", sql)
    sql = re.sub(r"\bIN (\$\d+)", r"IN (SELECT value FROM json_each(\1))", sql)
    return sql.replace("$", "?")
