"""The Allocator port on a database, in this process."""

from typing import Self

from podtide.allocator.limits import (
    check_bounds,
    check_in_force,
    check_names,
    check_page,
    check_spec,
    check_wish,
)
from podtide.allocator.port import (
    Bounds,
    Container,
    ContainerPage,
    Debt,
    InForce,
    NoSuchSubnet,
    Subnet,
    SubnetDemand,
    SubnetSpec,
    Utilization,
    Wish,
)
from podtide.allocator.store import reading, subnets
from podtide.allocator.store.audit import audit_database
from podtide.allocator.store.cluster_bounds import SetBounds
from podtide.allocator.store.database import Database
from podtide.allocator.store.in_force import PutInForce
from podtide.allocator.store.probe import write_probe
from podtide.allocator.store.rules import Rules
from podtide.allocator.store.serving import (
    DeleteContainer,
    PutContainer,
    Sample,
    Settle,
    another_cluster,
    bury,
)
from podtide.core.audit import Violation
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import Clock


class DatabaseAllocator:
    """The owner of the subnets, in a database. Made by `open_allocator`."""

    def __init__(self, database: Database, *, clock: Clock, rules: Rules) -> None:
        self._database = database
        self._clock = clock
        self._rules = rules

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what is under way, and let the database go."""
        await self._database.close()

    async def add_subnet(self, spec: SubnetSpec) -> Subnet:
        """Make the subnet; the same again answers the one there."""
        check_spec(spec)
        return await self._database.write(lambda now: subnets.add_subnet(spec, now))

    async def grow_subnet(self, network: str, name: str, cidrs: tuple[str, ...]) -> Subnet:
        """Add CIDRs to the subnet."""
        check_names(network=network, subnet=name)
        return await self._database.write(lambda now: subnets.grow_subnet(network, name, cidrs, now))

    async def remove_subnet(self, network: str, name: str) -> None:
        """Remove the subnet, in which nothing may be reserved."""
        check_names(network=network, subnet=name)
        await self._database.write(lambda now: subnets.remove_subnet(network, name, now, self._rules))

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """The subnet as it stands."""
        check_names(network=network, subnet=name)
        subnet, due = await self._database.read(lambda now: subnets.show_subnet(network, name, now))
        return await self._database.call(network, name, Settle()) if due else subnet

    async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
        """The subnets of a network, or of all, by network and name."""
        if network:
            check_names(network=network)
        listed = await self._database.read(lambda now: subnets.list_subnets(network, now))
        for subnet, due in listed:
            if due:
                await self.get_subnet(subnet.network, subnet.name)
        if any(due for _subnet, due in listed):
            listed = await self._database.read(lambda now: subnets.list_subnets(network, now))
        return tuple(subnet for subnet, _due in listed)

    async def put_container(self, wish: Wish) -> Container:
        """Carry out the whole wish, as far as there are addresses."""
        check_wish(wish)
        return await self._database.call(wish.network, wish.subnet, PutContainer(wish))

    async def delete_container(self, container_id: str, *, cluster: str) -> None:
        """The node is gone: what it held is in quarantine, and the id never comes back."""
        check_names(container=container_id, cluster=cluster)
        while True:
            # Which subnet to lock is known only after a look: until then it may have come, or be gone.
            found = await self._database.read(lambda _now: reading.subnet_of_container(container_id))
            if found is None:
                if await self._database.write(lambda _now: bury(container_id, cluster)):
                    return None
                continue
            owner, network, subnet = found
            if owner != cluster:
                raise another_cluster(container_id)
            if not subnet:
                return None
            try:
                return await self._database.call(network, subnet, DeleteContainer(container_id, cluster))
            except NoSuchSubnet:
                continue

    async def get_container(self, container_id: str, *, cluster: str) -> Container:
        """What a node has."""
        check_names(container=container_id, cluster=cluster)
        return await self._database.read(lambda _now: reading.get_container(container_id, cluster))

    async def list_containers(  # noqa: PLR0913 - the port's own
        self,
        *,
        cluster: str = "",
        node: str = "",
        network: str = "",
        subnet: str = "",
        limit: int = 500,
        more: str = "",
    ) -> ContainerPage:
        """Containers by id, narrowed by any of these, a page at a time."""
        narrowed = {"cluster": cluster, "node": node, "network": network, "subnet": subnet, "more": more}
        narrowed = {what: name for what, name in narrowed.items() if name}
        check_names(**narrowed)
        check_page(limit)
        after = narrowed.pop("more", "")
        return await self._database.read(lambda _now: reading.list_containers(narrowed, limit, after))

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """Who is owed, in the order they will be served."""
        check_names(network=network, subnet=name)
        return await self._database.read(
            lambda now: reading.list_owed(network, name, now, self._rules.claim_seconds)
        )

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """Keep between which bounds a cluster wants the subnet's batch."""
        check_names(network=network, subnet=name, cluster=cluster)
        check_bounds(bounds)
        await self._database.call(network, name, SetBounds(cluster, bounds))

    async def demand(self, network: str, name: str) -> SubnetDemand:
        """What the batch is decided from, all of one instant."""
        check_names(network=network, subnet=name)
        demand, due = await self._database.read(lambda now: reading.read_demand(network, name, now))
        if due:
            await self._database.call(network, name, Settle())
            demand, _due = await self._database.read(lambda now: reading.read_demand(network, name, now))
        return demand

    async def put_in_force(self, network: str, name: str, decided: InForce) -> Subnet:
        """Let this be in force, if it was decided from what is so."""
        check_names(network=network, subnet=name)
        check_in_force(decided)
        return await self._database.call(network, name, PutInForce(decided))

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        """How full the subnet is: one reading, from the totals in its row."""
        subnet = await self.get_subnet(network, name)
        return (Utilization(to_time(self._clock.wall()), subnet.capacity, subnet.reserved),)

    async def history(
        self, network: str, name: str, *, since: float, until: float
    ) -> tuple[Utilization, ...]:
        """Readings between two wall-clock times, oldest first."""
        check_names(network=network, subnet=name)
        return await self._database.read(lambda now: reading.read_history(network, name, since, until, now))

    async def sample(self) -> None:
        """Write down how full every subnet is, where that was not done a moment ago."""
        for subnet in await self.list_subnets():
            await self._database.call(subnet.network, subnet.name, Sample())

    async def prove_writable(self) -> None:
        """Write something that nobody reads; AllocatorUnavailable where the database does not take it."""
        await self._database.write(write_probe)

    async def audit(self) -> tuple[Violation, ...]:
        """What is wrong with the database, by reading all of it."""
        return await self._database.read(lambda _now: audit_database())
