"""The implementation of the port `agent.port.Addresses`, over the journaled pool.

An ADD is answered from memory and the journal. Only one that finds no free address waits, for the one that is on its
way; ADDs that came before it are served first. A DEL overtakes an ADD of the same sandbox and interface: it cancels one
that waits, and is remembered for ADDs that arrived before it and are carried out later.
"""

from collections.abc import Iterable
from functools import partial

from podtide.agent.api.node_snapshot import NodeStateReader
from podtide.agent.api.waiting_adds import QueuePlace, WaitingAdds
from podtide.agent.bridge.gateways import BridgeGateways
from podtide.agent.pool.recovery import Recovery
from podtide.agent.port import (
    NoAddress,
    NodeState,
    NotAssigned,
    NotReady,
    OutOfContact,
    Overtaken,
    PendingAdd,
    PodAddress,
)
from podtide.agent.recent_deletes import RecentDeletes
from podtide.agent.request.address_space import AddressSpace, space_of
from podtide.agent.request.node_config import NodeNetwork, complaints
from podtide.agent.request.node_inputs import NodeInputs
from podtide.core.pool.adoption import is_stand_in
from podtide.core.pool.demand import reference_of
from podtide.core.pool.pool import Address, Owner
from podtide.core.pool.states import State
from podtide.runtime.durations import format_duration
from podtide.runtime.runtime import Runtime


class AddressService:
    """The addresses of a node with a pool."""

    def __init__(
        self,
        inputs: NodeInputs,
        recovery: Recovery,
        state_reader: NodeStateReader,
        *,
        gateways: BridgeGateways | None = None,
        runtime: Runtime,
    ) -> None:
        journaled = inputs.journaled
        self._journaled = journaled
        self._follower = inputs.follower
        self._readiness = inputs.readiness
        self._recovery = recovery
        self._state_reader = state_reader
        self._subnets = inputs.subnets
        self._gateways = gateways
        self._add_wait_seconds = runtime.settings.add_wait_seconds
        self._clock = runtime.clock
        self._deletes = RecentDeletes()
        self._waiting = WaitingAdds(journaled)
        journaled.on_supply.append(self.serve)

    def start_add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...] | PendingAdd:
        """The addresses at once if there are any; else a place in the queue."""
        key = (owner.sandbox, owner.interface)
        if self._deletes.happened_after(arrived, key):
            raise Overtaken(
                f"sandbox {owner.sandbox} ({owner.interface}) was deleted before its ADD was carried out"
            )
        if (held := self._journaled.held_by(owner)) and self._follower.networks:
            return self._answer(held)
        self._recovery.asked(owner)
        if self._readiness.is_complete:
            self._require_contact(owner)
            if not self._waiting.is_ahead_of(wanted) and (assigned := self._journaled.assign(owner, wanted)):
                return self._answer(assigned)
        place = self._waiting.join(owner, wanted)
        return PendingAdd(partial(self._wait, place, owner, wanted), place.leave)

    async def add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...]:
        """`start_add`, and the wait if there is one."""
        added = self.start_add(owner, arrived=arrived, wanted=wanted)
        return await added.wait() if isinstance(added, PendingAdd) else added

    async def _wait(self, place: QueuePlace, owner: Owner, wanted: tuple[str, ...]) -> tuple[PodAddress, ...]:
        addresses = await place.wait(self._add_wait_seconds)
        if addresses is not None:
            return self._answer(addresses)
        pod = f"pod {owner.namespace}/{owner.name}" if owner.name else f"sandbox {owner.sandbox}"
        if missing := self._readiness.missing:
            raise NotReady(f"no address for {pod} yet: {missing}")
        waited = format_duration(self._add_wait_seconds)
        raise NoAddress(f"no address for {pod} within {waited}: {self._shortage(wanted)}")

    def serve(self) -> None:
        """Assign free addresses to waiting ADDs, if the agent is ready and in contact with the cluster."""
        if self._waiting and self._readiness.is_complete and self._readiness.is_in_contact:
            self._waiting.serve()

    def delete(self, owner: Owner) -> tuple[PodAddress, ...]:
        """Free what the sandbox's interface has, and cancel its waiting ADD."""
        key = (owner.sandbox, owner.interface)
        self._deletes.remember(key, self._clock.monotonic())
        self._journaled.deleted(owner.sandbox)
        self._recovery.deleted(owner)
        self._waiting.overtake(key)
        return self._given(self._journaled.free(*key) or self._free_stand_in(owner))

    def _free_stand_in(self, owner: Owner) -> tuple[Address, ...]:
        """Free the adopted address of the pod, if records were lost and this may be the pod's real sandbox.

        It is, when the pod is being deleted. While the pod lives, this may as well be an earlier sandbox of it, so the
        pod keeps its address.
        """
        reference = reference_of(owner)
        pod = self._journaled.demand.pod(reference)
        if pod is not None and pod.needs_address:
            return ()
        freed: tuple[Address, ...] = ()
        for holder in self._journaled.demand.owners_of(reference) if reference else ():
            if is_stand_in(holder):
                freed += self._journaled.free(holder.sandbox, holder.interface)
        return freed

    def check(self, owner: Owner) -> tuple[PodAddress, ...]:
        """The addresses of the sandbox's interface; NotAssigned when there are none."""
        if not (held := self._journaled.held_by(owner)):
            raise NotAssigned(
                f"sandbox {owner.sandbox} has no address on {owner.interface}: create the sandbox again"
            )
        return self._given(held)

    def collect_garbage(self, network: str, alive: frozenset[tuple[str, str]]) -> int:
        """Free the addresses of this network's sandboxes that are not `alive`."""
        dead = [
            owner
            for owner in self._journaled.demand.owners()
            if owner.network == network and (owner.sandbox, owner.interface) not in alive
        ]
        for owner in dead:
            self._journaled.free(owner.sandbox, owner.interface)
        return len(dead)

    def require_ready(self) -> None:
        """NotReady while the node cannot serve pods."""
        if unreadiness := self._readiness.unreadiness:
            raise NotReady(unreadiness)

    def state(self) -> NodeState:
        """The current state of the node."""
        return self._state_reader.state()

    def all_addresses(self) -> Iterable[Address]:
        """Every address of the pool."""
        return self._journaled.pool.addresses()

    # Internals

    def _require_contact(self, owner: Owner) -> None:
        if not self._readiness.is_in_contact:
            raise OutOfContact(
                f"no new address for sandbox {owner.sandbox}: the API server was silent for longer than contact_timeout, "
                "and may have removed this node; check the connection to the API server"
            )

    def _shortage(self, wanted: tuple[str, ...]) -> str:
        """Why there is no address, with the numbers."""
        state = self.state()
        counts = state.counts
        held = sum(counts.values()) - counts[State.ORPHANED]
        words = (
            f"the node asks for {state.requested}, holds {held} and has {counts[State.ASSIGNED]} assigned; "
            f"{state.waiting_pods} pods wait"
        )
        if wanted:
            words += f"; wanted is {', '.join(wanted)}"
        if counts[State.QUARANTINED]:
            words += f"; {counts[State.QUARANTINED]} are withheld until every pod shows its address"
        if state.scaler is not None and state.requested == state.scaler.max_ips:
            words += f"; {state.scaler.max_ips} are the most that a node may have"
        if state.exhausted:
            words += f"; subnet {state.subnet} is {'used up' if state.starved else 'running low'}"
        config = self._follower.config
        complaint = complaints(config) if config is not None else ""
        return f"{words}; the request controller says: {complaint}" if complaint else words

    def _answer(self, addresses: tuple[Address, ...]) -> tuple[PodAddress, ...]:
        """The answer to an ADD.

        NotReady while the CIDR of an address is unknown, or its gateway is not on the node's bridge: the pod would be set
        up without a route.
        """
        for address in addresses:
            network = self._network(address)
            space = self._space(address, network) if network is not None else None
            if space is not None and self._gateways is not None:
                self._gateways.require(address.ip, space)
            if network is None or space is not None:
                continue
            if self._subnets.spaces(network.subnet):
                raise NotReady(
                    f"the CIDR that {address.ip} is in is not known yet: subnet {network.subnet} has grown, and its "
                    "ClusterSubnet will say so in a moment; try again"
                )
        return self._given(addresses)

    def _given(self, addresses: tuple[Address, ...]) -> tuple[PodAddress, ...]:
        return tuple(self._give(address) for address in addresses)

    def _give(self, address: Address) -> PodAddress:
        network = self._network(address)
        stated = AddressSpace(network.cidr, network.gateway) if network else AddressSpace("", "")
        space = (self._space(address, network) if network else None) or stated
        return PodAddress(
            ip=address.ip,
            subnet=space.cidr,
            gateway=self._gateways.gateway_of(space) if self._gateways is not None else space.gateway,
            container=address.container,
            primary=network.primary if network else "",
        )

    def _space(self, address: Address, network: NodeNetwork) -> AddressSpace | None:
        """The CIDR that the address is in, from the network container or else from the subnet."""
        return space_of(address.ip, network.spaces) or space_of(
            address.ip, self._subnets.spaces(network.subnet)
        )

    def _network(self, address: Address) -> NodeNetwork | None:
        return self._follower.networks.get(address.container) or self._kin(address)

    def _kin(self, address: Address) -> NodeNetwork | None:
        """A network of the same family, for an address that a pod kept after its own container was withdrawn."""
        family = 6 if ":" in address.ip else 4
        networks = self._follower.networks.values()
        return next((network for network in networks if network.container.family == family), None)
