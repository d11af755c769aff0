"""A node for benchmarks: a real agent with addresses to give, the cluster and the controller it needs, all processes.

Nothing is pretended but the machine: the node's addresses come from an allocator on SQLite, by the controller.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Self

from agent_socket import agent_is_ready, held_addresses
from control_plane.errors import DidNotStart
from control_plane.process import POLL_SECONDS, READY_SECONDS, Nursery, Process
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.controller.program import LEASE
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.node import Node
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness

NAME = "node-1"
MANAGER = "bench"
MOST_ADDRESSES = 1000
PODTIDE = (sys.executable, "-m", "podtide")


class NodeWithAgent:
    """The agent answers on `socket` as long as this is open; `directory` is for whoever needs one beside it.

    The node is idle and has that many addresses: a batch is one more, which is the primary's. The cluster is the one
    of the kubeconfig, if there is one.
    """

    def __init__(self, *, addresses: int, kubeconfig: Path | None = None) -> None:
        self._addresses = addresses
        self._nursery = Nursery()
        self.directory = self._nursery.directory
        self.socket = self.directory / "agent.sock"
        self._state = self.directory / "state"
        self._needs_cluster = kubeconfig is None
        self._kubeconfig = kubeconfig or self.directory / "kubeconfig"
        self._database = f"sqlite:///{self.directory / 'subnets.db'}"
        reach = ("--kubeconfig", self._kubeconfig)
        self._cluster = self._program("cluster", *reach, is_ready=self._kubeconfig.exists)
        self._controller = self._program(
            "controller",
            *(*reach, "--cluster-name", "bench", "--network", "bench", "--subnet", "pods"),
            *("--database", self._database, "--batch", str(addresses + 1), "--max-ips", str(MOST_ADDRESSES)),
            is_ready=lambda: True,
        )
        self._agent = self._program(
            "agent",
            *(*reach, "--node-name", NAME, "--state-directory", self._state, "--socket", self.socket),
            is_ready=lambda: agent_is_ready(self.socket),
        )

    def __enter__(self) -> Self:
        try:
            if self._needs_cluster:
                self._cluster.start()
            asyncio.run(self._prepare())
            self._controller.start()
            self._agent.start()
            self._wait_for_addresses()
        except BaseException:
            self._nursery.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._nursery.close()

    @property
    def agent_pid(self) -> int:
        """The agent's process: an agent writes its own into the lock that it holds."""
        return int((self._state / "agent.lock").read_text())

    def restart_agent(self) -> None:
        """Kill the agent, as a crash would, and start it again; it is ready when this comes back."""
        self._agent.kill()
        self._agent.start()

    def _program(self, command: str, *options: str | Path, is_ready: Callable[[], bool]) -> Process:
        return Process(self._nursery, [*PODTIDE, command, *options], is_ready)

    async def _prepare(self) -> None:
        """Register the node, and open the subnet of its pods."""
        access = find_access(kubeconfig=self._kubeconfig, context="", environment={}, home=self.directory)
        async with KubernetesCluster(access, clock=SystemClock(), randomness=system_randomness()) as cluster:
            await cluster.create(Node(metadata=ObjectMeta(name=NAME)), manager=MANAGER)
            # Given up already, so that the controller need not wait whether somebody comes to renew it.
            place = ObjectMeta(name=LEASE.name, namespace=LEASE.namespace)
            await cluster.create(
                Lease(metadata=place, spec=LeaseSpec(lease_duration_seconds=1)), manager=MANAGER
            )
        async with await open_allocator(self._database, clock=SystemClock(), migrate=True) as allocator:
            await allocator.add_subnet(SubnetSpec(network="bench", name="pods", cidrs=("10.1.0.0/16",)))

    def _wait_for_addresses(self) -> None:
        deadline = monotonic() + READY_SECONDS
        while held_addresses(self.socket) != self._addresses:
            if monotonic() > deadline:
                raise DidNotStart(
                    f"the node has not got its {self._addresses} addresses after {READY_SECONDS:.0f} s"
                )
            sleep(POLL_SECONDS)
