"""`podtide quarantine`: what removed nodes had is listed, and ends with a reason, not while a living pod shows it."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from allocator.contract.harness import a_wish
from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster, served
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.allocator.terms import TermClaim
from podtide.resources.pod import PodPhase
from podtide.runtime.clock import SystemClock

HAD = ["10.1.0.2", "10.1.0.3", "10.1.0.4"]


async def draw(drawn: DrawnCluster) -> None:
    await drawn.pod("web-1", "node-a", "10.1.0.3")
    await drawn.pod("done", "node-a", "10.1.0.4", phase=PodPhase.SUCCEEDED)


@contextmanager
def a_removed_node(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """A database in which node-a was removed, and a cluster in which one of its pods lives: the options that say where."""
    url = f"sqlite:///{tmp_path / 'subnets.db'}"

    async def remove() -> None:
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as allocator:
            await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/28",)))
            await allocator.put_container(a_wish("a", 2))
            await allocator.put_container(a_wish("b", 1))
            await allocator.delete_container("a", cluster="east")

    asyncio.run(remove())
    with served(draw, tmp_path) as kubeconfig:
        yield "--database", url, "--kubeconfig", str(kubeconfig)


def listed(podtide: Run, where: tuple[str, ...]) -> list[str]:
    found = json.loads(podtide("quarantine", "list", "-o", "json", *where[:2]).out)
    return [address for each in found for address in each["addresses"]]


def test_what_is_in_quarantine_is_listed(podtide: Run, tmp_path: Path) -> None:
    with a_removed_node(tmp_path) as where:
        header, row = podtide("quarantine", "list", "--cluster", "east", *where[:2]).out.splitlines()
        assert header.split() == ["CLUSTER", "NODE", "SUBNET", "CONTAINER", "UNTIL", "ADDRESSES"]
        cluster, node, subnet, container, until, addresses = row.split()
        assert (cluster, node, subnet, container) == ("east", "node-a", "blue/pods", "a")
        assert until.endswith("Z")
        assert addresses == ",".join(HAD)
        assert len(podtide("quarantine", "list", "--node", "node-b", *where[:2]).out.splitlines()) == 1


def test_on_eighty_columns_no_row_is_broken(
    podtide: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"

    async def remove() -> None:
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as allocator:
            await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
            await allocator.put_container(a_wish("0f8fad5b-d9cb-469f-a165-70867728950e", 40))
            await allocator.delete_container("0f8fad5b-d9cb-469f-a165-70867728950e", cluster="east")

    asyncio.run(remove())
    monkeypatch.setattr("podtide.cli.output.formats.screen_width", lambda: 80)
    header, row = podtide("quarantine", "list", "--database", url).out.splitlines()
    assert header.split() == ["CLUSTER", "NODE", "SUBNET", "UNTIL", "ADDRESSES"]
    assert len(row) <= 80
    assert row.endswith("  10.1.0.2 and 40 more")


def test_a_quarantine_ends_with_a_reason_that_is_logged(podtide: Run, tmp_path: Path) -> None:
    with a_removed_node(tmp_path) as where:
        ended = podtide("quarantine", "end", "10.1.0.2", "10.1.0.4", "--reason", "machine scrapped", *where)
        assert (ended.status, ended.out) == (0, "2 addresses are free: machine scrapped\n")
        assert "quarantine ended by hand" in ended.err
        assert "machine scrapped" in ended.err
        assert listed(podtide, where) == ["10.1.0.3"]


def test_what_a_living_pod_shows_is_refused_unless_forced(podtide: Run, tmp_path: Path) -> None:
    with a_removed_node(tmp_path) as where:
        refused = podtide("quarantine", "end", *HAD, "--reason", "r", *where)
        assert refused.status != 0
        assert (
            "pod default/web-1 on node node-a shows 10.1.0.3, and it lives: delete the pod first"
            in refused.err
        )
        assert listed(podtide, where) == HAD
        forced = podtide("quarantine", "end", *HAD, "--reason", "r", "--force", *where)
        assert forced.status == 0
        assert listed(podtide, where) == []


def test_an_end_needs_a_reason_and_addresses_in_quarantine(podtide: Run, tmp_path: Path) -> None:
    with a_removed_node(tmp_path) as where:
        assert "--reason" in podtide("quarantine", "end", "10.1.0.2", *where).err
        wrong = podtide("quarantine", "end", "10.1.0.2", "10.1.0.9", "--reason", "r", *where)
        assert "10.1.0.9 is not in quarantine" in wrong.err
        assert (
            "is not a valid IP address"
            in podtide("quarantine", "end", "nonsense", "--reason", "r", *where).err
        )
        assert listed(podtide, where) == HAD


def test_a_cluster_that_is_gone_for_ever_is_released_when_that_is_said(podtide: Run, tmp_path: Path) -> None:
    with a_removed_node(tmp_path) as where:
        release = ("quarantine", "release-cluster", "east", "--reason", "sold", *where[:2])
        refused = podtide(*release)
        assert refused.status != 0
        assert "would share it with another pod" in refused.err
        freed = podtide(*release, "--force")
        assert freed.out == "5 addresses of cluster east are free: sold\n"
        (subnet,) = json.loads(podtide("subnet", "list", "-o", "json", *where[:2]).out)
        assert (subnet["reserved"], subnet["containers"]) == (0, 0)


def test_a_cluster_is_released_whoever_its_name_and_containers_belong_to_also_while_the_store_recovers(
    podtide: Run, tmp_path: Path
) -> None:
    with a_removed_node(tmp_path) as where:

        async def go_back() -> None:
            async with await open_allocator(where[1], clock=SystemClock()) as allocator:
                await allocator.put_container(a_wish("c", 1, cluster_uid="uid-before"))
                await allocator.open_term(
                    TermClaim(cluster="east", cluster_uid="uid-east", holder="controller-1")
                )
                await allocator.put_container(a_wish("d", 1, cluster_uid="uid-east"))
                await allocator.begin_recovery("a test")

        asyncio.run(go_back())
        freed = podtide("quarantine", "release-cluster", "east", "--reason", "sold", "--force", *where[:2])
        assert freed.out == "9 addresses of cluster east are free: sold\n"
        assert "cluster released by hand" in freed.err
        (subnet,) = json.loads(podtide("subnet", "list", "-o", "json", *where[:2]).out)
        assert (subnet["reserved"], subnet["containers"]) == (0, 0)


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_address_that_is_in_two_quarantines_has_to_be_told_apart(
    podtide: Run, tmp_path: Path, force: tuple[str, ...]
) -> None:
    with a_removed_node(tmp_path) as where:

        async def remove_elsewhere() -> None:
            async with await open_allocator(where[1], clock=SystemClock()) as allocator:
                spec = SubnetSpec(network="green", name="pods", cidrs=("10.1.0.0/28",))
                await allocator.add_subnet(spec)
                await allocator.put_container(a_wish("w", 2, network="green", cluster="west"))
                await allocator.delete_container("w", cluster="west")

        asyncio.run(remove_elsewhere())
        unclear = podtide("quarantine", "end", "10.1.0.2", "--reason", "r", *where, *force)
        assert "say which with --cluster" in unclear.err
        clear = podtide("quarantine", "end", "10.1.0.2", "--reason", "r", "--cluster", "west", *where, *force)
        assert clear.status == 0
        assert "10.1.0.2" in listed(podtide, where)
