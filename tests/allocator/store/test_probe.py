"""Whether a database takes writes is known only by writing."""

from contextlib import suppress

import asyncpg
import pytest

from allocator.store.databases import DatabaseUnderTest, empty
from allocator.store.wishes import spec, wish
from podtide.allocator.port import AllocatorUnavailable


async def test_the_proof_is_kept_and_nobody_sees_it(database: DatabaseUnderTest) -> None:
    async with database.allocator() as allocator:
        await allocator.add_subnet(spec("10.1.0.0/24"))
        await allocator.put_container(wish("a", 3))
        before = await allocator.list_subnets(), await allocator.list_containers()
        for _ in range(3):
            await allocator.prove_writable()
            database.clock.now += 1
        assert (await allocator.list_subnets(), await allocator.list_containers()) == before
        assert await allocator.audit() == ()


@pytest.mark.real_time
async def test_a_postgresql_that_only_answers_is_found_out(postgresql_url: str) -> None:
    """As one does that became a standby."""
    await empty(postgresql_url)
    administration = await asyncpg.connect(postgresql_url)
    name = await administration.fetchval("SELECT current_database()")
    setting = f'ALTER DATABASE "{name}" SET default_transaction_read_only'
    try:
        async with DatabaseUnderTest(postgresql_url).replica(migrate=False) as allocator:
            await administration.execute(f"{setting} = on")
            await administration.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            for _ in range(20):  # each of its connections is noticed to be gone once
                with suppress(AllocatorUnavailable):
                    await allocator.list_subnets()
            assert await allocator.list_subnets() == ()
            with pytest.raises(AllocatorUnavailable):
                await allocator.prove_writable()
    finally:
        await administration.execute("SET default_transaction_read_only = off")
        await administration.execute(f"{setting} = off")
        await administration.close()
