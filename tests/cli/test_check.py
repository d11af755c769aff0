"""`podtide check`: what is broken is found, what only moves is not, and what was not looked at is said."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from allocator.contract.harness import HandClock, a_wish
from cli.conftest import Run
from cli.drawn_cluster import MANAGER, DrawnCluster, addresses, name_of, served
from podtide.allocator.containers import AllocatedContainer, GrantedAddress
from podtide.allocator.store import InlineExecutor, open_allocator
from podtide.allocator.subnets import Subnet, SubnetInForce, SubnetSpec
from podtide.cli.check.command import read
from podtide.cli.check.findings import AllocatorRecords, CheckedObjects, CheckFindings, confirmed, find
from podtide.cluster.port import Forbidden, Page, R
from podtide.core.audit.invariants import Violation
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.network_attachment import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
)
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.resources.pod import PodPhase
from podtide.runtime.clock import SystemClock


async def findings(drawn: DrawnCluster, books: AllocatorRecords | None = None) -> CheckFindings:
    seen = await read(drawn.cluster, None)
    return find(CheckedObjects(seen.nodes, books))


def violated(found: CheckFindings) -> list[tuple[int, str]]:
    return [(violation.invariant, violation.subject) for violation in found.violations]


async def a_healthy_cluster() -> DrawnCluster:
    drawn = DrawnCluster()
    await drawn.config("a", requested=3, granted=addresses(3))
    await drawn.config("bb", requested=2, granted=addresses(3, 50), named=["10.1.0.52"])
    await drawn.pod("web-1", "a", "10.1.0.10")
    await drawn.pod("web-2", "bb", "10.1.0.50")
    await drawn.pod("waits", "bb")
    await drawn.pod("host", "a", "192.168.0.1", host_network=True)
    return drawn


async def books_of(drawn: DrawnCluster, **changes: object) -> AllocatorRecords:
    """What an allocator that agrees with the cluster keeps."""
    nodes = (await read(drawn.cluster, None)).nodes
    containers = tuple(
        AllocatedContainer(
            id=container.id,
            network="blue",
            subnet=container.subnet_name,
            cluster="east",
            node=node.name,
            primary=container.primary_ip,
            gateway="10.1.0.1",
            cidr="10.1.0.0/24",
            addresses=tuple(GrantedAddress(entry.name, entry.ip) for entry in container.ip_assignments),
            version=container.version,
            request_uid="uid",
            generation=1,
            wanted=node.requested,
            owed=0,
        )
        for node in nodes
        for container in node.containers
    )
    held = sum(1 + len(container.addresses) for container in containers)
    return replace(
        AllocatorRecords(containers=containers, subnets=(a_subnet(held, len(containers)),)), **changes
    )


def a_subnet(reserved: int, containers: int) -> Subnet:
    return Subnet(
        network="blue",
        name="pods",
        cidrs=("10.1.0.0/24",),
        gateways=("10.1.0.1",),
        keep_back=(),
        keep_back_first=0,
        capacity=253,
        reserved=reserved,
        containers=containers,
        owed=0,
    )


async def test_a_healthy_cluster_is_clean_with_and_without_an_allocator() -> None:
    drawn = await a_healthy_cluster()
    for books in (None, await books_of(drawn)):
        found = await findings(drawn, books)
        assert violated(found) == []
        assert (found.nodes, found.pods, found.addresses) == (2, 2, 6)


async def test_an_address_on_two_pods_is_found() -> None:
    drawn = await a_healthy_cluster()
    await drawn.pod("twin", "bb", "10.1.0.10")
    assert (1, "10.1.0.10") in violated(await findings(drawn))


async def test_a_pod_that_has_ended_may_show_what_another_has_now() -> None:
    drawn = await a_healthy_cluster()
    await drawn.pod("done", "a", "10.1.0.10", phase=PodPhase.SUCCEEDED)
    assert violated(await findings(drawn)) == []


async def test_an_address_in_two_nodes_pools_is_found() -> None:
    drawn = await a_healthy_cluster()
    await drawn.config("thief", requested=1, granted=["10.1.0.11"])
    assert (1, "10.1.0.11") in violated(await findings(drawn))


async def test_an_address_that_left_its_pod_is_found() -> None:
    drawn = await a_healthy_cluster()
    await drawn.pod("lost", "a", "10.1.0.77")
    await drawn.pod("sold", "bb", "10.1.0.52")
    assert violated(await findings(drawn)) == [(4, "10.1.0.52"), (4, "10.1.0.77")]


async def test_a_node_that_podtide_does_not_serve_is_none_of_its_business() -> None:
    drawn = await a_healthy_cluster()
    await drawn.node("foreign")
    await drawn.pod("theirs", "foreign", "172.16.0.9")
    assert violated(await findings(drawn)) == []


async def test_an_address_the_allocator_took_back_unasked_is_found() -> None:
    drawn = await a_healthy_cluster()
    books = await books_of(drawn)
    without = tuple(
        replace(
            container,
            addresses=tuple(each for each in container.addresses if each.name != name_of("10.1.0.10")),
        )
        for container in books.containers
    )
    found = await findings(drawn, replace(books, containers=without, subnets=(a_subnet(7, 2),)))
    assert violated(found) == [(3, "10.1.0.10"), (4, "10.1.0.10")]


async def test_what_a_node_gave_back_may_be_gone_at_the_allocator() -> None:
    drawn = await a_healthy_cluster()
    books = await books_of(drawn)
    without = tuple(
        replace(
            container,
            addresses=tuple(each for each in container.addresses if each.name != name_of("10.1.0.52")),
        )
        for container in books.containers
    )
    found = await findings(drawn, replace(books, containers=without, subnets=(a_subnet(7, 2),)))
    assert violated(found) == []


async def test_counts_that_do_not_add_up_are_found_and_quarantine_is_no_fault() -> None:
    drawn = await a_healthy_cluster()
    books = await books_of(drawn)
    in_quarantine = replace(books, subnets=(a_subnet(8 + 5, 2),))
    assert violated(await findings(drawn, in_quarantine)) == []
    too_few = replace(books, subnets=(a_subnet(7, 2),))
    assert violated(await findings(drawn, too_few)) == [(2, "pods")]


async def test_counts_that_cannot_be_seen_whole_are_not_judged() -> None:
    drawn = await a_healthy_cluster()
    books = await books_of(drawn, subnets=(a_subnet(7, 9),))
    found = await findings(drawn, books)
    assert violated(found) == []
    assert "the counts of subnet pods: other clusters use it too, and the token does not show theirs" in (
        found.not_checked
    )
    moving = await findings(drawn, replace(books, subnets=(), moving=("pods",)))
    assert "the counts of subnet pods: they changed while they were read" in moving.not_checked


async def test_a_container_whose_node_is_gone_is_found_and_other_clusters_are_let_be() -> None:
    drawn = await a_healthy_cluster()
    books = await books_of(drawn)
    gone = replace(books.containers[0], id="gone", node="gone", primary="10.9.9.9", addresses=())
    foreign = replace(gone, id="foreign", cluster="west", primary="10.9.9.8")
    more = replace(books, containers=(*books.containers, gone, foreign), subnets=(a_subnet(10, 4),))
    assert violated(await findings(drawn, more)) == [(6, "gone")]


async def test_what_the_database_says_of_itself_is_passed_on() -> None:
    drawn = await a_healthy_cluster()
    broken = Violation(2, "pods", "chunk 3 is lost")
    assert (await findings(drawn, await books_of(drawn, broken=(broken,)))).violations == (broken,)


def test_only_what_is_broken_twice_is_broken() -> None:
    lasting, changed = Violation(2, "pods", "counts 7"), Violation(2, "pods", "counts 8")
    passing, new = Violation(4, "10.1.0.1", "moved"), Violation(1, "10.1.0.2", "twice")
    counts = {"not_checked": (), "nodes": 1, "pods": 1, "addresses": 1}
    first = CheckFindings(violations=(lasting, passing), **counts)  # type: ignore[arg-type]  # as Findings checks
    second = CheckFindings(violations=(changed, new), **counts)  # type: ignore[arg-type]  # as above
    assert confirmed(first, second).violations == (changed,)


async def draw_clean(drawn: DrawnCluster) -> None:
    await drawn.config("a", requested=3, granted=addresses(3))
    await drawn.pod("web", "a", "10.1.0.10")


async def draw_broken(drawn: DrawnCluster) -> None:
    await draw_clean(drawn)
    await drawn.pod("twin", "a", "10.1.0.10")


def test_a_clean_cluster_is_exit_status_0_and_says_what_was_not_checked(podtide: Run, tmp_path: Path) -> None:
    with served(draw_clean, tmp_path) as kubeconfig:
        outcome = podtide("check", "--kubeconfig", str(kubeconfig))
    assert outcome.status == 0
    first, *rest = outcome.out.splitlines()
    assert first == "clean: 1 node with 3 addresses, 1 pod with one"
    assert any("name the allocator (--allocator or --database)" in line for line in rest)


async def draw_networks(drawn: DrawnCluster) -> None:
    """Two unnamed networks that overlap and are guarded, and an address that both gave away."""
    await draw_clean(drawn)
    for name, cidr in (("one", "10.7.0.0/24"), ("two", "10.7.0.0/16")):
        place = ObjectMeta(name=name, namespace="default")
        config = json.dumps({"name": name, "ipam": {"type": "podtide", "range": cidr}})
        await drawn.cluster.create(
            NetworkAttachmentDefinition(metadata=place, spec=NetworkAttachmentDefinitionSpec(config=config)),
            manager=MANAGER,
        )
        pool = IPPool(
            metadata=ObjectMeta(name=cidr.replace("/", "-"), namespace="nets"),
            spec=IPPoolSpec(
                range=cidr, allocations={"1": IPAllocation(id="sandbox", podref=f"default/{name}")}
            ),
        )
        await drawn.cluster.create(pool, manager=MANAGER)
    reservation = OverlappingRangeIPReservation(
        metadata=ObjectMeta(name="10.7.0.1", namespace="nets"),
        spec=OverlappingRangeIPReservationSpec(podref="default/one"),
    )
    await drawn.cluster.create(reservation, manager=MANAGER)


def test_secondary_networks_are_checked_too(podtide: Run, tmp_path: Path) -> None:
    with served(draw_networks, tmp_path) as kubeconfig:
        elsewhere = podtide("check", "--kubeconfig", str(kubeconfig))
        outcome = podtide("check", "--kubeconfig", str(kubeconfig), "--networks-namespace", "nets")
    assert elsewhere.status == 0
    assert outcome.status == 1
    assert outcome.out.splitlines()[:3] == [
        "2 violations in 1 node with 3 addresses, 1 pod with one, 2 secondary networks with 2 addresses in use",
        "  invariant 1: 10.7.0.1 is held by default/two in pool 10.7.0.0-16 and by default/one in pool 10.7.0.0-24",
        "  invariant 2: 10.7.0.1 is held by default/two in pool 10.7.0.0-16, but reserved for default/one",
    ]


async def test_secondary_networks_that_may_not_be_seen_are_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = await a_healthy_cluster()
    plain = drawn.cluster.list

    async def list_some(kind: type[R], namespace: str = "", **more: Any) -> Page[R]:
        if kind is IPPool:
            raise Forbidden("ippools may not be listed")
        return await plain(kind, namespace, **more)

    monkeypatch.setattr(drawn.cluster, "list", list_some)
    found = find(await read(drawn.cluster, None))
    assert violated(found) == []
    assert "secondary networks: the credential may not see their objects" in found.not_checked


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_violation_is_exit_status_1_and_a_sentence(podtide: Run, tmp_path: Path, output: str) -> None:
    with served(draw_broken, tmp_path) as kubeconfig:
        outcome = podtide("check", "--kubeconfig", str(kubeconfig), "-o", output)
    words = "10.1.0.10 is assigned to both default/twin and default/web"
    assert outcome.status == 1
    if output == "json":
        answer = json.loads(outcome.out)
        assert (answer["clean"], answer["violations"][0]["words"]) == (False, words)
    else:
        assert f"  invariant 1: {words}" in outcome.out.splitlines()


def test_an_allocators_database_is_read_too(podtide: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"

    async def make() -> None:
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as store:
            await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/28",)))
            await store.put_container(a_wish("a", 3))

    asyncio.run(make())
    with served(draw_clean, tmp_path) as kubeconfig:
        outcome = podtide("check", "--kubeconfig", str(kubeconfig), "--database", url)
    assert outcome.status == 1
    assert "3: 10.1.0.10 (grant-10-1-0-10) left node a, which had not named it" in outcome.out
    assert "name the allocator" not in outcome.out


class PassingTime(HandClock):
    """Time that passes between any two looks at it, as it does."""

    def wall(self) -> float:
        self.pass_by(1.0)
        return super().wall()


async def test_the_counts_of_a_subnet_with_a_batch_in_force_are_checked_although_time_passes() -> None:
    drawn = await a_healthy_cluster()
    async with await open_allocator(
        "sqlite:///:memory:", clock=PassingTime(), executor=InlineExecutor(), migrate=True
    ) as allocator:
        await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/28",)))
        decided = SubnetInForce(
            batch=16, buffer="0.5", top=16, step="BatchConfigured", reason="the first one"
        )
        await allocator.put_in_force("blue", "pods", decided)
        books = (await read(drawn.cluster, allocator)).records
    assert books is not None
    assert ([subnet.name for subnet in books.subnets], books.moving) == (["pods"], ())


def test_an_allocator_that_is_half_named_is_refused(podtide: Run, tmp_path: Path) -> None:
    outcome = podtide("check", "--kubeconfig", str(tmp_path / "none"), "--database", "")
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "say where the subnets are" in outcome.err
