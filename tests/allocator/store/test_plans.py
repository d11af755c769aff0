"""Nothing that a call asks of the database reads more the larger the subnet is: every look-up goes by an index."""

import asyncio
import re
import sqlite3
from pathlib import Path

import pytest

from allocator.store.databases import DatabaseUnderTest
from allocator.store.wishes import named, spec, wish
from podtide.allocator.store.drivers import postgresql, sqlite
from podtide.allocator.store.drivers.postgresql import PostgresqlDatabase
from podtide.allocator.store.script import Query, Rows, Statement
from podtide.allocator.store.tables import container_row, supply
from podtide.allocator.subnets import Bounds, SubnetInForce
from podtide.core.machine_identity import MachineIdentity
from podtide.core.subnet.statement import StatedDemand


async def test_no_statement_of_any_call_scans_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    execute = sqlite._execute

    def recording(connection: sqlite3.Connection, statement: Statement) -> Rows:
        asked.update(map(sqlite._spell, _texts(statement)))
        return execute(connection, statement)

    database = DatabaseUnderTest(f"sqlite:///{tmp_path}/allocator.db", in_a_thread=False)
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/26"))
        monkeypatch.setattr(sqlite, "_execute", recording)
        held = await allocator.put_container(wish("a", 40))
        await allocator.put_container(wish("b", 40))
        await allocator.put_container(wish("a", 20, 2, release=tuple(named(held))[:20]))
        await allocator.put_container(wish("c", 5, waiting_pods=3))
        await allocator.put_container(wish("b", 40))
        await allocator.delete_container("a", cluster="east")
        database.clock.now += 1_000
        await allocator.quarantined(cluster="east", node="node-a", due=True)
        await allocator.end_quarantine("a", ("10.1.0.2",), cluster="east", reason="looked")
        await allocator.move_container(wish("d", 1, node="node-a", machine=MachineIdentity("m", "s", "b")))
        await allocator.put_container(wish("b", 50, 2, stated=StatedDemand(batch=16, high=8)))
        await allocator.utilization("blue", "pods")
        await allocator.owed("blue", "pods")
        bounds = Bounds(batch=16, buffer="0.5", lower="0.8", upper="0.9")
        await allocator.set_bounds("blue", "pods", cluster="east", bounds=bounds)
        await allocator.put_in_force("blue", "pods", SubnetInForce(batch=16, buffer="0.5", top=16))
        assert (await allocator.demand("blue", "pods")).alike
        await allocator.get_container("b", cluster="east")
        await allocator.history("blue", "pods", since=0, until=database.clock.now)
        await allocator._sample("blue", "pods")  # what `sample` does for each of all subnets
        assert await allocator.usage_history("blue", "pods", since=0, until=database.clock.now + 1)
        monkeypatch.undo()
    file = sqlite3.connect(database.url.removeprefix("sqlite:///"))
    plans = {
        sql: " / ".join(row[3] for row in _plan(file, sql) if not row[3].startswith("SCAN json_each"))
        for sql in asked
    }
    file.close()
    assert len(plans) > 15
    assert {sql: plan for sql, plan in plans.items() if "SCAN" in plan and "CONSTANT ROW" not in plan} == {}


@pytest.mark.parametrize("count", [15, 31])
async def test_a_group_of_calls_takes_as_many_statements_as_one_call(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Statement] = []
    execute = sqlite._execute

    def recording(connection: sqlite3.Connection, statement: Statement) -> Rows:
        asked.append(statement)
        return execute(connection, statement)

    database = DatabaseUnderTest("sqlite:///:memory:", in_a_thread=False)
    async with database.replica() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/16"))
        nodes = [f"n{number}" for number in range(128)]
        held = await asyncio.gather(*(allocator.put_container(wish(node, 47)) for node in nodes))
        given_back = zip(nodes, held, strict=True)
        wishes = [wish(node, 0, 2, release=tuple(named(container))) for node, container in given_back]
        await asyncio.gather(*map(allocator.put_container, wishes))
        database.clock.now += 1_000
        await allocator.get_subnet("blue", "pods")  # what was given back has cooled down
        monkeypatch.setattr(sqlite, "_execute", recording)
        await allocator.put_container(wish("n0", count, 3))
        alone = len(asked)
        await asyncio.gather(*(allocator.put_container(wish(node, count, 3)) for node in nodes[1:]))
        # The subnet, the store, the containers, a page of free chunks of either kind, twice the history, and all changes.
        assert len(asked) - alone <= alone <= 8
        monkeypatch.undo()
        assert await allocator.audit() == ()


@pytest.mark.real_time
async def test_postgresql_keeps_no_plan_that_reads_all_of_a_table(postgresql_url: str) -> None:
    """A plan that is made while a table is known to be small reads it from its beginning to its end, and is kept as it grows."""
    async with DatabaseUnderTest(postgresql_url).allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        await allocator.put_container(wish("a", 16))
        database = allocator._database
        assert isinstance(database, PostgresqlDatabase)
        async with database._pool.acquire() as connection:
            await connection.execute("ANALYZE containers, grants, chunks")
            for sql, values in ((container_row._READ, "ARRAY['a']"), (supply._BY_NUMBER, "1, ARRAY[2]")):
                await connection.execute(f"PREPARE kept AS {postgresql._spell(sql)}")
                plan = await connection.fetch(f"EXPLAIN EXECUTE kept ({values})")
                await connection.execute("DEALLOCATE kept")
                assert "Seq Scan" not in " ".join(row[0] for row in plan)


def _texts(statement: Statement) -> list[str]:
    return [statement.sql] if isinstance(statement, Query) else [change.sql for change in statement.each]


def _plan(file: sqlite3.Connection, sql: str) -> list[tuple[int, int, int, str]]:
    return file.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * len(set(re.findall(r"\?\d+", sql)))).fetchall()
