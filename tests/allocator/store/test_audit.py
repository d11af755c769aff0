"""The audit of the database finds whatever does not fit together."""

import sqlite3
from pathlib import Path

import pytest

from allocator.store.databases import DatabaseUnderTest
from allocator.store.wishes import spec, wish


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE subnets SET reserved = reserved + 1", "containers hold"),
        ("UPDATE subnets SET capacity = capacity + 1", "counts capacity"),
        ("UPDATE subnets SET owed = 5", "counts owed 5, but there are 0"),
        ("UPDATE subnets SET containers = 9", "counts containers 9, but there are 2"),
        ("UPDATE subnets SET quarantined = 1", "counts quarantined 1, but there are 6"),
        (
            "UPDATE alike SET containers = 3 WHERE taken = 6",
            "counts 3 containers of cluster east that take 6",
        ),
        ("UPDATE alike SET taken = 9 WHERE taken = 6", "counts 1 containers of cluster east that take 9"),
        ("UPDATE alike SET cluster = 'west'", "cluster east that take 6 and state nothing, but there are 1"),
        ("DELETE FROM alike", "counts 0 containers of cluster east that take 6"),
        (
            "INSERT INTO alike VALUES (1, 'east', '', 99, 0)",
            "counts 0 containers of cluster east that take 99",
        ),
        ("INSERT INTO alike VALUES (7, 'east', '', 1, 1)", "rows are left of subnet number 7"),
        (
            "INSERT INTO bounds VALUES (7, 'east', 16, '1', '0.8', '0.9', 1, NULL)",
            "rows are left of subnet number 7",
        ),
        ("UPDATE containers SET stated = '{}' WHERE id = 'a'", "and state {}, but there are 1"),
        ("UPDATE subnets SET next_chunks = '0'", "never begun"),
        ("UPDATE chunks SET free = free | 4 WHERE chunk = 0", "10.1.0.2 of subnet pods is in two places"),
        ("UPDATE chunks SET free = free | 1 WHERE chunk = 0", "although it is kept back"),
        ("UPDATE chunks SET free = 0", "is in no place: it is lost"),
        ("DELETE FROM chunks WHERE chunk = 0", "never begun"),
        ("INSERT INTO grants VALUES ('b', 2, 0, 8)", "10.1.0.3 is in both container"),
        ("UPDATE containers SET wanted = 99 WHERE id = 'a'", "container a is owed 0, but lacks"),
        ("DELETE FROM containers WHERE id = 'b'", "container b's, which is not there"),
        ("DELETE FROM resting", "it is lost"),
        ("DELETE FROM quarantines", "in quarantine of container gone differs from its row in quarantines"),
        (
            "UPDATE quarantines SET container = 'c'",
            "in quarantine of container c differs from its row in quarantines",
        ),
        ("DELETE FROM subnets", "rows are left of subnet number 1"),
    ],
)
async def test_damage_is_found(tmp_path: Path, damage: str, words: str) -> None:
    database = DatabaseUnderTest(f"sqlite:///{tmp_path}/allocator.db", in_a_thread=False)
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/26"))
        await allocator.add_subnet(spec("10.1.0.0/26", network="green"))
        await allocator.put_container(wish("a", 5))
        container = await allocator.put_container(wish("b", 9))
        await allocator.put_container(
            wish("b", 2, 2, release=tuple(one.name for one in container.addresses[:7]))
        )
        await allocator.put_container(wish("gone", 5))
        await allocator.delete_container("gone", cluster="east")
        await allocator.delete_container("never-known", cluster="east")
    file = sqlite3.connect(database.url.removeprefix("sqlite:///"))
    with file:
        assert file.execute(damage).rowcount > 0
    file.close()
    async with database.replica() as allocator:
        found = [str(violation) for violation in await allocator.audit()]
    assert any(words in violation for violation in found), found
