"""What an allocator lists, item by item over all pages: in a large cluster not all of it is wanted at once."""

from collections.abc import AsyncIterator

from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.port import Allocator
from podtide.allocator.quarantine import Quarantined


async def every_container(
    allocator: Allocator, cluster: str = "", *, network: str = ""
) -> AsyncIterator[AllocatedContainer]:
    """The containers of a cluster or of all, of a network or of all."""
    more, is_last = "", False
    while not is_last:
        page = await allocator.list_containers(cluster=cluster, network=network, more=more)
        for container in page.items:
            yield container
        more, is_last = page.more, not page.more


async def every_quarantined(
    allocator: Allocator, *, cluster: str = "", node: str = ""
) -> AsyncIterator[Quarantined]:
    """What is in quarantine, by removed container; of a cluster or of all, of a node's name or of all."""
    more, is_last = "", False
    while not is_last:
        page = await allocator.quarantined(cluster=cluster, node=node, more=more)
        for left in page.items:
            yield left
        more, is_last = page.more, not page.more
