import pytest

from podtide.agent.node_config import is_owed, networks_of, node_scaler_of, waiting_pods_said
from podtide.core.pool import Container
from podtide.core.scaler import NodeScaler
from podtide.resources.base import ObjectMeta
from podtide.resources.marks import WAITING_PODS_ANNOTATION
from podtide.resources.node_network_config import (
    ContainerStatus,
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigStatus,
    Scaler,
)


def config(*containers: NetworkContainer, scaler: Scaler | None = None) -> NodeNetworkConfig:
    status = NodeNetworkConfigStatus(network_containers=list(containers), scaler=scaler or Scaler())
    return NodeNetworkConfig(status=status)


def test_a_container_of_the_second_family_is_read_from_its_own_fields() -> None:
    second = NetworkContainer(
        id="uid-v6",
        primary_ipv6="fd00::1",
        subnet_address_space_v6="fd00::/64",
        default_gateway_v6="fd00::ffff",
        subnet_name="six",
        version=3,
        ip_assignments=[IPAssignment(name="n-1", ip="FD00:0::5")],
    )
    [network] = networks_of(config(second))
    assert network.container == Container("uid-v6", 3, 6, {"n-1": "fd00::5"})
    assert (network.subnet, network.cidr, network.gateway) == ("six", "fd00::/64", "fd00::ffff")
    assert network.primary == "fd00::1"


def test_a_container_without_an_id_is_none() -> None:
    assert networks_of(config(NetworkContainer())) == ()


@pytest.mark.parametrize(
    ("scaler", "read"),
    [
        (Scaler(), NodeScaler()),
        (Scaler(max_ip_count=30), NodeScaler(max_ips=30)),
        (
            Scaler(batch_size=8, request_threshold_percent=25, max_ip_count=30),
            NodeScaler(batch=8, request_percent=25, max_ips=30),
        ),
        (Scaler(batch_size=1), NodeScaler(batch=1, request_percent=0)),
    ],
)
def test_a_scaler_that_was_never_written_says_nothing_and_a_written_zero_is_one(
    scaler: Scaler, read: NodeScaler
) -> None:
    assert node_scaler_of(config(scaler=scaler)) == read


def test_a_node_is_owed_when_a_container_found_its_subnet_full() -> None:
    assert not is_owed(config(NetworkContainer(id="a", status=ContainerStatus.SUCCESS)))
    assert is_owed(
        config(NetworkContainer(id="a"), NetworkContainer(id="b", status=ContainerStatus.SUBNET_FULL))
    )


@pytest.mark.parametrize(("written", "read"), [("", 0), ("7", 7), ("-7", 0), ("many", 0), ("\u0667", 0)])
def test_the_number_of_waiting_pods_is_read_where_it_is_one(written: str, read: int) -> None:
    annotated = NodeNetworkConfig(metadata=ObjectMeta(annotations={WAITING_PODS_ANNOTATION: written}))
    assert waiting_pods_said(annotated) == read
    assert waiting_pods_said(NodeNetworkConfig()) == 0
