"""The invariants, checked one change at a time: what a change breaks is found by looking at what it touched alone.

`audit` reads a whole snapshot, which suits a cluster that is looked at once. This is for a program that follows a
cluster from its beginning and sees every change: checking a grant costs the size of its container, and a change to one
address costs the same in a cluster of ten nodes and of five thousand. Both find the same violations, in the same words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from podtide.core.audit.invariants import (
    HELD_FOR_A_POD,
    MAY_BE_A_PODS,
    TWO_CONTAINERS,
    TWO_PODS,
    TWO_POOLS,
    Grant,
    NodeView,
    Picture,
    PodView,
    Violation,
    assigned_ungranted,
    held_twice,
    left_unnamed,
    used_unassigned,
)
from podtide.core.pool.states import State

_NO_ADDRESSES: Mapping[str, State] = {}


class _Hands:
    """The holders of each address: one, unless an invariant is broken."""

    def __init__(self) -> None:
        self._holders: dict[str, tuple[str, ...]] = {}

    def of(self, ip: str) -> tuple[str, ...]:
        return self._holders.get(ip, ())

    def take(self, ip: str, holder: tuple[str]) -> str | None:
        """Answers who has it already. `holder` is one; as a tuple, which all that it holds can share."""
        before = self._holders.get(ip)
        self._holders[ip] = holder if before is None else before + holder
        return before[-1] if before is not None else None

    def leave(self, ip: str, holder: str) -> None:
        rest = list(self._holders[ip])
        rest.remove(holder)
        if rest:
            self._holders[ip] = tuple(rest)
        else:
            del self._holders[ip]


class RunningAudit:
    """The state that is audited. Every method that records a change returns the violations that it caused."""

    def __init__(self) -> None:
        self._grants: dict[str, Grant] = {}
        self._containers = _Hands()
        self._held: Counter[str] = Counter()
        """By subnet."""
        self._states: dict[str, dict[str, State]] = {}
        """By node, of those whose pool is known."""
        self._pools = _Hands()
        self._named: dict[str, set[str]] = {}
        self._pods: dict[str, PodView] = {}
        """By sandbox."""
        self._sandboxes: dict[str, dict[str, None]] = {}
        """By node."""
        self._users = _Hands()

    # What the allocator does

    def granted(self, grant: Grant) -> tuple[Violation, ...]:
        """Record a container's present grant."""
        return tuple(self._grant(self._grants.get(grant.container), grant))

    def ungranted(self, container: str) -> tuple[Violation, ...]:
        """Record that a container was deleted."""
        return tuple(self._grant(self._grants.get(container), None))

    def held(self, subnet: str) -> int:
        """How many addresses of a subnet containers hold."""
        return self._held[subnet]

    def _grant(self, old: Grant | None, new: Grant | None) -> Iterator[Violation]:
        before, after = Counter(_addresses(old)), Counter(_addresses(new))
        if old is not None:
            del self._grants[old.container]
            self._held[old.subnet] -= before.total()
            for ip in (before - after).elements():
                self._containers.leave(ip, old.container)
        if new is not None:
            self._grants[new.container] = new
            self._held[new.subnet] += after.total()
            holder = (new.container,)
            for ip in (after - before).elements():
                if (other := self._containers.take(ip, holder)) is not None:
                    yield held_twice(TWO_CONTAINERS, ip, other, new.container)
        if old is not None:
            yield from self._losses(old, new)

    def _losses(self, old: Grant, new: Grant | None) -> Iterator[Violation]:
        """What a node lost that it did not give up, or that a pod of it has."""
        kept = new.addresses if new is not None and new.node == old.node else {}
        states = self._states.get(old.node, _NO_ADDRESSES)
        named = self._named.get(old.node, ())
        for name, ip in old.addresses.items():
            if kept.get(name) == ip:
                continue
            if name not in kept and name not in named and old.node in self._states:
                yield left_unnamed(ip, name, old.node)
            if states.get(ip) in HELD_FOR_A_POD and not self._is_granted(ip, old.node):
                yield assigned_ungranted(ip, old.node)

    def _is_granted(self, ip: str, node: str) -> bool:
        grants = (self._grants[container] for container in self._containers.of(ip))
        return any(
            grant.node == node and (ip != grant.primary or ip in grant.addresses.values()) for grant in grants
        )

    # What agents do

    def known(self, view: NodeView) -> tuple[Violation, ...]:
        """Record a node's whole pool, replacing what was known of it. Names it gave up earlier stay given up."""
        self.unknown(view.node)
        self._states[view.node] = {}
        self.named(view.node, view.named)
        return tuple(self._know(view))

    def unknown(self, node: str) -> None:
        """Forget a node's pool: its state is unknown from now on."""
        for ip, state in self._states.pop(node, _NO_ADDRESSES).items():
            if state is not State.PENDING_RELEASE:
                self._pools.leave(ip, node)

    def moved(self, node: str, ip: str, state: State | None) -> tuple[Violation, ...]:
        """Record the new state of an address in a known pool; None when it left the pool."""
        return tuple(self._move(node, ip, state))

    def named(self, node: str, names: Iterable[str]) -> None:
        """Record the names that a node named for release."""
        self._named.setdefault(node, set()).update(names)

    def _know(self, view: NodeView) -> Iterator[Violation]:
        for ip, state in view.states.items():
            yield from self._move(view.node, ip, state)
        for sandbox in self._sandboxes.get(view.node, ()):
            pod = self._pods[sandbox]
            for ip in pod.addresses:
                if ip not in view.states:
                    yield used_unassigned(ip, pod)

    def _move(self, node: str, ip: str, state: State | None) -> Iterator[Violation]:
        states = self._states[node]
        was_there = states.get(ip) not in (None, State.PENDING_RELEASE)
        is_there = state not in (None, State.PENDING_RELEASE)
        if state is None:
            states.pop(ip, None)
        else:
            states[ip] = state
        if was_there and not is_there:
            self._pools.leave(ip, node)
        elif is_there and not was_there and (other := self._pools.take(ip, (node,))) is not None:
            yield held_twice(TWO_POOLS, ip, other, node)
        if state in HELD_FOR_A_POD and not self._is_granted(ip, node):
            yield assigned_ungranted(ip, node)
        if state not in MAY_BE_A_PODS:
            for sandbox in self._users.of(ip):
                if (pod := self._pods[sandbox]).node == node:
                    yield used_unassigned(ip, pod)

    # What machines do

    def pod_has(self, sandbox: str, pod: PodView) -> tuple[Violation, ...]:
        """Record the addresses that a sandbox has."""
        self.pod_gone(sandbox)
        self._pods[sandbox] = pod
        self._sandboxes.setdefault(pod.node, {})[sandbox] = None
        return tuple(self._use(sandbox, pod))

    def pod_gone(self, sandbox: str) -> None:
        """Record that a sandbox has no addresses any more."""
        if (pod := self._pods.pop(sandbox, None)) is not None:
            del self._sandboxes[pod.node][sandbox]
            for ip in pod.addresses:
                self._users.leave(ip, sandbox)

    def _use(self, sandbox: str, pod: PodView) -> Iterator[Violation]:
        holder = (sandbox,)
        states = self._states.get(pod.node)
        for ip in pod.addresses:
            if (other := self._users.take(ip, holder)) is not None:
                yield held_twice(TWO_PODS, ip, self._pods[other].pod, pod.pod)
            if states is not None and states.get(ip) not in MAY_BE_A_PODS:
                yield used_unassigned(ip, pod)

    # What is so

    def picture(self) -> Picture:
        """The whole state, without the subnets' counts."""
        return Picture(
            grants=tuple(self._grants.values()),
            nodes=tuple(
                NodeView(node, dict(states), frozenset(self._named.get(node, ())))
                for node, states in self._states.items()
            ),
            pods=tuple(self._pods.values()),
        )


def _addresses(grant: Grant | None) -> tuple[str, ...]:
    return (grant.primary, *grant.addresses.values()) if grant is not None else ()
