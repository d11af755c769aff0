"""Nothing that a call asks of the database reads more the larger the subnet is: every look-up goes by an index."""

import re
import sqlite3
from pathlib import Path

import pytest

from allocator.store.databases import DatabaseUnderTest
from allocator.store.wishes import named, spec, wish
from podtide.allocator.store.drivers import sqlite
from podtide.allocator.store.script import Rows, Statement
from podtide.allocator.subnets import Bounds, SubnetInForce
from podtide.core.machine_identity import MachineIdentity
from podtide.core.subnet.statement import StatedDemand


async def test_no_statement_of_any_call_scans_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    execute = sqlite._execute

    def recording(connection: sqlite3.Connection, statement: Statement) -> Rows:
        asked.add(sqlite._spell(statement.sql))
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
    plans = {sql: " / ".join(row[3] for row in _plan(file, sql)) for sql in asked}
    file.close()
    assert len(plans) > 15
    assert {sql: plan for sql, plan in plans.items() if "SCAN" in plan and "CONSTANT ROW" not in plan} == {}


def _plan(file: sqlite3.Connection, sql: str) -> list[tuple[int, int, int, str]]:
    return file.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * len(set(re.findall(r"\?\d+", sql)))).fetchall()
