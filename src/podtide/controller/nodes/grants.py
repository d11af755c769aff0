"""One wish per place to the allocator, and the answer to each: a container, or a refusal that is kept as a value.

With two subnets one may refuse and the other grant: both answers go into one status.
"""

from msgspec import Struct, structs

from podtide.allocator.containers import AllocatedContainer, MoveResult, Wish
from podtide.allocator.errors import AllocatorError, NoSuchContainer, SubnetFull
from podtide.allocator.limits import MOST_WANTED
from podtide.controller.allocator_outage import with_deadline
from podtide.controller.fencing import GuardedAllocator
from podtide.controller.machines import machine_of
from podtide.controller.node_demand import known_demand
from podtide.controller.nodes.subnet_choice import ContainerPlace
from podtide.controller.options import ControllerOptions
from podtide.core.errors import InvalidInput
from podtide.core.machine_identity import MachineIdentity
from podtide.resources.metadata_keys import waiting_pods_in
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig

GrantRefusal = AllocatorError | InvalidInput


class NodeRequest(Struct, frozen=True):
    """What a node asks for, and where."""

    node: Node
    config: NodeNetworkConfig
    places: tuple[ContainerPlace, ...]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.config.metadata.name

    @property
    def machine(self) -> MachineIdentity:
        """The machine that asks."""
        return machine_of(self.node)


class GrantAnswer(Struct, frozen=True):
    """The allocator's answer for one place: either a container or a refusal."""

    place: ContainerPlace
    container: AllocatedContainer | None = None
    moved: MoveResult | None = None
    """What was moved to the container of what the machine had under a former uid, if that was asked for."""
    refusal: GrantRefusal | None = None
    was_gone: bool = False
    """Whether the allocator had nothing of this container when it was asked for again, and refused."""

    @property
    def holds_nothing(self) -> bool:
        """Whether it is certain that the addresses which a status showed for the container are no longer the node's."""
        return self.was_gone or isinstance(self.refusal, SubnetFull)

    @property
    def owed(self) -> int:
        """The number of addresses still owed; a new node without a primary is owed at least that one."""
        if self.container is not None:
            return self.container.owed
        return 1 if isinstance(self.refusal, SubnetFull) else 0


def wanted_count(config: NodeNetworkConfig, most: int) -> int:
    """How many addresses the node is to have: its request, limited to what a node may have."""
    return min(max(config.spec.requested_ip_count, 0), most)


def make_wish(request: NodeRequest, place: ContainerPlace, options: ControllerOptions, most: int) -> Wish:
    """The node's wish for one of its places.

    Names for release that belong to its other container have no effect there.
    """
    config = request.config
    stated, number = known_demand(config, most, of_two=len(request.places) > 1)
    return Wish(
        id=place.container,
        network=options.network,
        subnet=place.subnet,
        cluster=options.cluster,
        node=config.metadata.name,
        request_uid=config.metadata.uid,
        generation=config.metadata.generation,
        count=wanted_count(config, most),
        release=tuple(config.spec.ips_not_in_use),
        waiting_pods=min(waiting_pods_in(config.metadata.annotations), MOST_WANTED),
        stated=stated,
        statement_number=number,
        machine=request.machine,
    )


async def ask(
    allocator: GuardedAllocator, request: NodeRequest, options: ControllerOptions, most: int
) -> tuple[GrantAnswer, ...]:
    """Send the node's wish for each of its places.

    Where the node has no container yet, what its machine left there under a former uid is moved to it first. Not where
    agents are Azure CNS (without ClusterSubnets): they know addresses by name, and would take the new names for free
    addresses.
    """
    held = {container.id for container in request.config.status.network_containers}
    wishes = [(place, make_wish(request, place, options, most)) for place in request.places]
    may_move = options.cluster_subnets and request.machine.is_known
    return tuple(
        [
            await state(allocator, wish, place, moves=may_move and place.container not in held)
            for place, wish in wishes
        ]
    )


async def state(
    allocator: GuardedAllocator, wish: Wish, place: ContainerPlace, *, moves: bool
) -> GrantAnswer:
    """Send one wish; with `moves`, what the machine left there is moved to the container first."""
    try:
        return await with_deadline(
            _put(allocator, wish, place, moves=moves), f"grant what node {wish.node} asks for"
        )
    except (AllocatorError, InvalidInput) as refusal:
        return GrantAnswer(place, refusal=refusal)


async def _put(allocator: GuardedAllocator, wish: Wish, place: ContainerPlace, *, moves: bool) -> GrantAnswer:
    try:
        return await _state(allocator, wish, place, moves=moves)
    except InvalidInput:
        # A NodeNetworkConfig that was created again does not show the node's container, which may be in another subnet.
        try:
            held = await allocator.get_container(wish.id, cluster=wish.cluster)
        except NoSuchContainer:
            held = None
        if held is None or held.subnet == wish.subnet:
            raise
        there = structs.replace(wish, network=held.network, subnet=held.subnet)
        return await _state(allocator, there, structs.replace(place, subnet=held.subnet), moves=moves)


async def _state(
    allocator: GuardedAllocator, wish: Wish, place: ContainerPlace, *, moves: bool
) -> GrantAnswer:
    if not moves:
        return GrantAnswer(place, await allocator.put_container(wish))
    moved = await allocator.move_container(wish)
    return GrantAnswer(place, moved.container, moved)
