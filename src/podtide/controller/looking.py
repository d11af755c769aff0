"""A look at a subnet: how full it is, what is in force from now on, and whose turn it is.

One reading is one row at the allocator (`get_subnet`): capacity, reserved, containers and what is owed, all of one
instant. The older `utilization` question has the first two alone, and may answer from a cache.

Where the subnet stands is kept in memory and advances only when it was written, so that a write that failed is made
again with everything that belongs to it.
"""

from msgspec import Struct

from podtide.allocator.port import NoSuchSubnet, Subnet
from podtide.cluster.informer import Informer
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.counts import SubnetCounts
from podtide.controller.debts import in_turn
from podtide.controller.overrides import configure, default_batching
from podtide.controller.recovery import configured_before, standing_of_nodes, standing_of_subnet
from podtide.controller.subnet_objects import SubnetObjects
from podtide.controller.subnets import Subnets
from podtide.controller.surroundings import Surroundings
from podtide.core.batching import Batching, Reading, Standing, Step, SubnetDecision, decide_batch
from podtide.resources.cluster_subnet import ScalerOverride
from podtide.resources.node_network_config import NodeNetworkConfig

_ALARMING = frozenset({Step.STARVED, Step.EXHAUSTED})


class _Memory(Struct, frozen=True):
    """What is remembered of a subnet from one look to the next."""

    batching: Batching
    standing: Standing


class SubnetLooks:
    """Looks at subnets, one look at a time for each."""

    def __init__(
        self,
        around: Surroundings,
        objects: SubnetObjects,
        configs: Informer[NodeNetworkConfig],
        subnets: Subnets,
        nodes: WorkQueue[str],
    ) -> None:
        self._around = around
        self._options = around.options
        self._settings = around.settings
        self._objects = objects
        self._configs = configs
        self._subnets = subnets
        self._nodes = nodes
        self._memories: dict[str, _Memory] = {}
        self._missing: set[str] = set()

    async def look(self, name: str) -> float | None:
        """Look at a subnet. Answers when to look again; None when no node uses it any more."""
        self._around.counts.looks += 1
        if not self._subnets.is_used(name):
            self._forget(name)
            return None
        try:
            subnet = await self._around.allocator.get_subnet(self._options.network, name)
        except NoSuchSubnet as refusal:
            self._note_missing(name, refusal)
            return self._settings.poll_seconds
        self._note_found(name)
        await self._serve_whose_turn_it_is(subnet)
        await self._decide_and_tell(subnet)
        return self._settings.poll_seconds

    def _forget(self, name: str) -> None:
        self._memories.pop(name, None)
        self._missing.discard(name)
        self._around.counts.subnets.pop(name, None)
        self._objects.forget(name)
        self._subnets.forget(name)

    def _note_missing(self, name: str, refusal: NoSuchSubnet) -> None:
        if name not in self._missing:
            self._missing.add(name)
            self._around.log.warning(
                "a subnet that nodes are to use is not there", subnet=name, error=str(refusal)
            )

    def _note_found(self, name: str) -> None:
        """Its nodes were refused as long as it was not there, and no event tells them that it is."""
        if name in self._missing:
            self._missing.discard(name)
            self._look_at_users(name)

    async def _serve_whose_turn_it_is(self, subnet: Subnet) -> None:
        free = subnet.capacity - subnet.reserved
        if subnet.owed and free > 0:
            debts = await self._around.allocator.owed(subnet.network, subnet.name)
            for node in in_turn(debts, free, self._options.cluster):
                self._subnets.give_turn(node)
                self._nodes.add(node)

    async def _decide_and_tell(self, subnet: Subnet) -> None:
        name, now = subnet.name, self._around.clock.monotonic()
        shown = self._objects.subnet(name) if self._options.cluster_subnets else None
        override = shown.spec.scaler if shown else ScalerOverride()
        memory = self._memories.get(name)
        before = memory.batching if memory else configured_before(shown, default_batching(self._settings))
        configured = configure(override, self._settings, before)
        standing = memory.standing if memory else self._recover(name, configured.batching, now)
        reading = Reading(subnet.capacity, subnet.reserved, subnet.containers, subnet.owed)
        decision = decide_batch(standing, reading, configured.batching, now)

        state = await self._objects.write_state(name, exhausted=decision.standing.exhausted)
        shown = (
            await self._objects.write_subnet(shown, subnet, decision, configured)
            if self._options.cluster_subnets
            else None
        )
        self._memories[name] = _Memory(configured.batching, decision.standing)
        self._note(name, reading, decision)
        if decision.step is not Step.NONE:
            alarming = decision.step in _ALARMING
            await self._around.events.record(
                shown or state, decision.step.value, decision.reason, warning=alarming
            )

    def _look_at_users(self, name: str) -> None:
        for node in self._subnets.users(name):
            self._nodes.add(node)

    def _recover(self, name: str, configured: Batching, now: float) -> Standing:
        if self._options.cluster_subnets:
            standing = standing_of_subnet(self._objects.subnet(name), configured, now)
            if standing is not None:
                return standing
        configs = () if self._options.cluster_subnets else self._configs.items()
        return standing_of_nodes(name, self._objects.state(name), configs, configured, now)

    def _note(self, name: str, reading: Reading, decision: SubnetDecision) -> None:
        changed = self._subnets.in_force(name) != decision.scaler
        self._subnets.note_look(name, decision.scaler, anybody_owed=reading.owed > 0)
        if changed and not self._options.cluster_subnets:
            self._look_at_users(name)
        self._around.counts.subnets[name] = SubnetCounts(
            capacity=reading.capacity,
            reserved=reading.reserved,
            containers=reading.containers,
            owed=reading.owed,
            exhausted=decision.standing.exhausted,
            starved=decision.standing.starved,
            batch=decision.scaler.batch,
            buffer=decision.scaler.buffer,
        )
