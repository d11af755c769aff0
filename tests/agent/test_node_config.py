import pytest

from podtide.agent.request.node_config import is_owed, networks_of, node_scaler_of
from podtide.core.pool.pool import GrantedContainer
from podtide.core.subnet.scaler import NodeScaler
from podtide.resources.node_network_config import (
    ContainerStatus,
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigStatus,
    ScalerStatus,
)


def config(*containers: NetworkContainer, scaler: ScalerStatus | None = None) -> NodeNetworkConfig:
    status = NodeNetworkConfigStatus(network_containers=list(containers), scaler=scaler or ScalerStatus())
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
    assert network.container == GrantedContainer("uid-v6", 3, 6, {"n-1": "fd00::5"})
    assert (network.subnet, network.cidr, network.gateway) == ("six", "fd00::/64", "fd00::ffff")
    assert network.primary == "fd00::1"


@pytest.mark.parametrize(
    ("cidr", "gateway", "read", "complaints"),
    [
        ("10.0.0.4/16", "10.0.0.1", ("10.0.0.0/16", "10.0.0.1"), 0),
        ("", "", ("", ""), 0),
        ("garbage", "10.0.0.1", ("", "10.0.0.1"), 1),
        ("10.0.0.0", "10.0.0.1", ("", "10.0.0.1"), 1),
        ("fd00::/64", "10.0.0.1", ("", "10.0.0.1"), 1),
        ("10.0.0.0/16", "garbage", ("10.0.0.0/16", ""), 1),
        ("10.0.0.0/16", "fd00::1", ("10.0.0.0/16", ""), 1),
    ],
)
def test_a_subnet_or_gateway_that_is_none_is_told_to_no_pod_and_complained_of(
    cidr: str, gateway: str, read: tuple[str, str], complaints: int
) -> None:
    odd = NetworkContainer(
        id="uid", primary_ip="10.0.0.9", subnet_address_space=cidr, default_gateway=gateway
    )
    [network] = networks_of(config(odd))
    assert (network.cidr, network.gateway) == read
    assert len(network.unusable) == complaints


def test_a_container_without_an_id_is_none() -> None:
    assert networks_of(config(NetworkContainer())) == ()


@pytest.mark.parametrize(
    ("scaler", "read"),
    [
        (ScalerStatus(), NodeScaler()),
        (ScalerStatus(max_ip_count=30), NodeScaler(batch=1, request_percent=0, max_ips=30)),
        (
            ScalerStatus(request_threshold_percent=50, release_threshold_percent=150, max_ip_count=30),
            NodeScaler(batch=1, request_percent=50, max_ips=30),
        ),
        (ScalerStatus(batch_size=-4, request_threshold_percent=50), NodeScaler(batch=1, request_percent=50)),
        (
            ScalerStatus(batch_size=8, request_threshold_percent=25, max_ip_count=30),
            NodeScaler(batch=8, request_percent=25, max_ips=30),
        ),
        (ScalerStatus(batch_size=1), NodeScaler(batch=1, request_percent=0)),
    ],
)
def test_a_scaler_that_was_never_written_says_nothing_and_a_written_zero_is_one(
    scaler: ScalerStatus, read: NodeScaler
) -> None:
    assert node_scaler_of(config(scaler=scaler)) == read


def test_a_node_is_owed_when_a_container_found_its_subnet_full() -> None:
    assert not is_owed(config(NetworkContainer(id="a", status=ContainerStatus.SUCCESS)))
    assert is_owed(
        config(NetworkContainer(id="a"), NetworkContainer(id="b", status=ContainerStatus.SUBNET_FULL))
    )
