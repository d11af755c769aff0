"""A world on the machine's own time, with everything a real one has but machines.

The cluster is served over HTTP for whoever wants to look, the allocator is on a file, every agent has a disk and a
socket, and the plugin is a process. All of it is in one directory, and gone with it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from podtide.allocator.port import SubnetSpec
from podtide.allocator.store import open_allocator
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.runtime.clock import SystemClock
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.listening import ListenAddress
from podtide.runtime.logging import make_logger
from podtide.simulation.demo.pace import customs_for, rules_for
from podtide.simulation.nodes.agents_on_sockets import AgentsOnSockets
from podtide.simulation.world.embedded_world import NETWORK, SUBNET, options_for
from podtide.simulation.world.world import World

_ANY_PORT = ListenAddress("127.0.0.1", 0)


class Plan(Struct, frozen=True, kw_only=True):
    """What the world is made of."""

    directory: Path
    plugin: Path
    subnet: str
    speed: float
    seed: int

    @property
    def kubeconfig(self) -> Path:
        """How others reach the cluster."""
        return self.directory / "kubeconfig"

    @property
    def database(self) -> str:
        """Where the allocator keeps the subnet."""
        return f"sqlite:///{self.directory / 'subnets.db'}"

    @property
    def log(self) -> Path:
        """What all programs log."""
        return self.directory / "log"


@asynccontextmanager
async def open_real_world(plan: Plan) -> AsyncIterator[World]:
    """The world without controllers and nodes, until the context ends."""
    clock, customs = SystemClock(), customs_for(plan.speed)
    with plan.log.open("w") as lines:
        log = make_logger(lines, clock)
        cluster = EmbeddedCluster(kinds=SERVED_KINDS, clock=clock)
        doors = AgentsOnSockets(
            plan.directory / "nodes",
            plan.plugin,
            add_wait_seconds=customs.settings.add_wait_seconds,
            clock=clock,
            log=log,
        )
        async with (
            await open_allocator(
                plan.database, clock=clock, rules=rules_for(plan.speed), migrate=True
            ) as allocator,
            serving(cluster.server, _ANY_PORT) as url,
        ):
            write_kubeconfig(plan.kubeconfig, url)
            await allocator.add_subnet(SubnetSpec(network=NETWORK, name=SUBNET, cidrs=(plan.subnet,)))
            async with World(
                cluster,
                allocator,
                options_for((plan.subnet,)),
                customs=customs,
                doors=doors,
                new_disk=lambda node: DirectoryDisk(plan.directory / "nodes" / node / "state"),
                clock=clock,
                seed=plan.seed,
                log=log,
            ) as world:
                yield world
        cluster.close()
