"""`podtide why`: every obstacle on an address's way is found, and the one that matters is in the first line."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster, addresses, served
from podtide.cli.why.chain import DecisionChain, build_chain
from podtide.cli.why.facts import NoSuchSubject, gather_facts
from podtide.cluster.port import AlreadyExists, Patch
from podtide.resources.base import ObjectMeta
from podtide.resources.event import Event, EventType, ObjectReference
from podtide.resources.metadata_keys import IPV4_RESOURCE, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NetworkContainer, NodeNetworkConfig, ScalerStatus
from podtide.resources.pod import Pod, PodPhase
from podtide.resources.timestamps import to_wall_seconds

NOW = to_wall_seconds("2026-11-05T12:01:40Z")


RENEWED = "2026-11-05T12:01:39Z"


async def why(drawn: DrawnCluster, name: str, namespace: str = "default") -> DecisionChain:
    """The answer while a controller leads."""
    with suppress(AlreadyExists):
        await drawn.lead(renewed=RENEWED)
    return build_chain(await gather_facts(drawn.cluster, name, namespace, NOW))


def said(chain: DecisionChain, topic: str) -> list[str]:
    """What the chain says about a topic, details included."""
    return [words for link in chain.links if link.topic == topic for words in (link.words, *link.details)]


async def test_an_address_leads_to_its_container_and_subnet() -> None:
    drawn = DrawnCluster()
    config = await drawn.config("a", requested=15, granted=addresses(15))
    await drawn.pod("web", "a", "10.1.0.12")
    await drawn.subnet(reserved=16)
    chain = await why(drawn, "web")
    assert (chain.verdict, chain.addresses) == ("pod default/web has 10.1.0.12", ("10.1.0.12",))
    container = config.status.network_containers[0].id
    assert said(chain, "address") == [f"10.1.0.12 (grant-10-1-0-12) of container {container} in subnet pods"]
    assert said(chain, "demand") == ["1 pod needs an address: 1 with one, 0 without; 14 free on the node"]
    assert said(chain, "decision")[0] == "request 15 = 16·⌈0.5 + 1/16⌉ - 1; demand 1, 14 free"
    assert said(chain, "request") == ["NodeNetworkConfig a asks for 15"]
    assert chain.headline == "pod default/web has 10.1.0.12: nothing has to happen"


async def test_a_full_subnet_is_why_a_pod_waits_and_what_to_do_is_said() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=3, granted=addresses(2), short=True)
    await drawn.config("b", requested=9, granted=addresses(3, 50), short=True)
    await drawn.config("c", requested=1, granted=addresses(1, 90))
    for number, ip in enumerate([*addresses(2), ""]):
        await drawn.pod(f"web-{number}", "a", ip)
    await drawn.subnet(reserved=253, batch=1, buffer=0.0, exhausted=True, starved=True)
    chain = await why(drawn, "web-2")
    assert chain.verdict == "pod default/web-2 has no address"
    assert said(chain, "subnet") == [
        (
            "pods: 253 of 253 reserved (by ClusterSubnet pods, at most half a minute ago), 0 free; "
            "exhausted, starved; batch 1, buffer 0"
        )
    ]
    assert said(chain, "grant")[1] == (
        "Granted=False for 100s (SubnetShort): subnet pods: 2 addresses held, 3 asked for"
    )
    assert chain.headline == (
        "pod default/web-2 has no address: subnet pods is full: all 253 addresses are reserved, "
        "2 nodes are owed 7 addresses, 4 are idle on b (3), c (1) and given back as the batch goes down, "
        "244 held by other clusters or in quarantine; "
        "grow it with `podtide subnet grow blue pods CIDR --allocator URL`, or remove pods"
    )
    assert (await why(drawn, "node/a")).next == chain.next


async def test_since_when_a_subnet_is_exhausted_is_told_by_its_state() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=2, granted=addresses(2))
    await drawn.subnet(reserved=240, batch=1, buffer=1.0, exhausted=True)
    await drawn.subnet_state(exhausted=True)
    assert said(await why(drawn, "a"), "subnet") == [
        (
            "pods: 240 of 253 reserved (by ClusterSubnet pods, at most half a minute ago), 13 free; "
            "exhausted for 100s; batch 1, buffer 1"
        )
    ]


async def test_addresses_that_came_free_are_granted_next() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=3, granted=addresses(1), short=True)
    for number, ip in enumerate(["10.1.0.10", "", ""]):
        await drawn.pod(f"web-{number}", "a", ip)
    await drawn.subnet(reserved=251, batch=1, buffer=0.0, exhausted=True, starved=True)
    assert (await why(drawn, "web-2")).next == (
        "2 addresses are free in subnet pods and 1 node is owed 2 addresses: "
        "the request controller grants them at its next reconcile, within seconds"
    )


async def test_a_request_the_agent_has_not_made_is_the_agents_to_make() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=15, granted=addresses(15))
    for number in range(36):
        await drawn.pod(f"web-{number}", "a")
    await drawn.subnet()
    chain = await why(drawn, "web-35")
    assert said(chain, "request") == ["NodeNetworkConfig a asks for 15, and 47 would be right"]
    assert chain.numbers is not None
    assert (chain.numbers.demand, chain.numbers.should_request) == (36, 47)
    assert chain.next == "the agent on node a asks for 47 within a second"


async def test_a_request_that_is_larger_than_it_need_be_is_told() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=47, granted=addresses(47))
    await drawn.subnet()
    chain = await why(drawn, "a")
    assert said(chain, "request") == [
        "NodeNetworkConfig a asks for 47, and 15 would do, once that has stood for a while"
    ]
    assert chain.headline == (
        "node a, where 0 pods have an address and 0 wait for one: nothing has to happen"
    )


async def test_of_two_subnets_the_more_frugal_one_decides() -> None:
    drawn = DrawnCluster()
    config = await drawn.config("a", requested=15, granted=addresses(15))
    second = NetworkContainer(
        id="second", subnet_name="pods-v6", primary_ipv6="fd00::1", subnet_address_space_v6="fd00::/64"
    )
    both = [*config.status.network_containers, second]
    status = replace(config.status, network_containers=both)
    await drawn.cluster.replace_status(replace(config, status=status), manager="test")
    await drawn.subnet("pods", batch=16)
    await drawn.subnet("pods-v6", batch=1, buffer=1.0, exhausted=True)
    chain = await why(drawn, "a")
    assert said(chain, "parameters") == [
        "batch 1, buffer 1, at most 250 addresses, P = 1 (by ClusterSubnet pods-v6)"
    ]
    assert len([link for link in chain.links if link.topic in {"grant", "subnet"}]) == 4


async def test_a_request_that_was_not_answered_is_the_controllers_to_answer() -> None:
    drawn = DrawnCluster()
    config = await drawn.config("a", requested=0)
    spec = replace(config.spec, requested_ip_count=15)
    await drawn.cluster.replace(replace(config, spec=spec), manager="agent")
    await drawn.pod("web", "a")
    await drawn.subnet()
    assert (await why(drawn, "web")).next.startswith(
        "the request controller answers the request within seconds"
    )


async def test_a_node_at_its_maximum_says_so() -> None:
    drawn = DrawnCluster()
    config = await drawn.config("a", requested=2, granted=addresses(2))
    status = replace(config.status, scaler=ScalerStatus(batch_size=1, max_ip_count=2))
    await drawn.cluster.replace_status(replace(config, status=status), manager="test")
    for number, ip in enumerate([*addresses(2), ""]):
        await drawn.pod(f"web-{number}", "a", ip)
    chain = await why(drawn, "web-2")
    assert chain.next == (
        "node a may have 2 addresses and has 3 pods: raise max_ips, or move pods to other nodes"
    )


async def test_an_address_that_is_there_waits_for_the_plugin() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=15, granted=addresses(15))
    await drawn.pod("web", "a")
    await drawn.subnet()
    assert "the next call of the plugin takes one" in (await why(drawn, "web")).next


async def test_a_pod_that_needs_no_address_is_told_apart() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=15, granted=addresses(15))
    await drawn.pod("host", "a", host_network=True)
    await drawn.pod("done", "a", "10.1.0.10", phase=PodPhase.SUCCEEDED)
    for name, words in (("host", "on the host's network"), ("done", "it has ended (Succeeded)")):
        chain = await why(drawn, name)
        assert chain.verdict == f"pod default/{name} needs no address"
        assert words in said(chain, "need")[0]
        assert chain.next == "nothing has to happen"
    assert said(await why(drawn, "a"), "demand") == [
        "0 pods need an address: 0 with one, 0 without; 15 free on the node",
        "not counted: 1 ended or being deleted, 1 on the host's network",
    ]


async def test_a_pod_that_is_being_deleted_still_counts_while_it_shows_its_address() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=15, granted=addresses(15))
    await drawn.pod("web", "a", "10.1.0.10")
    await drawn.cluster.delete(Pod, "web", "default")
    chain = await why(drawn, "web")
    assert said(chain, "need") == ["none for long: it is being deleted, and no new sandbox is made for it"]
    assert said(chain, "demand")[0] == "1 pod needs an address: 1 with one, 0 without; 14 free on the node"


async def test_a_pod_without_a_node_waits_for_the_scheduler() -> None:
    drawn = DrawnCluster()
    await drawn.pod("web")
    chain = await why(drawn, "web")
    assert chain.numbers is None
    assert chain.next.startswith("the scheduler has to find it a node")


async def test_a_pod_that_requests_an_address_waits_for_a_node_that_publishes_one() -> None:
    drawn = DrawnCluster()
    await drawn.pod("web")
    containers = [{"name": "main", "resources": {"requests": {IPV4_RESOURCE: "1"}}}]
    changes = {"spec": {"containers": containers}}
    await drawn.cluster.patch(Patch(Pod, "web", namespace="default", changes=changes), manager="policy")
    chain = await why(drawn, "web")
    assert "a node that publishes podtide.io/ipv4" in chain.next


async def test_what_a_node_lacks_is_said() -> None:
    drawn = DrawnCluster()
    await drawn.node("bare")
    await drawn.pod("on-bare", "bare")
    await drawn.pod("on-gone", "gone")
    await drawn.config("empty", container=False, short=True)
    await drawn.pod("on-empty", "empty")
    await drawn.config("heir", owner=await drawn.node("other"))
    await drawn.pod("on-heir", "heir")
    for pod, words in {
        "on-bare": "NodeNetworkConfig kube-system/bare does not exist: the request controller creates it",
        "on-gone": "node gone is gone: Kubernetes removes its pods",
        "on-empty": "the request controller says: subnet pods: 0 addresses held",
        "on-heir": "NodeNetworkConfig heir belongs to an earlier node of that name",
    }.items():
        chain = await why(drawn, pod)
        assert chain.next.startswith(words), pod


async def test_an_address_nobody_gave_is_a_case_for_check() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=15, granted=addresses(15))
    await drawn.pod("web", "a", "10.1.0.99")
    chain = await why(drawn, "web")
    assert said(chain, "address") == ["10.1.0.99, which no network container of node a has"]
    assert "run `podtide check`" in chain.next


async def test_without_a_cluster_subnet_its_state_decides_and_without_that_the_node() -> None:
    drawn = DrawnCluster()
    await drawn.config("a", requested=15, granted=addresses(15))
    assert said(await why(drawn, "a"), "parameters") == [
        "batch 16, buffer 0.5, at most 250 addresses, P = 1 (by NodeNetworkConfig a)"
    ]
    await drawn.subnet_state(exhausted=True)
    chain = await why(drawn, "a")
    assert said(chain, "parameters") == [
        "batch 1, buffer 1, at most 250 addresses, P = 1 (by ClusterSubnetState pods, which is exhausted)"
    ]
    assert said(chain, "subnet") == ["pods: exhausted for 100s (ClusterSubnetState)"]
    await drawn.subnet(batch=4)
    assert said(await why(drawn, "a"), "parameters") == [
        "batch 4, buffer 0.5, at most 250 addresses, P = 1 (by ClusterSubnet pods)"
    ]


async def test_events_of_the_node_and_its_objects_are_told_and_those_of_a_namesake_are_not() -> None:
    drawn = DrawnCluster()
    config = await drawn.config("a", requested=15, granted=addresses(15))
    about = ObjectReference.to(config)
    for name, reference in (("mine", about), ("older", replace(about, uid="earlier"))):
        event = Event(
            metadata=ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE),
            involved_object=reference,
            type=EventType.WARNING,
            reason="SubnetShort",
            message=name,
            count=2,
            last_timestamp="2026-11-05T12:01:00Z",
        )
        await drawn.cluster.create(event, manager="test")
    assert said(await why(drawn, "node/a"), "event") == [
        "40s ago, 2 times, NodeNetworkConfig a: Warning SubnetShort: mine"
    ]


async def test_a_bare_name_is_a_pods_before_it_is_a_nodes() -> None:
    drawn = DrawnCluster()
    await drawn.config("same")
    await drawn.pod("same", "same")
    assert (await why(drawn, "same")).subject == "pod default/same"
    assert (await why(drawn, "pod/same")).subject == "pod default/same"
    assert (await why(drawn, "node/same")).subject == "node same"
    await drawn.cluster.delete(Node, "same")
    with pytest.raises(NoSuchSubject, match="there is no node same"):
        await why(drawn, "node/same")


async def test_a_pod_elsewhere_is_pointed_to() -> None:
    drawn = DrawnCluster()
    await drawn.pod("web", namespace="shop")
    with pytest.raises(NoSuchSubject, match="but a pod in namespace shop: name that with -n"):
        await why(drawn, "web")
    with pytest.raises(NoSuchSubject, match="neither a pod default/x nor a node x: check the name"):
        await why(drawn, "x")
    with pytest.raises(NoSuchSubject, match="names neither"):
        await why(drawn, "a/b/c")
    assert (await why(drawn, "web", "shop")).subject == "pod shop/web"


async def test_a_config_that_is_being_deleted_gives_nothing_new() -> None:
    drawn = DrawnCluster()
    config = await drawn.config("a", requested=15, granted=addresses(15))
    metadata = replace(config.metadata, finalizers=["podtide.io/network-container"])
    await drawn.cluster.replace(replace(config, metadata=metadata), manager="test")
    await drawn.cluster.delete(NodeNetworkConfig, "a", SYSTEM_NAMESPACE)
    await drawn.pod("web", "a")
    assert "is being deleted: nothing new is handed out" in (await why(drawn, "web")).next


async def draw_one_pod(drawn: DrawnCluster) -> None:
    await drawn.config("a", requested=15, granted=addresses(15))
    await drawn.pod("web", "a", "10.1.0.12")
    await drawn.subnet(reserved=16)


def test_it_answers_people_and_programs_over_http(podtide: Run, tmp_path: Path) -> None:
    with served(draw_one_pod, tmp_path) as kubeconfig:
        text = podtide("why", "web", "--kubeconfig", str(kubeconfig))
        verbose = podtide("why", "web", "--kubeconfig", str(kubeconfig), "--verbose")
        document = podtide("why", "web", "--kubeconfig", str(kubeconfig), "-o", "json")
        missing = podtide("why", "nobody", "--kubeconfig", str(kubeconfig))
    lines = text.out.splitlines()
    assert (text.status, lines[0]) == (0, "pod default/web has 10.1.0.12: nothing has to happen")
    assert not [line for line in lines if "⌈" in line]
    assert "aligned = B·⌈mf + U/B⌉ = 16·⌈0.5 + 1/16⌉ = 16" in verbose.out
    answer = json.loads(document.out)
    assert answer["numbers"] == {
        "node": "a",
        "demand": 1,
        "waiting": 0,
        "requested": 15,
        "held": 15,
        "owed": 0,
        "should_request": 15,
    }
    assert (missing.status, missing.out, missing.err.count("\n")) == (2, "", 1)
