"""SIGTERM ends every program in peace, also when the cluster does not answer: Kubernetes waits for 30 seconds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from msgspec import Struct

from cli.processes import Program, running, served_cluster, until
from cli.test_agent import Place, join
from cluster.kubernetes.bad_network import BadNetwork, bad_network
from podtide.allocator.store import open_allocator
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.controller.program import LEASE
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.runtime.clock import SystemClock

GRACE_SECONDS = 30.0


class Reach(Struct, frozen=True):
    """A cluster, and the way to it."""

    cluster: EmbeddedCluster
    network: BadNetwork


def port_in(kubeconfig: Path) -> int:
    """Where the cluster is that this leads to."""
    server: str = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    port = urlsplit(server).port
    assert port is not None
    return port


@asynccontextmanager
async def a_cluster_behind_a_network(kubeconfig: Path) -> AsyncIterator[Reach]:
    async with (
        served_cluster(kubeconfig) as cluster,
        bad_network("127.0.0.1", port_in(kubeconfig)) as network,
    ):
        write_kubeconfig(kubeconfig, f"http://127.0.0.1:{network.port}")
        yield Reach(cluster, network)


async def stop_within_grace(program: Program) -> None:
    async with asyncio.timeout(GRACE_SECONDS):
        await program.stop()


@asynccontextmanager
async def a_leader(directory: Path) -> AsyncIterator[tuple[Program, Reach]]:
    kubeconfig, database = directory / "kubeconfig", f"sqlite:///{directory}/subnets.db"
    async with await open_allocator(database, clock=SystemClock(), migrate=True):
        pass
    async with a_cluster_behind_a_network(kubeconfig) as it:
        place = ObjectMeta(name=LEASE.name, namespace=LEASE.namespace)
        await it.cluster.create(
            Lease(metadata=place, spec=LeaseSpec(lease_duration_seconds=1)), manager="test"
        )
        names = ("--cluster-name", "east", "--network", "blue", "--subnet", "pods")
        async with running(
            "controller", *names, "--kubeconfig", kubeconfig, "--database", database
        ) as leader:
            await leader.logged("leading")
            yield leader, it


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_leader_whose_cluster_fell_silent_ends_within_the_grace_period(tmp_path: Path) -> None:
    async with a_leader(tmp_path) as (leader, it):
        it.network.fall_silent()
        await stop_within_grace(leader)


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_leader_whose_cluster_is_back_in_time_gives_its_lease_up(tmp_path: Path) -> None:
    async with a_leader(tmp_path) as (leader, it):
        it.network.cut()
        leader.process.terminate()
        await leader.logged("cannot release the Lease; will go on trying")
        it.network.recover()
        await leader.logged("stopped")
        assert (await it.cluster.get(Lease, LEASE.name, LEASE.namespace)).spec.holder_identity == ""


@pytest.mark.real_time
async def test_a_second_signal_ends_a_leader_that_waits_for_its_cluster(tmp_path: Path) -> None:
    async with a_leader(tmp_path) as (leader, it):
        it.network.fall_silent()
        leader.process.terminate()
        await leader.logged("no longer leading")
        await leader.stop()
        assert "could not release" not in str(leader.lines)


@pytest.mark.real_time
async def test_an_agent_whose_cluster_fell_silent_answers_who_waits_and_ends(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with a_cluster_behind_a_network(place.kubeconfig) as it:
        await join(it.cluster, "10.1.0.5")
        async with running(*place.options, PODTIDE_ADD_WAIT="30s") as agent:
            await agent.logged("listening")
            await place.add("first")
            waiting = await place.acknowledged("ADD", "second")
            it.network.fall_silent()
            await stop_within_grace(agent)
            assert (await waiting).exit_status == 1, "it is told, and not left"


@pytest.mark.real_time
async def test_an_agent_that_never_reached_its_cluster_ends(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with a_cluster_behind_a_network(place.kubeconfig) as it:
        it.network.fall_silent()
        async with running(*place.options) as agent:
            await agent.logged("listening")

            async def has_tried() -> bool:
                return bool(it.network.attempts)

            await until(has_tried)
            await stop_within_grace(agent)
