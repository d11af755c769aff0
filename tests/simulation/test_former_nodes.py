"""What an agent gives away of a Node that was gone before the agent began is found."""

from podtide.core.pool.address import Address, Owner
from podtide.core.pool.adoption import stand_in_for
from podtide.core.pool.demand import PodOnNode
from podtide.core.pool.states import State
from podtide.simulation.checks.former_nodes import FormerNodes, gift_of


def address_of(container: str, state: State) -> Address:
    return Address(name=f"{container}-2-5", ip="10.0.0.5", container=container, state=state)


def test_a_node_of_that_name_that_is_not_the_present_one_is_a_former_one() -> None:
    nodes = FormerNodes()
    nodes.granted("node-1", "uid-a")
    nodes.granted("node-1", "uid-b")
    nodes.granted("node-1", "uid-b-v6")
    nodes.granted("node-2", "uid-c")
    assert nodes.before("node-1", "uid-b") == {"uid-a"}
    assert nodes.before("node-1", "") == {"uid-a", "uid-b"}
    assert nodes.before("node-3", "uid-d") == frozenset()


def test_an_address_of_a_former_node_that_is_given_to_a_pod_is_found() -> None:
    found = gift_of(frozenset({"uid-a"}), "node-1", address_of("uid-a-v6", State.ASSIGNED))
    assert str(found) == (
        "invariant 4: 10.0.0.5 was given to a pod on node-1 as an address of Node uid-a, which was gone before the agent began"
    )


def test_what_is_not_given_to_a_pod_or_is_of_the_present_node_is_right() -> None:
    former = frozenset({"uid-a"})
    assert gift_of(former, "node-1", address_of("uid-a", State.ORPHANED)) is None
    assert gift_of(former, "node-1", address_of("uid-b", State.ASSIGNED)) is None


def test_what_a_pod_shows_to_have_is_adopted_and_not_given() -> None:
    address = address_of("uid-a", State.ASSIGNED)
    address.owner = stand_in_for(PodOnNode(uid="pod-uid", namespace="default", name="web-0"))
    assert gift_of(frozenset({"uid-a"}), "node-1", address) is None
    address.owner = Owner(sandbox="sandbox-1", interface="eth0")
    assert gift_of(frozenset({"uid-a"}), "node-1", address) is not None
