"""What stands between the controller and everything it may change."""

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from controller.test_standing import a_standing
from controller.world import World, a_world, wish_of
from podtide.cluster.port import Conflict
from podtide.cluster.term import TermOver
from podtide.controller.fencing import GuardedAllocator, GuardedWrites
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.metadata_keys import IPV4_RESOURCE, NO_ADDRESSES_TAINT, SYSTEM_NAMESPACE
from podtide.resources.node import Node

PLACE = ObjectMeta(name="pods", namespace=SYSTEM_NAMESPACE)

TAINTED = {"spec": {"taints": [{"key": NO_ADDRESSES_TAINT, "effect": "NoSchedule"}]}}


def too_late() -> None:
    raise TermOver("leave this to the next leader")


async def test_that_the_copy_was_behind_is_a_conflict_whatever_the_server_calls_it() -> None:
    async with a_world() as world:
        counts: Counter[str] = Counter()
        writes = GuardedWrites(world.cluster, lambda: None, counts)
        made = await writes.create(ClusterSubnet(metadata=PLACE))
        with pytest.raises(Conflict):
            await writes.create(ClusterSubnet(metadata=PLACE))
        await writes.delete(made)
        await writes.delete(made)
        for write in (writes.replace, writes.replace_status):
            with pytest.raises(Conflict):
                await write(made)
        with pytest.raises(Conflict):
            await writes.patch(made, {"spec": {}})
        assert counts == {"ClusterSubnet": 2}


async def test_a_patch_is_of_this_very_node_and_counted_where_it_writes() -> None:
    async with a_world() as world:
        counts: Counter[str] = Counter()
        writes = GuardedWrites(world.cluster, lambda: None, counts)
        node = await world.cluster.create(Node(metadata=ObjectMeta(name="n9")), manager="test")
        published = await writes.patch(node, {"status": {"capacity": {IPV4_RESOURCE: "8"}}}, status=True)
        assert published.status.capacity == {IPV4_RESOURCE: "8"}
        tainted = await writes.patch(published, TAINTED, unchanged=True)
        assert [each.key for each in tainted.spec.taints] == [NO_ADDRESSES_TAINT]
        assert counts == {"Node/status": 1, "Node": 1}
        with pytest.raises(Conflict):
            await writes.patch(node, TAINTED, unchanged=True)
        await world.cluster.delete(Node, "n9")
        await world.cluster.create(Node(metadata=ObjectMeta(name="n9")), manager="test")
        with pytest.raises(Conflict):
            await writes.patch(node, {"metadata": {"labels": {"a": "b"}}})
        assert counts == {"Node/status": 1, "Node": 1}


def writes_of(world: World) -> dict[str, Callable[[], Awaitable[object]]]:
    item = ClusterSubnet(metadata=PLACE)
    writes = GuardedWrites(world.cluster, too_late, Counter())
    allocator = GuardedAllocator(world.allocator, too_late)
    return {
        "create": lambda: writes.create(item),
        "replace": lambda: writes.replace(item),
        "replace_status": lambda: writes.replace_status(item),
        "patch": lambda: writes.patch(item, {}),
        "delete": lambda: writes.delete(item),
        "put": lambda: allocator.put_container(wish_of("n1", 1, cluster="east")),
        "delete_container": lambda: allocator.delete_container("uid-n1", cluster="east"),
        "move": lambda: allocator.move_container(wish_of("n1", 1, cluster="east")),
        "end": lambda: allocator.end_quarantine("uid-n1", (), cluster="east", reason="looked"),
    }


@pytest.mark.parametrize(
    "write",
    ["create", "replace", "replace_status", "patch", "delete", "put", "delete_container", "move", "end"],
)
async def test_nothing_is_written_after_the_term(write: str) -> None:
    async with a_world() as world:
        with pytest.raises(TermOver):
            await writes_of(world)[write]()
        assert not world.allocator.calls


async def test_of_what_is_in_quarantine_under_the_name_only_what_records_this_cluster_is_seen() -> None:
    async with a_world() as world:
        uid = await world.uid()
        for name, recorded in (("own", uid), ("others", "uid-of-another"), ("unknown", "")):
            container = await world.foreign_node(name, 1, cluster="east", cluster_uid=recorded)
            await world.allocator.delete_container(container, cluster="east", cluster_uid=recorded)
        standing = a_standing(world, world.allocator)
        await standing._renew()
        guarded = GuardedAllocator(world.allocator, lambda: None, standing)
        page = await guarded.quarantined(cluster="east")
        assert [left.node for left in page.items] == ["own"]
