"""An agent that asks before it was told is found, whatever comes of what it asked."""

import pytest

from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.simulation.checks.premature_requests import Hearsay
from podtide.simulation.nodes.pods import new_pod

REQUEST = NodeNetworkConfig(
    metadata=ObjectMeta(name="node-1", namespace=SYSTEM_NAMESPACE),
    spec=NodeNetworkConfigSpec(requested_ip_count=16),
)


CONFIG, PODS, SUBNET = (
    "NodeNetworkConfig metadata.name=node-1",
    "Pod spec.nodeName=node-1",
    "ClusterSubnet metadata.name=blue",
)


def found_after(*told: str, says: Resource = REQUEST) -> list[str]:
    found: list[object] = []
    hearsay = Hearsay("agent node-1", lambda _node: ("blue",), found.append)
    for subject in told:
        hearsay.told(subject)
    hearsay.says(says)
    return [str(each) for each in found]


def test_an_agent_that_was_told_of_everything_may_ask() -> None:
    assert found_after(PODS, SUBNET, CONFIG) == []


def test_a_request_of_an_agent_that_was_not_told_of_its_pods_is_found() -> None:
    assert found_after(CONFIG, SUBNET) == [
        "invariant 5: agent node-1 asked for 16 addresses before it was told of Pod spec.nodeName=node-1"
    ]


@pytest.mark.parametrize(
    "told",
    [(CONFIG, PODS), (CONFIG, PODS, "ClusterSubnet metadata.name=red")],
    ids=["of none", "of another one"],
)
def test_a_request_of_an_agent_that_was_not_told_of_its_own_subnet_is_found(told: tuple[str, ...]) -> None:
    assert found_after(*told) == [
        "invariant 5: agent node-1 asked for 16 addresses before it was told of ClusterSubnet metadata.name=blue"
    ]


def test_what_is_no_request_can_be_said_at_any_time() -> None:
    assert found_after(says=new_pod("web", "node-1")) == []
