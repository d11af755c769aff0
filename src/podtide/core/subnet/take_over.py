"""What has to be reserved so that podtide can take another program's place on a cluster's nodes, and what speaks against it.

The other program gave each node network containers, and the node's pods have addresses of them. All of that goes on as it
is. So every address that any node may hand out is reserved for that node, before anything is granted; and what the sources
say must agree. Where they contradict each other, one of them is wrong, and no program can know which: then nothing is
reserved, and a person is told.

An address that its node named for release is not reserved: that node never hands it out again, and another may have it by
now. A pod that shows one contradicts that.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPAddress, IPNetwork, parse_address, parse_network
from podtide.core.subnet.layout import SubnetLayout, choose_gateways, first_overlap

_IPV4 = 4


class GivenAddress(Struct, frozen=True):
    """An address that the other program gave a node, by that program's name for it."""

    name: str
    ip: str


class GivenContainer(Struct, frozen=True, kw_only=True):
    """A network container as the other program wrote it."""

    id: str
    subnet: str
    cidr: str
    gateway: str = ""
    primary: str
    addresses: tuple[GivenAddress, ...] = ()
    is_static: bool = False
    """Whether it has a whole block instead of single addresses."""


class ShownPod(Struct, frozen=True):
    """A living pod, and the addresses that its status shows."""

    name: str
    addresses: tuple[str, ...]


class GivenNode(Struct, frozen=True, kw_only=True):
    """A node that the other program serves."""

    name: str
    uid: str
    """The uid of the Node of that name; "" where there is none."""
    owner: str
    """The uid of the Node that the containers were given to."""
    containers: tuple[GivenContainer, ...]
    given_up: frozenset[str] = frozenset()
    """Names of addresses that the node named for release."""
    pods: tuple[ShownPod, ...] = ()


class SubnetDefinition(Struct, frozen=True, kw_only=True):
    """A subnet of the allocator: one that it has, or one that it is to have."""

    name: str
    cidrs: tuple[str, ...]
    gateways: tuple[str, ...] = ()
    keep_back: tuple[str, ...] = ()
    keep_back_first: int = 0


class PlannedContainer(Struct, frozen=True, kw_only=True):
    """What is to be reserved for a node in one subnet."""

    node: str
    node_uid: str
    is_second: bool
    """Whether it is the node's second container, for IPv6 beside IPv4."""
    given_as: str
    """The id that the other program gave it."""
    subnet: str
    primary: str
    addresses: tuple[str, ...]


class Objection(Struct, frozen=True):
    """Something that contradicts itself."""

    words: str
    nodes: tuple[str, ...] = ()
    """The nodes that it is about; none where it is about a subnet, and so about all of its nodes."""

    def concerns(self, node: str) -> bool:
        """Whether the node cannot be handed over because of it."""
        return not self.nodes or node in self.nodes


class TakeOverPlan(Struct, frozen=True, kw_only=True):
    """What is to be done, if nothing speaks against it."""

    subnets: tuple[SubnetDefinition, ...]
    """Those that the allocator does not have yet."""
    containers: tuple[PlannedContainer, ...]
    objections: tuple[Objection, ...]


def plan_take_over(nodes: Sequence[GivenNode], known: Iterable[SubnetDefinition]) -> TakeOverPlan:
    """Decide what to reserve, given the subnets that the allocator has."""
    there = {subnet.name: subnet for subnet in known}
    objections: list[Objection] = []
    layouts, new = _lay_out(nodes, there, objections)
    planned: list[PlannedContainer] = []
    for node in nodes:
        if words := _wrong_owner(node):
            objections.append(Objection(words, (node.name,)))
        else:
            planned += _containers_of(node, layouts, objections)
    objections += _held_twice(planned)
    objections += _pods_without(nodes, planned, layouts)
    return TakeOverPlan(subnets=tuple(new), containers=tuple(planned), objections=tuple(objections))


def objections_to_return(nodes: Iterable[GivenNode]) -> Iterator[Objection]:
    """Why nodes cannot be given back to the other program: pods with addresses of which it knows nothing.

    `nodes` have their containers as that program left them.
    """
    for node in nodes:
        given = {
            _canonical(each.ip)
            for container in node.containers
            for each in container.addresses
            if each.name not in node.given_up
        }
        for pod in node.pods:
            if others := [ip for ip in pod.addresses if _canonical(ip) not in given]:
                yield Objection(
                    f"pod {pod.name} on node {node.name} has {', '.join(others)}, which the other program never gave that node: "
                    "delete the pod when podtide's agents are stopped",
                    (node.name,),
                )


def _lay_out(
    nodes: Sequence[GivenNode], there: dict[str, SubnetDefinition], objections: list[Objection]
) -> tuple[dict[str, SubnetLayout], list[SubnetDefinition]]:
    """The layouts of all subnets by name, and the definitions of those that are new."""
    shown: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for node in nodes:
        for container in node.containers:
            try:
                cidr = str(parse_network(container.cidr))
                gateway = {str(parse_address(container.gateway))} if container.gateway else set()
            except InvalidInput as error:
                objections.append(
                    Objection(f"network container {container.id} of node {node.name}: {error}", (node.name,))
                )
            else:
                shown[container.subnet][cidr] |= gateway
    layouts: dict[str, SubnetLayout] = {}
    new: list[SubnetDefinition] = []
    for name, gateways in sorted(shown.items()):
        try:
            definition = _definition(name, gateways, there.get(name))
            layouts[name] = _layout(definition)
        except InvalidInput as error:
            objections.append(Objection(f"subnet {name or 'without a name'}: {error}"))
            continue
        if name not in there:
            new.append(definition)
    owned = [(cidr, name) for name, each in {**there, **_by_name(new)}.items() for cidr in each.cidrs]
    if twins := first_overlap(cidr for cidr, _name in owned):
        names = sorted({name for cidr, name in owned if cidr in twins})
        objections.append(
            Objection(
                f"{' and '.join(sorted(set(twins)))} of subnets {' and '.join(names)} overlap: one address would be in two subnets"
            )
        )
    return layouts, new


def _definition(name: str, gateways: dict[str, set[str]], known: SubnetDefinition | None) -> SubnetDefinition:
    """The subnet that containers show, or the allocator's of that name if they agree."""
    for cidr, named in gateways.items():
        if len(named) > 1:
            raise InvalidInput(f"its containers name {' and '.join(sorted(named))} as the gateway of {cidr}")
    if known is None:
        if not name:
            raise InvalidInput("its containers do not say which subnet they are in")
        stated = [gateway for named in gateways.values() for gateway in named]
        cidrs = sorted(gateways)
        return SubnetDefinition(name=name, cidrs=tuple(cidrs), gateways=choose_gateways(cidrs, stated))
    there = dict(zip(known.cidrs, choose_gateways(known.cidrs, known.gateways), strict=True))
    for cidr, named in gateways.items():
        if cidr not in there:
            raise InvalidInput(f"the allocator's has {', '.join(known.cidrs)}, and containers are in {cidr}")
        if named and there[cidr] not in named:
            raise InvalidInput(
                f"the gateway of {cidr} is {there[cidr]} at the allocator, and {min(named)} in its containers"
            )
    return known


def _layout(subnet: SubnetDefinition) -> SubnetLayout:
    gateways = choose_gateways(subnet.cidrs, subnet.gateways)
    return SubnetLayout(subnet.cidrs, gateways, subnet.keep_back, subnet.keep_back_first)


def _by_name(subnets: Iterable[SubnetDefinition]) -> dict[str, SubnetDefinition]:
    return {subnet.name: subnet for subnet in subnets}


def _wrong_owner(node: GivenNode) -> str:
    if not node.owner:
        return f"NodeNetworkConfig {node.name} has no Node as its controller: it is not known whose addresses it lists"
    if node.uid != node.owner:
        who = f"is another by now, with uid {node.uid}" if node.uid else "does not exist"
        return f"NodeNetworkConfig {node.name} is that of a Node with uid {node.owner}, and Node {node.name} {who}: delete the object"
    return ""


def _containers_of(
    node: GivenNode, layouts: dict[str, SubnetLayout], objections: list[Objection]
) -> list[PlannedContainer]:
    planned: dict[int, PlannedContainer] = {}
    has_v4 = any(":" not in container.primary for container in node.containers)
    for container in node.containers:
        what = f"network container {container.id} of node {node.name}"
        if container.is_static:
            words = f"{what} is a block of addresses (static): podtide takes over single addresses only"
            objections.append(Objection(words, (node.name,)))
            continue
        if container.subnet not in layouts:
            continue  # what is wrong with the subnet was said
        family = 6 if ":" in container.primary else _IPV4
        if family in planned:
            words = f"{what} is its second of IPv{family}: podtide has one per family on a node"
            objections.append(Objection(words, (node.name,)))
            continue
        try:
            primary, addresses = _addresses_of(container, node.given_up, layouts[container.subnet])
        except InvalidInput as error:
            objections.append(Objection(f"{what}: {error}", (node.name,)))
            continue
        planned[family] = PlannedContainer(
            node=node.name,
            node_uid=node.uid,
            is_second=has_v4 and family != _IPV4,
            given_as=container.id,
            subnet=container.subnet,
            primary=primary,
            addresses=addresses,
        )
    return list(planned.values())


def _addresses_of(
    container: GivenContainer, given_up: frozenset[str], layout: SubnetLayout
) -> tuple[str, tuple[str, ...]]:
    """The primary and the other addresses, in canonical form; InvalidInput if one of them cannot be the subnet's."""
    primary = str(parse_address(container.primary))
    addresses = [str(parse_address(each.ip)) for each in container.addresses if each.name not in given_up]
    for address in (primary, *addresses):
        if layout.place(address) is None:
            raise InvalidInput(
                f"subnet {container.subnet} ({layout}) cannot grant {address}: it is outside, the first or last of a CIDR, "
                "a gateway, or kept back"
            )
    if len({primary, *addresses}) <= len(addresses):
        raise InvalidInput("it lists an address twice")
    return primary, tuple(addresses)


def _held_twice(planned: Iterable[PlannedContainer]) -> Iterator[Objection]:
    holders: dict[str, list[str]] = defaultdict(list)
    for container in planned:
        for address in (container.primary, *container.addresses):
            holders[address].append(container.node)
    for address, nodes in holders.items():
        if len(nodes) > 1:
            yield Objection(
                f"{address} is listed for {' and '.join(nodes)}: one of them is wrong", tuple(nodes)
            )


def _pods_without(
    nodes: Iterable[GivenNode], planned: Iterable[PlannedContainer], layouts: dict[str, SubnetLayout]
) -> Iterator[Objection]:
    """What pods show that the containers of their nodes do not have."""
    own: dict[str, set[str]] = defaultdict(set)
    primaries = set()
    for container in planned:
        own[container.node].update(container.addresses)
        primaries.add(container.primary)
    networks = [block.network for layout in layouts.values() for block in layout.blocks]
    shown: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for node in nodes:
        for pod in node.pods:
            for text in pod.addresses:
                address = _canonical(text)
                if not _is_in(address, networks):
                    continue  # of another network: not what is taken over
                shown[address].append((pod.name, node.name))
                if address not in own[node.name]:
                    why = (
                        "is a primary address"
                        if address in primaries
                        else "its node does not have, or has given up"
                    )
                    yield Objection(
                        f"pod {pod.name} on node {node.name} shows {address}, which {why}: wait until its status is right, or "
                        "delete the pod",
                        (node.name,),
                    )
    for address, pods in shown.items():
        if len(pods) > 1:
            yield Objection(
                f"pods {' and '.join(pod for pod, _node in pods)} show {address}: wait until one of them is gone, or delete it",
                tuple(node for _pod, node in pods),
            )


def _canonical(text: str) -> str:
    try:
        return str(parse_address(text))
    except InvalidInput:
        return ""


def _is_in(address: str, networks: Iterable[IPNetwork]) -> bool:
    if not address:
        return False
    found: IPAddress = parse_address(address)
    return any(found in network for network in networks)
