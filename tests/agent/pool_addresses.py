"""The node's addresses as the API sees them, on a real pool and nothing else: no cluster, no journal."""

import asyncio
from collections.abc import Iterable
from fractions import Fraction
from functools import partial

from msgspec import structs

from core.pool_steps import assign
from podtide.agent.port import NoAddress, NodeState, NotAssigned, NotReady, Overtaken, PendingAdd, PodAddress
from podtide.core.pool.pool import Address, Family, GrantedContainer, Owner, Pool
from podtide.core.pool.states import State
from podtide.core.subnet.scaler import Scaler
from podtide.runtime.clock import Clock

SUBNETS = {4: ("10.1.0.0/16", "10.1.0.1", "10.1.0.4"), 6: ("fd00::/64", "fd00::1", "fd00::4")}

STATE = NodeState(
    synced=True,
    in_contact=True,
    counts={},
    primaries=1,
    requested=15,
    demand=3,
    waiting_pods=2,
    scaler=Scaler(batch=16, buffer=Fraction(1, 2), max_ips=250),
    subnet="pods",
    subnet_cidr="10.1.0.0/16",
    exhausted=False,
    starved=False,
    writes=4,
    restatements=3,
    collected_leaks=5,
    alarms=6,
)


class PoolAddresses:
    """An `Addresses` whose pool has what `grant` gave it. An ADD that finds none waits for the next grant, or DEL."""

    def __init__(self, clock: Clock, wait_seconds: float = 10.0) -> None:
        self.pool = Pool(cooldown_seconds=0.0)
        self.ready = True
        self.broken: Exception | None = None
        self.started = 0
        self.waiting = 0
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._changed = asyncio.Condition()
        self._deleted: dict[tuple[str, str], float] = {}
        self._granted: dict[int, dict[str, str]] = {}

    def grant(self, *ips: str) -> None:
        """More addresses for this node."""
        for ip in ips:
            family: Family = 6 if ":" in ip else 4
            granted = self._granted.setdefault(family, {})
            granted[f"name-of-{ip}"] = ip
            container = GrantedContainer(
                id=f"nc-{family}", version=len(granted), family=family, addresses=granted
            )
            self.pool.programmed(self.pool.apply(container, self._now()).granted, self._now())
        self._wake()

    async def add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...]:
        added = self.start_add(owner, arrived=arrived, wanted=wanted)
        return await added.wait() if isinstance(added, PendingAdd) else added

    def start_add(
        self, owner: Owner, *, arrived: float, wanted: tuple[str, ...] = ()
    ) -> tuple[PodAddress, ...] | PendingAdd:
        self.started += 1
        return self._assign(owner, arrived, wanted) or PendingAdd(
            partial(self._wait, owner, arrived, wanted), lambda: None
        )

    async def _wait(self, owner: Owner, arrived: float, wanted: tuple[str, ...]) -> tuple[PodAddress, ...]:
        deadline = self._now() + self._wait_seconds
        while not (given := self._assign(owner, arrived, wanted)):
            self.waiting += 1
            try:
                async with asyncio.timeout(deadline - self._now()), self._changed:
                    await self._changed.wait()
            except TimeoutError:
                raise NoAddress("no address became free: wait") from None
            finally:
                self.waiting -= 1
        return given

    def _assign(self, owner: Owner, arrived: float, wanted: tuple[str, ...]) -> tuple[PodAddress, ...]:
        self._fail_if_told()
        if self._deleted.get((owner.sandbox, owner.interface), -1.0) > arrived:
            raise Overtaken("a DEL came: add it anew")
        return tuple(map(_given, assign(self.pool, owner, self._now(), wanted) or ()))

    def delete(self, owner: Owner) -> tuple[PodAddress, ...]:
        self._fail_if_told()
        self._deleted[owner.sandbox, owner.interface] = self._now()
        freed = self.pool.free(owner.sandbox, owner.interface, self._now())
        self._wake()
        return tuple(map(_given, freed))

    def check(self, owner: Owner) -> tuple[PodAddress, ...]:
        held = self.pool.owners().get((owner.sandbox, owner.interface))
        if held is None:
            raise NotAssigned(f"{owner.sandbox} has no address: add it")
        return tuple(map(_given, held))

    def collect_garbage(self, network: str, alive: frozenset[tuple[str, str]]) -> int:
        dead = [
            key
            for key, (address, *_) in self.pool.owners().items()
            if key not in alive and address.owner and address.owner.network == network
        ]
        for sandbox, interface in dead:
            self.pool.free(sandbox, interface, self._now())
        return len(dead)

    def require_ready(self) -> None:
        if not self.ready:
            raise NotReady("the pods are not known yet: wait")

    def state(self) -> NodeState:
        counts = dict.fromkeys(State, 0)
        for address in self.pool.addresses():
            assert address.state is not None
            counts[address.state] += 1
        return structs.replace(STATE, counts=counts, primaries=max(1, len(self.pool.containers())))

    def all_addresses(self) -> Iterable[Address]:
        return self.pool.addresses()

    def held(self) -> dict[tuple[str, str], list[str]]:
        """Which sandbox has which addresses."""
        return {owner: [each.ip for each in addresses] for owner, addresses in self.pool.owners().items()}

    def _fail_if_told(self) -> None:
        if self.broken is not None:
            raise self.broken

    def _now(self) -> float:
        return self._clock.monotonic()

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._changed:
                self._changed.notify_all()

        self._waking = asyncio.ensure_future(wake())


def _given(address: Address) -> PodAddress:
    subnet, gateway, primary = SUBNETS[6 if ":" in address.ip else 4]
    return PodAddress(
        ip=address.ip, subnet=subnet, gateway=gateway, container=address.container, primary=primary
    )
