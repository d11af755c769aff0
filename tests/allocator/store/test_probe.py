"""Whether a database takes writes is known only by writing."""

import asyncpg
import pytest

from allocator.store.databases import DatabaseUnderTest, empty
from allocator.store.wishes import spec, wish
from podtide.allocator.errors import AllocatorUnavailable


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
        database = DatabaseUnderTest(postgresql_url)
        async with database.replica():
            pass  # knows it from now on
        await administration.execute(f"{setting} = on")
        async with database.replica(migrate=False) as allocator:
            assert await allocator.list_subnets() == ()
            with pytest.raises(AllocatorUnavailable):
                await allocator.prove_writable()
    finally:
        await administration.execute("SET default_transaction_read_only = off")
        await administration.execute(f"{setting} = off")
        await administration.close()
