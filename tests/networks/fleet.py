"""A cluster with secondary networks, whole: slices controller, leak repair, and nodes with agents, all of them the real ones.

The test is everybody else: the people who define networks, the scheduler, and the bad network. Kubelets are played here:
each pod's gives it a sandbox with all its networks, again and again until that succeeds, and keeps a book of what was
answered, so that what pods really have can be held against what is written of them.
"""

import asyncio
import io
import json
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from ipaddress import ip_interface
from typing import Any

from msgspec import Struct, structs

from cluster.faulty_cluster import FaultyCluster, Script
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.informer import Informer
from podtide.cni.ipam_config import IpamConfig, parse_config
from podtide.controller.counts import ControllerCounts
from podtide.controller.fencing import GuardedWrites, unguarded
from podtide.controller.options import NetworkOptions
from podtide.controller.repair.repair_loop import RepairLoop
from podtide.controller.slices.program import SliceController
from podtide.core.audit.networks import NetworkPicture, audit_networks
from podtide.core.errors import RetryError
from podtide.core.networks.leaks import LeakGrace
from podtide.core.pool.pool import Owner
from podtide.core.ranges import IPAddress
from podtide.networks.audit_picture import draw_networks
from podtide.networks.network import network_of
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod, PodContainer, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

MANAGER = "test"
SETTINGS = Settings()
FENCED_AFTER_SECONDS = SETTINGS.quarantine_seconds - 10
"""What still runs on a machine whose Node was removed must be ended by then: that is for people to see to."""

LONGEST_PAUSE_SECONDS = 60.0
"""Between two attempts to give a pod its networks."""

Key = tuple[str, str]
"""A sandbox and its interface."""


class Interface(Struct, frozen=True):
    """What a sandbox was given on one of its interfaces, and by which configuration."""

    owner: Owner
    config: IpamConfig
    addresses: tuple[IPAddress, ...]

    @property
    def scope(self) -> str:
        """Within which no two pods may have one address. The unnamed networks of these tests guard each other."""
        return self.config.network_name


class Sandbox:
    """A pod's sandbox on a node: what was asked for it, and what it got."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.asked: dict[str, tuple[Owner, IpamConfig]] = {}
        self.interfaces: dict[str, Interface] = {}


class RunningPod:
    """A pod that the cluster knows of. `sandbox` is None while it has none, or one that is dead."""

    def __init__(self, name: str, uid: str, node: str, networks: tuple[str, ...]) -> None:
        self.name = name
        self.uid = uid
        self.node = node
        self.networks = networks
        self.sandbox: Sandbox | None = None
        self.keeper: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        return self.sandbox is not None and len(self.sandbox.interfaces) == len(self.networks)


class Machine:
    """A node's machine: its line to the cluster, its agent, and the DELs that its runtime still owes."""

    def __init__(self, name: str, fleet: "Fleet") -> None:
        self.name = name
        self.luck = Script()
        self.owed: dict[Key, tuple[Owner, IpamConfig]] = {}
        self.is_node = True
        self._fleet = fleet
        self.networks = self._start()

    def _start(self) -> SecondaryNetworks:
        fleet = self._fleet
        networks = SecondaryNetworks(
            FaultyCluster(fleet.cluster, self.luck),
            self.name,
            runtime=Runtime(
                clock=fleet.clock,
                randomness=seeded_randomness(f"{self.name}/{fleet.number()}"),
                log=fleet.log,
                settings=SETTINGS,
            ),
        )
        self._task = asyncio.create_task(networks.run())
        return networks

    async def kill(self) -> None:
        """As by kill -9: what it has sent arrives, and nothing more is sent."""
        assert not self._task.done(), self._task
        self._task.cancel()
        await asyncio.wait({self._task})

    async def restart(self) -> None:
        await self.kill()
        self.networks = self._start()


class Fleet:
    """All of it."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.cluster = EmbeddedCluster(clock=self.clock, randomness=seeded_randomness(1))
        self.log = make_logger(io.StringIO(), self.clock)
        self.machines: dict[str, Machine] = {}
        self.pods: dict[str, RunningPod] = {}
        self.defined: dict[str, IpamConfig] = {}
        self.controller_luck = Script()
        self.strays: list[RunningPod] = []
        """Pods that the cluster knows no more, and whose sandboxes live on."""
        self.mistakes: list[str] = []
        """What was wrong with an answer."""
        self._controller: asyncio.Task[Any] | None = None
        self._later: set[asyncio.Task[None]] = set()
        self._numbers = 0

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    # The controller

    def start_controller(self) -> None:
        line = FaultyCluster(self.cluster, self.controller_luck)
        clock, log, counts = self.clock, self.log, ControllerCounts()
        randomness = seeded_randomness(f"controller/{self.number()}")
        runtime = Runtime(clock=clock, randomness=randomness, log=log, settings=SETTINGS)
        nodes = Informer(line, Node, runtime=runtime)
        writes = GuardedWrites(line, unguarded, counts.writes)
        slices = SliceController(writes, nodes, NetworkOptions(), counts=counts, runtime=runtime)
        repair = RepairLoop(
            writes,
            nodes,
            NetworkOptions(),
            patience=LeakGrace(
                leak_grace_seconds=SETTINGS.leak_grace_seconds,
                quarantine_seconds=SETTINGS.quarantine_seconds,
            ),
            counts=counts.repair,
            runtime=runtime,
        )
        self._controller = asyncio.create_task(_lead(nodes, slices, repair))

    async def restart_controller(self) -> None:
        await self.kill_controller()
        self.start_controller()

    async def kill_controller(self) -> None:
        assert self._controller is not None
        assert not self._controller.done(), self._controller
        self._controller.cancel()
        await asyncio.wait({self._controller})

    # Networks

    async def define(self, name: str, ipam: dict[str, Any]) -> None:
        """Make a NetworkAttachmentDefinition, or change it."""
        text = json.dumps({"cniVersion": "1.1.0", "name": name, "ipam": {"type": "podtide", **ipam}})
        spec = NetworkAttachmentDefinitionSpec(config=text)
        place = ObjectMeta(name=name, namespace="default")
        if name in self.defined:
            there = await self.cluster.get(NetworkAttachmentDefinition, name, "default")
            await self.cluster.replace(structs.replace(there, spec=spec), manager=MANAGER)
        else:
            item = NetworkAttachmentDefinition(metadata=place, spec=spec)
            await self.cluster.create(item, manager=MANAGER)
        self.defined[name] = parse_config(text)

    async def undefine(self, name: str) -> None:
        del self.defined[name]
        await self.cluster.delete(NetworkAttachmentDefinition, name, "default")

    # Nodes

    async def join(self, name: str) -> None:
        """A new machine registers. Whatever pods of an earlier node of its name are left are gone for good."""
        for pod in self._pods_on(name):
            await self._forget_pod(pod)
        await self.cluster.create(Node(metadata=ObjectMeta(name=name)), manager=MANAGER)
        self.machines[name] = Machine(name, self)

    async def register_again(self, name: str) -> None:
        """The Node is deleted and made anew, under a running machine."""
        await self.cluster.delete(Node, name)
        await self.cluster.create(Node(metadata=ObjectMeta(name=name)), manager=MANAGER)

    async def leave(self, name: str, *, lives_on: bool, pods_stay: bool) -> None:
        """The Node is deleted; its machine is off, or lives on until somebody sees to it. Its pods go with the machine."""
        await self.cluster.delete(Node, name)
        self.machines[name].is_node = False
        if lives_on:
            self._do_later(partial(self._switch_off, name, pods_stay=pods_stay))
        else:
            await self._switch_off(name, pods_stay=pods_stay)

    async def reboot(self, name: str) -> None:
        """All sandboxes of the machine are dead; its runtime knows that it owes their DELs."""
        for pod in (*self._pods_on(name), *(stray for stray in self.strays if stray.node == name)):
            self._end_sandbox(pod)
        await self.machines[name].restart()

    async def _switch_off(self, name: str, *, pods_stay: bool) -> None:
        machine = self.machines.pop(name)
        self.strays = [stray for stray in self.strays if stray.node != name]
        for pod in self._pods_on(name):
            pod.sandbox = None
            if not pods_stay:
                await self._forget_pod(pod)
        await machine.kill()

    def _pods_on(self, node: str) -> list[RunningPod]:
        return [pod for pod in self.pods.values() if pod.node == node]

    # Pods

    async def schedule(self, name: str, node: str, networks: Iterable[str]) -> None:
        spec = PodSpec(node_name=node, containers=[PodContainer(name="main", image="none")])
        made = await self.cluster.create(
            Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec), manager=MANAGER
        )
        pod = self.pods[name] = RunningPod(name, made.metadata.uid, node, tuple(networks))
        pod.keeper = asyncio.create_task(self._keep(pod))

    async def _keep(self, pod: RunningPod) -> None:
        """See that the pod has what it wants, for as long as there is such a pod."""
        failures = 0
        while True:
            if pod.node in self.machines and not pod.is_ready:
                failures = 0 if await self._attach(pod, 60.0) else failures + 1
            await asyncio.sleep(min(2.0**failures, LONGEST_PAUSE_SECONDS))

    async def add_again(self, name: str, patience_seconds: float) -> None:
        """The runtime repeats the ADDs of a pod that is ready, and may not have the patience to hear the answers."""
        if self.pods[name].is_ready and self.pods[name].node in self.machines:
            await self._attach(self.pods[name], patience_seconds)

    async def _attach(self, pod: RunningPod, patience_seconds: float) -> bool:
        """The runtime's ADDs for a pod, one after the other; after one that fails the sandbox is torn down."""
        pod.sandbox = sandbox = pod.sandbox or Sandbox(f"sandbox-{self.number()}")
        for network in pod.networks:
            is_added = await self._add(pod, sandbox, network, patience_seconds)
            if pod.sandbox is not sandbox:
                return False  # it died meanwhile
            if not is_added:
                self._end_sandbox(pod)
                return False
        return True

    async def _add(self, pod: RunningPod, sandbox: Sandbox, network: str, patience_seconds: float) -> bool:
        """An ADD, or the same again. Answers whether it was answered."""
        if network not in sandbox.asked and network not in self.defined:
            return False
        owner = Owner(sandbox.id, f"net-{network}", pod.uid, "default", pod.name, network)
        if network not in sandbox.asked:
            sandbox.asked[network] = (owner, self.defined[network])
        owner, config = sandbox.asked[network]
        networks, arrived = self.machines[pod.node].networks, self.clock.monotonic()
        try:
            async with asyncio.timeout(patience_seconds):
                given = await networks.add(owner, config, arrived=arrived)
        except (RetryError, TimeoutError):
            return False
        addresses = tuple(ip_interface(str(each.address)).ip for each in given)
        answered = Interface(owner, config, addresses)
        before = sandbox.interfaces.setdefault(network, answered)
        if before != answered:
            self.mistakes.append(f"{before} was answered {addresses} when its ADD was repeated")
        return True

    def end_sandbox(self, name: str) -> None:
        """The pod's sandbox dies; its DELs are owed."""
        self._end_sandbox(self.pods[name])

    async def remove_pod(self, name: str) -> None:
        """The pod goes for good. Its DELs may come after it."""
        pod = self.pods[name]
        self._end_sandbox(pod)
        await self._forget_pod(pod)

    async def tear_away(self, name: str) -> None:
        """The pod is deleted by force: its sandbox lives on, until its kubelet hears of it."""
        pod = self.pods[name]
        await self._forget_pod(pod)
        if pod.is_ready:
            self.strays.append(pod)
            self._do_later(partial(self._end_stray, pod))
        else:
            self._end_sandbox(pod)

    async def _end_stray(self, pod: RunningPod) -> None:
        if pod in self.strays:
            self.strays.remove(pod)
            self._end_sandbox(pod)

    def _do_later(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What a person, or a kubelet that was cut off, does before others may rely on it."""

        async def wait() -> None:
            await asyncio.sleep(FENCED_AFTER_SECONDS)
            await work()

        task = asyncio.create_task(wait())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def pay(self, name: str) -> None:
        """The runtime of a machine calls every DEL it owes; one that fails is owed still."""
        machine = self.machines[name]
        await asyncio.gather(*(self._delete(machine, key) for key in tuple(machine.owed)))

    async def collect_garbage(self, name: str, network: str) -> None:
        """The runtime says which attachments of a network are alive; of others that share its pools it says nothing."""
        if network not in self.defined:
            return
        alive = {
            (owner.sandbox, owner.interface)
            for pod in (*self._pods_on(name), *self.strays)
            for owner, _ in (pod.sandbox.asked.values() if pod.sandbox else ())
            if owner.network == network
        }
        try:
            await self.machines[name].networks.collect_garbage(self.defined[network], frozenset(alive))
        except RetryError:
            return  # it is called again, some day

    async def _delete(self, machine: Machine, key: Key) -> None:
        owner, config = machine.owed[key]
        try:
            await machine.networks.delete(owner, config)
        except RetryError:
            return
        machine.owed.pop(key, None)

    def _end_sandbox(self, pod: RunningPod) -> None:
        sandbox, pod.sandbox = pod.sandbox, None
        for owner, config in sandbox.asked.values() if sandbox is not None else ():
            self.machines[pod.node].owed[owner.sandbox, owner.interface] = (owner, config)

    async def _forget_pod(self, pod: RunningPod) -> None:
        del self.pods[pod.name]
        if pod.keeper is not None:
            pod.keeper.cancel()
        there = await self.cluster.get(Pod, pod.name, "default")
        ended = structs.replace(there, status=PodStatus(phase=PodPhase.SUCCEEDED))
        await self.cluster.replace_status(ended, manager=MANAGER)
        await self.cluster.delete(Pod, pod.name, "default")

    # What is so

    def interfaces(self) -> list[Interface]:
        """What living sandboxes have."""
        return [
            item
            for pod in (*self.pods.values(), *self.strays)
            if pod.sandbox is not None
            for item in pod.sandbox.interfaces.values()
        ]

    async def picture(self) -> NetworkPicture:
        """What is written."""
        return draw_networks(
            (await self.cluster.list(NetworkAttachmentDefinition)).items,
            reservations=(await self.cluster.list(OverlappingRangeIPReservation)).items,
            pools=(await self.cluster.list(IPPool)).items,
            slice_pools=(await self.cluster.list(NodeSlicePool)).items,
            pods=(await self.cluster.list(Pod)).items,
        )

    async def wrong(self) -> list[str]:
        """What must not be so at any instant."""
        found = list(self.mistakes)
        if self._controller is not None and self._controller.done():
            found.append(f"the controller has ended: {self._controller}")
        found += [f"{pod.keeper}" for pod in self.pods.values() if pod.keeper and pod.keeper.done()]
        had: dict[tuple[str, IPAddress], Owner] = {}
        for item in self.interfaces():
            for address in item.addresses:
                other = had.setdefault((item.scope, address), item.owner)
                if other != item.owner:
                    found.append(f"{address} is {other}'s and {item.owner}'s")
        picture = await self.picture()
        found += [violation.words for violation in audit_networks(picture)]
        unheld = self.held_by_the_living() - held(picture)
        found += [f"{each} is not in a pool" for each in sorted(map(str, unheld))]
        return found

    def held_by_the_living(self) -> set[tuple[str, str, IPAddress]]:
        return {
            (item.owner.sandbox, item.owner.interface, address)
            for item in self.interfaces()
            for address in item.addresses
        }

    def slices_wanted(self) -> set[tuple[str, str]]:
        """Every NodeSlicePool that definitions ask for, with every node."""
        ranges = [
            item
            for config in self.defined.values()
            if (network := network_of(config))
            for item in network.ranges
            if item.slicing is not None
        ]
        return {(item.node_slice_pool_name(), node) for item in ranges for node in self.machines}

    async def version(self) -> str:
        """Of the cluster: it grows with every write."""
        return (await self.cluster.list(Node)).resource_version

    async def close(self) -> None:
        for task in (*self._later, *(pod.keeper for pod in self.pods.values() if pod.keeper)):
            task.cancel()
        await self.kill_controller()
        for machine in self.machines.values():
            await machine.kill()
        self.cluster.close()


def held(picture: NetworkPicture) -> set[tuple[str, str, IPAddress]]:
    """What pools have for whom."""
    return {
        (holder.id, holder.ifname, address)
        for pool in picture.pools
        for address, holder in pool.holders.items()
    }


async def _lead(nodes: Informer[Node], slices: SliceController, repair: RepairLoop) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(nodes.run())
        group.create_task(slices.run())
        await nodes.synced.wait()
        group.create_task(repair.run())
