"""`podtide ip`: whose an address is, in both modes, and what cannot be known is said so."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from allocator.contract.harness import a_wish
from cli.conftest import Run
from cli.drawn_cluster import MANAGER, THEN, DrawnCluster, addresses, served
from cli.drawn_networks import draw_definition, draw_pool, draw_reservation, draw_slices, held_by
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cli.ip.address_state import AddressFinding, AddressState
from podtide.cli.ip.facts import gather_address_facts
from podtide.cli.ip.finding import find_address
from podtide.cli.ip.past import past_of
from podtide.cli.shell.exit_status import ExitStatus
from podtide.core.ranges import parse_address
from podtide.resources.base import ObjectMeta
from podtide.resources.event import Event, ObjectReference
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.pod import PodPhase
from podtide.runtime.clock import SystemClock

NOW = 1_800_000_000.0
NOWHERE = (
    "podtide: 203.0.113.7 is in no subnet that nodes of this cluster use and in no secondary network: check the "
    "address, or name the allocator with --allocator or --database"
)


async def draw(drawn: DrawnCluster) -> None:
    """Node a with three addresses, one given back; a sliced network, a shared and guarded one, and their leaks."""
    await drawn.subnet()
    await drawn.config("a", requested=2, granted=addresses(3), named=["10.1.0.12"])
    await drawn.pod("web-1", "a", "10.1.0.10")
    await drawn.pod("done", "a", "10.1.0.11", phase=PodPhase.SUCCEEDED)
    await drawn.pod("host", "a", "192.168.0.1", host_network=True)
    await drawn.pod("alien", "a", "172.16.0.9")
    await draw_definition(drawn, "cut", "10.7.0.0/24", node_slice_size="/28", network_name="cut")
    await draw_slices(drawn, "cut", "10.7.0.0/24", "/28", {"a": "10.7.0.0/28", "old": "10.7.0.16/28"})
    held = {1: held_by("default/web-1", earlier=("before",)), 2: held_by("default/gone")}
    await draw_pool(drawn, "cut-a", "10.7.0.0/28", held, node="a", slices="cut")
    quarantined = {1: held_by("default/web-1")}
    await draw_pool(drawn, "cut-old", "10.7.0.16/28", quarantined, node="old", slices="cut", gone_since=THEN)
    await draw_definition(drawn, "shared", "10.8.0.0/24", exclude=["10.8.0.64/28"])
    await draw_pool(drawn, "10.8.0.0-24", "10.8.0.0/24", {5: held_by("default/web-1")})
    await draw_reservation(drawn, "10.8.0.5", "default/web-1")
    await draw_reservation(drawn, "10.8.0.6", "default/web-1")
    await draw_reservation(drawn, "10.8.0.7", "default/gone")


async def found(address: str) -> tuple[AddressFinding, ...]:
    drawn = DrawnCluster()
    await draw(drawn)
    return find_address(
        await gather_address_facts(drawn.cluster, None, parse_address(address), SYSTEM_NAMESPACE, NOW)
    )


@pytest.mark.parametrize(
    ("address", "state", "node", "pod"),
    [
        ("10.1.0.10", AddressState.ON_POD, "a", "default/web-1"),
        ("10.1.0.11", AddressState.IDLE, "a", ""),
        ("10.1.0.12", AddressState.RELEASING, "a", ""),
        ("10.9.0.1", AddressState.PRIMARY, "a", ""),
        ("10.1.0.0", AddressState.KEPT_BACK, "", ""),
        ("10.1.0.255", AddressState.KEPT_BACK, "", ""),
        ("10.1.0.200", AddressState.UNKNOWN, "", ""),
        ("10.7.0.1", AddressState.ON_POD, "a", "default/web-1"),
        ("10.7.0.2", AddressState.LEAKED, "a", "default/gone"),
        ("10.7.0.3", AddressState.FREE, "a", ""),
        ("10.7.0.15", AddressState.KEPT_BACK, "a", ""),
        ("10.7.0.17", AddressState.QUARANTINED, "old", "default/web-1"),
        ("10.7.0.18", AddressState.QUARANTINED, "old", ""),
        ("10.7.0.40", AddressState.UNASSIGNED, "", ""),
        ("10.8.0.5", AddressState.ON_POD, "a", "default/web-1"),
        ("10.8.0.6", AddressState.RESERVED, "", "default/web-1"),
        ("10.8.0.7", AddressState.LEAKED, "", "default/gone"),
        ("10.8.0.9", AddressState.FREE, "", ""),
        ("10.8.0.70", AddressState.KEPT_BACK, "", ""),
        ("192.168.0.1", AddressState.HOST, "a", ""),
        ("172.16.0.9", AddressState.ON_POD, "a", "default/alien"),
    ],
)
async def test_each_state_is_told_by_the_objects(
    address: str, state: AddressState, node: str, pod: str
) -> None:
    (finding,) = await found(address)
    assert (finding.state, finding.node, finding.pod) == (state, node, pod)


async def test_a_reservation_and_a_gone_node_say_since_when() -> None:
    (reserved,) = await found("10.8.0.6")
    assert (reserved.reservation, bool(reserved.since)) == ("10.8.0.6", True)
    (quarantined,) = await found("10.7.0.17")
    assert quarantined.since == THEN
    (on_pod,) = await found("10.8.0.5")
    assert (on_pod.pool, on_pod.reservation, on_pod.interface) == ("10.8.0.0-24", "10.8.0.5", "net1")


async def test_the_past_is_what_objects_still_tell() -> None:
    drawn = DrawnCluster()
    await draw(drawn)
    for number, words in enumerate(("gave back 10.1.0.11, 10.1.0.12", "gave back 10.1.0.110")):
        await drawn.cluster.create(
            Event(
                metadata=ObjectMeta(name=f"e{number}", namespace=SYSTEM_NAMESPACE),
                involved_object=ObjectReference(
                    kind="NodeNetworkConfig", name="a", namespace=SYSTEM_NAMESPACE
                ),
                reason="Released",
                message=words,
                last_timestamp=THEN,
            ),
            manager=MANAGER,
        )

    async def past(address: str) -> list[str]:
        facts = await gather_address_facts(drawn.cluster, None, parse_address(address), SYSTEM_NAMESPACE, NOW)
        return [each.words for each in past_of(facts)]

    event, ended = sorted(await past("10.1.0.11"))
    assert event == "NodeNetworkConfig a: Released: gave back 10.1.0.11, 10.1.0.12"
    assert ended == "pod default/done on node a, made then, had it until it ended (Succeeded)"
    assert await past("10.7.0.1") == ["sandbox before of pod default/web-1 had it before"]
    assert await past("10.1.0.10") == []


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A subnet of the nodes of cluster east, one of which is removed."""
    url = f"sqlite:///{tmp_path / 'subnets.db'}"

    async def fill() -> None:
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as allocator:
            spec = SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/28",), keep_back=("10.1.0.13",))
            await allocator.add_subnet(spec)
            await allocator.put_container(a_wish("a", 2))
            await allocator.put_container(a_wish("b", 1))
            await allocator.delete_container("b", cluster="east")
            await allocator.add_subnet(
                SubnetSpec(network="blue", name="old", cidrs=("10.2.0.0/29", "10.2.1.0/28"))
            )
            await allocator.put_container(a_wish("c", 6, subnet="old"))
            await allocator.shrink_subnet("blue", "old", ("10.2.1.0/28",))

    asyncio.run(fill())
    return url


@pytest.mark.parametrize(
    ("address", "state", "node"),
    [
        ("10.1.0.1", "kept back", ""),
        ("10.1.0.2", "primary", "node-a"),
        ("10.1.0.3", "held", "node-a"),
        ("10.1.0.5", "quarantined", "node-b"),
        ("10.1.0.9", "free", ""),
        ("10.1.0.13", "kept back", ""),
        ("10.1.0.15", "kept back", ""),
        ("10.2.1.9", "draining", ""),
        ("10.2.1.2", "held", "node-c"),
    ],
)
def test_the_allocator_knows_what_no_object_shows(  # noqa: PLR0917 - fixtures, and what is expected
    podtide: Run, tmp_path: Path, database: str, address: str, state: str, node: str
) -> None:
    async def nothing(drawn: DrawnCluster) -> None:
        await drawn.node("x")

    with served(nothing, tmp_path) as kubeconfig:
        answer = podtide("ip", address, "--kubeconfig", str(kubeconfig), "--database", database, "-o", "json")
    (finding,) = json.loads(answer.out)["findings"]
    assert (finding["state"], finding["node"]) == (state, node)
    assert bool(finding["until"]) == (state == "quarantined")


def test_it_is_printed_in_every_format_and_what_does_not_answer_is_a_warning(
    podtide: Run, tmp_path: Path
) -> None:
    with served(draw, tmp_path) as kubeconfig:
        where = ("--kubeconfig", str(kubeconfig))
        lines = podtide("ip", "10.1.0.10", *where).out.splitlines()
        wide = podtide("ip", "10.7.0.1", *where, "-o", "wide").out
        name = podtide("ip", "10.1.0.10", *where, "-o", "name").out
        document = yaml.safe_load(podtide("ip", "10.1.0.10", *where, "-o", "yaml").out)
        without = podtide("ip", "10.1.0.10", *where, "--allocator", "http://127.0.0.1:1")
    assert lines[0].split() == ["SUBNET", "STATE", "NODE", "POD", "SINCE"]
    assert lines[1].split()[:6] == ["blue/pods", "on", "a", "pod", "a", "default/web-1"]
    assert lines[3] == "10.1.0.10, subnet blue/pods: pod default/web-1 on node a has it"
    assert "cut-a" in wide
    assert "the allocator keeps no history of single addresses" in wide
    assert name == "pod/default/web-1\n"
    assert document["findings"][0]["grant"] == "grant-10-1-0-10"
    assert without.status == ExitStatus.DONE
    assert without.out.splitlines()[3] == lines[3]
    assert "could not ask the allocator at http://127.0.0.1:1" in without.err


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("10.1.0", "podtide: '10.1.0' is not a valid IP address such as 10.0.0.5 or fd00::5"),
        (
            "203.0.113.7",
            NOWHERE,
        ),
    ],
)
def test_an_address_that_is_none_or_nowhere_is_one_sentence(
    podtide: Run, tmp_path: Path, address: str, words: str
) -> None:
    with served(draw, tmp_path) as kubeconfig:
        answer = podtide("ip", address, "--kubeconfig", str(kubeconfig))
    assert (answer.status, answer.out, answer.err) == (ExitStatus.BAD_INPUT, "", f"{words}\n")
