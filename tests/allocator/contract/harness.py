"""What the contract suite is given: an allocator with a subnet, and a clock that is moved by hand.

The suite relies on the port alone, so that it can be run on every allocator there is, in this process and elsewhere.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from msgspec import Struct

from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.port import Allocator
from podtide.allocator.store import StoreRules
from podtide.allocator.subnets import Subnet, SubnetSpec

COOLDOWN_SECONDS = 30.0
QUARANTINE_SECONDS = 360.0
CLAIM_SECONDS = 600.0
RULES = StoreRules(
    cooldown_seconds=COOLDOWN_SECONDS, quarantine_seconds=QUARANTINE_SECONDS, claim_seconds=CLAIM_SECONDS
)


class HandClock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self._now = 1_750_000_000.0

    def pass_by(self, seconds: float) -> None:
        self._now += seconds

    def monotonic(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._now


class AllocatorUnderTest(Struct, frozen=True):
    """An allocator, and short ways to ask it."""

    allocator: Allocator
    clock: HandClock
    sample: Callable[[], Awaitable[None]]
    """What the service does once a minute."""

    async def subnet(self, cidr: str = "10.1.0.0/28", name: str = "pods", network: str = "blue") -> Subnet:
        """A subnet; a /28 has 13 addresses to give."""
        return await self.allocator.add_subnet(SubnetSpec(network=network, name=name, cidrs=(cidr,)))

    async def stands(self, name: str = "pods", network: str = "blue") -> Subnet:
        """The subnet now."""
        return await self.allocator.get_subnet(network, name)

    async def put(
        self, container_id: str, count: int, generation: int = 1, **more: object
    ) -> AllocatedContainer:
        """State a wish."""
        return await self.allocator.put_container(a_wish(container_id, count, generation, **more))

    async def pass_quarantine(self) -> None:
        """Let the time of all quarantines pass, and somebody say that nobody has what is in them."""
        self.clock.pass_by(QUARANTINE_SECONDS + 1)
        await end_due(self.allocator)

    async def delete(self, container_id: str) -> None:
        """The node of `put` is gone."""
        await self.allocator.delete_container(container_id, cluster="east")


async def end_due(allocator: Allocator) -> None:
    """Say of all that has been in quarantine for long enough that nobody has it."""
    more, is_last = "", False
    while not is_last:
        page = await allocator.quarantined(due=True, more=more)
        for left in page.items:
            await allocator.end_quarantine(
                left.container,
                left.addresses,
                cluster=left.cluster,
                cluster_uid=left.cluster_uid,
                reason="no pod shows it",
            )
        more, is_last = page.more, not page.more


OpenAllocator = Callable[[], AbstractAsyncContextManager[AllocatorUnderTest]]


def a_wish(container_id: str, count: int, generation: int = 1, **more: object) -> Wish:
    """A wish of a node in cluster east."""
    fields = {
        "network": "blue",
        "subnet": "pods",
        "cluster": "east",
        "node": f"node-{container_id}",
        "request_uid": f"request-{container_id}",
        **more,
    }
    return Wish(id=container_id, count=count, generation=generation, **fields)  # type: ignore[arg-type]  # as Wish checks


def names(container: AllocatedContainer) -> list[str]:
    return [address.name for address in container.addresses]


def addresses(container: AllocatedContainer) -> set[str]:
    return {address.ip for address in container.addresses}


def everything(container: AllocatedContainer) -> set[str]:
    """Its primary too."""
    return addresses(container) | {container.primary}
