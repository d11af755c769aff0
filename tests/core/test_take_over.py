"""What is reserved when podtide takes another program's place: exactly what nodes have, once, or nothing and why."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podtide.core.subnet.take_over import (
    GivenAddress,
    GivenContainer,
    GivenNode,
    ShownPod,
    SubnetDefinition,
    TakeOverPlan,
    objections_to_return,
    plan_take_over,
)

PODS = SubnetDefinition(name="pods", cidrs=("10.1.0.0/24",), gateways=("10.1.0.1",))


def a_container(
    primary: str = "10.1.0.10", *ips: str, id_: str = "nc-1", cidr: str = "10.1.0.0/24", **more: object
) -> GivenContainer:
    fields = {"subnet": "pods", "gateway": "10.1.0.1", **more}
    given_addresses = tuple(GivenAddress(f"name-of-{ip}", ip) for ip in ips)
    return GivenContainer(id=id_, primary=primary, cidr=cidr, addresses=given_addresses, **fields)  # type: ignore[arg-type]  # as it checks


def a_node(name: str = "n1", *containers: GivenContainer, **more: object) -> GivenNode:
    fields = {"uid": f"uid-{name}", "owner": f"uid-{name}", **more}
    return GivenNode(name=name, containers=containers or (a_container(),), **fields)  # type: ignore[arg-type]  # as it checks


def words(plan: TakeOverPlan) -> str:
    return "\n".join(each.words for each in plan.objections)


def test_every_node_gets_what_it_has() -> None:
    node = a_node(
        "n1", a_container("10.1.0.10", "10.1.0.11", "10.1.0.12"), pods=(ShownPod("web", ("10.1.0.12",)),)
    )
    plan = plan_take_over([node], [])
    assert not plan.objections
    assert plan.subnets == (PODS,)
    (container,) = plan.containers
    assert (container.node, container.node_uid, container.subnet) == ("n1", "uid-n1", "pods")
    assert (container.primary, container.addresses) == ("10.1.0.10", ("10.1.0.11", "10.1.0.12"))
    assert (container.given_as, container.is_second) == ("nc-1", False)


def test_a_subnet_that_the_allocator_has_is_not_added_again() -> None:
    assert plan_take_over([a_node()], [PODS]).subnets == ()


def test_a_subnet_without_a_stated_gateway_has_its_first_address_for_that() -> None:
    (subnet,) = plan_take_over([a_node("n1", a_container(gateway=""))], []).subnets
    assert subnet.gateways == ("10.1.0.1",)


def test_addresses_of_one_subnet_may_be_in_several_cidrs() -> None:
    other = a_container("10.2.0.10", cidr="10.2.0.0/24", gateway="10.2.0.1")
    plan = plan_take_over([a_node("n1"), a_node("n2", other)], [])
    assert not plan.objections
    assert plan.subnets == (
        SubnetDefinition(
            name="pods", cidrs=("10.1.0.0/24", "10.2.0.0/24"), gateways=("10.1.0.1", "10.2.0.1")
        ),
    )


def test_a_node_of_two_families_has_two_containers() -> None:
    v6 = a_container("fd00::10", "fd00::11", id_="nc-6", cidr="fd00::/64", subnet="pods6", gateway="fd00::1")
    for containers in ((a_container(), v6), (v6, a_container())):
        plan = plan_take_over([a_node("n1", *containers)], [])
        assert not plan.objections
        assert {each.subnet: each.is_second for each in plan.containers} == {"pods": False, "pods6": True}
    assert [each.is_second for each in plan_take_over([a_node("n1", v6)], []).containers] == [False]


def test_what_the_node_named_for_release_is_not_reserved() -> None:
    given_up = frozenset({"name-of-10.1.0.11"})
    node = a_node("n1", a_container("10.1.0.10", "10.1.0.11", "10.1.0.12"), given_up=given_up)
    other = a_node("n2", a_container("10.1.0.20", "10.1.0.11"))
    plan = plan_take_over([node, other], [])
    assert not plan.objections
    assert plan.containers[0].addresses == ("10.1.0.12",)


@pytest.mark.parametrize(
    ("nodes", "known", "said"),
    [
        ([a_node(owner="")], [], "no Node as its controller"),
        ([a_node(uid="")], [], "does not exist"),
        ([a_node(uid="uid-new")], [], "is another by now"),
        ([a_node("n1", a_container(is_static=True))], [], "block of addresses"),
        ([a_node("n1", a_container(), a_container("10.1.0.20", id_="nc-2"))], [], "second of IPv4"),
        ([a_node("n1", a_container("10.1.0.1"))], [], "cannot grant"),
        ([a_node("n1", a_container("10.1.0.10", "10.9.0.1"))], [], "cannot grant"),
        ([a_node("n1", a_container("no address"))], [], "no address"),
        ([a_node("n1", a_container("10.1.0.10", "10.1.0.10"))], [], "twice"),
        ([a_node("n1", a_container(cidr="10.1.0.0/33"))], [], "nc-1"),
        ([a_node("n1", a_container(gateway="nonsense"))], [], "nc-1"),
        ([a_node("n1", a_container(cidr="10.1.0.0/31", gateway=""))], [], "subnet pods"),
        ([a_node("n1", a_container(subnet=""))], [], "which subnet"),
        ([a_node("n1", a_container()), a_node("n2", a_container("10.1.0.20", gateway="10.1.0.2"))], [], "gateway"),
        ([a_node("n1", a_container()), a_node("n2", a_container("10.1.0.20", subnet="others"))], [], "overlap"),
        ([a_node()], [replace(PODS, cidrs=("10.2.0.0/24",), gateways=())], "10.2.0.0/24"),
        ([a_node()], [replace(PODS, gateways=("10.1.0.9",))], "gateway"),
        ([a_node()], [replace(PODS, keep_back=("10.1.0.10",))], "kept back"),
        ([a_node()], [replace(PODS, name="others")], "overlap"),
        ([a_node("n1", pods=(ShownPod("web", ("10.1.0.77",)),))], [], "pod web on node n1 shows 10.1.0.77"),
        ([a_node("n1", pods=(ShownPod("web", ("10.1.0.10",)),))], [], "primary"),
        (
            [a_node("n1", a_container("10.1.0.10", "10.1.0.11"), pods=(ShownPod("a", ("10.1.0.11",)), ShownPod("b", ("10.1.0.11",))))],
            [],
            "pods a and b show",
        ),
        (
            [
                a_node(
                    "n1",
                    a_container("10.1.0.10", "10.1.0.11"),
                    given_up=frozenset({"name-of-10.1.0.11"}),
                    pods=(ShownPod("web", ("10.1.0.11",)),),
                )
            ],
            [],
            "given up",
        ),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_told(
    nodes: Sequence[GivenNode], known: Sequence[SubnetDefinition], said: str
) -> None:
    plan = plan_take_over(nodes, known)
    assert said in words(plan)


def test_an_objection_says_which_nodes_it_is_about() -> None:
    twice = [
        a_node("n1"),
        a_node("n2", a_container("10.1.0.10", id_="nc-2")),
        a_node("n3", a_container("10.1.0.30")),
    ]
    (objection,) = plan_take_over(twice, []).objections
    assert [objection.concerns(name) for name in ("n1", "n2", "n3")] == [True, True, False]
    (of_all,) = plan_take_over([a_node()], [replace(PODS, name="others")]).objections
    assert of_all.concerns("n1")


def test_pods_of_other_networks_do_not_matter() -> None:
    pods = (ShownPod("other", ("192.168.0.1", "nonsense", "")),)
    assert not plan_take_over([a_node("n1", pods=pods)], []).objections


def test_a_node_goes_back_only_with_addresses_that_it_had() -> None:
    node = a_node(
        "n1", a_container("10.1.0.10", "10.1.0.11", "10.1.0.12"), given_up=frozenset({"name-of-10.1.0.12"})
    )
    old, new = ShownPod("old", ("10.1.0.11",)), ShownPod("new", ("10.1.0.99",))
    released = ShownPod("released", ("10.1.0.12",))
    assert not list(objections_to_return([replace(node, pods=(old,))]))
    told = list(objections_to_return([replace(node, pods=(old, new, released))]))
    assert [each.words.split()[1] for each in told] == ["new", "released"]
    assert all(each.nodes == ("n1",) for each in told)


@st.composite
def clusters(draw: st.DrawFn) -> list[GivenNode]:
    """Nodes that agree with each other, and with their pods."""
    count = draw(st.integers(1, 5))
    free = iter(draw(st.permutations(range(2, 255))))
    nodes = []
    for number in range(count):
        ips = [f"10.1.0.{next(free)}" for _ in range(draw(st.integers(1, 12)))]
        gone = draw(st.sets(st.sampled_from(ips[1:]), max_size=3)) if ips[1:] else set()
        kept = [ip for ip in ips[1:] if ip not in gone]
        used = draw(st.sets(st.sampled_from(kept))) if kept else set()
        nodes.append(
            a_node(
                f"n{number}",
                a_container(*ips, id_=f"nc-{number}"),
                given_up=frozenset(f"name-of-{ip}" for ip in gone),
                pods=tuple(ShownPod(f"pod-{ip}", (ip,)) for ip in sorted(used)),
            )
        )
    return nodes


@given(clusters())
def test_in_a_cluster_that_agrees_nothing_is_refused_and_every_pod_keeps_its_address(
    nodes: list[GivenNode],
) -> None:
    plan = plan_take_over(nodes, [])
    assert not plan.objections
    by_node = {each.node: each for each in plan.containers}
    for node in nodes:
        planned = by_node[node.name]
        (container,) = node.containers
        assert planned.primary == container.primary
        assert set(planned.addresses) == {
            each.ip for each in container.addresses if each.name not in node.given_up
        }
        assert all(set(pod.addresses) <= set(planned.addresses) for pod in node.pods)
    everything = [ip for each in plan.containers for ip in (each.primary, *each.addresses)]
    assert len(everything) == len(set(everything))


@given(clusters(), st.data())
def test_an_address_that_two_nodes_list_is_always_told(nodes: list[GivenNode], data: st.DataObject) -> None:
    giver = data.draw(st.sampled_from(nodes))
    container = giver.containers[0]
    held = [container.primary, *(each.ip for each in container.addresses if each.name not in giver.given_up)]
    stolen = data.draw(st.sampled_from(held))
    thief = a_node("thief", a_container(stolen, id_="nc-thief"))
    plan = plan_take_over([*nodes, thief], [])
    assert any(stolen in each.words and each.concerns("thief") for each in plan.objections)


@given(clusters(), st.data())
def test_a_pod_whose_address_its_node_does_not_have_is_always_told(
    nodes: list[GivenNode], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(nodes) - 1))
    (container,) = nodes[number].containers
    own = {each.ip for each in container.addresses if each.name not in nodes[number].given_up}
    wrong = data.draw(st.integers(2, 254).map(lambda each: f"10.1.0.{each}").filter(lambda ip: ip not in own))
    changed = replace(nodes[number], pods=(*nodes[number].pods, ShownPod("stray", (wrong,))))
    plan = plan_take_over([*nodes[:number], changed, *nodes[number + 1 :]], [])
    assert any("stray" in each.words and each.concerns(changed.name) for each in plan.objections)
