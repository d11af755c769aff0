"""The Allocator port on a database, in this process."""

from collections.abc import Callable
from typing import Self, Unpack

from podtide.allocator.containers import (
    AllocatedContainer,
    ContainerFilter,
    ContainerPage,
    ContainerReservation,
    MoveResult,
    Wish,
)
from podtide.allocator.errors import NoSuchSubnet
from podtide.allocator.limits import (
    USUAL_PAGE,
    check_bounds,
    check_claim,
    check_ending,
    check_held,
    check_in_force,
    check_names,
    check_page,
    check_reservation,
    check_shown,
    check_spec,
    check_usage_range,
    check_wish,
)
from podtide.allocator.port import AdministeredAllocator
from podtide.allocator.quarantine import QuarantineFilter, QuarantinePage
from podtide.allocator.store import draining, queries, registry, subnets
from podtide.allocator.store.adoption import AdoptContainer
from podtide.allocator.store.audit import audit_database
from podtide.allocator.store.batch_in_force import PutInForce, SetBounds
from podtide.allocator.store.container_writes import (
    DeleteContainer,
    PutContainer,
    Settle,
    another_cluster,
    bury,
)
from podtide.allocator.store.continuity_check import examine
from podtide.allocator.store.drivers.database import Database
from podtide.allocator.store.pod_quarantine import KeepForPods
from podtide.allocator.store.quarantine_end import EndQuarantine, MoveContainer
from podtide.allocator.store.reservations import ReserveContainer
from podtide.allocator.store.rules import StoreRules
from podtide.allocator.store.subnet_transaction import renew_now_in
from podtide.allocator.store.subnet_usage import NoteUsage, read_due_demand
from podtide.allocator.store.tables.history import write_probe
from podtide.allocator.store.tables.quarantines import (
    began_in_the_future,
    begin_now,
    list_quarantined,
    quarantines_of,
    subnet_of_quarantine,
)
from podtide.allocator.store.tables.transaction_context import another_recorded, begin_recovery
from podtide.allocator.subnets import (
    Bounds,
    CidrHolders,
    Debt,
    Subnet,
    SubnetDemandReport,
    SubnetInForce,
    SubnetSpec,
    SubnetUsage,
    UsageStep,
    Utilization,
)
from podtide.allocator.terms import ClusterRegistry, HeldContainer, OpenedTerm, ShownAddresses, TermClaim
from podtide.core.audit.invariants import Violation
from podtide.core.subnet.cluster_identity import is_anothers
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import Clock
from podtide.runtime.ids import new_uuid
from podtide.runtime.randomness import system_randomness


class DatabaseAllocator(AdministeredAllocator):
    """The owner of the subnets, in a database. Made by `open_allocator`."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        rules: StoreRules,
        expected_clusters: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._database = database
        self._clock = clock
        self._rules = rules
        self.expected_clusters = expected_clusters
        """Clusters that a store which went back waits for, beside those in its database: those with a token."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what is in flight, and close the database."""
        await self._database.close()

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        check_spec(spec)
        return await self._database.write(lambda now: subnets.add_subnet(spec, now))

    async def grow_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...] = ()
    ) -> Subnet:
        check_names(network=network, subnet=name)
        return await self._database.write(
            lambda now: subnets.grow_subnet(network, name, cidrs, gateways, now, self._rules)
        )

    async def shrink_subnet(
        self, network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool = False
    ) -> Subnet:
        check_names(network=network, subnet=name)
        return await self._database.write(
            lambda now: draining.shrink_subnet(
                network, name, cidrs, at_once=at_once, now=now, rules=self._rules
            )
        )

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        check_names(network=network, subnet=name)
        return await self._database.read(lambda now: draining.holders(network, name, cidr, now))

    async def remove_subnet(self, network: str, name: str) -> None:
        check_names(network=network, subnet=name)
        await self._database.write(lambda now: subnets.remove_subnet(network, name, now, self._rules))

    async def get_subnet(self, network: str, name: str) -> Subnet:
        check_names(network=network, subnet=name)
        subnet, due = await self._database.read(lambda now: subnets.show_subnet(network, name, now))
        if due:
            await self._database.call(
                network, name, Settle()
            )  # and a CIDR that drained may have left with it
            subnet, _due = await self._database.read(lambda now: subnets.show_subnet(network, name, now))
        return subnet

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        if network:
            check_names(network=network)
        listed = await self._database.read(lambda now: subnets.list_subnets(network, now))
        for subnet, due in listed:
            if due:
                await self.get_subnet(subnet.network, subnet.name)
        if any(due for _subnet, due in listed):
            listed = await self._database.read(lambda now: subnets.list_subnets(network, now))
        return tuple(subnet for subnet, _due in listed)

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        check_wish(wish)
        return await self._database.call(wish.network, wish.subnet, PutContainer(wish))

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        check_names(container=container_id, cluster=cluster)
        await self._delete(DeleteContainer(container_id, cluster, cluster_uid))

    async def _delete(self, call: DeleteContainer) -> None:
        while True:
            # Which subnet to lock is known only after a read; the container may have been created or deleted since.
            found = await self._database.read(lambda _now: queries.subnet_of_container(call.container))
            if found is None:
                if await self._database.write(
                    lambda _now: bury(call.container, call.cluster, call.cluster_uid)
                ):
                    return None
                continue
            owner, network, subnet = found
            if owner != call.cluster:
                raise another_cluster(call.container)
            if not subnet:
                return None
            try:
                return await self._database.call(network, subnet, call)
            except NoSuchSubnet:
                continue

    async def move_container(self, wish: Wish) -> MoveResult:
        check_wish(wish)
        return await self._database.call(wish.network, wish.subnet, MoveContainer(wish))

    async def reserve_container(self, reservation: ContainerReservation) -> AllocatedContainer:
        check_reservation(reservation)
        return await self._database.call(
            reservation.network, reservation.subnet, ReserveContainer(reservation)
        )

    async def quarantined(self, **narrowed: Unpack[QuarantineFilter]) -> QuarantinePage:
        due = narrowed.pop("due", False)
        names, limit, after = _page(narrowed)
        if await self._database.read(began_in_the_future):
            await self._database.write(begin_now)
        return await self._database.read(lambda now: list_quarantined(names, limit, after, now, due=due))

    async def end_quarantine(
        self,
        container_id: str,
        addresses: tuple[str, ...],
        *,
        cluster: str,
        cluster_uid: str = "",
        reason: str,
    ) -> int:
        check_names(container=container_id, cluster=cluster, **({"uid": cluster_uid} if cluster_uid else {}))
        check_ending(addresses, reason)
        return await self._end_quarantine(EndQuarantine(container_id, addresses), cluster, cluster_uid)

    async def _end_quarantine(self, call: EndQuarantine, cluster: str, cluster_uid: str = "") -> int:
        found = await self._database.read(lambda _now: subnet_of_quarantine(call.holder))
        if found is None:
            return 0
        owner, recorded, network, subnet = found
        if owner != cluster:
            raise another_cluster(call.holder)
        if not call.is_forgotten and is_anothers(recorded, cluster_uid):
            raise another_recorded(cluster, cluster_uid, recorded)
        return await self._database.call(network, subnet, call)

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        check_names(container=container_id, cluster=cluster)
        return await self._database.read(lambda _now: queries.get_container(container_id, cluster))

    async def list_containers(self, **narrowed: Unpack[ContainerFilter]) -> ContainerPage:
        names, limit, after = _page(narrowed)
        return await self._database.read(lambda _now: queries.list_containers(names, limit, after))

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        check_names(network=network, subnet=name)
        debts, from_the_future = await self._database.read(
            lambda now: queries.list_owed(network, name, now, self._rules.claim_seconds)
        )
        if from_the_future:
            await self._database.write(lambda now: renew_now_in(network, name, now))
        return debts

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        check_names(network=network, subnet=name, cluster=cluster)
        check_bounds(bounds)
        await self._database.call(network, name, SetBounds(cluster, bounds))

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        check_names(network=network, subnet=name)
        demand, due = await self._database.read(lambda now: queries.read_demand(network, name, now))
        if due:
            await self._database.call(network, name, Settle())
            demand, _due = await self._database.read(lambda now: queries.read_demand(network, name, now))
        return demand

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        check_names(network=network, subnet=name)
        check_in_force(decided)
        return await self._database.call(network, name, PutInForce(decided))

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        subnet = await self.get_subnet(network, name)
        return (Utilization(to_time(self._clock.wall()), subnet.capacity, subnet.reserved),)

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        check_names(network=network, subnet=name)
        return await self._database.read(lambda now: queries.read_history(network, name, since, until, now))

    async def usage_history(
        self, network: str, name: str, *, since: float, until: float, step: UsageStep = "auto"
    ) -> tuple[SubnetUsage, ...]:
        check_names(network=network, subnet=name)
        check_usage_range(since, until, step)
        return await self._database.read(
            lambda now: queries.read_usage_history(network, name, since, until, now, step)
        )

    async def open_term(self, claim: TermClaim) -> OpenedTerm:
        check_claim(claim)
        return await self._database.write(lambda now: registry.open_term(claim, now))

    async def close_term(self, claim: TermClaim) -> None:
        check_claim(claim)
        await self._database.write(lambda _now: registry.close_term(claim))

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        check_held(held)
        return await self._database.call(held.network, held.subnet, AdoptContainer(held))

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        check_shown(shown)
        return await self._database.call(shown.network, shown.subnet, KeepForPods(shown))

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        check_names(cluster=cluster, uid=cluster_uid)
        await self._database.write(
            lambda _now: registry.finish_report(cluster, cluster_uid, recovery, self.expected_clusters())
        )

    async def list_clusters(self) -> ClusterRegistry:
        return await self._database.read(lambda now: registry.list_clusters(now, self.expected_clusters()))

    async def move_cluster(self, name: str, *, uid: str) -> None:
        check_names(cluster=name, uid=uid)
        await self._database.write(lambda _now: registry.move_cluster(name, uid))

    async def forget_cluster(self, name: str, *, uid: str | None = None, reason: str = "") -> int:
        del reason  # the service logs it
        check_names(cluster=name, **({"uid": uid} if uid else {}))
        gone = await self._database.read(lambda _now: registry.containers_of(name, uid))
        for container in gone:
            await self._delete(DeleteContainer(container, name, is_forgotten=True))
        for holder in await self._database.read(lambda _now: quarantines_of(name, uid)):
            await self._end_quarantine(EndQuarantine(holder, is_forgotten=True), name)
        if uid is None:
            await self._database.write(lambda _now: registry.unbind(name, self.expected_clusters()))
        return len(gone)

    async def end_recovery(self) -> None:
        await self._database.write(lambda _now: registry.end_recovery())

    async def begin_recovery(self, reason: str) -> None:
        """Begin a recovery, because an administrator knows that the database was restored from a backup."""
        await self._database.write(lambda now: begin_recovery(reason, now))

    async def examine(self) -> str:
        """Compare the database with the mark beside it; returns why it recovers, or ""."""
        mark = self._database.mark
        if mark is None:
            return ""
        read = mark.read()
        mark.is_examined = True
        return await self._database.write(lambda now: examine(read, new_uuid(system_randomness()), now))

    async def sample(self) -> None:
        """Record how every subnet is used, unless a replica did within the last minute."""
        for subnet in await self.list_subnets():
            await self._sample(subnet.network, subnet.name)

    async def _sample(self, network: str, name: str) -> None:
        # Read before the subnet is locked: grants do not wait for it.
        reading = await self._database.read(lambda now: read_due_demand(network, name, now))
        if reading is not None:
            await self._database.call(network, name, NoteUsage(reading))

    async def prove_writable(self) -> None:
        """Write a row that is never read; AllocatorUnavailable when the database refuses it."""
        await self._database.write(write_probe)

    async def audit(self) -> tuple[Violation, ...]:
        """The violations in the database, found by reading all of it."""
        return await self._database.read(lambda _now: audit_database())


def _page(narrowed: ContainerFilter | QuarantineFilter) -> tuple[dict[str, str], int, str]:
    """The names that narrow a list, its page's size, and the name that the page begins after."""
    names = {what: name for what, name in narrowed.items() if name and isinstance(name, str)}
    check_names(**names)
    limit = narrowed.get("limit", USUAL_PAGE)
    check_page(limit)
    return names, limit, names.pop("more", "")
