"""A whole cluster of processes: a control plane nobody here wrote, podtide with its own roles, and pretend kubelets.

Each program is a process, except the kubelets:

    control plane   etcd, kube-apiserver and, where a test asks for them, kube-controller-manager and kube-scheduler
    allocator       `podtide allocator` on SQLite
    controllers     `podtide controller`, as many replicas as wanted, with the controller's service account
    on each node    `podtide agent` with the token of its pod; the kubelet calls the plugin's executable
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import yaml
from msgspec import Struct

from control_plane.cluster import ControlPlane
from control_plane.errors import RequestFailed
from control_plane.ports import LOOPBACK, free_ports
from control_plane.process import Nursery, Process
from deploy.installed import Installed
from e2e.fleet_node import AddressesInUse, Heart, KubeletsCluster
from e2e.processes import agent_is_ready, is_well, podtide, run_podtide
from e2e.programs import NETWORK, SUBNET, Site, allocator
from manifests import DEPLOY
from patience import PATIENCE_SECONDS
from podtide.cluster.kubernetes import find_access
from podtide.core.errors import RetryError
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.plugin_executable import find_plugin
from podtide.runtime.randomness import system_randomness
from podtide.simulation.nodes.container_runtime import ContainerRuntime
from podtide.simulation.nodes.kubelet import Kubelet, KubeletHabits
from podtide.simulation.nodes.plugin_caller import ExecutablePlugin
from podtide.simulation.trace import Trace

LOOK_EVERY_SECONDS = 0.5

HABITS = KubeletHabits(retry_seconds=2.0, at_once=8)

_RUN_BY_NOBODY = {"DaemonSet", "Deployment", "StatefulSet", "Service", "PodDisruptionBudget"}
"""The programs are started here, and not by pods of an image that is not there."""


class FleetNode(Struct, frozen=True):
    """One node: its agent a process, its kubelet here."""

    name: str
    agent: Process
    kubelet: Kubelet


class Fleet:
    """Nodes and podtide's programs, for as long as `running_fleet` lasts."""

    def __init__(
        self, site: Site, cluster: KubeletsCluster, url: str, tasks: asyncio.TaskGroup, kubelets_log: TextIO
    ) -> None:
        self.cluster = cluster
        """The API server, asked by kubelets and by tests."""
        self.nodes: dict[str, FleetNode] = {}
        self.controllers: dict[str, Process] = {}
        """By the identity under which one of them leads."""
        self.in_use = AddressesInUse()
        self._site = site
        self._installed = Installed(site.control_plane, _roles(), site.logs)
        self._allocator_url = url
        self._tasks = tasks
        self._running: list[asyncio.Task[None]] = []
        self._machines: list[FleetNode] = []
        """Those whose Node is gone, too."""
        self._kubelets_log = kubelets_log

    async def install(self) -> None:
        """Let podtide's programs be somebody, with the rights they have in production."""
        await asyncio.to_thread(self._installed.__enter__)

    async def start_controllers(self, count: int) -> None:
        """Start replicas, of which one will lead."""
        credentials = self._site.control_plane.credentials
        kubeconfig = credentials.kubeconfig_for_service_account(SYSTEM_NAMESPACE, "podtide-controller")
        for number, port in enumerate(free_ports(count)):
            identity = f"controller-{number}"
            self.controllers[identity] = podtide(
                *(self._site.nursery, self._site.logs / f"{identity}.log"),
                *("controller", "--kubeconfig", kubeconfig, "--allocator", self._allocator_url),
                *("--cluster-name", NETWORK, "--network", NETWORK, "--subnet", SUBNET),
                *("--identity", identity, "--metrics-listen", f"{LOOPBACK}:{port}"),
                is_ready=partial(is_well, port, "/healthz"),
            )
        await _start_all(self.controllers.values())

    async def add_nodes(
        self,
        count: int,
        *agent_options: str,
        through: Callable[[Path], Path] = lambda kubeconfig: kubeconfig,
    ) -> None:
        """Nodes join, each with its agent at work and its first addresses.

        `through` may change the way that agents take to the API server.
        """
        for number in range(count):
            await self._join(f"node-{number}", f"192.0.2.{10 + number}", agent_options, through)
        await _start_all(node.agent for node in self.nodes.values())

    async def _join(
        self, name: str, address: str, agent_options: tuple[str, ...], through: Callable[[Path], Path]
    ) -> None:
        heart = Heart(self.cluster, name, address)
        await heart.register()
        kubeconfig = through(await asyncio.to_thread(self._installed.agent, name))
        socket = self._site.agent_socket(name)
        agent = podtide(
            *(self._site.nursery, self._site.logs / f"agent-{name}.log"),
            *("agent", "--node-name", name, "--kubeconfig", kubeconfig, "--socket", socket),
            *("--state-directory", socket.with_name("state")),
            *agent_options,
            is_ready=lambda: agent_is_ready(socket),
        )
        kubelet = self._kubelet(name, ExecutablePlugin(find_plugin(), {name: socket}))
        self.nodes[name] = FleetNode(name, agent, kubelet)
        self._machines.append(self.nodes[name])
        self._running += [self._tasks.create_task(work) for work in (heart.beat(), kubelet.run())]

    def _kubelet(self, node: str, plugin: ExecutablePlugin) -> Kubelet:
        clock = SystemClock()
        kubelet = Kubelet(
            self.cluster,
            node,
            ContainerRuntime(node, plugin, clock=clock, trace=Trace()),
            habits=HABITS,
            clock=clock,
            randomness=system_randomness(),
            log=make_logger(self._kubelets_log, clock),
        )
        kubelet.on_sandbox.append(self.in_use.hear)
        return kubelet

    async def delete_node(self, name: str) -> None:
        """Delete the Node; its machine lives on, with all that runs there."""
        await self.cluster.delete(Node, name)
        del self.nodes[name]

    async def config_of(self, node: str) -> NodeNetworkConfig:
        """What the node asks for and has."""
        return await self.cluster.get(NodeNetworkConfig, node, SYSTEM_NAMESPACE)

    async def check(self) -> dict[str, Any]:
        """What `podtide check` finds, in the cluster and in the allocator's books."""
        where = ("--kubeconfig", self._site.control_plane.kubeconfig, "--allocator", self._allocator_url)
        answer = await asyncio.to_thread(run_podtide, "check", *where, "--output", "json")
        assert answer.stdout, answer.stderr
        found: dict[str, Any] = json.loads(answer.stdout)
        return found

    async def close(self) -> None:
        """End it all at once: nothing of it is worth saving but the logs."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for process in (*self.controllers.values(), *(machine.agent for machine in self._machines)):
            process.kill()


@asynccontextmanager
async def running_fleet(control_plane: ControlPlane, logs: Path, cidr: str) -> AsyncIterator[Fleet]:
    """A fleet with this subnet, without controllers and nodes yet, on a control plane that is its own."""
    access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
    with ExitStack() as open_until_done:
        nursery = Nursery()
        open_until_done.callback(nursery.close)
        site = Site(control_plane, nursery, logs)
        url = await asyncio.to_thread(open_until_done.enter_context, allocator(site, cidr))
        kubelets_log = open_until_done.enter_context((logs / "kubelets.log").open("w"))
        async with (
            KubeletsCluster(access, clock=SystemClock(), randomness=system_randomness()) as cluster,
            asyncio.TaskGroup() as tasks,
        ):
            fleet = Fleet(site, cluster, url, tasks, kubelets_log)
            try:
                await fleet.install()
                yield fleet
            finally:
                await fleet.close()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what other processes bring about; that nobody can tell right now is no answer."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await _is_known_to_hold(holds):
        assert time.monotonic() < deadline, f"not so after {PATIENCE_SECONDS:.0f} s"
        await asyncio.sleep(LOOK_EVERY_SECONDS)


async def _is_known_to_hold(holds: Callable[[], Awaitable[bool]]) -> bool:
    try:
        return await holds()
    except (RetryError, RequestFailed, OSError):
        return False


async def _start_all(processes: Iterable[Process]) -> None:
    await asyncio.gather(*(asyncio.to_thread(process.start) for process in processes))


def _roles() -> str:
    """Of the plain manifests, what says who podtide's programs are and what they may do."""
    documents = yaml.safe_load_all((DEPLOY / "manifests" / "podtide.yaml").read_text())
    return yaml.safe_dump_all(each for each in documents if each and each["kind"] not in _RUN_BY_NOBODY)
