"""What others published about how many pods or nodes their addresses serve, computed by the same functions as a plan.

The numbers are facts of the sources that each test names.
"""

from typing import Any

import pytest

from podtide.core.networks.slices import Slicing, assign_slices
from podtide.core.plan.node_loads import PlannedLoad
from podtide.core.plan.sizing import BatchPlan, PlanQuestion, PlanStrategy, plan_batch
from podtide.core.plan.warm_pool import WarmHolding, WarmTarget, warm_holding
from podtide.core.ranges import parse_range
from podtide.core.subnet.layout import SubnetLayout, choose_gateways
from recordings import whereabouts

AZURE = SubnetLayout(["10.0.0.0/24"], choose_gateways(["10.0.0.0/24"]), keep_back_first=2)
"""Azure keeps five addresses of a subnet: the first four, and the last."""


def of_a_24(strategy: PlanStrategy, nodes: int) -> BatchPlan:
    """Nodes of 32 pods, of which 6 are on the host network, in a /24."""
    load = PlannedLoad(live={26: nodes})
    question = PlanQuestion(rest=load, worst=load, capacity=AZURE.capacity, max_ips=32)
    return plan_batch(strategy, 16, question)


def test_a_24_of_azure_has_251_addresses() -> None:
    assert AZURE.capacity == 251


@pytest.mark.parametrize("nodes", [8, 10, 40])
def test_of_251_addresses_198_are_usable_in_batches_of_16(nodes: int) -> None:
    """Azure/AKS#4035: seven nodes hold 32 addresses for 26 pods each, the eighth 16, and the rest of the /24 serves none."""
    assert of_a_24(PlanStrategy.REACTIVE, nodes).rest.served == 198


def test_podtide_serves_all_that_the_same_24_has_beside_a_primary_for_each_node() -> None:
    assert of_a_24(PlanStrategy.ADAPTIVE, 9).rest.served == 9 * 26
    assert of_a_24(PlanStrategy.ADAPTIVE, 10).rest.served == 251 - 10


def cut(cidr: str, prefix: int) -> Slicing:
    return Slicing(parse_range(cidr).range, prefix)


@pytest.mark.parametrize(
    ("cidr", "prefix", "nodes"), [("10.0.0.0/20", 24, 16), ("10.4.0.0/14", 24, 1024), ("10.0.0.0/21", 24, 8)]
)
def test_with_a_24_for_each_node_a_range_serves_so_many_nodes(cidr: str, prefix: int, nodes: int) -> None:
    """GKE's documentation of VPC-native clusters: with up to 110 pods a node has a /24 of the pods' range for itself."""
    assert cut(cidr, prefix).count == nodes


def recorded_divisions() -> list[Any]:
    """How Whereabouts itself divided ranges into slices, as far as a slice has an address to give."""
    divisions = whereabouts("iphelpers")["DivideRangeBySize"]
    return [each for each in divisions if each["out"] and each["slice_size"] != "/32"]


@pytest.mark.parametrize("recorded", recorded_divisions(), ids=str)
def test_a_sliced_range_of_whereabouts_serves_as_many_nodes_as_it_made_slices(recorded: Any) -> None:
    """Recorded from Whereabouts 0.9.4 (`node_slice_size`): one slice for each node."""
    slicing = cut(recorded["range"], int(recorded["slice_size"].removeprefix("/")))
    nodes = len(recorded["out"])
    assert slicing.count == nodes
    plan = assign_slices(slicing, (), [f"node-{number}" for number in range(nodes + 1)])
    assert [str(each.slice) for each in plan.added] == recorded["out"]
    assert plan.waiting == (f"node-{nodes}",)


T3_SMALL, P3DN_24XLARGE = (3, 3), (15, 49)
"""Interfaces, and secondary addresses of each."""


@pytest.mark.parametrize(
    ("instance", "warm", "minimum", "pods", "secondary", "interfaces"),
    [
        (T3_SMALL, None, 0, 0, 3, 1),
        (T3_SMALL, None, 0, 5, 9, 3),
        (T3_SMALL, None, 0, 9, 9, 3),
        (T3_SMALL, 1, 1, 0, 1, 1),
        (T3_SMALL, 1, 1, 5, 6, 2),
        (T3_SMALL, 1, 1, 9, 9, 3),
        (T3_SMALL, 2, 5, 0, 5, 2),
        (T3_SMALL, 2, 5, 5, 7, 3),
        (T3_SMALL, 2, 5, 9, 9, 3),
        (P3DN_24XLARGE, None, 0, 0, 49, 1),
        (P3DN_24XLARGE, None, 0, 3, 98, 2),
        (P3DN_24XLARGE, None, 0, 95, 147, 3),
        (P3DN_24XLARGE, 5, 10, 0, 10, 1),
        (P3DN_24XLARGE, 5, 10, 7, 12, 1),
        (P3DN_24XLARGE, 5, 10, 15, 20, 1),
        (P3DN_24XLARGE, 5, 10, 45, 50, 2),
    ],
)
def test_the_documented_warm_targets_of_the_aws_vpc_cni(  # noqa: PLR0917 - the columns of the table
    instance: tuple[int, int], warm: int | None, minimum: int, pods: int, secondary: int, interfaces: int
) -> None:
    """amazon-vpc-cni-k8s, docs/eni-and-ip-target.md: every row of its table of WARM_ENI_TARGET, WARM_IP_TARGET and MINIMUM_IP_TARGET."""
    target = WarmTarget(
        warm_ips=warm, minimum_ips=minimum, interfaces=instance[0], ips_per_interface=instance[1]
    )
    assert warm_holding(pods, target) == WarmHolding(secondary, interfaces)
