"""Addresses that cool down, within one transaction."""

from pathlib import Path

from allocator.store.databases import DatabaseUnderTest
from allocator.store.wishes import named, spec, wish
from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.store.container_writes import PutContainer
from podtide.allocator.store.rules import StoreRules
from podtide.allocator.store.script import Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction
from podtide.allocator.store.tables.container_row import load_containers
from podtide.allocator.store.tables.subnet_row import find_subnet
from podtide.allocator.store.tables.transaction_context import read_context


async def test_what_a_call_took_while_it_cooled_down_is_not_free_again_when_its_row_is_seen_to_be_due(
    tmp_path: Path,
) -> None:
    """On PostgreSQL a transaction looks for what is due before it waits for the lock, so it may see it only later."""
    database = DatabaseUnderTest(f"sqlite:///{tmp_path}/allocator.db", in_a_thread=False)
    rules = StoreRules()
    async with database.allocator(rules) as allocator:
        await allocator.add_subnet(spec("10.1.0.0/28"))
        capacity = (await allocator.get_subnet("blue", "pods")).capacity
        held = await allocator.put_container(wish("x", capacity - 1))
        await allocator.put_container(wish("x", 0, 2, release=tuple(named(held))))
        database.clock.now += rules.cooldown_seconds + 1

        def both(now: float) -> Script[tuple[AllocatedContainer, AllocatedContainer]]:
            subnet, _due = yield from find_subnet("blue", "pods", now, lock=True)
            context = yield from read_context(["east"])
            rows = yield from load_containers(["y", "z"])
            transaction = SubnetTransaction(subnet, rows, now, rules, context)
            first = yield from PutContainer(wish("y", 3)).carry_out(transaction)
            second = yield from PutContainer(wish("z", capacity)).carry_out(transaction)
            yield from transaction.save()
            return first, second

        given = await allocator._database.write(both)
        addresses = [ip for each in given for ip in (each.primary, *named(each).values())]
        assert len(addresses) == len(set(addresses)) == capacity - 1
