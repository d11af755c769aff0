"""Laws of the parsers: any input is either understood or answered with one line, and what is understood was said."""

import json
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from podtide.cni.addresses import interface
from podtide.cni.arguments import parse_cni_args, parse_environment
from podtide.cni.attachments import previous_addresses, valid_attachments
from podtide.cni.explain import explain_assign
from podtide.cni.ipam_config import parse_config
from podtide.cni.results import AssignedAddress, Result, render_result
from podtide.core.errors import PodtideError

KEYS = [
    "type", "range", "range_start", "range_end", "exclude", "ipRanges", "gateway", "routes", "dst", "gw", "dns",
    "nameservers", "addresses", "address", "enable_overlapping_ranges", "node_slice_size", "fast_ipam", "network_name",
    "leader_lease_duration", "kubernetes", "kubeconfig", "configuration_path", "rangeStart", "ips", "containerID", "ifname",
]  # fmt: skip
TEXTS = [
    "",
    "10.0.0.0/24",
    "10.0.0.5-10.0.0.9/24",
    "fd00::/64",
    "10.0.0.5",
    "fd00::5",
    "/30",
    "0/0",
    "::/0",
    "a\nb",
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(TEXTS)
)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=6)
    ),
    max_leaves=12,
)
ipams = st.dictionaries(st.sampled_from(KEYS), documents, max_size=8)
networks = documents | st.builds(
    lambda ipam, kind, rest: {**rest, "ipam": {**ipam, "type": kind}},
    ipams,
    st.sampled_from(["podtide", "whereabouts"]),
    st.dictionaries(
        st.sampled_from(["name", "cniVersion", "plugins", "prevResult", "cni.dev/valid-attachments"]),
        documents,
    ),
)


def understood_or_refused_in_one_line(parse: Callable[..., Any], *arguments: Any) -> None:
    try:
        lines = getattr(parse(*arguments), "warnings", ())
    except PodtideError as error:
        lines = (str(error),)
    assert all(line and line == " ".join(line.splitlines()) for line in lines)


@given(networks, ipams)
def test_any_json_is_understood_or_refused_in_one_line(network: Any, flat: Any) -> None:
    text = json.dumps(network)
    understood_or_refused_in_one_line(parse_config, text, json.dumps(flat))
    understood_or_refused_in_one_line(explain_assign, text)
    understood_or_refused_in_one_line(valid_attachments, text)
    understood_or_refused_in_one_line(previous_addresses, text)


@given(st.text() | st.binary(), st.text() | st.binary())
@example("\ud800", "")
@example('{"ipam":{"type":"whereabouts","range":"10.0.0.0/24"}}', "\ud800")
def test_any_text_is_understood_or_refused_in_one_line(text: bytes | str, taken: bytes | str) -> None:
    for parse in (parse_config, valid_attachments, previous_addresses):
        understood_or_refused_in_one_line(parse, text)
    understood_or_refused_in_one_line(explain_assign, text, [str(taken)])


@given(
    st.sampled_from(["ADD", "DEL", "CHECK", "STATUS", "GC", "VERSION", "x"]),
    st.text(),
    st.text(),
    st.text()
    | st.lists(
        st.sampled_from(["K8S_POD_NAME=", "IP=", "GATEWAY=", "IgnoreUnknown=", "1", "10.0.0.5/24", ","])
    ).map(";".join),
)
def test_any_environment_is_understood_or_refused_in_one_line(
    verb: str, container: str, ifname: str, args: str
) -> None:
    environment = {"CNI_COMMAND": verb, "CNI_CONTAINERID": container, "CNI_IFNAME": ifname, "CNI_NETNS": "/n"}
    understood_or_refused_in_one_line(parse_environment, environment | {"CNI_ARGS": args})
    understood_or_refused_in_one_line(parse_cni_args, args)


@st.composite
def plain_ranges(draw: st.DrawFn) -> dict[str, Any]:
    """A range with ends inside it, and a slice size that fits it."""
    bits, base = draw(st.sampled_from([(32, 0x0A000000), (128, 0xFD << 120)]))
    prefix = draw(st.integers(bits - 20, bits - 4))
    size = 1 << (bits - prefix)
    network = ip_network((base + draw(st.integers(0, 999)) * size, prefix))
    start = draw(st.integers(1, size - 2))
    end = draw(st.integers(start, size - 2))
    return {
        "range": str(network),
        "range_start": str(network[start]),
        "range_end": str(network[end]),
        "node_slice_size": f"/{draw(st.integers(prefix, bits - 2))}",
    }


@given(
    ranges=st.lists(plain_ranges(), min_size=1, max_size=3),
    with_range=st.booleans(),
    fast_ipam=st.none() | st.booleans(),
    overlapping=st.none() | st.booleans(),
    network_name=st.from_regex(r"[a-z0-9]([-a-z0-9]{0,9}[a-z0-9])?", fullmatch=True),
    leader_lease_duration=st.integers(1, 10**6),
)
def test_a_valid_configuration_means_what_it_says(
    *,
    ranges: list[dict[str, Any]],
    with_range: bool,
    fast_ipam: bool | None,
    overlapping: bool | None,
    network_name: str,
    leader_lease_duration: int,
) -> None:
    first, *rest = ranges
    ipam: dict[str, Any] = {"type": "whereabouts", "network_name": network_name}
    ipam |= {**first, "ipRanges": rest} if with_range else {"ipRanges": ranges}
    ipam |= {"fast_ipam": fast_ipam, "enable_overlapping_ranges": overlapping}
    ipam["leader_lease_duration"] = leader_lease_duration
    understood = parse_config(json.dumps({"ipam": ipam}))

    said = [
        {
            "range": str(item.addresses.network),
            "range_start": str(item.addresses.address(item.addresses.intervals[0].first)),
            "range_end": str(item.addresses.address(item.addresses.intervals[-1].last)),
        }
        for item in understood.ranges
    ]
    sizes = [item.slice_size and f"/{item.slice_size}" for item in understood.ranges]
    assert said == [{key: item[key] for key in ("range", "range_start", "range_end")} for item in ranges]
    assert sizes == [None if fast_ipam is False else item["node_slice_size"] for item in ranges]
    assert understood.enable_overlapping_ranges is (overlapping is not False)
    assert understood.network_name == network_name
    assert understood.leader_lease_duration_ms == leader_lease_duration
    assert understood.warnings == ()


@given(ranges=st.lists(plain_ranges(), min_size=1, max_size=3), flat=st.booleans())
def test_it_makes_no_difference_which_file_says_it(*, ranges: list[dict[str, Any]], flat: bool) -> None:
    keys = {"ipRanges": ranges, "network_name": "blue"}
    whole = parse_config(json.dumps({"ipam": {"type": "whereabouts", **keys}}))
    below = json.dumps(keys if flat else {"ipRanges": [], "network_name": ""})
    inline = {"type": "whereabouts"} if flat else {"type": "whereabouts", **keys}
    assert parse_config(json.dumps({"ipam": inline}), below) == whole


@given(
    st.lists(st.ip_addresses(), max_size=4),
    st.integers(0, 32),
    st.sampled_from(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]),
)
def test_what_add_answered_is_what_check_is_asked_about(
    addresses: list[Any], prefix: int, version: str
) -> None:
    given_out = tuple(AssignedAddress(interface(address, prefix)) for address in addresses)
    answer = json.loads(render_result(Result(addresses=given_out), version))
    assert previous_addresses(json.dumps({"prevResult": answer})) == {item.address for item in given_out}
