"""A whole cluster in one process: the production programs on the ports they always have, and what happens to them.

    cluster, allocator      given: embedded and in memory, or an API server and a database
    controllers             as many as wanted, elected or alone
    machines                one per node: agent, kubelet, disk
    the rest of a cluster   nodes are added and removed by the methods here, pods by those of `workload`

Several clusters that share an allocator are several worlds on one `Site`, which has what is looked at over all of them:
the trace, the book of addresses, the auditor. Each then has a name, which the full names of its programs and nodes begin
with.

Everything runs in the caller's event loop: on virtual time, if that loop's time is virtual. Chance comes from one
seed, a stream of its own for each program, so a run can be repeated. Scenarios, the demonstration and fault runs use
these methods to tell their stories.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

from msgspec import Struct, structs

from podtide.agent.program import AgentOptions, NodeAgent
from podtide.agent.request.sizing_policy import ExactPolicy, RequestPolicy
from podtide.allocator.port import Allocator
from podtide.allocator.store import DatabaseAllocator
from podtide.cluster.port import AlreadyExists, Cluster, Conflict, NotFound
from podtide.controller.options import ControllerOptions
from podtide.controller.program import Controller
from podtide.core.errors import PodtideError
from podtide.core.machine_identity import MachineIdentity
from podtide.core.pool.address import Address
from podtide.core.subnet.batch import BatchRule, decide_batch
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.metadata_keys import SUBNET_LABEL
from podtide.resources.node import Node, NodeStatus
from podtide.runtime.clock import Clock
from podtide.runtime.disk import Disk
from podtide.runtime.logging import Logger
from podtide.runtime.memory_disk import MemoryDisk
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings
from podtide.simulation.checks.network_book import NetworkBook
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.agents_in_process import AgentsInProcess
from podtide.simulation.nodes.container_runtime import ContainerRuntime
from podtide.simulation.nodes.kubelet import Kubelet, KubeletHabits, Sandbox
from podtide.simulation.nodes.machine import Machine, node_info
from podtide.simulation.nodes.network_definitions import Definition
from podtide.simulation.nodes.node_admission import NodeAdmission
from podtide.simulation.nodes.plugin_caller import AgentDoors
from podtide.simulation.nodes.pods import MANAGER
from podtide.simulation.trace import ClusterWrite, Entry, PoolMove
from podtide.simulation.world.recording import RecordingAllocator, RecordingCluster
from podtide.simulation.world.site import Site
from podtide.simulation.world.workload import Workload

if TYPE_CHECKING:
    from podtide.simulation.scheduling.pod_scheduler import PodScheduler

_LOOK_EVERY_SECONDS = 0.05
_JOURNAL_SLACK_BYTES = 512
"""Agents of a world compact their journals often: in a run a journal would never reach the size at which production compacts it."""


class WaitTimeout(PodtideError):
    """A condition did not become true in time."""


class WorldDefaults(Struct, frozen=True, kw_only=True):
    """Settings and policies of a world's programs, where a node or a controller is not given its own."""

    settings: Settings = Settings()
    policy: RequestPolicy = ExactPolicy()
    habits: KubeletHabits = KubeletHabits()
    batch_rule: BatchRule = decide_batch
    """How controllers decide on the batch in force."""
    labels: Callable[[str], Mapping[str, str]] = lambda _node: {}
    """The labels of a Node, by its name, each time it is created."""
    pods_per_node: int | None = None
    """How many pods a kubelet takes; None for as many as there are."""


class PortWrappers(Struct, frozen=True, kw_only=True):
    """Functions that wrap a program's ports, given its name and the port. By default they return the port itself."""

    cluster: Callable[[str, Cluster], Cluster] = lambda _program, line: line
    allocator: Callable[[str, Allocator], Allocator] = lambda _program, line: line


class World:
    """A cluster whose programs run while the `async with` lasts."""

    def __init__(  # noqa: PLR0913 - what it stands on, how it is run, and what it runs in: each a parameter, none global
        self,
        cluster: Cluster,
        allocator: DatabaseAllocator,
        options: ControllerOptions,
        *,
        site: Site | None = None,
        name: str = "",
        defaults: WorldDefaults | None = None,
        networks: Sequence[Definition] = (),
        doors: AgentDoors | None = None,
        new_disk: Callable[[str], Disk] = lambda _node: MemoryDisk(),
        clock: Clock,
        seed: int | str,
        log: Logger,
    ) -> None:
        self.name = name
        """The cluster's name; "" where there is only one."""
        self.site = site or Site(allocator, options.network)
        self.trace = self.site.trace
        self.programs = self.site.programs
        self.book = self.site.book
        self.auditor = self.site.auditor
        self.machines: dict[str, Machine] = {}
        """By the names of their Nodes."""
        self.workload = Workload(cluster)
        self.wrappers = PortWrappers()
        """Used for programs that are started from then on."""
        self.scheduler: PodScheduler | None = None
        """What binds pods to nodes; None where pods are created for a node (see `scheduled_pods`)."""
        self.networks = networks
        """The secondary networks that every pod is attached to."""
        self.network_book = NetworkBook(networks)
        if networks:
            self.site.network_books.append(self.network_book)
            self.trace.listeners.append(self._hear)
        self.cluster = cluster
        self.allocator = allocator
        self.options = options
        """Used for controllers that are started from then on."""
        self.defaults = defaults or WorldDefaults()
        self._doors = doors or AgentsInProcess(clock=clock, log=log)
        self._new_disk = new_disk
        self.clock = clock
        self._seed = seed
        self.log = log
        self._boots: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for name in tuple(self.machines):
            await self._doors.close(name)
        await self.programs.close()
        for machine in self.machines.values():
            if machine.agent is not None:
                machine.agent.close()

    # Controllers

    def start_controller(
        self,
        name: str = "controller",
        *,
        elected: bool = False,
        settings: Settings | None = None,
    ) -> Controller:
        """Start a controller; an `elected` one acts only while it leads."""
        cluster_line, allocator_line = self.record_cluster(name), self.record_allocator(name)
        controller = Controller(
            self.wrappers.cluster(name, cluster_line),
            self.wrappers.allocator(name, allocator_line),
            structs.replace(self.options, batch_rule=self.defaults.batch_rule),
            runtime=Runtime(
                clock=self.clock,
                randomness=seeded_randomness(f"{self._seed}/{name}"),
                log=self.log.bind(program=name),
                settings=settings or self.defaults.settings,
            ),
        )
        run = controller.run_elected(name) if elected else controller.run()
        self.programs.start(name, run, cluster_line, allocator_line)
        return controller

    def record_cluster(
        self, program: str, sending: Callable[[Resource], None] = lambda _item: None
    ) -> RecordingCluster:
        """A recorded connection of a program to this cluster."""
        return RecordingCluster(
            self.cluster,
            program,
            clock=self.clock,
            trace=self.trace,
            of_cluster=self.name,
            sending=sending,
        )

    def record_allocator(self, program: str) -> RecordingAllocator:
        """A recorded connection of a program of this cluster to the allocator."""
        return RecordingAllocator(
            self.site.front, program, clock=self.clock, trace=self.trace, of_cluster=self.name
        )

    # Placement

    @property
    def scheduler_program(self) -> str:
        """The scheduler's name in the trace and in the log."""
        return full_name(self.name, "scheduler")

    def runtime_of(self, part: str, program: str) -> Runtime:
        """What a part of the cluster runs in that is not podtide's, with a stream of chance of its own."""
        return Runtime(
            clock=self.clock,
            randomness=seeded_randomness(f"{self._seed}/{part}"),
            log=self.log.bind(program=program),
        )

    # Networks

    async def define_networks(self) -> None:
        """Create the NetworkAttachmentDefinitions."""
        for each in self.networks:
            await self.cluster.create(each.attachment(), manager=MANAGER)

    # Nodes

    async def add_node(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        policy: RequestPolicy | None = None,
    ) -> Machine:
        """Add a new machine with an empty disk, and start its kubelet and its agent."""
        identity = self._new_machine(name)
        node = await self.create_node(name, labels, identity)
        runtime = ContainerRuntime(
            name,
            self._doors,
            self.networks,
            clock=self.clock,
            trace=self.trace,
            calls=self.site.calls,
            of_cluster=self.name,
        )
        machine = Machine(
            name=name,
            uid=node.metadata.uid,
            disk=self._new_disk(name),
            runtime=runtime,
            kubelet=self._new_kubelet(name, runtime),
            settings=settings or self.defaults.settings,
            policy=policy or self.defaults.policy,
            identity=identity,
            cluster=self.name,
        )
        self.machines[name] = self.site.machines[machine.full_name] = machine
        self._start_kubelet(machine)
        await self.start_agent(name)
        return machine

    async def create_node(
        self, name: str, labels: Mapping[str, str] | None = None, identity: MachineIdentity | None = None
    ) -> Node:
        """Register a machine as its kubelet does: the one of that name, unless `identity` is another one's.

        A Node that exists already is taken over, as by a real kubelet.
        """
        identity = identity or self.machines[name].identity
        node = Node(
            metadata=ObjectMeta(name=name, labels={**self.defaults.labels(name), **(labels or {})}),
            status=NodeStatus(node_info=node_info(identity), capacity=self._size, allocatable=self._size),
        )
        try:
            return await self.cluster.create(node, manager=MANAGER)
        except AlreadyExists:
            await self.tell_machine(name, identity)
            return await self.cluster.get(Node, name)

    @property
    def _size(self) -> dict[str, str]:
        most = self.defaults.pods_per_node
        return {} if most is None else {"pods": str(most)}

    async def remove_node(self, name: str) -> None:
        """Switch a machine off, and delete its Node and its pods."""
        machine = self.machines[name]
        await self.kill_agent(name)
        await self._switch_off(machine)
        del self.machines[name], self.site.machines[machine.full_name]
        await self.cluster.delete(Node, name, uid=machine.uid)
        await self.workload.clear_node(name)

    async def start_agent(self, name: str) -> NodeAgent:
        """Start the node's agent, which reads its disk."""
        machine = self.machines[name]
        line = self.record_cluster(machine.agent_program, sending=partial(self.book.hear_sent, machine))
        agent = NodeAgent(
            self.wrappers.cluster(machine.agent_program, line),
            name,
            machine.disk,
            runtime=Runtime(
                clock=self.clock,
                randomness=seeded_randomness(f"{self._seed}/{machine.agent_program}"),
                log=self.log.bind(program=machine.agent_program),
                settings=machine.settings,
            ),
            options=AgentOptions(policy=machine.policy, journal_slack_bytes=_JOURNAL_SLACK_BYTES),
        )
        machine.agent = agent
        agent.pool.on_move.append(partial(self._note_move, machine.full_name))
        self.book.follow(machine, agent)
        self.programs.start(machine.agent_program, agent.run(), line)
        await self._doors.open(name, agent)
        return agent

    async def kill_agent(self, name: str) -> None:
        """End the agent at this instant, as by kill -9; what it wrote is on its disk."""
        machine = self.machines[name]
        if isinstance(machine.disk, MemoryDisk):
            machine.disk.kill()
        await self._doors.close(name)
        await self.programs.kill(machine.agent_program)
        if machine.agent is not None:
            machine.agent.close()
        machine.agent = None

    async def crash_machine(self, name: str) -> None:
        """Cut a machine's power and start it again: its sandboxes are gone, and so may be what was not synced to disk."""
        machine = self.machines[name]
        await self.kill_agent(name)
        await self._switch_off(machine)
        if isinstance(machine.disk, MemoryDisk):
            machine.disk.crash(seeded_randomness(f"{self._seed}/crash {machine.disk.life} of {name}"))
        machine.kubelet = self._new_kubelet(name, machine.runtime)
        boot = f"{machine.identity.machine_id} boot {self._boots[name]}"
        machine.identity = structs.replace(machine.identity, boot_id=boot)
        await self.tell_machine(machine.name, machine.identity)
        self._start_kubelet(machine)
        await self.start_agent(name)

    async def tell_machine(self, name: str, identity: MachineIdentity) -> None:
        """Write into the Node which machine its kubelet runs on, and which boot of it; nothing if there is no Node."""
        try:
            node = await self.cluster.get(Node, name)
            status = structs.replace(node.status, node_info=node_info(identity))
            await self.cluster.replace_status(structs.replace(node, status=status), manager=MANAGER)
        except (NotFound, Conflict):
            return  # it is made with what the machine is then

    def _new_machine(self, name: str) -> MachineIdentity:
        self._boots[name] += 1
        machine = f"{full_name(self.name, name)} {self._boots[name]}"
        return MachineIdentity(machine, f"uuid of {machine}", f"{machine} boot 0")

    def lose_disk(self, name: str) -> None:
        """Put a new disk in place of the machine's, while no agent runs on it."""
        self.machines[name].disk = self._new_disk(name)

    async def _switch_off(self, machine: Machine) -> None:
        await self.programs.kill(machine.kubelet_program)
        if self.site.calls is not None:
            self.site.calls.switched_off(machine.full_name)
        self.book.powered_off(machine)
        for sandbox in machine.kubelet.sandboxes():
            self.network_book.gone(sandbox)

    def _new_kubelet(self, name: str, runtime: ContainerRuntime) -> Kubelet:
        self._boots[name] += 1
        log = self.log.bind(program=f"kubelet {full_name(self.name, name)}")
        admission = None
        if self.scheduler is not None:
            admission = NodeAdmission(
                self.cluster, name, runtime=self.runtime_of(f"admission {name} {self._boots[name]}", name)
            )
        return Kubelet(
            self.cluster,
            name,
            runtime,
            habits=self.defaults.habits,
            admission=admission,
            clock=self.clock,
            randomness=seeded_randomness(f"{self._seed}/kubelet {name} {self._boots[name]}"),
            log=log,
        )

    def _start_kubelet(self, machine: Machine) -> None:
        machine.kubelet.on_sandbox.append(partial(self.book.sandbox_changed, machine))
        if self.networks:
            machine.kubelet.on_sandbox.append(partial(self._attachments_changed, machine.runtime))
        self.programs.start(machine.kubelet_program, machine.kubelet.run())

    def subnet_of(self, node: str) -> str:
        """The subnet of the first address of each of a node's pods."""
        return self.defaults.labels(node).get(SUBNET_LABEL, self.options.subnet)

    def subnets_of(self, node: str) -> tuple[str, ...]:
        """All subnets of the addresses of a node's pods."""
        return (self.subnet_of(node), *filter(None, (self.options.subnet_v6,)))

    # Waiting and looking

    async def until(
        self, holds: Callable[[], bool] | Callable[[], Awaitable[bool]], *, within: float
    ) -> None:
        """Wait until a condition holds; WaitTimeout if it does not within so many seconds."""
        deadline = self.clock.monotonic() + within
        while not await _is_true(holds):
            self.programs.check()
            if self.clock.monotonic() >= deadline:
                raise WaitTimeout(
                    f"not within {within} s: {getattr(holds, '__name__', holds)}; {self.site.summary()}"
                )
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
        self.programs.check()

    async def pass_time(self, seconds: float) -> None:
        """Let the programs run for so many seconds."""
        await asyncio.sleep(seconds)
        self.programs.check()

    def running_pods(self, node: str = "") -> int:
        """How many pods have their addresses, on one node or on all."""
        machines = [self.machines[node]] if node else self.machines.values()
        return sum(bool(sandbox.addresses) for machine in machines for sandbox in machine.kubelet.sandboxes())

    def _hear(self, entry: Entry) -> None:
        if isinstance(entry, ClusterWrite) and entry.cluster == self.name:
            self.network_book.hear(entry)

    def _note_move(self, node: str, address: Address) -> None:
        if not self.trace.is_kept:
            return  # thousands of nodes make millions of moves
        owner = address.owner
        self.trace.note_move(
            PoolMove(
                at=self.clock.monotonic(),
                node=node,
                ip=address.ip,
                name=address.name,
                state=address.state,
                owner=f"{owner.namespace}/{owner.name} (sandbox {owner.sandbox[:12]})" if owner else "",
            )
        )

    def _attachments_changed(
        self, runtime: ContainerRuntime, old: Sandbox | None, new: Sandbox | None
    ) -> None:
        self.network_book.sandbox_changed(runtime.attached.get(new.id, {}) if new else {}, old, new)


async def _is_true(holds: Callable[[], bool] | Callable[[], Awaitable[bool]]) -> bool:
    answer = holds()
    return answer if isinstance(answer, bool) else await answer
