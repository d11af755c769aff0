"""`get` and `list`."""

from collections.abc import Sequence

import pytest

from cluster.contract.harness import MANAGER, OpenCluster
from podtide.cluster.port import Gone, Invalid, NotFound
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.event import Event, ObjectReference
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod


def names(items: Sequence[Resource]) -> list[str]:
    return [item.metadata.name for item in items]


async def test_get_answers_the_object_as_it_is_now(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(requested=16))
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == made


async def test_get_of_what_is_not_there_is_not_found(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        with pytest.raises(NotFound, match="node-a"):
            await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)


async def test_a_read_sees_every_write_that_was_answered_before_it_began(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        for count in range(1, 6):
            wish = it.config(requested=count, resource_version=made.metadata.resource_version)
            made = await it.cluster.replace(wish, manager=MANAGER)
            assert (
                await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
            ).spec.requested_ip_count == count
            page = await it.cluster.list(NodeNetworkConfig, it.namespace)
            assert [item.spec.requested_ip_count for item in page.items] == [count]


async def test_a_namespaced_kind_needs_a_namespace_and_a_cluster_scoped_one_has_none(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        with pytest.raises(Invalid):
            await it.cluster.get(NodeNetworkConfig, "node-a")
        with pytest.raises(Invalid):
            await it.cluster.create(NodeNetworkConfig(metadata=ObjectMeta(name="node-a")), manager=MANAGER)
        with pytest.raises(Invalid):
            await it.cluster.delete(NodeNetworkConfig, "node-a")
        with pytest.raises(Invalid):
            await it.cluster.get(Node, "node-a", it.namespace)
        with pytest.raises(Invalid):
            await it.cluster.list(Node, it.namespace)


async def test_cluster_scoped_objects_are_got_and_listed_without_a_namespace(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        name = f"{it.namespace}-node"
        made = await it.cluster.create(Node(metadata=ObjectMeta(name=name)), manager=MANAGER)
        got = await it.cluster.get(Node, name)
        (listed,) = (await it.cluster.list(Node, fields=f"metadata.name={name}")).items
        # Only that it is this one: where there are controllers, they write to nodes at once.
        assert got.metadata.uid == listed.metadata.uid == made.metadata.uid
        await it.cluster.delete(Node, name)


async def test_what_a_caller_does_to_an_answer_does_not_change_the_cluster(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config(labels={"zone": "a"}))
        made.metadata.labels["zone"] = "b"
        got = await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace)
        assert got.metadata.labels == {"zone": "a"}
        got.metadata.labels.clear()
        got.spec.ips_not_in_use.append("x")
        page = await it.cluster.list(NodeNetworkConfig, it.namespace, labels="zone=a")
        assert page.items[0].metadata.labels == {"zone": "a"}
        assert page.items[0].spec.ips_not_in_use == []


async def test_a_list_has_the_objects_of_one_namespace(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.config("here"), it.config("there", namespace=it.other_namespace))
        page = await it.cluster.list(NodeNetworkConfig, it.namespace)
        assert names(page.items) == ["here"]
        assert page.more == ""


async def test_a_list_of_nothing_is_empty_and_has_a_version(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        page = await it.cluster.list(NodeNetworkConfig, it.namespace)
        assert (page.items, page.more) == ([], "")
        assert page.resource_version not in {"", "0"}


async def test_a_list_without_namespace_has_the_objects_of_all_ordered_by_namespace_and_name_as_one_text(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        ours = {"contract": it.namespace}
        for namespace in (it.namespace, it.other_namespace):
            await it.create(
                *(it.config(name, labels=ours, namespace=namespace) for name in ("b", "a.b", "a", "a-b"))
            )
        page = await it.cluster.list(NodeNetworkConfig, labels=f"contract={it.namespace}")
        keys = [str(item.key) for item in page.items]
        assert len(keys) == 8
        assert keys == sorted(keys)
        assert keys[0] == f"{it.other_namespace}/a"


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("tier=front", ["a"]),
        ("tier==front", ["a"]),
        ("tier!=front", ["b", "c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier in (front, back)", ["a", "b"]),
        ("tier notin (front)", ["b", "c"]),
        ("app=x,tier!=front", ["b"]),
        ("podtide.example/app=x", ["c"]),
        ("app=", []),
    ],
)
async def test_label_selectors_are_evaluated_by_the_server(
    open_cluster: OpenCluster, selector: str, selected: list[str]
) -> None:
    async with open_cluster() as it:
        await it.create(
            it.config("a", labels={"app": "x", "tier": "front"}),
            it.config("b", labels={"app": "x", "tier": "back"}),
            it.config("c", labels={"podtide.example/app": "x"}),
        )
        assert (
            names((await it.cluster.list(NodeNetworkConfig, it.namespace, labels=selector)).items) == selected
        )


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("metadata.name=b", ["b"]),
        ("metadata.name==b", ["b"]),
        ("metadata.name!=b", ["a", "c"]),
        ("metadata.name!=a,metadata.name!=c", ["b"]),
        ("metadata.name=nobody", []),
    ],
)
async def test_field_selectors_are_evaluated_by_the_server(
    open_cluster: OpenCluster, selector: str, selected: list[str]
) -> None:
    async with open_cluster() as it:
        await it.create(it.config("a"), it.config("b"), it.config("c"))
        assert (
            names((await it.cluster.list(NodeNetworkConfig, it.namespace, fields=selector)).items) == selected
        )


async def test_pods_are_selected_by_their_node(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.pod("a", "n1"), it.pod("b", "n2"), it.pod("c", "n1"), it.pod("d"))
        for selector, selected in (("n1", ["a", "c"]), ("n2", ["b"]), ("", ["d"])):
            page = await it.cluster.list(Pod, it.namespace, fields=f"spec.nodeName={selector}")
            assert names(page.items) == selected
        page = await it.cluster.list(Pod, it.namespace, fields="spec.nodeName!=n1,status.phase=Pending")
        assert names(page.items) == ["b", "d"]


@pytest.mark.parametrize(
    ("fields", "labels"),
    [
        ("spec.requestedIPCount=1", ""),
        ("metadata.name", ""),
        ("", "tier in front"),
        ("", "tier in (front"),
        ("", "=front"),
        ("", "tier=a b"),
    ],
)
async def test_a_field_the_kind_does_not_offer_is_invalid_and_so_is_what_is_no_selector(
    open_cluster: OpenCluster, fields: str, labels: str
) -> None:
    async with open_cluster() as it:
        with pytest.raises(Invalid):
            await it.cluster.list(NodeNetworkConfig, it.namespace, fields=fields, labels=labels)


async def test_with_a_limit_there_are_at_most_that_many_items_and_a_token_for_the_rest(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        await it.create(*(it.config(name) for name in "abcde"))
        pages = [await it.cluster.list(NodeNetworkConfig, it.namespace, limit=2)]
        while pages[-1].more:
            pages.append(await it.cluster.list(NodeNetworkConfig, it.namespace, limit=2, more=pages[-1].more))
        assert [names(page.items) for page in pages] == [["a", "b"], ["c", "d"], ["e"]]


async def test_a_limit_counts_selected_objects_only(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(
            *(it.config(name, labels={"odd": str(index % 2)}) for index, name in enumerate("abcdef"))
        )
        first = await it.cluster.list(NodeNetworkConfig, it.namespace, labels="odd=1", limit=2)
        rest = await it.cluster.list(
            NodeNetworkConfig, it.namespace, labels="odd=1", limit=2, more=first.more
        )
        assert names(first.items) == ["b", "d"]
        assert names(rest.items) == ["f"]
        assert rest.more == ""


async def test_all_pages_of_a_list_show_the_same_instant(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(*(it.config(name, labels={"then": "yes"}) for name in "bdfh"))
        first = await it.cluster.list(NodeNetworkConfig, it.namespace, limit=1)
        (late,) = await it.create(it.config("e"))
        await it.cluster.delete(NodeNetworkConfig, "d", it.namespace)
        await it.cluster.apply(it.config("f", requested=99), manager=MANAGER)
        await it.cluster.delete(NodeNetworkConfig, "h", it.namespace)
        await it.create(it.config("h"))
        await it.cluster.delete(NodeNetworkConfig, late.metadata.name, it.namespace)
        second = await it.cluster.list(NodeNetworkConfig, it.namespace, limit=2, more=first.more)
        third = await it.cluster.list(NodeNetworkConfig, it.namespace, limit=2, more=second.more)
        pages = (first, second, third)
        assert [names(page.items) for page in pages] == [["b"], ["d", "f"], ["h"]]
        assert second.items[1].spec.requested_ip_count == 0
        assert third.items[0].metadata.labels == {"then": "yes"}
        assert len({page.resource_version for page in pages}) == 1
        assert third.more == ""


async def test_a_token_that_outlived_the_servers_memory_is_gone(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.config("a"), it.config("b"))
        page = await it.cluster.list(NodeNetworkConfig, it.namespace, limit=1)
        await it.create(it.config("c"))
        await it.expire_history()
        with pytest.raises(Gone):
            await it.cluster.list(NodeNetworkConfig, it.namespace, limit=1, more=page.more)


async def test_what_is_no_token_is_invalid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        for token in ("nonsense", "!", "e30=", "ü"):
            with pytest.raises(Invalid):
                await it.cluster.list(NodeNetworkConfig, it.namespace, limit=1, more=token)


async def test_a_list_without_a_token_is_as_fresh_as_get(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        await it.create(it.config("a"))
        assert names((await it.cluster.list(NodeNetworkConfig, it.namespace, limit=5)).items) == ["a"]
        await it.cluster.delete(NodeNetworkConfig, "a", it.namespace)
        assert names((await it.cluster.list(NodeNetworkConfig, it.namespace, limit=5)).items) == []


async def test_events_are_selected_by_what_they_are_about(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (about,) = await it.create(it.config())
        for name, item in (("first", about), ("second", it.config("node-b"))):
            event = Event(
                metadata=it.metadata(name),
                involved_object=ObjectReference.to(item),
                reason="Granted",
                message="16",
            )
            await it.cluster.create(event, manager=MANAGER)
        page = await it.cluster.list(Event, it.namespace, fields="involvedObject.name=node-a,reason=Granted")
        assert names(page.items) == ["first"]
