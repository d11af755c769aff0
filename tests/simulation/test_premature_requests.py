"""A request that an agent applies before it has listed what the request is computed from is found."""

import pytest

from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.simulation.checks.premature_requests import PrematureRequests
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


def found_after(*listed: str, applies: Resource = REQUEST) -> list[str]:
    found: list[object] = []
    requests = PrematureRequests("agent node-1", lambda _node: ("blue",), found.append)
    for subject in listed:
        requests.listed(subject)
    requests.check(applies)
    return [str(each) for each in found]


def test_an_agent_that_has_listed_everything_may_request() -> None:
    assert found_after(PODS, SUBNET, CONFIG) == []


def test_a_request_of_an_agent_that_has_not_listed_its_pods_is_found() -> None:
    assert found_after(CONFIG, SUBNET) == [
        "invariant 5: agent node-1 asked for 16 addresses before it was told of Pod spec.nodeName=node-1"
    ]


@pytest.mark.parametrize(
    "listed",
    [(CONFIG, PODS), (CONFIG, PODS, "ClusterSubnet metadata.name=red")],
    ids=["of none", "of another one"],
)
def test_a_request_of_an_agent_that_has_not_listed_its_own_subnet_is_found(listed: tuple[str, ...]) -> None:
    assert found_after(*listed) == [
        "invariant 5: agent node-1 asked for 16 addresses before it was told of ClusterSubnet metadata.name=blue"
    ]


def test_other_objects_may_be_applied_at_any_time() -> None:
    assert found_after(applies=new_pod("web", "node-1")) == []
