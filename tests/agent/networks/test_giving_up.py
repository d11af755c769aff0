"""A reservation that is to be given up, and is wanted again before that happens."""

import asyncio
from ipaddress import ip_address

from agent.networks.network_bench import CLASSIC, Bench, ranges
from podtide.agent.networks.reservations import Reservations
from podtide.agent.networks.reserving import Reserving
from podtide.core.networks.allocations import Allocation
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE

ADDRESS = ip_address("10.0.0.1")
HOLDER = Allocation("c1", "default/web", "net1", "uid")
KEY = (HOLDER.id, HOLDER.ifname)


async def test_what_the_pods_own_add_has_again_is_not_given_up() -> None:
    bench = Bench()
    (wanted,) = ranges(CLASSIC)
    reserving = Reserving(Reservations(bench.cluster, SYSTEM_NAMESPACE, "node-a"), clock=bench.clock)
    assert await reserving.reserve(ADDRESS, HOLDER, wanted, None)
    assert reserving.leave(KEY, {ADDRESS: HOLDER}, wanted, guarded=True) == [ADDRESS]
    given_up, is_reserved = await asyncio.gather(
        reserving.give_up(KEY), reserving.reserve(ADDRESS, HOLDER, wanted, before=HOLDER)
    )
    assert given_up == []
    assert is_reserved
    assert await bench.reserved() == {"10.0.0.1": "default/web"}
