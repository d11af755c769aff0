"""What the real Whereabouts answered, asked of podtide.

The recordings are in tests/recorded. Where the answer differs on purpose, the row is in one of the tables below, with the
reason and the entry of docs/design that demands it.
"""

import json
from ipaddress import ip_address
from typing import Any

import pytest

from differences import Difference
from podtide.cni.addresses import interface
from podtide.cni.arguments import parse_cni_args
from podtide.cni.explain import explain_assign
from podtide.cni.ipam_config import IpamConfig, parse_config
from podtide.cni.results import AssignedAddress, render_result
from podtide.core.errors import PodtideError
from podtide.core.networks.slices import parse_slice_size
from recordings import whereabouts


def recorded(section: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in whereabouts(section)]


ACCEPTED_ON_PURPOSE = {
    "no flat file": Difference(
        why="the flat file fills what is empty, credentials above all, and the node agent has its own",
        number="D15",
        words="needs no credentials: the agent has its own",
    ),
    "no kubeconfig": Difference(
        why="it is the node agent that talks to the cluster, with credentials of its own",
        number="D15",
        words="what configuration says about a kubeconfig is not used",
    ),
    "CNI_ARGS unknown key without IgnoreUnknown": Difference(
        why="K8S_POD_UID is known here: it tells pods of one name apart",
        number="W17",
        words="does not know `K8S_POD_UID` and refuses it without `IgnoreUnknown`; podtide uses it",
    ),
}
REFUSED_ON_PURPOSE = {
    "rangeStart (camel case) silently ignored": Difference(
        why="a misspelt key changes which addresses a network has, and its author should hear so",
        number="T28",
        words="A misspelt key (`rangeStart`)",
    ),
    "bad exclude accepted at load time": Difference(
        why="an exclude that is no address protects nothing, and its author should hear so",
        number="T28",
        words="an `exclude` that is no address",
    ),
}


@pytest.mark.parametrize("case", recorded("config"))
def test_a_configuration_means_what_it_means_to_whereabouts(case: dict[str, Any]) -> None:
    refused = ("error" in case or case["name"] in REFUSED_ON_PURPOSE) and case[
        "name"
    ] not in ACCEPTED_ON_PURPOSE
    if refused:
        with pytest.raises(PodtideError):
            meaning(case)
    else:
        understood, podref = meaning(case)
        if "out" in case:
            assert seen_as_recorded(understood, podref, case["out"]) == case["out"]


def meaning(case: dict[str, Any]) -> tuple[IpamConfig, str]:
    pod = parse_cni_args(case["cni_args"])
    return parse_config(case["conf"], case["flat"]), f"{pod.pod_namespace}/{pod.pod_name}"


def seen_as_recorded(understood: IpamConfig, podref: str, out: dict[str, Any]) -> dict[str, Any]:
    """Our reading in the record's words. Its ranges are checked one by one, as ours are richer than texts."""
    assert len(understood.ranges) == len(out["ranges"])
    for ours, theirs in zip(understood.ranges, out["ranges"], strict=True):
        network = ours.addresses.network
        start, end = (
            ip_address(theirs["range_start"]),
            theirs.get("range_end", str(network.broadcast_address - 1)),
        )
        assert str(network) == theirs["range"]
        assert ours.addresses.address(ours.addresses.intervals[0].first) == max(
            start, network.network_address + 1
        )
        assert str(ours.addresses.address(ours.addresses.intervals[-1].last)) == end
        size = out["node_slice_size"]
        assert ours.slice_size == (parse_slice_size(size, ours.addresses) if size else None)
    return out | {
        "addresses": list(understood.addresses),
        "cni_version": understood.cni_version,
        "gateway": str(understood.gateway or "<nil>"),
        "kubeconfig": understood.kubeconfig,
        "leader": [
            understood.leader_lease_duration_ms,
            understood.leader_renew_deadline_ms,
            understood.leader_retry_period_ms,
        ],
        "log_file": understood.log_file,
        "log_level": understood.log_level,
        "name": understood.name,
        "network_name": understood.network_name,
        "overlapping": understood.enable_overlapping_ranges,
        "pod": podref,
    }


OTHER_ADDRESS_ON_PURPOSE = {
    "v6 half /64": (
        "2001:db8:5422:5::2/64",
        Difference(
            why="the gateway's address is the gateway's, and no pod's",
            number="T12",
            words="podtide withholds it",
        ),
    ),
}


def first_adds() -> list[Any]:
    """Scenarios that begin with an empty cluster and an ADD that succeeded; the others belong to higher layers."""
    return [row for row in recorded("cni_scenarios") if is_first_add(row.values[0])]


def is_first_add(case: dict[str, Any]) -> bool:
    return not case["seed"] and case["steps"][0]["rc"] == 0


@pytest.mark.parametrize("case", first_adds())
def test_the_first_add_of_a_network_is_answered_as_whereabouts_does(case: dict[str, Any]) -> None:
    add, expected = case["steps"][0]["step"], case["steps"][0]["result"]
    text = json.dumps({"cniVersion": "0.3.1", "name": "mynet", "ipam": {"type": "whereabouts"} | add["ipam"]})
    given = [
        AssignedAddress(interface(ip_address(each.address), each.prefix_length))
        for each in explain_assign(text).ranges
    ]
    answer = json.loads(render_result(parse_config(text).result(given), "0.3.1"))
    if case["name"] in OTHER_ADDRESS_ON_PURPOSE:
        expected["ips"][0]["address"] = OTHER_ADDRESS_ON_PURPOSE[case["name"]][0]
    assert answer | {"dns": answer.get("dns", {})} == expected


DIFFERENCES = (
    ACCEPTED_ON_PURPOSE
    | REFUSED_ON_PURPOSE
    | {name: why for name, (_, why) in OTHER_ADDRESS_ON_PURPOSE.items()}
)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_about_a_recorded_row_and_demanded_by_an_entry_that_is_there(name: str) -> None:
    assert name in {case["name"] for section in ("config", "cni_scenarios") for case in whereabouts(section)}
    DIFFERENCES[name].require_quoted()
