"""A world with nothing to install: an API server and an allocator in memory, and the controller's options for its subnets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podtide.allocator.store import DatabaseAllocator, InlineExecutor, StoreRules, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.embedded import EmbeddedCluster
from podtide.controller.options import ControllerOptions
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.settings import Settings
from podtide.simulation.world.world import World, WorldDefaults

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


@asynccontextmanager
async def open_embedded_world(
    *cidrs: str,
    defaults: WorldDefaults | None = None,
    cluster_subnets: bool = True,
    clock: Clock,
    seed: int | str,
    log: Logger,
) -> AsyncIterator[World]:
    """A world without controllers and nodes. The first CIDR is the subnet of all pods, a second one that of IPv6."""
    defaults = defaults or WorldDefaults()
    cluster = EmbeddedCluster(clock=clock, randomness=seeded_randomness(f"{seed}/cluster"))
    try:
        async with opened_allocator(cidrs, defaults.settings, clock) as allocator:
            options = options_for(cidrs, cluster_subnets=cluster_subnets)
            async with World(
                cluster, allocator, options, defaults=defaults, clock=clock, seed=seed, log=log
            ) as world:
                yield world
    finally:
        cluster.close()
