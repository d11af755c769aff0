"""A subnet that is short: who gets what, and when the others get theirs."""

from hypothesis import given
from hypothesis import strategies as st

from cluster.faulty_cluster import Script
from controller.world import World, a_world, moment
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.store import StoreRules
from podtide.allocator.subnets import Debt
from podtide.cluster.port import Unavailable
from podtide.controller.subnets.known_subnets import in_turn
from podtide.resources.node_network_config import ConfigStatus, ContainerStatus
from podtide.runtime.settings import Settings

SLOW_POLL = Settings(poll_seconds=10_000.0)


async def fill(world: World, *nodes: str, count: int) -> None:
    """Nodes that ask for so many each."""
    for node in nodes:
        await world.add_node(node)
    await moment()
    for node in nodes:
        await world.ask(node, count)
        await moment()


async def test_a_short_subnet_gives_what_it_has_and_says_how_much_is_owed() -> None:
    async with a_world("10.1.0.0/28") as world:  # 13 addresses
        world.replica().start()
        await fill(world, "n1", "n2", count=8)
        config = await world.config("n2")
        assert config.status.assigned_ip_count == 3  # 13 - 2 primaries - 8
        assert config.status.status is ConfigStatus.UPDATING
        assert config.status.network_containers[0].status is ContainerStatus.SUBNET_FULL
        granted = await world.granted("n2")
        assert (granted.status, granted.reason) == ("False", "SubnetShort")
        assert "3 addresses held, 8 asked for, 5 owed" in granted.message
        assert await world.events(config) == ["SubnetShort"]


async def test_a_short_grant_is_one_call_too() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica().start()
        await fill(world, "n1", "n2", count=8)
        assert [(wish.node, wish.count) for wish in world.allocator.wishes] == [
            ("n1", 0),
            ("n2", 0),
            ("n1", 8),
            ("n2", 8),
        ]
        await moment(60)
        assert len(world.allocator.wishes) == 4


async def test_who_is_owed_stays_remembered_while_the_allocator_is_away() -> None:
    async with a_world("10.1.0.0/28") as world:
        replica = world.replica(settings=SLOW_POLL)
        replica.start()
        await fill(world, "n1", "n2", count=8)
        world.allocator.faults = Script(put=[AllocatorUnavailable("away")] * 2)
        await world.ask("n2", 9)
        await moment(0.4)
        assert (await world.granted("n2")).reason == "AllocatorUnavailable"
        assert replica.controller.metrics.owed_nodes == 1
        await moment(4)
        await world.ask("n1", 0, release=await world.names("n1"))
        await moment()
        assert len(await world.names("n2")) == 9


async def test_who_is_owed_is_served_as_soon_as_addresses_come_back_without_a_poll() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica(settings=SLOW_POLL).start()
        await fill(world, "n1", "n2", count=8)
        await world.ask("n1", 5, release=(await world.names("n1"))[:3])
        await moment(0.5)
        assert len(await world.names("n2")) == 6
        await world.ask("n1", 3, release=(await world.names("n1"))[:2])
        await moment(0.5)
        assert len(await world.names("n2")) == 8
        granted = await world.granted("n2")
        assert (granted.status, granted.reason) == ("True", "Complete")
        assert await world.events(await world.config("n2")) == ["SubnetShort", "Complete"]


async def test_a_turn_whose_status_could_not_be_written_is_not_forgotten() -> None:
    async with a_world("10.1.0.0/28") as world:
        faults = Script()
        world.replica(settings=SLOW_POLL, faults=faults).start()
        await fill(world, "n1", "n2", count=8)
        faults.steps["replace_status"] = [None, Unavailable("away"), Unavailable("away")]
        await world.ask("n1", 3, release=(await world.names("n1"))[:5])
        await moment(30)
        assert not faults.steps["replace_status"]
        assert len(await world.names("n2")) == 8


async def test_nodes_with_waiting_pods_are_served_before_those_who_were_owed_earlier() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica(settings=SLOW_POLL).start()
        await fill(world, "n1", "n2", "n3", count=0)
        await world.ask("n1", 10)
        await moment()
        await world.ask("n2", 4)
        await moment()
        await world.ask("n3", 4, waiting=2)
        await moment()
        await world.ask("n1", 7, release=(await world.names("n1"))[:3])
        await moment(0.5)
        assert [len(await world.names(node)) for node in ("n1", "n2", "n3")] == [7, 0, 3]
        await world.ask("n1", 4, release=(await world.names("n1"))[:3])
        await moment(0.5)
        assert [len(await world.names(node)) for node in ("n1", "n2", "n3")] == [4, 2, 4]


async def test_a_newcomer_without_a_primary_is_told_so_and_starts_as_soon_as_there_is_one() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica(settings=SLOW_POLL).start()
        await fill(world, "n1", count=12)
        await world.add_node("n2")
        await moment()
        config = await world.config("n2")
        assert config.status.network_containers == []
        granted = await world.granted("n2")
        assert (granted.status, granted.reason) == ("False", "SubnetFull")
        assert "no address left for node n2" in granted.message
        assert await world.events(config) == ["SubnetFull"]
        await world.ask("n1", 10, release=(await world.names("n1"))[:2])
        await moment(0.5)
        assert (await world.granted("n2")).status == "True"
        assert len((await world.config("n2")).status.network_containers) == 1


async def test_addresses_that_leave_quarantine_reach_who_is_owed_at_the_next_poll() -> None:
    async with a_world("10.1.0.0/28", StoreRules(quarantine_seconds=60)) as world:
        world.replica().start()
        await fill(world, "n1", "n2", count=8)
        await world.remove_node("n1")
        await moment(59)
        assert len(await world.names("n2")) == 3
        await moment(8)
        assert len(await world.names("n2")) == 8


async def test_when_a_node_goes_those_it_stood_before_are_looked_at_at_once() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica(settings=SLOW_POLL).start()
        await fill(world, "n1", "n2", count=0)
        await world.reserve(13)
        await world.ask("n1", 9, waiting=9)
        await moment()
        await world.ask("n2", 2)
        await moment()
        await world.reserve(11)  # another cluster gives back: until the poll, nobody here hears of it
        await moment(60)
        assert await world.names("n2") == []
        await world.remove_node("n1")
        await moment(0.5)
        assert len(await world.names("n2")) == 2


async def test_claims_are_renewed_before_they_lapse_and_not_much_more_often() -> None:
    async with a_world("10.1.0.0/28") as world:
        replica = world.replica()
        replica.start()
        await fill(world, "n1", "n2", count=8)
        await moment(
            180
        )  # by then the batch is where it stays, and the condition says that the subnet is full
        world.allocator.wishes.clear()
        replica.cluster.writes.clear()
        await moment(3600)
        assert {wish.node for wish in world.allocator.wishes} == {"n2"}
        assert 12 <= len(world.allocator.wishes) <= 18
        assert replica.cluster.work() == []
        (debt,) = await world.allocator.owed("blue", "pods")
        assert debt.node == "n2"


async def test_a_claim_of_another_cluster_goes_first_and_is_not_fought_over() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica().start()
        await fill(world, "n1", count=11)
        await world.foreign_node("w1", 3)  # its primary is the last address; 3 are owed
        await world.add_node("n2")
        await moment()
        await world.ask("n1", 9, release=(await world.names("n1"))[:2])
        await moment(1)
        world.allocator.wishes.clear()
        await moment(120)
        assert len(world.allocator.wishes) <= 2
        await world.foreign_node("w1", 1)  # takes one, and claims no more
        await moment(6)
        assert len((await world.config("n2")).status.network_containers) == 1


async def test_more_than_a_hundred_nodes_are_served_out_of_a_subnet_that_holds_them_exactly() -> None:
    async with a_world("10.1.0.0/24") as world:  # 253 addresses
        world.replica(settings=SLOW_POLL).start()
        nodes = [f"n{number}" for number in range(126)]
        await fill(world, "greedy", count=120)
        for node in nodes:
            await world.add_node(node)
        await moment(10)
        for node in nodes:
            await world.ask(node, 1, waiting=1)
        await moment(10)
        await world.ask("greedy", 0, release=await world.names("greedy"))
        await moment(30)
        assert [node for node in nodes if len(await world.names(node)) != 1] == []
        assert len(await world.everybody()) == (await world.subnet()).reserved == 253


debts = st.lists(
    st.builds(
        Debt,
        container=st.uuids().map(str),
        cluster=st.sampled_from(["east", "west"]),
        node=st.uuids().map(str),
        owed=st.integers(1, 9),
        waiting_pods=st.just(0),
        since=st.just(0.0),
    ),
    max_size=12,
)


@given(debts=debts, free=st.integers(0, 40))
def test_it_is_the_turn_of_exactly_those_who_would_get_something(debts: list[Debt], free: int) -> None:
    named = in_turn(debts, free, "east")
    for index, debt in enumerate(debts):
        before = sum(each.owed for each in debts[:index])
        assert (debt.node in named) == (debt.cluster == "east" and free > before)
    assert named == [debt.node for debt in debts if debt.node in named]
