"""What the allocator refuses, and what a person is told to do about it."""

from collections.abc import Callable

import pytest
from msgspec import structs

from cluster.faulty_cluster import Script
from controller.world import OPTIONS, a_world, condition, moment
from podtide.allocator.errors import AllocatorUnavailable, NotAllowed, StaleWish
from podtide.controller.program import ControllerOptions
from podtide.core.errors import InvalidInput
from podtide.resources.metadata_keys import SUBNET_LABEL, SYSTEM_NAMESPACE
from podtide.resources.node_network_config import ConfigStatus, ContainerStatus, NodeNetworkConfig


async def test_a_label_that_names_no_subnet_is_said_and_other_nodes_are_none_the_worse() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1", {SUBNET_LABEL: "nowhere"})
        await world.add_node("n2")
        await moment()
        config = await world.config("n1")
        assert config.status.status is ConfigStatus.ERROR
        refused = condition(config, "Granted")
        assert (refused.status, refused.reason) == ("False", "NoSuchSubnet")
        assert "network blue has no subnet nowhere" in refused.message
        assert "label podtide.io/subnet of node n1" in refused.message
        assert await world.events(config) == ["NoSuchSubnet"]
        assert (await world.granted("n2")).status == "True"


async def test_a_default_that_is_no_subnet_names_the_option() -> None:
    async with a_world("") as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        assert "the controller's --subnet" in (await world.granted("n1")).message


async def test_a_subnet_that_is_added_later_serves_its_nodes_at_the_next_poll() -> None:
    async with a_world("") as world:
        world.replica().start()
        await world.add_node("n1")
        await moment(30)
        await world.add_subnet("10.1.0.0/24")
        await moment(6)
        assert (await world.granted("n1")).status == "True"
        assert await world.events(await world.config("n1")) == ["NoSuchSubnet", "Complete"]


async def test_a_label_that_is_mended_serves_the_node_at_once() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1", {SUBNET_LABEL: "nowhere"})
        await moment()
        await world.label("n1", {SUBNET_LABEL: "pods"})
        await moment()
        assert (await world.granted("n1")).status == "True"


async def test_a_node_whose_label_changes_keeps_its_addresses_and_is_served_where_they_are() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_subnet("10.2.0.0/24", "other")
        await world.add_node("n1")
        await moment()
        await world.label("n1", {SUBNET_LABEL: "other"})
        await moment()
        await world.ask("n1", 8)
        await moment()
        config = await world.config("n1")
        (held,) = config.status.network_containers
        assert (held.subnet_name, len(held.ip_assignments)) == ("pods", 8)
        placed = condition(config, "Placed")
        assert (placed.status, placed.reason) == ("False", "InAnotherSubnet")
        assert "names other, but the node's addresses are in pods" in placed.message
        assert await world.events(config) == ["InAnotherSubnet"]
        await world.label("n1", {})
        await moment()
        assert condition(await world.config("n1"), "Placed").status == "True"


async def test_a_newcomer_that_waits_in_one_subnet_cannot_be_labelled_into_another_and_is_told_so() -> None:
    async with a_world("10.1.0.0/28") as world:
        world.replica().start()
        await world.add_subnet("10.2.0.0/24", "other")
        await world.reserve(13)
        await world.add_node("n1")
        await moment()
        await world.label("n1", {SUBNET_LABEL: "other"})
        await moment()
        refused = await world.granted("n1")
        assert refused.reason == "Refused"
        assert "a node's container stays in its subnet until it is deleted" in refused.message


async def test_where_a_container_is_is_found_also_when_its_config_was_made_again() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_subnet("10.2.0.0/24", "other")
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 8)
        await moment()
        await world.label("n1", {SUBNET_LABEL: "other"})
        await moment()
        await world.cluster.delete(NodeNetworkConfig, "n1", SYSTEM_NAMESPACE)
        await moment()
        (held,) = (await world.config("n1")).status.network_containers
        assert (held.subnet_name, len(held.ip_assignments)) == ("pods", 8)


@pytest.mark.parametrize(
    ("refusal", "reason", "status", "container"),
    [
        (NotAllowed("use another token"), "NotAllowed", ConfigStatus.ERROR, ContainerStatus.UNAUTHORIZED),
        (InvalidInput("odd"), "Refused", ConfigStatus.ERROR, ContainerStatus.FAILED),
        (
            AllocatorUnavailable("away"),
            "AllocatorUnavailable",
            ConfigStatus.UPDATING,
            ContainerStatus.INTERNAL_SERVER_ERROR,
        ),
    ],
)
async def test_a_refusal_takes_nothing_away_and_is_over_when_the_cause_is(
    refusal: Exception, reason: str, status: ConfigStatus, container: ContainerStatus
) -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment()
        names = await world.names("n1")
        world.allocator.faults = Script(put=[refusal] * 3)
        await world.ask("n1", 8)
        await moment(0.4)
        config = await world.config("n1")
        granted = condition(config, "Granted")
        assert (granted.status, granted.reason, granted.message) == ("False", reason, str(refusal))
        assert (config.status.status, config.status.network_containers[0].status) == (status, container)
        assert (await world.names("n1"), config.status.assigned_ip_count) == (names, 4)
        await moment(1300)
        assert len(await world.names("n1")) == 8
        assert await world.events(await world.config("n1")) == [reason, "Complete"]


async def test_an_allocator_that_is_away_is_no_news_for_a_node_that_wants_nothing_of_it() -> None:
    async with a_world() as world:
        first = world.replica()
        first.start()
        for number in range(5):
            await world.add_node(f"n{number}")
        await moment()
        await first.stop()
        world.allocator.faults = Script(put=[AllocatorUnavailable("away")] * 30)
        second = world.replica()
        second.start()
        await moment(600)
        assert second.cluster.about("NodeNetworkConfig") == []
        assert world.allocator.calls["put"] > 30


async def test_an_outage_that_is_told_in_ever_other_words_is_written_once() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.add_node("n1")
        await moment()
        replica.cluster.writes.clear()
        world.allocator.faults = Script(put=[AllocatorUnavailable(f"attempt {n}") for n in range(8)])
        await world.ask("n1", 8)
        await moment(0.4)
        assert replica.cluster.about("NodeNetworkConfig") == ["status NodeNetworkConfig"]
        assert (await world.granted("n1")).message == "attempt 0"
        await moment(300)
        assert replica.cluster.about("NodeNetworkConfig") == ["status NodeNetworkConfig"] * 2
        assert len(await world.names("n1")) == 8


async def test_a_wish_that_is_stale_because_the_copy_is_behind_is_made_again_without_a_word() -> None:
    async with a_world() as world:
        faults = Script()
        world.replica(faults=faults).start()
        await world.add_node("n1")
        await moment()
        stale = StaleWish("a newer wish was taken")
        faults.steps["event"] = [None, 5.0]  # the copy hears of the second request late
        await world.ask("n1", 3)
        world.allocator.faults = Script(put=[0.5, stale])
        await moment(0.1)
        await world.ask("n1", 4)
        await moment(20)
        assert len(await world.names("n1")) == 4
        assert await world.events(await world.config("n1")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ControllerOptions(cluster="", network="blue", subnet="pods"),
        lambda: ControllerOptions(cluster="east", network="", subnet="pods"),
        lambda: ControllerOptions(cluster="east", network="blue", subnet=""),
        lambda: structs.replace(OPTIONS, subnet_v6="pods"),
    ],
)
def test_options_that_cannot_be_run_by_are_refused(wrong: Callable[[], ControllerOptions]) -> None:
    with pytest.raises(InvalidInput):
        wrong()
