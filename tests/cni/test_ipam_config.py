import json
from ipaddress import ip_address, ip_interface
from typing import Any

import pytest

from podtide.cni.arguments import parse_cni_args
from podtide.cni.errors import ForeignIpam, Undecodable
from podtide.cni.ipam_config import IpamConfig, parse_config, with_arguments
from podtide.cni.network_config import FLAT_FILE_PATHS, find_ipam
from podtide.cni.results import AssignedAddress, Dns, Route
from podtide.core.errors import InvalidConfig, InvalidRange, InvalidSlice, MixedFamilies, PodtideError

PAPERS_EXAMPLE = """{
  "cniVersion": "0.3.0",
  "name": "whereaboutsexample",
  "type": "macvlan",
  "master": "eth0",
  "mode": "bridge",
  "ipam": {
    "type": "whereabouts",
    "range": "192.168.2.225/8",
    "fast_ipam": true,
    "node_slice_size": "/22"
  }
}"""


def conf(ipam: dict[str, Any], **network: Any) -> str:
    return json.dumps(
        {"cniVersion": "1.0.0", "name": "net"} | network | {"ipam": {"type": "whereabouts"} | ipam}
    )


def config(flat: dict[str, Any] | None = None, **ipam: Any) -> IpamConfig:
    return parse_config(conf(ipam), json.dumps(flat) if flat is not None else b"")


def networks(understood: IpamConfig) -> list[str]:
    return [str(item.addresses) for item in understood.ranges]


def bounds(understood: IpamConfig) -> tuple[str, str]:
    addresses = understood.ranges[0].addresses
    return str(addresses.address(addresses.intervals[0].first)), str(
        addresses.address(addresses.intervals[-1].last)
    )


def test_the_papers_own_example_is_a_slash_8_cut_by_slash_22() -> None:
    understood = parse_config(PAPERS_EXAMPLE)
    assert networks(understood) == ["192.0.0.0/8"]
    assert understood.ranges[0].slice_size == 22
    assert (understood.name, understood.cni_version, understood.type) == (
        "whereaboutsexample",
        "0.3.0",
        "whereabouts",
    )
    assert understood.warnings == ()


def test_every_key_arrives_where_it_belongs() -> None:
    understood = config(
        range="10.0.0.0/24",
        range_start="10.0.0.10",
        range_end="10.0.0.99",
        exclude=["10.0.0.10", "10.0.0.96/29"],
        gateway="10.0.0.50",
        ipRanges=[{"range": "fd00::/64", "range_start": "fd00::5", "exclude": ["fd00::5/128"]}],
        routes=[{"dst": "10.9.0.1/16", "gw": "10.0.0.50", "mtu": 1400, "table": 0}],
        dns={"nameservers": ["10.0.0.2"], "domain": "a", "search": ["b"], "options": ["c"]},
        addresses=[{"address": "10.1.0.5/24", "gateway": "10.1.0.1"}],
        enable_overlapping_ranges=False,
        network_name="blue",
        leader_lease_duration=3000,
        leader_renew_deadline=2000,
        leader_retry_period=900,
        log_file="/var/log/x",
        log_level="debug",
        kubernetes={"kubeconfig": "/k", "k8s_api_root": "ignored"},
        configuration_path="/etc/x",
        reconciler_cron_expression="30 4 * * *",
        datastore="etcd",
        etcd_host="ignored",
        sleep_for_race=5,
    )
    assert networks(understood) == ["10.0.0.0/24", "fd00::/64"]
    assert bounds(understood) == ("10.0.0.11", "10.0.0.95")
    assert ip_address("10.0.0.50") not in understood.ranges[0].addresses
    assert ip_address("fd00::5") not in understood.ranges[1].addresses
    assert ip_address("fd00::6") in understood.ranges[1].addresses
    assert understood.gateway == ip_address("10.0.0.50")
    assert understood.routes == (Route(dst="10.9.0.1/16", gw="10.0.0.50", mtu=1400, table=0),)
    assert understood.dns == Dns(nameservers=("10.0.0.2",), domain="a", search=("b",), options=("c",))
    assert understood.addresses == (AssignedAddress(ip_interface("10.1.0.5/24"), ip_address("10.1.0.1")),)
    assert understood.enable_overlapping_ranges is False
    assert understood.network_name == "blue"
    assert understood.leader_lease_duration_ms == 3000
    assert understood.leader_renew_deadline_ms == 2000
    assert understood.leader_retry_period_ms == 900
    assert (understood.log_file, understood.log_level, understood.kubeconfig) == ("/var/log/x", "debug", "/k")
    assert understood.configuration_path == "/etc/x"
    assert understood.reconciler_cron_expression == "30 4 * * *"
    assert understood.warnings == ()


def test_what_is_not_said_has_whereabouts_defaults() -> None:
    understood = config(range="10.0.0.0/24")
    assert understood.enable_overlapping_ranges is True
    assert understood.leader_lease_duration_ms == 1500
    assert understood.leader_renew_deadline_ms == 1000
    assert understood.leader_retry_period_ms == 500
    assert understood.ranges[0].slice_size is None
    assert not understood.is_primary


def test_range_comes_before_ip_ranges() -> None:
    assert networks(config(ipRanges=[{"range": "192.168.10.1/24"}], range="abcd::1/64")) == [
        "abcd::/64",
        "192.168.10.0/24",
    ]


# --- whose network it is


def test_a_list_of_plugins_is_searched_for_the_one_whose_ipam_is_ours() -> None:
    text = json.dumps(
        {
            "cniVersion": "1.0.0",
            "name": "list",
            "plugins": [
                {"type": "tuning"},
                {"type": "bridge", "ipam": {}},
                {"type": "bridge", "ipam": {"type": "host-local"}},
                {"type": "macvlan", "ipam": {"type": "podtide", "range": "10.0.0.0/24"}},
            ],
        }
    )
    understood = parse_config(text)
    assert (understood.name, understood.type, networks(understood)) == ("list", "podtide", ["10.0.0.0/24"])


@pytest.mark.parametrize(
    "ipam", [{"type": "host-local"}, {"type": ""}, {"range": "10.0.0.0/24"}, {"type": 5}]
)
def test_a_network_of_another_ipam_plugin_is_told_apart_from_a_broken_one(ipam: dict[str, Any]) -> None:
    with pytest.raises(ForeignIpam, match="podtide answers for podtide and whereabouts"):
        parse_config(json.dumps({"ipam": ipam}))


@pytest.mark.parametrize("network", [{}, {"ipam": None}, {"ipam": {}}, {"plugins": [{"type": "tuning"}]}])
def test_a_network_without_ipam_is_a_config_error(network: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig, match="has no 'ipam' object"):
        parse_config(json.dumps(network))


def test_a_network_of_type_podtide_without_range_takes_from_the_nodes_pool() -> None:
    understood = config(type="podtide")
    assert understood.is_primary
    assert understood.ranges == ()


def test_what_needs_a_range_is_ignored_with_a_warning_where_there_is_none() -> None:
    understood = config(type="podtide", node_slice_size="/24", exclude=["10.0.0.1"])
    assert understood.warnings == (
        "exclude is ignored: without a range, addresses come from the node's pool",
        "node_slice_size is ignored: without a range, addresses come from the node's pool",
    )


def test_a_network_of_type_whereabouts_without_range_is_an_error() -> None:
    with pytest.raises(InvalidConfig, match="has no range; set 'range' or 'ipRanges'"):
        config()


# --- slices


@pytest.mark.parametrize(
    ("keys", "slice_size"),
    [
        ({}, None),
        ({"node_slice_size": "/24"}, 24),
        ({"node_slice_size": "24"}, 24),
        ({"node_slice_size": 24}, 24),
        ({"fast_ipam": True, "node_slice_size": "/24"}, 24),
        ({"fast_ipam": False, "node_slice_size": "/24"}, None),
        ({"fast_ipam": False, "node_slice_size": "nonsense"}, None),
        ({"fast_ipam": False}, None),
    ],
)
def test_slices_are_on_when_there_is_a_size_and_fast_ipam_is_not_false(
    keys: dict[str, Any], slice_size: int | None
) -> None:
    assert config(range="10.0.0.0/16", **keys).ranges[0].slice_size == slice_size


def test_fast_ipam_without_a_size_is_an_error() -> None:
    with pytest.raises(InvalidConfig, match="fast_ipam needs a node_slice_size for range 10"):
        config(range="10.0.0.0/16", fast_ipam=True)


def test_each_range_of_a_dual_stack_network_may_have_its_own_slice_size() -> None:
    understood = config(
        range="10.0.0.0/16",
        node_slice_size="/24",
        ipRanges=[{"range": "fd00::/64", "node_slice_size": "/80"}],
    )
    assert [item.slice_size for item in understood.ranges] == [24, 80]


def test_a_slice_size_that_does_not_fit_a_further_range_points_to_the_key_that_helps() -> None:
    with pytest.raises(InvalidSlice, match=r"larger than its range fd00::/64.*ipRanges\[\].node_slice_size"):
        config(range="10.0.0.0/16", node_slice_size="/24", ipRanges=[{"range": "fd00::/64"}])


def test_a_slice_larger_than_its_range_is_an_error() -> None:
    with pytest.raises(InvalidSlice, match="larger than its range"):
        config(ipRanges=[{"range": "10.0.0.0/24", "node_slice_size": "/22"}])


# --- the flat file


def test_the_flat_file_fills_what_is_empty() -> None:
    flat = {
        "range": "10.9.0.0/16",
        "gateway": "10.0.0.1",
        "log_level": "debug",
        "leader_lease_duration": 9000,
        "kubernetes": {"kubeconfig": "/flat"},
        "dns": {"domain": "flat", "search": ["flat"]},
    }
    understood = config(
        flat,
        range="10.0.0.0/24",
        gateway="",
        leader_lease_duration=0,
        log_level="error",
        dns={"domain": "inline"},
    )
    assert networks(understood) == ["10.0.0.0/24"]
    assert understood.gateway == ip_address("10.0.0.1")
    assert understood.log_level == "error"
    assert understood.leader_lease_duration_ms == 9000
    assert understood.kubeconfig == "/flat"
    assert understood.dns == Dns(domain="inline", search=("flat",))


@pytest.mark.parametrize(
    ("inline", "flat", "in_force"),
    [
        (None, None, True),
        (None, False, True),
        (False, True, False),
        (True, False, True),
        (False, None, False),
    ],
)
def test_enable_overlapping_ranges_counts_in_the_configuration_alone_and_the_flat_files_is_told_to_be_ignored(
    inline: bool | None, flat: bool | None, in_force: bool
) -> None:
    understood = config(
        {"enable_overlapping_ranges": flat}, range="10.0.0.0/24", enable_overlapping_ranges=inline
    )
    assert understood.enable_overlapping_ranges is in_force
    told = (
        "enable_overlapping_ranges in the flat file is ignored: set it in the network's own configuration, "
        "which every node and the controller read"
    )
    assert understood.warnings == (() if flat is None else (told,))


def test_an_inline_false_wins_over_the_flat_file() -> None:
    understood = config({"fast_ipam": True, "node_slice_size": "/26"}, range="10.0.0.0/24", fast_ipam=False)
    assert understood.ranges[0].slice_size is None


@pytest.mark.parametrize("flat", [b"", b" \n"])
def test_an_empty_flat_file_is_none(flat: bytes) -> None:
    assert networks(parse_config(conf({"range": "10.0.0.0/24"}), flat)) == ["10.0.0.0/24"]


def test_a_flat_file_that_is_not_json_is_undecodable() -> None:
    with pytest.raises(Undecodable, match="flat file is not JSON"):
        parse_config(conf({"range": "10.0.0.0/24"}), b"{")


def test_the_flat_file_is_looked_for_where_the_configuration_says_and_then_at_the_usual_places() -> None:
    usual = find_ipam(conf({})).flat_file_paths
    assert usual == FLAT_FILE_PATHS
    assert find_ipam(conf({"configuration_path": "/etc/x"})).flat_file_paths == ("/etc/x", *usual)


# --- what is tolerated, and what is said about it


def test_keys_match_without_regard_to_case_as_in_go() -> None:
    text = '{"IPAM": {"Type": "whereabouts", "RANGE": "10.0.0.0/24", "ipranges": [{"Range": "fd00::/64"}]}}'
    assert networks(parse_config(text)) == ["10.0.0.0/24", "fd00::/64"]


def test_null_is_as_good_as_absent() -> None:
    assert config(range="10.0.0.0/24", gateway=None, dns=None, enable_overlapping_ranges=None).warnings == ()


def test_a_key_that_is_far_from_every_known_one_is_ignored() -> None:
    understood = config(range="10.0.0.0/24", colour=1, subnet="10.9.0.0/24", _range="10.8.0.0/24")
    assert networks(understood) == ["10.0.0.0/24"]
    assert understood.warnings == ()


@pytest.mark.parametrize("key", ["rnage", "rang", "ranges", "Rnage", "ragne"])
@pytest.mark.parametrize("kind", ["podtide", "whereabouts"])
def test_a_misspelt_range_is_refused_and_no_address_of_the_primary_pool_is_given(key: str, kind: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        parse_config(conf({"type": kind, key: "10.0.0.0/24"}))
    assert str(refused.value) == (
        f"ipam has no key '{key}' (did you mean 'range'?): correct the spelling, or remove it"
    )


@pytest.mark.parametrize(
    ("ipam", "key", "meant"),
    [
        ({"rangeStart": "10.0.0.9"}, "rangeStart", "range_start"),
        ({"range_strat": "10.0.0.9"}, "range_strat", "range_start"),
        ({"excludes": ["10.0.0.9"]}, "excludes", "exclude"),
        ({"netwrok_name": "blue"}, "netwrok_name", "network_name"),
        ({"node_slice_siez": "/26"}, "node_slice_siez", "node_slice_size"),
        ({"enable_overlaping_ranges": False}, "enable_overlaping_ranges", "enable_overlapping_ranges"),
        ({"ipRanges": [{"range": "10.1.0.0/24"}, {"rnage": "10.2.0.0/24"}]}, "ipRanges[1].rnage", "range"),
        ({"ipRange": [{"range": "10.1.0.0/24"}]}, "ipRange", "ipRanges"),
        ({"addresses": [{"adress": "10.0.0.9/24"}]}, "addresses[0].adress", "address"),
        ({"dns": {"nameserver": ["10.0.0.9"]}}, "dns.nameserver", "nameservers"),
        ({"routes": [{"dst": "0.0.0.0/0", "prioriti": 1}]}, "routes[0].prioriti", "priority"),
        ({"kubernetes": {"kubconfig": "/k"}}, "kubernetes.kubconfig", "kubeconfig"),
    ],
)
def test_a_misspelt_key_anywhere_is_refused_with_the_one_that_was_meant(
    ipam: dict[str, Any], key: str, meant: str
) -> None:
    words = f"has no key '{key}' (did you mean '{meant}'?): correct the spelling, or remove it"
    with pytest.raises(InvalidConfig) as refused:
        config(range="10.0.0.0/24", **ipam)
    assert str(refused.value) == f"ipam {words}"
    with pytest.raises(InvalidConfig) as refused:
        config(ipam, range="10.0.0.0/24")
    assert str(refused.value) == f"flat file {words}"


def test_all_misspelt_keys_are_told_at_once() -> None:
    with pytest.raises(
        InvalidConfig, match=r"'rnage' \(did you mean 'range'\?\), 'gatway' \(did you mean 'gateway'"
    ):
        config(rnage="10.0.0.0/24", gatway="10.0.0.1")


@pytest.mark.parametrize(("key", "meant"), [("ipma", "ipam"), ("Ipams", "ipam"), ("plugin", "plugins")])
def test_an_ipam_object_under_a_misspelt_key_is_told(key: str, meant: str) -> None:
    with pytest.raises(InvalidConfig, match=f"has no key '{key}' \\(did you mean '{meant}'"):
        parse_config(json.dumps({"name": "net", key: {"type": "whereabouts", "range": "10.0.0.0/24"}}))


def test_a_misspelt_type_is_told() -> None:
    with pytest.raises(InvalidConfig, match=r"'tpye' \(did you mean 'type'\?\)"):
        parse_config(json.dumps({"name": "net", "ipam": {"tpye": "whereabouts", "range": "10.0.0.0/24"}}))


def test_the_keys_of_another_ipam_plugin_are_its_own() -> None:
    with pytest.raises(ForeignIpam):
        parse_config(json.dumps({"ipam": {"type": "host-local", "rangeStart": "10.0.0.9", "ranges": []}}))


def test_an_end_out_of_bounds_is_ignored_with_a_warning() -> None:
    understood = config(range="10.0.0.0/24", range_end="10.0.1.5")
    assert bounds(understood) == ("10.0.0.1", "10.0.0.254")
    assert len(understood.warnings) == 1
    assert "10.0.1.5" in understood.warnings[0]


def test_leading_zeroes_of_ipv4_are_dropped_wherever_an_address_may_stand() -> None:
    understood = config(
        range="010.000.0.0/24",
        gateway="010.0.0.001",
        addresses=[{"address": "010.09.0.5/24", "gateway": "10.9.0.001"}],
    )
    assert networks(understood) == ["10.0.0.0/24"]
    assert understood.gateway == ip_address("10.0.0.1")
    assert understood.addresses == (AssignedAddress(ip_interface("10.9.0.5/24"), ip_address("10.9.0.1")),)


# --- what cannot be meant


@pytest.mark.parametrize(
    ("ipam", "kind", "words"),
    [
        ({"range": "10.0.0.0"}, InvalidRange, "no prefix length"),
        ({"range": "10.0.0.0/33"}, InvalidRange, "no prefix length"),
        ({"range": "10.0.0.1-fd00::5/64"}, MixedFamilies, "use one family"),
        (
            {"range": "10.0.0.0/24", "exclude": ["nope"]},
            InvalidRange,
            "exclude: 'nope' is not a valid IP address",
        ),
        (
            {"range": "10.0.0.0/24", "gateway": "nope"},
            InvalidRange,
            "gateway: 'nope' is not a valid IP address",
        ),
        ({"type": "podtide", "gateway": "nope"}, InvalidConfig, "gateway: 'nope' is not a valid IP address"),
        ({"ipRanges": [{}]}, InvalidRange, "range: '' is not a valid IP address"),
        (
            {"range": "10.0.0.0/24", "node_slice_size": "big"},
            InvalidSlice,
            "'big' is not a valid prefix length",
        ),
        ({"range": 5}, InvalidConfig, r"ipam: Expected str, got int - at \$.range"),
        ({"range": "10.0.0.0/24", "leader_lease_duration": -1}, InvalidConfig, "leader_lease_duration"),
        ({"range": "10.0.0.0/24", "network_name": "My Net"}, InvalidConfig, "network_name 'My Net'"),
        (
            {"range": "10.0.0.0/24", "addresses": [{"address": "10.9.0.5"}]},
            InvalidConfig,
            "addresses: '10.9.0.5'",
        ),
        ({"range": "10.0.0.0/24", "addresses": [{}]}, InvalidConfig, "addresses: ''"),
        ({"range": "10.0.0.0/24", "routes": [{"dst": "x"}]}, InvalidConfig, "routes: 'x'"),
        ({"range": "10.0.0.0/24", "routes": [{"gw": "10.0.0.1"}]}, InvalidConfig, "dst"),
        ({"range": "10.0.0.0/24", "routes": [{"dst": "0.0.0.0/0", "gw": "x"}]}, InvalidConfig, "routes: 'x'"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(
    ipam: dict[str, Any], kind: type[PodtideError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        config(**ipam)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "5", '"text"', "{asdf}", b"\xff", "[" * 100_000, '{"a": "\ud800"}']
)
def test_what_is_no_json_object_is_undecodable(text: bytes | str) -> None:
    with pytest.raises(Undecodable, match=r"network configuration is (not|empty)"):
        parse_config(text)


# --- the answer


def test_the_answer_has_the_dynamic_addresses_first_and_the_gateway_of_their_family() -> None:
    understood = config(range="10.0.0.0/24", gateway="10.0.0.1", addresses=[{"address": "10.1.0.5/24"}])
    own = AssignedAddress(ip_interface("10.0.0.6/24"), ip_address("10.0.0.254"))
    given = [AssignedAddress(ip_interface("10.0.0.5/24")), own, AssignedAddress(ip_interface("fd00::5/64"))]
    assert understood.result(given).addresses == (
        AssignedAddress(ip_interface("10.0.0.5/24"), ip_address("10.0.0.1")),
        own,
        AssignedAddress(ip_interface("fd00::5/64")),
        AssignedAddress(ip_interface("10.1.0.5/24")),
    )


def test_addresses_asked_for_in_cni_args_come_after_those_of_the_configuration() -> None:
    understood = config(range="10.0.0.0/24", addresses=[{"address": "10.1.0.5/24"}])
    asked = parse_cni_args("IP=10.2.0.5/24,fd00::5/64;GATEWAY=10.1.0.1,fd00::1")
    assert with_arguments(understood, asked).addresses == (
        AssignedAddress(ip_interface("10.1.0.5/24"), ip_address("10.1.0.1")),
        AssignedAddress(ip_interface("10.2.0.5/24")),
        AssignedAddress(ip_interface("fd00::5/64"), ip_address("fd00::1")),
    )


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_more_static_addresses_of_a_family_than_an_old_result_can_carry_are_refused(version: str) -> None:
    ipam = {"range": "10.0.0.0/24", "addresses": [{"address": "10.1.0.5/24"}, {"address": "fd00::5/64"}]}
    understood = parse_config(conf(ipam, cniVersion=version))
    with pytest.raises(InvalidConfig, match="one address of each family, and 2 of IPv6 are static"):
        with_arguments(understood, parse_cni_args("IP=fd00::6/64"))
