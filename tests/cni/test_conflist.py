"""The primary network's configuration list: what interface plugins are asked, and what is recognised as ours."""

import json
from typing import Any

import pytest

from podtide.cni.conflist import (
    InterfaceType,
    ListVersion,
    PrimaryNetwork,
    is_podtide_conflist,
    render_conflist,
)
from podtide.cni.ipam_config import parse_config
from podtide.core.errors import InvalidInput


def rendered(network: PrimaryNetwork) -> Any:
    return json.loads(render_conflist(network))


def test_by_default_every_pod_has_a_link_of_its_own_and_a_default_route() -> None:
    assert rendered(PrimaryNetwork()) == {
        "cniVersion": "1.0.0",
        "name": "podtide",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {"type": "podtide", "routes": [{"dst": "0.0.0.0/0"}]},
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def test_what_was_chosen_is_asked_of_the_interface_plugin() -> None:
    network = PrimaryNetwork(
        name="pods", type=InterfaceType.BRIDGE, mtu=1400, ip_masq=True, routes=("0.0.0.0/0", "::/0")
    )
    document = rendered(network)
    assert document["name"] == "pods"
    assert document["plugins"][0] == {
        "type": "bridge",
        "bridge": "podtide0",
        "isGateway": False,
        "hairpinMode": True,
        "mtu": 1400,
        "ipMasq": True,
        "ipam": {"type": "podtide", "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]},
    }


def test_with_1_1_a_runtime_that_knows_it_may_choose_it_and_an_older_one_sees_1_0_alone() -> None:
    of_1_0, of_1_1 = rendered(PrimaryNetwork()), rendered(PrimaryNetwork(cni_version=ListVersion.V1_1))
    assert of_1_1 == of_1_0 | {"cniVersions": ["1.0.0", "1.1.0"]}


@pytest.mark.parametrize("type_", InterfaceType)
def test_the_agent_reads_it_as_the_primary_network(type_: InterfaceType) -> None:
    assert parse_config(render_conflist(PrimaryNetwork(type=type_))).is_primary


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": ""}, "'' is not a valid network name"),
        ({"name": "a b"}, "'a b' is not a valid network name"),
        ({"mtu": -1}, "mtu=-1 is refused: give 68 to 65535"),
        ({"routes": ("everything",)}, "everything"),
    ],
)
def test_a_network_that_cannot_be_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        PrimaryNetwork(**wrong)


@pytest.mark.parametrize("type_", InterfaceType)
def test_a_list_with_our_addresses_is_ours(type_: InterfaceType) -> None:
    assert is_podtide_conflist(render_conflist(PrimaryNetwork(type=type_)))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"not JSON",
        b"[]",
        b'{"plugins": "none"}',
        b'{"plugins": []}',
        b'{"plugins": ["ptp"]}',
        b'{"plugins": [{"type": "ptp"}]}',
        b'{"plugins": [{"type": "ptp", "ipam": "podtide"}]}',
        b'{"plugins": [{"type": "ptp", "ipam": {"type": "host-local"}}]}',
        b'{"type": "ptp", "ipam": {"type": "podtide"}}',
    ],
)
def test_anything_else_is_not(text: bytes) -> None:
    assert not is_podtide_conflist(text)
