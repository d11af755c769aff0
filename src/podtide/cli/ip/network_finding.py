"""What an address is to the secondary networks that have it: by their IPPools and reservations. No I/O."""

from collections.abc import Iterator

from podtide.cli.ip.address_state import AddressFinding, AddressState, is_within
from podtide.cli.ip.facts import AddressFacts
from podtide.cli.observed.network import UNDEFINED, ObservedNetwork, ObservedPool, observe_networks
from podtide.core.ranges import parse_network
from podtide.networks.attachments import attached_networks


def find_in_networks(facts: AddressFacts) -> Iterator[AddressFinding]:
    """What the address is to each secondary network that has it."""
    if facts.networks is None:
        return
    for network in observe_networks(facts.networks, facts.pods, facts.node_objects):
        yield from _in_network(network, facts)


def _in_network(network: ObservedNetwork, facts: AddressFacts) -> Iterator[AddressFinding]:
    address = str(facts.address)
    around = [pool for pool in network.pools if is_within(facts.address, pool.range)]
    holding = [pool for pool in network.pools if address in pool.holders]
    reservation = next((each for each in network.reservations if each.address == address), None)
    for pool in holding:
        yield _held(network, pool, facts, reservation.name if reservation else "")
    if holding:
        return
    if reservation is not None:
        reason = next((each.reason for each in network.leaks if each.reservation == reservation.name), "")
        yield AddressFinding(
            network=network.name,
            cidr=next((each.cidr for each in network.ranges if is_within(facts.address, each.cidr)), ""),
            state=AddressState.LEAKED if reason else AddressState.RESERVED,
            words=f"reserved for pod {reservation.podref}, and no pool has it so"
            + (f": {reason}" if reason else ", as while its ADD or DEL is under way"),
            pod=reservation.podref,
            reservation=reservation.name,
            since=reservation.since,
        )
    elif around:
        yield _free_in_pool(network, around[0], facts)
    elif cidr := next((each for each in network.ranges if is_within(facts.address, each.cidr)), None):
        words = (
            "of a range that is cut into slices, and no node has this slice"
            if cidr.total is not None
            else "no pod of the network has had an address yet"
        )
        state = AddressState.UNASSIGNED if cidr.total is not None else AddressState.FREE
        yield AddressFinding(network=network.name, cidr=cidr.cidr, state=state, words=words)


def _held(
    network: ObservedNetwork, pool: ObservedPool, facts: AddressFacts, reservation: str
) -> AddressFinding:
    address = str(facts.address)
    holder = pool.holders[address]
    leak = next((each for each in network.leaks if (each.pool, each.address) == (pool.name, address)), None)
    pod = next((each for each in facts.pods if str(each.key) == holder.podref), None)
    if leak is not None:
        state, words = AddressState.LEAKED, f"held for pod {holder.podref}, and {leak.reason}"
    elif pool.node_gone_since:
        state = AddressState.QUARANTINED
        words = f"pod {holder.podref} holds it in the slice of node {pool.node}, which is deleted"
    else:
        state, words = (
            AddressState.ON_POD,
            f"pod {holder.podref} holds it on {holder.ifname or 'an interface'}",
        )
    since = pool.node_gone_since if state is AddressState.QUARANTINED else ""
    return AddressFinding(
        network=network.name,
        cidr=pool.range,
        state=state,
        words=words,
        node=pool.node or (pod.spec.node_name if pod else ""),
        pod=holder.podref,
        interface=holder.ifname,
        container=holder.id,
        pool=pool.name,
        reservation=reservation,
        since=since or ((pod.metadata.creation_timestamp or "") if pod else ""),
    )


def _free_in_pool(network: ObservedNetwork, pool: ObservedPool, facts: AddressFacts) -> AddressFinding:
    assert facts.networks is not None  # the pool is one of these
    ranges = [
        each.addresses
        for item in attached_networks(facts.networks.attachments)
        if item.network.key == network.name
        for each in item.network.ranges
        if facts.address in each.addresses.network
    ]
    slice_ = parse_network(pool.range)
    is_given = network.name == UNDEFINED or any(facts.address in each.part(slice_) for each in ranges)
    where = f"the slice of node {pool.node}" if pool.node else "a pool that all nodes share"
    state, words = AddressState.FREE, f"no pod holds it, in {where}"
    if not is_given:
        state, words = (
            AddressState.KEPT_BACK,
            f"in {where}, and never given: its first or last, a gateway, or excluded",
        )
    elif pool.node_gone_since:
        state, words = (
            AddressState.QUARANTINED,
            f"in {where}, which is deleted: its slice is kept from others",
        )
    return AddressFinding(
        network=network.name,
        cidr=pool.range,
        state=state,
        words=words,
        node=pool.node,
        pool=pool.name,
        since=pool.node_gone_since,
    )
