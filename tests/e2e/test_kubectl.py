"""What a person with the real kubectl sees of a cluster in which podtide is at work, and short of addresses."""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from control_plane.cluster import ControlPlane
from e2e.networks import define
from e2e.programs import SUBNET, Site, allocator, controller, running
from e2e.waiting import wait_until

NODES = ("node-a", "node-b", "node-c")
SMALL = "10.1.0.0/28"
"""Less than the first batch of one node."""
STORAGE = {
    "cniVersion": "1.0.0",
    "name": "storage",
    "type": "macvlan",
    "ipam": {"type": "podtide", "network_name": "storage", "range": "10.20.0.0/24", "node_slice_size": "/25"},
}
"""A slice for two of the three nodes."""


class Kubectl:
    """kubectl in the namespace of podtide's objects."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane

    def table(self, kind: str, *options: str) -> list[list[str]]:
        """What `kubectl get` prints, line by line and column by column."""
        return [re.split(r" {2,}", line.strip()) for line in self._said("get", kind, *options).splitlines()]

    def description(self, kind: str, name: str) -> tuple[str, list[list[str]]]:
        """What `kubectl describe` prints: all before the events, and the type and reason of each event."""
        before, _, events = self._said("describe", kind, name).partition("\nEvents:")
        rows = [line.split() for line in events.splitlines()]
        return before, [row[:2] for row in rows if row and row[0] in {"Normal", "Warning"}]

    def _said(self, *arguments: str) -> str:
        answer = self._control_plane.kubectl(*arguments, "--namespace=kube-system")
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@pytest.fixture(scope="module")
def kubectl(site: Site) -> Iterator[Kubectl]:
    """Three nodes that share a subnet and a network, both too small for them."""
    there = site.control_plane
    with ExitStack() as programs:
        url = programs.enter_context(allocator(site, SMALL))
        programs.enter_context(controller(site, url))
        define(there, STORAGE)
        for node in NODES:
            there.admin.request("POST", "/api/v1/nodes", {"metadata": {"name": node}})
            programs.enter_context(running(site.agent(node)))
        yield Kubectl(there)


def condition(description: str, kind: str) -> dict[str, str]:
    """One of the conditions in a description, by its fields."""
    listed = description.partition("Conditions:\n")[2]
    pattern = r"^ +(Message|Observed Generation|Reason|Status|Type): +(.*)$"
    for block in listed.split("Last Transition Time:"):
        fields = re.findall(pattern, block, flags=re.MULTILINE)
        first = dict(reversed(fields))  # what follows the last condition has such fields, too
        if first.get("Type") == kind:
            return first
    raise AssertionError(f"no condition {kind} in {description}")


def test_get_nnc_shows_what_each_node_holds(kubectl: Kubectl) -> None:
    header, *rows = kubectl.table("nnc")
    assert header == ["NAME", "ALLOCATED IPS", "NC MODE", "NC VERSION", "REQUESTED", "REASON"]
    assert [(row[0], row[2]) for row in rows] == [(node, "dynamic") for node in NODES]
    header, *rows = kubectl.table("nnc", "--output=wide")
    assert header == [
        *("NAME", "REQUESTED IPS", "ALLOCATED IPS", "SUBNET", "SUBNET CIDR"),
        *("NC ID", "NC MODE", "NC TYPE", "NC VERSION", "REQUESTED", "REASON"),
    ]
    assert {(row[3], row[4]) for row in rows} == {(SUBNET, SMALL)}


def test_get_clustersubnets_shows_how_full_the_subnet_is_and_what_is_in_force(kubectl: Kubectl) -> None:
    def rows() -> list[list[str]]:
        header, *rows = kubectl.table("clustersubnets")
        assert header == [
            "NAME",
            "CIDRS",
            "CAPACITY",
            "RESERVED",
            "BATCH",
            "BUFFER",
            "EXHAUSTED",
            "RUNS-OUT",
            "AGE",
        ]
        return rows

    wait_until(lambda: rows()[0][4:6] != ["16", "0.5"], "another batch, as the subnet is small")
    [row] = rows()
    assert row[:3] == [SUBNET, SMALL, "13"]
    assert 0 < int(row[3]) <= 13


def test_get_nodeslicepools_shows_that_no_slice_is_left(kubectl: Kubectl) -> None:
    wait_until(lambda: kubectl.table("nodeslicepools")[-1][3] == "2", "two slices assigned")
    header, row = kubectl.table("nodeslicepools")
    assert header == ["NAME", "RANGE", "SLICE SIZE", "ASSIGNED", "TOTAL", "AGE"]
    assert row[:5] == ["storage", "10.20.0.0/24", "/25", "2", "2"]


def test_describe_nnc_says_whether_the_node_has_what_it_asked_for_and_that_it_once_had_not(
    kubectl: Kubectl,
) -> None:
    def was_short(node: str) -> bool:
        return ["Warning", "SubnetShort"] in kubectl.description("nnc", node)[1]

    wait_until(lambda: any(was_short(node) for node in NODES), "a node that is told it is short")
    for node in NODES:
        granted = condition(kubectl.description("nnc", node)[0], "Granted")
        assert granted["Status"] in {"True", "False"}
        assert f"subnet {SUBNET}:" in granted["Message"]
        assert int(granted["Observed Generation"]) >= 1


def test_describe_clustersubnet_says_that_it_ran_low(kubectl: Kubectl) -> None:
    wait_until(lambda: bool(kubectl.description("clustersubnet", SUBNET)[1]), "an Event on the subnet")
    text, events = kubectl.description("clustersubnet", SUBNET)
    assert {("Warning", "Exhausted"), ("Warning", "Starved")} & {(kind, reason) for kind, reason in events}
    assert "Conditions:" in text


def test_describe_nodeslicepool_says_who_got_no_slice(kubectl: Kubectl) -> None:
    def reasons() -> list[str]:
        return [
            reason for kind, reason in kubectl.description("nodeslicepool", "storage")[1] if kind == "Warning"
        ]

    wait_until(lambda: bool(reasons()), "a warning on the network")
    text, _ = kubectl.description("nodeslicepool", "storage")
    assert "Conditions:" in text
    assert any(node in text.partition("Conditions:")[2] for node in NODES)
