"""What a world with nothing to install stands on: an allocator in memory with its subnets, and the controller's options for them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podtide.allocator.store import DatabaseAllocator, InlineExecutor, StoreRules, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.controller.options import ControllerOptions
from podtide.runtime.clock import Clock
from podtide.runtime.settings import Settings

NETWORK = "blue"
SUBNET = "pods"
SECOND_SUBNET = "pods-2"
SUBNET_V6 = "pods-v6"
CLUSTER = "east"


@asynccontextmanager
async def opened_allocator(
    cidrs: tuple[str, ...], settings: Settings, clock: Clock
) -> AsyncIterator[DatabaseAllocator]:
    """An allocator in memory, without a thread of its own, with these subnets."""
    rules = StoreRules(
        cooldown_seconds=settings.cooldown_seconds, quarantine_seconds=settings.quarantine_seconds
    )
    async with await open_allocator(
        "sqlite:///:memory:", clock=clock, rules=rules, executor=InlineExecutor(), migrate=True
    ) as allocator:
        for name, cidr in zip((SUBNET, SUBNET_V6), cidrs, strict=False):
            await allocator.add_subnet(SubnetSpec(network=NETWORK, name=name, cidrs=(cidr,)))
        yield allocator


def options_for(
    cidrs: tuple[str, ...], *, cluster: str = CLUSTER, cluster_subnets: bool = True
) -> ControllerOptions:
    """A controller's options for these subnets."""
    return ControllerOptions(
        cluster=cluster,
        network=NETWORK,
        subnet=SUBNET,
        subnet_v6=SUBNET_V6 if len(cidrs) > 1 else "",
        cluster_subnets=cluster_subnets,
    )
