from ipaddress import ip_address, ip_interface
from typing import Any

import msgspec
import pytest

from podtide.cni.errors import IncompatibleVersion
from podtide.cni.results import AssignedAddress, Dns, Result, Route, render_result

DUAL_STACK = Result(
    addresses=(
        AssignedAddress(ip_interface("10.0.0.5/24"), ip_address("10.0.0.1")),
        AssignedAddress(ip_interface("fd00::5/64")),
        AssignedAddress(ip_interface("10.9.0.5/16")),
    ),
    routes=(
        Route(dst="0.0.0.0/0", mtu=1400, priority=5, table=0, scope=253),
        Route(dst="fd01::/64", gw="fd00::1"),
    ),
    dns=Dns(nameservers=("10.0.0.2",), search=("example.com",)),
)
DNS = {"nameservers": ["10.0.0.2"], "search": ["example.com"]}


def rendered(result: Result, version: str) -> Any:
    return msgspec.json.decode(render_result(result, version))


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_the_oldest_versions_get_one_address_for_each_family_with_its_routes_inside(version: str) -> None:
    assert rendered(DUAL_STACK, version) == {
        "cniVersion": version,
        "ip4": {"ip": "10.0.0.5/24", "gateway": "10.0.0.1", "routes": [{"dst": "0.0.0.0/0"}]},
        "ip6": {"ip": "fd00::5/64", "routes": [{"dst": "fd01::/64", "gw": "fd00::1"}]},
        "dns": DNS,
    }


@pytest.mark.parametrize("version", ["0.3.0", "0.3.1", "0.4.0"])
def test_the_middle_versions_say_the_family_of_each_address(version: str) -> None:
    assert rendered(DUAL_STACK, version) == {
        "cniVersion": version,
        "ips": [
            {"version": "4", "address": "10.0.0.5/24", "gateway": "10.0.0.1"},
            {"version": "6", "address": "fd00::5/64"},
            {"version": "4", "address": "10.9.0.5/16"},
        ],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "fd01::/64", "gw": "fd00::1"}],
        "dns": DNS,
    }


def test_since_1_0_0_the_address_speaks_for_itself() -> None:
    assert rendered(DUAL_STACK, "1.0.0") == {
        "cniVersion": "1.0.0",
        "ips": [
            {"address": "10.0.0.5/24", "gateway": "10.0.0.1"},
            {"address": "fd00::5/64"},
            {"address": "10.9.0.5/16"},
        ],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "fd01::/64", "gw": "fd00::1"}],
        "dns": DNS,
    }


def test_since_1_1_0_routes_keep_their_attributes() -> None:
    assert rendered(DUAL_STACK, "1.1.0")["routes"] == [
        {"dst": "0.0.0.0/0", "mtu": 1400, "priority": 5, "table": 0, "scope": 253},
        {"dst": "fd01::/64", "gw": "fd00::1"},
    ]


def test_what_is_empty_is_left_out() -> None:
    result = Result(addresses=(AssignedAddress(ip_interface("10.0.0.5/24")),))
    assert rendered(result, "1.1.0") == {"cniVersion": "1.1.0", "ips": [{"address": "10.0.0.5/24"}]}


def test_a_caller_without_a_version_is_answered_in_the_first() -> None:
    assert rendered(DUAL_STACK, "")["cniVersion"] == "0.1.0"


def test_a_version_that_is_not_spoken_gets_no_result() -> None:
    with pytest.raises(IncompatibleVersion):
        render_result(DUAL_STACK, "2.0.0")
