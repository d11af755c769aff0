"""Whether what every component says of the addresses fits together: the invariants, checked on a picture.

A picture is what the allocator, the nodes' pools and the pods each say at one instant. The same check runs in
property tests, after every step of a simulation, and on a live cluster by `podtide check`. It only ever reads.

    1  No address is assigned to two pods, and none is in two containers or two nodes' pools.
    2  Every address of a subnet is in exactly one state, and the counts add up to its capacity.
    3  An address leaves a node only after that node itself named it for release, or the node is gone.
    4  An assigned address never disappears from under a pod.

3 speaks of two instants, so `audit_change` compares pictures; 1, 2 and 4 hold in each, and `audit` checks them.
`incremental` checks the same one change at a time.
The remaining invariants (design I5 to I7) are about writes and about time, and are checked where those are seen.
"""

from collections.abc import Iterable, Mapping
from itertools import chain

from msgspec import Struct

from podtide.core.pool.states import State

HELD_FOR_A_POD = frozenset({State.ASSIGNED, State.ORPHANED})
MAY_BE_A_PODS = HELD_FOR_A_POD | {State.QUARANTINED}


class Ledger(Struct, frozen=True):
    """A subnet's counts, as the allocator keeps them."""

    subnet: str
    capacity: int
    reserved: int
    free: int
    resting: int = 0
    """Neither reserved nor to be had yet: cooling down or in quarantine."""


class Grant(Struct, frozen=True):
    """A container's addresses, as the allocator keeps them: `addresses` maps names to addresses."""

    container: str
    node: str
    subnet: str
    primary: str
    addresses: Mapping[str, str]


class NodeView(Struct, frozen=True):
    """A node's pool, as its agent keeps it. `named` are the names it ever named for release."""

    node: str
    states: Mapping[str, State]
    named: frozenset[str] = frozenset()


class PodView(Struct, frozen=True):
    """A pod that runs, and the addresses it has."""

    pod: str
    node: str
    addresses: tuple[str, ...]


class Picture(Struct, frozen=True):
    """All of it, at one instant. Addresses are those of one network: no two subnets in it overlap."""

    ledgers: tuple[Ledger, ...] = ()
    grants: tuple[Grant, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    pods: tuple[PodView, ...] = ()


class Violation(Struct, frozen=True, order=True):
    """A broken invariant: its number, what it is about, and the sentence for people."""

    invariant: int
    subject: str
    words: str

    def __str__(self) -> str:
        return f"invariant {self.invariant}: {self.words}"


def audit(picture: Picture) -> tuple[Violation, ...]:
    """What is wrong with one picture, in a stable order."""
    return tuple(
        sorted(
            chain(
                _one_holder_each(picture),
                _counts_add_up(picture),
                _assigned_is_granted(picture),
            )
        )
    )


def audit_change(before: Picture, after: Picture) -> tuple[Violation, ...]:
    """What is wrong with how one picture became the other."""
    named = {view.node: view.named for view in chain(before.nodes, after.nodes)}
    nodes_left = {view.node for view in after.nodes}
    granted_then = {(grant.node, name) for grant in after.grants for name in grant.addresses}
    return tuple(
        sorted(
            left_unnamed(ip, name, grant.node)
            for grant in before.grants
            if grant.node in nodes_left
            for name, ip in grant.addresses.items()
            if (grant.node, name) not in granted_then and name not in named.get(grant.node, frozenset())
        )
    )


def _one_holder_each(picture: Picture) -> Iterable[Violation]:
    yield from _twice(
        TWO_PODS,
        ((ip, pod.pod) for pod in picture.pods for ip in pod.addresses),
    )
    yield from _twice(
        TWO_CONTAINERS,
        (
            (ip, grant.container)
            for grant in picture.grants
            for ip in (grant.primary, *grant.addresses.values())
        ),
    )
    # a node that gave an address up may still show it until it hears that it is gone
    yield from _twice(
        TWO_POOLS,
        (
            (ip, view.node)
            for view in picture.nodes
            for ip, state in view.states.items()
            if state is not State.PENDING_RELEASE
        ),
    )


def _twice(words: str, holders: Iterable[tuple[str, str]]) -> Iterable[Violation]:
    seen: dict[str, str] = {}
    for ip, holder in holders:
        if ip in seen:
            yield held_twice(words, ip, seen[ip], holder)
        seen[ip] = holder


def _counts_add_up(picture: Picture) -> Iterable[Violation]:
    granted: dict[str, int] = {}
    for grant in picture.grants:
        granted[grant.subnet] = granted.get(grant.subnet, 0) + 1 + len(grant.addresses)
    for ledger in picture.ledgers:
        yield from miscounts(ledger, granted.get(ledger.subnet, 0))


def _assigned_is_granted(picture: Picture) -> Iterable[Violation]:
    granted = {(grant.node, ip) for grant in picture.grants for ip in grant.addresses.values()}
    for view in picture.nodes:
        for ip, state in view.states.items():
            if state in HELD_FOR_A_POD and (view.node, ip) not in granted:
                yield assigned_ungranted(ip, view.node)
    assigned = {
        (view.node, ip)
        for view in picture.nodes
        for ip, state in view.states.items()
        if state in MAY_BE_A_PODS
    }
    known = {view.node for view in picture.nodes}
    for pod in picture.pods:
        for ip in pod.addresses:
            if pod.node in known and (pod.node, ip) not in assigned:
                yield used_unassigned(ip, pod)


# The sentences

TWO_PODS = "is assigned to both {} and {}"
TWO_CONTAINERS = "is in both container {} and container {}"
TWO_POOLS = "is in the pools of both {} and {}"


def held_twice(words: str, ip: str, first: str, second: str) -> Violation:
    """An address is in two hands, of the kind that the words speak of."""
    return Violation(1, ip, f"{ip} {words.format(first, second)}")


def miscounts(ledger: Ledger, held: int) -> Iterable[Violation]:
    """What is wrong with a subnet's counts, of which containers hold so many."""
    total = ledger.reserved + ledger.free + ledger.resting
    if total != ledger.capacity:
        yield Violation(
            2,
            ledger.subnet,
            f"subnet {ledger.subnet} counts {ledger.reserved} reserved + {ledger.free} free + "
            f"{ledger.resting} resting = {total}, but its capacity is {ledger.capacity}",
        )
    if held != ledger.reserved:
        yield Violation(
            2,
            ledger.subnet,
            f"subnet {ledger.subnet} counts {ledger.reserved} reserved, but its containers hold {held}",
        )


def left_unnamed(ip: str, name: str, node: str) -> Violation:
    """A node lost what it did not give up."""
    return Violation(3, ip, f"{ip} ({name}) left node {node}, which had not named it for release")


def assigned_ungranted(ip: str, node: str) -> Violation:
    """A node gave a pod what is not the node's."""
    return Violation(4, ip, f"{ip} is assigned on node {node}, but no container grants it there")


def used_unassigned(ip: str, pod: PodView) -> Violation:
    """A pod has what its node's pool does not know to be taken."""
    return Violation(4, ip, f"{ip} is used by pod {pod.pod}, but not assigned in the pool of node {pod.node}")
