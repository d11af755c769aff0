"""A world on the machine's own time, with everything a real one has but machines.

The cluster is served over HTTP, for kubectl and other clients, the allocator is on a file, every agent has a disk and a
socket, and the plugin is a process. All of it is in one directory, and deleted with it.

The programs' waits are shorter than in production: a minute must be enough to see what takes a quarter of an hour.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from podtide.allocator.store import StoreRules, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.runtime.clock import SystemClock
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.listening import ListenAddress
from podtide.runtime.logging import make_logger
from podtide.runtime.settings import Settings
from podtide.simulation.nodes.agents_on_sockets import AgentsOnSockets
from podtide.simulation.nodes.kubelet import KubeletHabits
from podtide.simulation.nodes.network_definitions import Definition
from podtide.simulation.world.embedded_world import NETWORK, SUBNET, options_for
from podtide.simulation.world.world import World, WorldDefaults

_ANY_PORT = ListenAddress("127.0.0.1", 0)
_SIDE_BY_SIDE = 8
"""Sandboxes that a kubelet sets up at once: enough to be quick, few enough for a laptop."""


class DemoOptions(Struct, frozen=True, kw_only=True):
    """The options of a demonstration."""

    directory: Path
    plugin: Path
    subnet: str
    speed: float
    seed: int
    metrics_listen: ListenAddress | None = None
    networks: tuple[Definition, ...] = ()

    @property
    def nodes(self) -> Path:
        """The directory of the nodes, with a socket for each agent."""
        return self.directory / "nodes"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the served cluster."""
        return self.directory / "kubeconfig"

    @property
    def database(self) -> str:
        """The URL of the allocator's database."""
        return f"sqlite:///{self.directory / 'subnets.db'}"

    @property
    def log(self) -> Path:
        """The log file of all programs."""
        return self.directory / "log"


@asynccontextmanager
async def open_real_world(options: DemoOptions) -> AsyncIterator[World]:
    """Open the world, without controllers and nodes."""
    clock, defaults = SystemClock(), defaults_for(options.speed)
    with options.log.open("w") as lines:
        log = make_logger(lines, clock)
        cluster = EmbeddedCluster(kinds=SERVED_KINDS, clock=clock)
        doors = AgentsOnSockets(
            options.nodes,
            options.plugin,
            add_wait_seconds=defaults.settings.add_wait_seconds,
            clock=clock,
            log=log,
        )
        async with (
            await open_allocator(
                options.database, clock=clock, rules=rules_for(options.speed), migrate=True
            ) as allocator,
            serving(cluster.server, _ANY_PORT) as url,
        ):
            write_kubeconfig(options.kubeconfig, url)
            await allocator.add_subnet(SubnetSpec(network=NETWORK, name=SUBNET, cidrs=(options.subnet,)))
            async with World(
                cluster,
                allocator,
                options_for((options.subnet,)),
                defaults=defaults,
                networks=options.networks,
                doors=doors,
                new_disk=lambda node: DirectoryDisk(options.nodes / node / "state"),
                clock=clock,
                seed=options.seed,
                log=log,
            ) as world:
                yield world
        cluster.close()


def defaults_for(speed: float) -> WorldDefaults:
    """Waits divided by the speed. Those that are not there to be safe (gathering, an ADD's wait) are as in production."""
    settings = Settings(
        answer_wait_seconds=6.0 / speed,
        starved_dwell_seconds=3.0 / speed,
        shrink_delay_seconds=3.0 / speed,
        cooldown_seconds=3.0 / speed,
        poll_seconds=0.5 / speed,
    )
    return WorldDefaults(
        settings=settings, habits=KubeletHabits(retry_seconds=2.0 / speed, at_once=_SIDE_BY_SIDE)
    )


def rules_for(speed: float) -> StoreRules:
    """How long addresses cool down. So short a quarantine is safe only where the machine is known to be off."""
    return StoreRules(cooldown_seconds=3.0 / speed, quarantine_seconds=5.0 / speed)
