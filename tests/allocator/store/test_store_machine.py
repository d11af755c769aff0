"""Any calls, in any order, made twice, or by eight clients at once: the store is as the plain model says."""

import asyncio
from contextlib import AsyncExitStack, suppress
from ipaddress import ip_network
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec import structs

from allocator.contract.harness import end_due
from allocator.store.databases import DatabaseUnderTest
from allocator.store.model import Model
from allocator.store.wishes import spec, wish
from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.errors import StaleWish, SubnetFull, SubnetInUse
from podtide.allocator.store import DatabaseAllocator, StoreRules
from podtide.core.errors import InvalidInput
from podtide.core.subnet.grants import primary_name
from podtide.core.subnet.statement import StatedDemand

RULES = StoreRules()
CLIENTS = 8
ids = st.sampled_from(["a", "b", "c", "d", "e", "f"])
counts = st.integers(0, 40)
waitings = st.integers(0, 2)
STATED = (
    None,
    StatedDemand(low=1, high=8, batch=16, buffer="0.5"),
    StatedDemand(low=1, high=8, demand=3, batch=4, buffer="1/3"),
)
statements = st.sampled_from(STATED)
GROWING = ["10.2.0.0/29", "10.2.0.8/29", "10.3.0.0/27"]


class TheStoreIsAsTheModelSays(RuleBasedStateMachine):
    """Two replicas on one database; calls go to either."""

    database: DatabaseUnderTest

    @initialize(
        cidr=st.sampled_from(["10.1.0.0/28", "10.1.0.0/26", "10.1.0.0/25"]),
        keep=st.integers(0, 3),
        grown_by=st.none() | st.sampled_from(GROWING),
    )
    def open(self, cidr: str, keep: int, grown_by: str | None) -> None:
        self.runner = asyncio.Runner()
        self.runner.run(self._open(cidr, keep))
        if grown_by:
            self.grow(grown_by, lost=False)

    @rule(
        id_=ids,
        count=counts,
        waiting=waitings,
        part=st.floats(0, 1),
        seed=st.integers(0, 99),
        lost=st.booleans(),
        fresh_request=st.sampled_from([False, False, False, True]),
        stated=statements,
        number=st.integers(0, 2),
        moves=st.booleans(),
    )
    def put(  # noqa: PLR0917 - hypothesis hands in what the rule draws
        self,
        id_: str,
        count: int,
        waiting: int,
        part: float,
        seed: int,
        lost: bool,
        fresh_request: bool,
        stated: StatedDemand | None,
        number: int,
        moves: bool,
    ) -> None:
        if fresh_request:
            self.requests[id_] = self.requests.get(id_, 0) + 1
        self.generation += 1
        named = self._some_names(id_, part, Random(seed))
        if moves:
            named += (primary_name(self._id(id_)),)
        asked = self._wish(id_, count, waiting, named)
        self.runner.run(self._put(structs.replace(asked, stated=stated, statement_number=number), lost=lost))

    @rule(id_=ids, stated=statements, number=st.integers(0, 3))
    def state_anew(self, id_: str, stated: StatedDemand | None, number: int) -> None:
        last = self.model.stated.get(self._id(id_))
        if last and last.request_uid == self._wish(id_, 0, 0, ()).request_uid:
            asked = self._wish(id_, last.wanted, 0, (), generation=last.generation)
            self.runner.run(
                self._put(structs.replace(asked, stated=stated, statement_number=number), lost=False)
            )

    @rule(id_=ids)
    def put_too_late(self, id_: str) -> None:
        held = self.model.held.get(id_)
        if held and held.generation > 1:
            late = self._wish(id_, 0, 0, tuple(held.addresses), generation=held.generation - 1)
            self.runner.run(self._is_refused(late))

    @rule(id_=ids, lost=st.booleans())
    def delete(self, id_: str, lost: bool) -> None:
        for _ in range(1 + lost):
            self.runner.run(self._one().delete_container(self._id(id_), cluster="east"))
        self.model.delete(self._id(id_), self.database.clock.now)
        self.runner.run(self._is_refused(self._wish(id_, 1, 0, (), generation=self.generation + 1)))
        self.born[id_] = self.born.get(id_, 0) + 1  # the node joins again, as another

    @rule(cidr=st.sampled_from(GROWING), lost=st.booleans())
    def grow(self, cidr: str, lost: bool) -> None:
        for _ in range(1 + lost):
            self.runner.run(self._one().grow_subnet("blue", "pods", (cidr,)))
        self.model.draining.discard(cidr)
        self.model.usable.setdefault(cidr, ip_network(cidr).num_addresses - 3)

    @rule(data=st.data(), lost=st.booleans(), before=st.integers(0, 6), after=counts)
    def shrink(self, data: st.DataObject, lost: bool, before: int, after: int) -> None:
        self._grant("a", before)
        self._shrink(data, lost=lost)
        self._grant("b", after)
        self._grant("a", after)

    def _grant(self, node: str, count: int) -> None:
        self.generation += 1
        self.runner.run(self._put(self._wish(node, count, 0, ()), lost=False))

    def _shrink(self, data: st.DataObject, *, lost: bool) -> None:
        cidr = data.draw(st.sampled_from(sorted(self.model.usable)))
        if self.model.usable.keys() - self.model.draining <= {cidr}:
            with pytest.raises(InvalidInput):
                self.runner.run(self._one().shrink_subnet("blue", "pods", (cidr,)))
            return
        for _ in range(1 + lost):
            self.runner.run(self._one().shrink_subnet("blue", "pods", (cidr,)))
        self.model.drain(cidr)

    @rule()
    def remove_the_subnet_is_refused_while_in_use(self) -> None:
        if self.model.reserved:
            with pytest.raises(SubnetInUse):
                self.runner.run(self._one().remove_subnet("blue", "pods"))

    @rule(seconds=st.sampled_from([1.0, 29.0, 31.0, 200.0, 361.0, 601.0]))
    def wait(self, seconds: float) -> None:
        self.database.clock.now += seconds
        self.runner.run(end_due(self._one()))
        self.model.pass_by(self.database.clock.now)

    @rule(seed=st.integers(0, 2**32), deletes=st.booleans())
    def eight_clients_at_once(self, seed: int, deletes: bool) -> None:
        self.runner.run(self._burst(Random(seed), deletes=deletes))

    @invariant()
    def the_totals_are_the_models_and_the_audit_finds_nothing(self) -> None:
        self.runner.run(self._compare())

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.run(self.stack.aclose())
            self.runner.close()

    async def _open(self, cidr: str, keep: int) -> None:
        await self.database.empty()
        self.stack = AsyncExitStack()
        self.replicas = [
            await self.stack.enter_async_context(self.database.replica(RULES)),
            await self.stack.enter_async_context(self.database.replica(RULES)),
        ]
        self.turn = 0
        self.generation = 0
        self.born: dict[str, int] = {}
        self.requests: dict[str, int] = {}
        subnet = await self._one().add_subnet(spec(cidr, keep_back_first=keep))
        self.model = Model(RULES, {cidr: subnet.capacity})

    def _one(self) -> DatabaseAllocator:
        self.turn += 1
        return self.replicas[self.turn % len(self.replicas)]

    def _id(self, node: str) -> str:
        """Each time a node joins, it has another uid."""
        return f"{node}.{self.born.get(node, 0)}"

    def _wish(
        self, node: str, count: int, waiting: int, release: tuple[str, ...], generation: int | None = None
    ) -> Wish:
        return wish(
            self._id(node),
            count,
            self.generation if generation is None else generation,
            node=node,
            waiting_pods=waiting,
            release=release,
            request_uid=f"request-{self._id(node)}-{self.requests.get(node, 0)}",
        )

    def _some_names(self, node: str, part: float, randomness: Random) -> tuple[str, ...]:
        """Of what it holds, and of names that mean nothing any more, or somebody else's."""
        held = self.model.held.get(self._id(node))
        own = sorted(held.addresses) if held else []
        others = sorted(self.model.names)
        named = randomness.sample(own, int(part * len(own))) + randomness.sample(others, min(3, len(others)))
        return tuple(dict.fromkeys(named))

    async def _put(self, wish: Wish, *, lost: bool) -> None:
        answer = await self._ask(wish)
        self.model.put(wish, answer, self.database.clock.now)
        if lost:
            self.model.put(wish, again := await self._ask(wish), self.database.clock.now)
            assert again == answer

    async def _ask(self, wish: Wish) -> AllocatedContainer | None:
        try:
            return await self._one().put_container(wish)
        except SubnetFull:
            return None

    async def _is_refused(self, wish: Wish) -> None:
        with pytest.raises(StaleWish):
            await self._one().put_container(wish)

    async def _burst(self, randomness: Random, *, deletes: bool) -> None:
        """Each client makes three calls. Nodes that are deleted wish for nothing meanwhile: that race has its own test."""
        wishes: list[Wish] = []
        nodes = list("abcdef")
        gone = [nodes.pop(randomness.randrange(6))] if deletes else []

        async def client() -> None:
            for _ in range(3):
                node = randomness.choice(nodes)
                self.generation += 1
                named = self._some_names(node, randomness.random(), randomness)
                asked = self._wish(node, randomness.randrange(30), randomness.randrange(3), named)
                asked = structs.replace(asked, stated=randomness.choice(STATED))
                wishes.append(asked)
                with suppress(SubnetFull, StaleWish):
                    await self._one().put_container(asked)

        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(client())
            for node in gone:
                group.create_task(self._one().delete_container(self._id(node), cluster="east"))
        for node in gone:
            self.model.delete(self._id(node), self.database.clock.now)
            self.born[node] = self.born.get(node, 0) + 1
        page = await self._one().list_containers()
        debts = await self._one().owed("blue", "pods")
        self.model.follow(list(page.items), debts, wishes, self.database.clock.now)

    async def _compare(self) -> None:
        subnet = await self._one().get_subnet("blue", "pods")
        assert subnet.reserved == self.model.reserved
        assert subnet.capacity == self.model.capacity
        assert set(subnet.cidrs) == self.model.usable.keys()
        assert (set(subnet.draining), subnet.draining_reserved) == (
            self.model.draining,
            self.model.draining_reserved,
        )
        assert subnet.containers == len(self.model.held)
        assert subnet.owed == sum(claim.owed for claim in self.model.claims.values())
        assert subnet.quarantined == len(self.model.quarantined)
        demand = await self._one().demand("blue", "pods")
        assert demand.subnet == subnet
        assert {(one.stated, one.taken): one.containers for one in demand.alike} == self.model.alike
        (reading,) = await self._one().utilization("blue", "pods")
        assert (reading.capacity, reading.reserved) == (subnet.capacity, subnet.reserved)
        assert await self._one().audit() == ()


def run(database: DatabaseUnderTest, max_examples: int, steps: int) -> None:
    machine = type("Machine", (TheStoreIsAsTheModelSays,), {"database": database})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max_examples,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
            deadline=None,
        ),
    )


@pytest.mark.slow
def test_the_store_on_sqlite_is_as_the_model_says(tmp_path: Path) -> None:
    run(DatabaseUnderTest(f"sqlite:///{tmp_path}/allocator.db", in_a_thread=False), max_examples=25, steps=25)


@pytest.mark.slow
def test_the_store_on_postgresql_is_as_the_model_says(postgresql_url: str) -> None:
    run(DatabaseUnderTest(postgresql_url), max_examples=8, steps=20)
