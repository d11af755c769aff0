"""What one subnet must look like, said as plainly as it can be: dictionaries, and every question answered by looking at all.

It does not choose addresses: it judges what was chosen.
"""

from collections import Counter
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

from allocator.store.wishes import named
from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.store import StoreRules
from podtide.allocator.subnets import Debt
from podtide.core.subnet.grants import primary_name
from podtide.core.subnet.statement import StatedDemand


@dataclass
class Held:
    """What a container has."""

    primary: str
    addresses: dict[str, str]
    version: int
    generation: int

    @property
    def size(self) -> int:
        return 1 + len(self.addresses)


@dataclass
class Claim:
    """What a container is owed."""

    owed: int
    waiting: int
    since: float
    renewed: float


@dataclass
class Stated:
    """What a container last stated, and what that was beside."""

    stated: StatedDemand | None
    number: int
    request_uid: str
    generation: int
    wanted: int


@dataclass
class Model:
    """The subnet."""

    rules: StoreRules
    usable: dict[str, int]
    """How many addresses each CIDR has to give."""
    draining: set[str] = field(default_factory=set)
    held: dict[str, Held] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    cooling: dict[str, tuple[float, str]] = field(default_factory=dict)
    quarantined: dict[str, float] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    """Every name that was ever minted."""
    stated: dict[str, Stated] = field(default_factory=dict)
    """Of every container that was put and not deleted, with a primary or without."""

    def pass_by(self, now: float) -> None:
        self.cooling = {ip: rest for ip, rest in self.cooling.items() if rest[0] > now}
        self.quarantined = {ip: until for ip, until in self.quarantined.items() if until > now}

        self._leave()

    @property
    def reserved(self) -> int:
        return len(self._reserved())

    @property
    def capacity(self) -> int:
        """What CIDRs have to give, and of those that drain what is still reserved."""
        staying = sum(usable for cidr, usable in self.usable.items() if cidr not in self.draining)
        return staying + self.draining_reserved

    @property
    def draining_reserved(self) -> int:
        return sum(map(self._drains, self._reserved()))

    def drain(self, cidr: str) -> None:
        self.draining.add(cidr)
        self._leave()

    def _reserved(self) -> list[str]:
        held = [ip for held in self.held.values() for ip in (held.primary, *held.addresses.values())]
        return held + list(self.quarantined)

    def _drains(self, ip: str) -> bool:
        return any(ip_address(ip) in ip_network(cidr) for cidr in self.draining)

    def _leave(self) -> None:
        """CIDRs that drained leave, and what cooled down in them is nobody's."""
        reserved = [ip_address(ip) for ip in self._reserved()]
        for cidr in [cidr for cidr in self.draining if not any(ip in ip_network(cidr) for ip in reserved)]:
            self.draining.discard(cidr)
            del self.usable[cidr]
            self.cooling = {
                ip: rest for ip, rest in self.cooling.items() if ip_address(ip) not in ip_network(cidr)
            }

    @property
    def alike(self) -> Counter[tuple[StatedDemand, int]]:
        """How many containers state and take what."""
        counts: Counter[tuple[StatedDemand, int]] = Counter()
        for id_, last in self.stated.items():
            held = len(self.held[id_].addresses) if id_ in self.held else 0
            counts[last.stated or StatedDemand(), 1 + max(held, last.wanted)] += 1
        return counts

    def expected_grant(self, wish: Wish, now: float) -> tuple[int, bool]:
        """How many addresses the wish must get now, its primary among them, and whether its primary must be another."""
        held = self.held.get(wish.id)
        kept = {name for name in held.addresses if name not in wish.release} if held else set()
        missing = max(0, wish.count - len(kept)) + (held is None)
        given_back = [ip for name, ip in held.addresses.items() if name not in kept] if held else []
        free = self.capacity - self.reserved + sum(not self._drains(ip) for ip in given_back)
        mine = self.claims.get(wish.id)
        rank = (-wish.waiting_pods, mine.since if mine else now, wish.id)
        before = sum(
            claim.owed
            for container, claim in self.claims.items()
            if container != wish.id
            and claim.renewed > now - self.rules.claim_seconds
            and (-claim.waiting, claim.since, container) < rank
        )
        moves = held is not None and self._drains(held.primary) and primary_name(wish.id) in wish.release
        moves = moves and free - before > 0
        return min(missing, max(0, free - moves - before)), moves

    def put(self, wish: Wish, answer: AllocatedContainer | None, now: float) -> None:
        """Judge the answer to a wish (None: there was no address for a primary), and take it over."""
        expected, moves = self.expected_grant(wish, now)
        self._state(wish)
        before = self.held.get(wish.id)
        if answer is None:
            assert before is None
            assert expected == 0
            self._owe(wish, wish.count + 1, now)
            return
        after = named(answer)
        kept = {
            name: ip for name, ip in (before.addresses if before else {}).items() if name not in wish.release
        }
        assert {name: after.get(name) for name in kept} == kept, "nothing leaves that was not named"
        granted = {name: ip for name, ip in after.items() if name not in kept}
        assert not self.names & granted.keys(), "a name is minted for one grant"
        assert len(granted) + (before is None) == expected, "all that may be had, and no more"
        if before:
            assert (answer.primary != before.primary) == moves
            if moves:
                self.cooling[before.primary] = (now + self.rules.cooldown_seconds, wish.id)
            for name, ip in before.addresses.items():
                if name not in kept:
                    self.cooling[ip] = (now + self.rules.cooldown_seconds, wish.id)
        changed = before is None or before.addresses != after or moves
        if changed:
            assert answer.version > max((one.version for one in self.held.values()), default=0)
        else:
            assert before is not None
            assert answer.version == before.version
        assert answer.owed == max(0, wish.count - len(after))
        self.names |= granted.keys()
        new_primary = () if before and not moves else (answer.primary,)
        self._give(wish.id, {*granted.values(), *new_primary})
        self.held[wish.id] = Held(answer.primary, after, answer.version, answer.generation)
        self._owe(wish, answer.owed, now)
        self._leave()

    def delete(self, container: str, now: float) -> None:
        if held := self.held.pop(container, None):
            for ip in (held.primary, *held.addresses.values()):
                self.quarantined[ip] = now + self.rules.quarantine_seconds
        self.claims.pop(container, None)
        self.stated.pop(container, None)
        self.deleted.add(container)

    def follow(
        self, containers: list[AllocatedContainer], debts: tuple[Debt, ...], wishes: list[Wish], now: float
    ) -> None:
        """Take over what is there after calls at the same time, whose order is not known."""
        released = {name for wish in wishes for name in wish.release}
        there = {container.id: container for container in containers}
        for id_, before in list(self.held.items()):
            if id_ not in there:
                assert id_ in self.deleted, "nothing but a DELETE takes a container away"
                continue
            gone = before.addresses.keys() - named(there[id_]).keys()
            assert gone <= released, "nothing leaves that was not named"
            assert (there[id_].version > before.version) or named(there[id_]) == before.addresses
            for name in gone:
                self.cooling[before.addresses[name]] = (now + self.rules.cooldown_seconds, id_)
        for id_, container in there.items():
            assert id_ not in self.deleted
            known = self.held[id_].addresses if id_ in self.held else {}
            granted = {name: ip for name, ip in named(container).items() if name not in known}
            assert not self.names & granted.keys(), "a name is minted for one grant"
            self.names |= granted.keys()
            for ip in (container.primary, *granted.values()):
                assert ip not in self.quarantined, "quarantine is for everybody"
                self.cooling.pop(ip, None)
        self.held = {
            id_: Held(one.primary, named(one), one.version, one.generation) for id_, one in there.items()
        }
        for wish in sorted(wishes, key=lambda wish: wish.generation):
            if wish.id not in self.deleted:
                self._state(wish)  # an older one was refused, or came before
        self._leave()
        put = {wish.id for wish in wishes}
        renewed = {id_: claim.renewed for id_, claim in self.claims.items()}
        self.claims = {
            debt.container: Claim(
                debt.owed,
                debt.waiting_pods,
                debt.since,
                now if debt.container in put else renewed[debt.container],
            )
            for debt in debts
        }

    def _give(self, container: str, ips: set[str]) -> None:
        assert not ips & self.quarantined.keys(), "quarantine is for everybody"
        assert not any(map(self._drains, ips)), "nothing is granted of a CIDR that drains"
        others = {ip for ip in ips & self.cooling.keys() if self.cooling[ip][1] != container}
        cooling = {ip: holder for ip, (_until, holder) in self.cooling.items() if not self._drains(ip)}
        own = {ip for ip, holder in cooling.items() if holder == container}
        for ip in ips:
            self.cooling.pop(ip, None)
        if others:
            left = self.capacity - self.reserved - len(ips) - len(cooling.keys() - ips)
            assert left <= 0, "what cools down goes to others only when nothing else is free"
            assert not own - ips, "and after what the node itself gave back"

    def _state(self, wish: Wish) -> None:
        last = self.stated.get(wish.id)
        stated = wish.stated, wish.statement_number
        if (
            last is not None
            and (last.request_uid, last.generation) == (wish.request_uid, wish.generation)
            and last.number > wish.statement_number
        ):
            stated = last.stated, last.number
        self.stated[wish.id] = Stated(*stated, wish.request_uid, wish.generation, wish.count)

    def _owe(self, wish: Wish, owed: int, now: float) -> None:
        before = self.claims.pop(wish.id, None)
        if owed:
            self.claims[wish.id] = Claim(owed, wish.waiting_pods, before.since if before else now, now)
