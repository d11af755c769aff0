"""From a node's request to what it gets."""

import pytest
from msgspec import structs

from controller.world import OPTIONS, a_world, condition, moment
from podtide.resources.metadata_keys import SUBNET_LABEL, WAITING_PODS_ANNOTATION
from podtide.resources.node import Node, NodeAddress, NodeStatus
from podtide.resources.node_network_config import ConfigStatus, ContainerStatus, ScalerStatus
from podtide.runtime.settings import Settings


async def test_a_new_node_gets_a_config_that_asks_for_nothing_and_a_container_with_its_primary_alone() -> (
    None
):
    async with a_world() as world:
        world.replica().start()
        node = await world.add_node("n1", None, "192.168.0.4", "fd00::4")
        await moment()
        config = await world.config("n1")
        assert config.spec.requested_ip_count == 0
        (owner,) = config.metadata.owner_references
        assert (owner.uid, owner.kind, owner.controller) == (node.metadata.uid, "Node", True)
        (held,) = config.status.network_containers
        assert held.id == node.metadata.uid
        assert (held.primary_ip, held.default_gateway, held.subnet_address_space) == (
            "10.1.0.2",
            "10.1.0.1",
            "10.1.0.0/24",
        )
        assert (held.ip_assignments, held.subnet_name, held.vnet_id) == ([], "pods", "blue")
        assert (held.node_ip, held.status) == ("192.168.0.4", ContainerStatus.SUCCESS)
        assert config.status.status is ConfigStatus.UPDATED
        scaler = config.status.scaler
        assert (scaler.batch_size, scaler.max_ip_count) == (16, 250)
        assert (scaler.request_threshold_percent, scaler.release_threshold_percent) == (50, 150)
        assert world.allocator.calls["put"] == 1


async def test_a_request_is_one_call_of_the_allocator_and_one_status() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.add_node("n1")
        await moment()
        world.allocator.wishes.clear()
        replica.cluster.writes.clear()
        asked = await world.ask("n1", 47, waiting=36)
        await moment(60)
        (wish,) = world.allocator.wishes
        assert (wish.count, wish.waiting_pods, wish.generation) == (47, 36, asked.metadata.generation)
        assert replica.cluster.about("NodeNetworkConfig") == ["status NodeNetworkConfig"]
        config = await world.config("n1")
        assert config.status.assigned_ip_count == len(await world.names("n1")) == 47
        granted = condition(config, "Granted")
        assert (granted.status, granted.reason) == ("True", "Complete")
        assert granted.observed_generation == config.metadata.generation


async def test_what_a_node_names_is_released_and_nothing_else() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 16)
        await moment()
        before = await world.names("n1")
        await world.ask("n1", 12, release=before[:4])
        await moment()
        assert await world.names("n1") == before[4:]
        await world.ask("n1", 2)  # a smaller count alone takes nothing away
        await moment()
        assert await world.names("n1") == before[4:]


async def test_only_the_observed_generation_changes_when_the_agent_cleans_its_list_of_names() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 8)
        await moment()
        await world.ask("n1", 6, release=(await world.names("n1"))[:2])
        await moment()
        shown = await world.config("n1")
        await world.ask("n1", 6)
        await moment()
        config = await world.config("n1")
        assert config.status.network_containers == shown.status.network_containers
        assert (await world.granted("n1")).observed_generation == config.metadata.generation


async def test_more_than_a_node_may_have_is_asked_for_in_vain() -> None:
    async with a_world("10.1.0.0/22") as world:
        world.replica(settings=Settings(max_ips=20)).start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 900)
        await moment()
        assert len(await world.names("n1")) == 20
        granted = await world.granted("n1")
        assert granted.reason == "Complete"
        assert "900 asked for, limited to 20 per node" in granted.message
        await world.ask("n1", -3)
        await moment()
        assert len(await world.names("n1")) == 20
        assert (await world.granted("n1")).status == "True"


async def test_an_annotation_that_is_no_count_says_that_nobody_waits() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        config = await world.config("n1")
        notes = {WAITING_PODS_ANNOTATION: "many"}
        await world.cluster.replace(
            structs.replace(config, metadata=structs.replace(config.metadata, annotations=notes)), manager="x"
        )
        await moment()
        assert world.allocator.wishes[-1].waiting_pods == 0
        assert (await world.granted("n1")).status == "True"


async def test_a_status_that_somebody_edits_is_put_right() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 5)
        await moment()
        good = await world.config("n1")
        edited = structs.replace(good.status, network_containers=[], assigned_ip_count=99)
        await world.cluster.replace_status(structs.replace(good, status=edited), manager="kubectl")
        await moment()
        assert (await world.config("n1")).status == good.status


async def test_an_older_status_put_back_from_a_backup_is_put_right_with_the_version_of_now() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        await world.ask("n1", 4)
        await moment()
        old = (await world.config("n1")).status
        await world.ask("n1", 2, release=(await world.names("n1"))[:2])
        await moment()
        now = await world.config("n1")
        await world.cluster.replace_status(structs.replace(now, status=old), manager="kubectl")
        await moment()
        assert (await world.config("n1")).status == now.status


async def test_a_kubelet_that_reports_its_status_causes_no_work() -> None:
    async with a_world() as world:
        replica = world.replica()
        replica.start()
        await world.add_node("n1", None, "192.168.0.4")
        await moment()
        before = replica.controller.metrics.reconciles
        for beat in range(20):
            node = await world.cluster.get(Node, "n1")
            notes = {"beat": str(beat)}
            await world.cluster.replace(
                structs.replace(node, metadata=structs.replace(node.metadata, annotations=notes)),
                manager="kubelet",
            )
            await moment()
        assert replica.controller.metrics.reconciles == before


async def test_a_node_that_changes_its_own_address_is_shown_with_the_new_one() -> None:
    async with a_world() as world:
        world.replica().start()
        node = await world.add_node("n1", None, "192.168.0.4")
        await moment()
        moved = NodeStatus(addresses=[NodeAddress(type="InternalIP", address="192.168.0.9")])
        await world.cluster.replace_status(structs.replace(node, status=moved), manager="kubelet")
        await moment()
        assert (await world.config("n1")).status.network_containers[0].node_ip == "192.168.0.9"


@pytest.mark.parametrize(
    ("stated", "told", "refused"),
    [(150, 150, False), (170, 170, False), (149, 150, True), (50, 150, True)],
    ids=["one-batch-apart", "more", "less", "equal"],
)
async def test_a_release_threshold_less_than_a_batch_above_the_request_threshold_is_not_told_again(
    stated: int, told: int, *, refused: bool
) -> None:
    async with a_world() as world:
        world.replica(structs.replace(OPTIONS, cluster_subnets=False)).start()
        await world.add_node("n1", {SUBNET_LABEL: "nowhere"})  # so that nothing is decided for its subnet
        await moment()
        config = await world.config("n1")
        scaler = ScalerStatus(
            batch_size=8, request_threshold_percent=50, release_threshold_percent=stated, max_ip_count=30
        )
        written = structs.replace(config, status=structs.replace(config.status, scaler=scaler))
        await world.cluster.replace_status(written, manager="another")
        await moment()
        now = (await world.config("n1")).status.scaler
        assert now.release_threshold_percent == told
        assert (now.batch_size, now.max_ip_count) == ((16, 250) if refused else (8, 30))
        error = (
            f"releaseThresholdPercent {stated} is less than requestThresholdPercent 50 + 100: the pool would give back a "
            "batch and ask for it again; set it to 150 or more"
        )
        assert (error in world.lines.getvalue()) == refused
