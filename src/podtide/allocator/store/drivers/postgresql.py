"""The PostgreSQL driver: for several replicas of the allocator at once, kept apart by the database's own locks.

A transaction locks the row of its subnet first, so writers of one subnet queue and those of different subnets do not.
Calls for one subnet that wait at one moment share a transaction. A transaction that conflicts with another (a deadlock,
an id that appeared meanwhile) is retried from the start.

A server that hangs says nothing, not even that it ends a connection. So a statement has a time limit, and a connection
whose server did not answer is dropped without closing it properly, and so are all others of that moment: the next call
looks for the server that is the primary now.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache, partial
from typing import Any, Literal, TypeVar, cast

import asyncpg

from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.store.container_writes import SubnetOperation, serve
from podtide.allocator.store.drivers.database import InvalidDatabaseUrl
from podtide.allocator.store.drivers.group_commit import GroupCommit
from podtide.allocator.store.drivers.mark import MarkFile
from podtide.allocator.store.drivers.postgresql_servers import NO_ANSWER, PostgresqlServers
from podtide.allocator.store.rules import StoreRules
from podtide.allocator.store.script import Query, Rows, Script, Statement
from podtide.runtime.clock import Clock

T = TypeVar("T")
Isolation = Literal["read_committed", "serializable", "repeatable_read"]

LARGEST_GROUP = 256
_CONNECTIONS = 10
_ANSWER_SECONDS = 10.0
"""For a statement, and for a new connection. Clients of the service wait as long for an attempt of theirs."""
_MIGRATION_SECONDS = 3600.0
"""For a statement that changes the schema: a large database takes its time, and no call is served meanwhile."""
_GOODBYE_SECONDS = 5.0
_MOST_ATTEMPTS = 10
_RUN_AGAIN = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.UniqueViolationError,
)
_UNKNOWN = "it is unknown whether the change was made, so retry"
_NOT_ASKED = "no request was sent to it yet: check that it runs, or correct --database"
_ONLY_READ = "this was only a read, so nothing was changed: retry"


_MARK = """(SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
    (SELECT oid FROM pg_database WHERE datname = current_database()), 'store'::regclass::oid))"""
"""Which server the database is on: its cluster of databases, timeline, database and table."""
_COMPARE_MARK = f"""UPDATE store SET mark = {_MARK},
    recovery = CASE WHEN mark = '' THEN recovery ELSE greatest(recovery + 1, floor($1::float8 * 1000)::bigint) END,
    reason = CASE WHEN mark = '' THEN reason
             ELSE 'the database is on another server or timeline, or was read in from a dump' END,
    recovering_since = CASE WHEN mark = '' THEN recovering_since ELSE $1::float8 END
    WHERE mark <> {_MARK}"""  # noqa: S608 - our own words


_DIFFERS = f"SELECT 1 FROM store WHERE mark <> {_MARK}"  # noqa: S608 - our own words


_PLANNING = "SET enable_seqscan = off; SET jit = off"
"""Plans are kept, and one that was made while a table was small would read all of it for ever. Every look-up has an index."""
_TYPES: dict[str, tuple[str, ...]] = {}


async def _keep_as_it_is(_connection: object) -> None:
    """In place of asyncpg's reset, which asks the server once more for each transaction: ours leave nothing behind."""


async def connect(url: str, name: str, *, clock: Clock, rules: StoreRules) -> "PostgresqlDatabase":
    """Connect to the database at `url`, which errors call `name`."""
    servers = PostgresqlServers(url)

    async def connect_to_server(*dsn: str, **options: Any) -> "asyncpg.Connection[Any]":
        connection = await servers.connect(*dsn, **options)
        try:
            await connection.execute(_PLANNING)
            await _look_at_mark(connection, clock.wall())
        except BaseException:
            connection.terminate()
            raise
        return connection

    try:
        with _readable_errors(name, _NOT_ASKED):
            pool = await asyncpg.create_pool(
                url,
                connect=connect_to_server,
                min_size=1,
                max_size=_CONNECTIONS,
                timeout=_ANSWER_SECONDS,
                command_timeout=_ANSWER_SECONDS,
                reset=_keep_as_it_is,
            )
    except ValueError:
        raise InvalidDatabaseUrl(
            f"--database {name} is not a valid URL of a PostgreSQL database: use postgresql://user@host:port/database"
        ) from None
    return PostgresqlDatabase(pool, name, clock=clock, rules=rules)


class PostgresqlDatabase:
    """A PostgreSQL database, through a pool of connections. Made by `connect`."""

    mark: MarkFile | None = None

    def __init__(self, pool: "asyncpg.Pool[Any]", name: str, *, clock: Clock, rules: StoreRules) -> None:
        self.name = name
        self._pool = pool
        self._clock = clock
        self._rules = rules
        self._lanes: dict[tuple[str, str], GroupCommit[SubnetOperation[Any]]] = {}
        self._open = True

    async def read(self, script: Callable[[float], Script[T]]) -> T:
        """Run a read-only script; it sees one snapshot."""
        self._refuse_when_closed()
        with _readable_errors(self.name, _ONLY_READ):
            async with self._transaction(isolation="repeatable_read", readonly=True) as connection:
                return await _carry_out(connection, script(self._clock.wall()))

    async def write(self, script: Callable[[float], Script[T]]) -> T:
        """Run a script in a transaction of its own."""
        self._refuse_when_closed()
        return await self._transact(script)

    async def migrate(self, script: Callable[[float], Script[T]]) -> T:
        """`write` a script whose statements may take long."""
        done = await self._transact(script, _MIGRATION_SECONDS)
        await (
            self._pool.expire_connections()
        )  # made before there was a schema, they have not looked at the mark
        return done

    async def call(self, network: str, subnet: str, call: SubnetOperation[T]) -> T:
        """Carry out an operation together with those that wait for the same subnet."""
        self._refuse_when_closed()
        key = (network, subnet)
        if (lane := self._lanes.get(key)) is None:
            lane = self._lanes[key] = GroupCommit(partial(self._commit, network, subnet), LARGEST_GROUP)
        try:
            return cast("T", await lane.submit(call))
        finally:
            if lane.is_idle and self._lanes.get(key) is lane:
                del self._lanes[key]

    async def close(self) -> None:
        """Finish what is in flight, and close the connections."""
        self._open = False
        for lane in list(self._lanes.values()):
            await lane.finish()
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def _commit(self, network: str, subnet: str, calls: Sequence[SubnetOperation[Any]]) -> list[object]:
        try:
            return await self._transact(lambda now: serve(network, subnet, calls, now, self._rules))
        except AllocatorUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - of one call, whichever it is: the others must not fail for it
            if len(calls) == 1:
                return [error]
            return [outcome for call in calls for outcome in await self._commit(network, subnet, [call])]

    async def _transact(self, script: Callable[[float], Script[T]], seconds: float = _ANSWER_SECONDS) -> T:
        with _readable_errors(self.name):
            for attempt in range(_MOST_ATTEMPTS):
                try:
                    async with self._transaction() as connection:
                        return await _carry_out(connection, script(self._clock.wall()), seconds)
                except _RUN_AGAIN:
                    await asyncio.sleep(0.001 * 2**attempt)
        raise AllocatorUnavailable(
            f"the transaction was rolled back {_MOST_ATTEMPTS} times by conflicts with others in the database {self.name}: "
            "nothing was changed, retry"
        )

    @asynccontextmanager
    async def _transaction(
        self, *, isolation: Isolation | None = None, readonly: bool = False
    ) -> AsyncIterator["asyncpg.pool.PoolConnectionProxy[Any]"]:
        """A transaction on a connection of the pool.

        asyncpg's own contexts would send a rollback to a server that does not answer, and wait for that.
        """
        connection = await self._pool.acquire()
        try:
            transaction = connection.transaction(isolation=isolation, readonly=readonly)
            await transaction.start()
            try:
                yield connection
            except NO_ANSWER:
                raise
            except BaseException:
                await transaction.rollback()
                raise
            await transaction.commit()
        except NO_ANSWER:
            connection.terminate()
            await self._pool.expire_connections()
            raise
        finally:
            await self._pool.release(connection)

    def _refuse_when_closed(self) -> None:
        if not self._open:
            raise AllocatorUnavailable(f"{self.name} is closed: the allocator is stopping, try again")


async def _look_at_mark(connection: "asyncpg.Connection[Any]", now: float) -> None:
    """Check that the server behind a new connection is the one that the database was on.

    A failover or a recovery to a point in time begins another timeline of the same server; a dump that is read in
    makes another table. Both may have lost the last transactions, and then the database recovers (see
    `core.subnet.store_continuity`). That is one statement, so that of several connections one begins the recovery,
    and the others wait for it. Where nothing differs nothing is written: a server that only answers is told by
    `history.write_probe`.
    """
    try:
        if await connection.fetchval(_DIFFERS):
            await connection.execute(_COMPARE_MARK, now)
    except asyncpg.UndefinedTableError:
        return  # there is no schema yet
    except asyncpg.UndefinedColumnError:
        return


async def _carry_out(
    connection: "asyncpg.pool.PoolConnectionProxy[Any]", script: Script[T], seconds: float = _ANSWER_SECONDS
) -> T:
    try:
        statement = next(script)
        while True:
            statement = script.send(await _execute(connection, statement, seconds))
    except StopIteration as end:
        return cast("T", end.value)


async def _execute(
    connection: "asyncpg.pool.PoolConnectionProxy[Any]", statement: Statement, seconds: float
) -> Rows:
    if isinstance(statement, Query):
        return cast(
            "Rows", await connection.fetch(_spell(statement.sql), *statement.parameters, timeout=seconds)
        )
    columns = [list(values) for change in statement.each for values in zip(*change.rows, strict=True)]
    sql = _as_one(
        tuple([(change.sql, await _types(connection, change.sql, seconds)) for change in statement.each])
    )
    await connection.fetch(sql, *columns, timeout=seconds)
    return ()


async def _types(
    connection: "asyncpg.pool.PoolConnectionProxy[Any]", sql: str, seconds: float
) -> tuple[str, ...]:
    """The types of a statement's parameters, as the server infers them from the tables. It is asked once."""
    if (types := _TYPES.get(sql)) is None:
        prepared = await connection.prepare(sql, timeout=seconds)
        types = _TYPES[sql] = tuple(parameter.name for parameter in prepared.get_parameters())
    return types


@lru_cache(maxsize=512)
def _as_one(changes: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    """One statement for several changes, with an array for each of their parameters: what a change is `given` are rows."""
    parts: list[str] = []
    first = 1
    for number, (sql, types) in enumerate(changes):
        arrays = ", ".join(f"${place}::{name}[]" for place, name in enumerate(types, first))
        columns = ", ".join(f"p{place}" for place in range(1, len(types) + 1))
        source = f"unnest({arrays}) AS given({columns})"
        first += len(types)
        verb, _, rest = re.sub(r"\$(\d+)", r"given.p\1", sql).partition(" ")
        joined = f"{'USING' if verb == 'DELETE' else 'FROM'} {source}"
        if verb == "INSERT":
            rest = re.sub(r"VALUES \(([^()]*)\)", rf"SELECT \1 {joined}", rest, count=1)
        else:
            rest = rest.replace("WHERE", f"{joined} WHERE", 1)
        parts.append(f"change{number} AS ({verb} {rest})")
    return f"WITH {', '.join(parts)} SELECT 1"


@contextmanager
def _readable_errors(name: str, outcome: str = _UNKNOWN) -> Iterator[None]:
    """A context that raises the driver's errors as the port's; `outcome` says what is known of the call's effect."""
    try:
        yield
    except NO_ANSWER as error:
        raise AllocatorUnavailable(
            f"the database {name} did not answer: {_in_one_line(error)}; {outcome}"
        ) from error
    except asyncpg.PostgresError as error:
        raise AllocatorUnavailable(
            f"the database {name} refused: {_in_one_line(error)}; nothing was changed"
        ) from error


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@lru_cache(maxsize=512)
def _spell(sql: str) -> str:
    """A script's SQL in PostgreSQL's dialect (see `script`)."""
    return re.sub(r"\bIN (\$\d+)", r"= ANY(\1)", sql.replace("/*lock*/", "FOR UPDATE"))
