"""Weeks of a subnet's use, written by the allocator's own store while its clock is turned from then to now.

The figures rise from week to week, are lower on weekends and at night, and differ a little by chance: what forecasts are
made for. What had the addresses is gone at the end, so that whoever opens the database next finds a subnet with a past and
nothing in it.
"""

import asyncio
import itertools
import math
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from podtide.allocator.containers import Wish
from podtide.allocator.store import DatabaseAllocator, StoreRules, open_allocator
from podtide.allocator.subnets import SubnetInForce, SubnetSpec
from podtide.core.subnet.statement import StatedDemand
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.world.embedded_world import NETWORK, SUBNET

DAY_SECONDS = 86_400
_HOURS = 24
_STEP_SECONDS = 4 * 3600
_NODES = 4
_CLUSTER = "earlier"
_BATCH = 16
_WEEKEND = (5, 6)
_THURSDAY = 3
"""The day of the week on which Unix time begins."""


class PastWeeks(Struct, frozen=True, kw_only=True):
    """A past: from how many addresses to how many, in how many days."""

    cidr: str
    days: int = 42
    begin: int
    end: int


class _TurnedClock:
    def __init__(self, now: float) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


def write_past(database: str, past: PastWeeks, until: float) -> None:
    """Write it into a database, up to this time; the database is made if it is missing."""
    with ThreadPoolExecutor(1) as thread:  # a browser's loop may occupy the caller's (see `browser`)
        thread.submit(asyncio.run, _write(database, past, until)).result()


async def _write(database: str, past: PastWeeks, until: float) -> None:
    clock = _TurnedClock(until - past.days * DAY_SECONDS)
    chance = seeded_randomness("past weeks")
    rules = StoreRules(cooldown_seconds=0, quarantine_seconds=0)
    async with await open_allocator(database, clock=clock, rules=rules, migrate=True) as allocator:
        await allocator.add_subnet(SubnetSpec(network=NETWORK, name=SUBNET, cidrs=(past.cidr,)))
        in_force = SubnetInForce(batch=_BATCH, buffer="0.5", top=_BATCH)
        await allocator.put_in_force(NETWORK, SUBNET, in_force)
        held: dict[str, tuple[str, ...]] = dict.fromkeys(
            (f"{_CLUSTER}-{number}" for number in range(_NODES)), ()
        )
        for generation in itertools.count(1):
            is_over = clock.now >= until - _STEP_SECONDS
            level = _level(past, clock.now, until) + chance.gauss(0, past.end / 80)
            each = 0 if is_over else max(1, round(level / _NODES) - 1)
            for node, names in tuple(held.items()):
                held[node] = await _hold(allocator, node, each, generation, names)
            if is_over:
                break  # and what is empty now is not written down
            await allocator.sample()
            clock.now += _STEP_SECONDS
        for node in held:
            await allocator.delete_container(node, cluster=_CLUSTER)


async def _hold(
    allocator: DatabaseAllocator, node: str, count: int, generation: int, held: tuple[str, ...]
) -> tuple[str, ...]:
    """Have a node hold exactly so many addresses, and return their names."""
    container = await allocator.put_container(
        Wish(
            id=node,
            network=NETWORK,
            subnet=SUBNET,
            cluster=_CLUSTER,
            node=node,
            request_uid=node,
            generation=generation,
            count=count,
            release=held[count:],
            stated=StatedDemand(batch=_BATCH, low=count, high=count, demand=count),
        )
    )
    return tuple(address.name for address in container.addresses)


def _level(past: PastWeeks, now: float, until: float) -> float:
    through = 1 - (until - now) / (past.days * DAY_SECONDS)
    level = past.begin + (past.end - past.begin) * through
    weekday = (int(now // DAY_SECONDS) + _THURSDAY) % 7
    hour = now % DAY_SECONDS / DAY_SECONDS * _HOURS
    by_day = 0.86 if weekday in _WEEKEND else 1.0
    by_hour = 0.94 + 0.06 * math.sin((hour - 8) / _HOURS * 2 * math.pi)
    return level * by_day * by_hour
