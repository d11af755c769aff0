"""`podtide controller` as a cluster runs it: with a Lease, a database, and metrics for whoever asks."""

import socket
from pathlib import Path

import aiohttp
import pytest

from cli.conftest import Run
from cli.processes import running, served_cluster, until
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import SystemClock

LEASE = "podtide-controller"
NAMES = ("--cluster-name", "east", "--network", "blue", "--subnet", "pods")


@pytest.mark.real_time
async def test_a_controller_leads_serves_its_nodes_and_hands_over(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/subnets.db"
    async with await open_allocator(database, clock=SystemClock(), migrate=True) as allocator:
        await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
    kubeconfig = tmp_path / "kubeconfig"
    async with served_cluster(kubeconfig) as cluster:
        # As a new cluster ships it, so that the first leader need not wait for one before it.
        place = ObjectMeta(name=LEASE, namespace=SYSTEM_NAMESPACE)
        await cluster.create(Lease(metadata=place, spec=LeaseSpec(lease_duration_seconds=1)), manager="test")
        await cluster.create(Node(metadata=ObjectMeta(name="node-1")), manager="test")
        options = ("--kubeconfig", kubeconfig, "--database", database, "--metrics-listen", "127.0.0.1:0")
        async with running("controller", *NAMES, *options, "--identity", "me") as controller:
            url = (await controller.logged("listening"))["url"]

            async def is_served() -> bool:
                configs = await cluster.list(NodeNetworkConfig, SYSTEM_NAMESPACE)
                return any(config.status.network_containers for config in configs.items)

            await until(is_served)
            assert (await cluster.get(Lease, LEASE, SYSTEM_NAMESPACE)).spec.holder_identity == "me"
            async with aiohttp.ClientSession(url) as door:
                async with door.get("/healthz") as response:
                    assert (response.status, await response.text()) == (200, "ok")
                async with door.get("/readyz") as response:
                    assert (response.status, await response.text()) == (200, "ok")
                async with door.get("/metrics") as response:
                    assert "podtide_controller_leading 1.0" in await response.text()
            await controller.stop()
        assert not (await cluster.get(Lease, LEASE, SYSTEM_NAMESPACE)).spec.holder_identity


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_leader_is_not_ready_while_its_allocator_is_away_and_goes_on_living(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    kubeconfig = tmp_path / "kubeconfig"
    async with served_cluster(kubeconfig) as cluster:
        place = ObjectMeta(name=LEASE, namespace=SYSTEM_NAMESPACE)
        await cluster.create(Lease(metadata=place, spec=LeaseSpec(lease_duration_seconds=1)), manager="test")
        options = ("--kubeconfig", kubeconfig, "--allocator", f"http://{address}", "--poll", "1s")
        async with (
            running("controller", *NAMES, *options, "--metrics-listen", "127.0.0.1:0") as controller,
            aiohttp.ClientSession((await controller.logged("listening"))["url"]) as door,
        ):

            async def answer(path: str) -> tuple[int, str]:
                async with door.get(path) as response:
                    return response.status, await response.text()

            async def is_unready() -> bool:
                return (await answer("/readyz"))[0] == 503

            async def is_ready() -> bool:
                return await answer("/readyz") == (200, "ok")

            await until(is_unready)
            assert (await answer("/readyz"))[1].startswith(
                "the allocator does not answer, and is tried again"
            )
            assert (await answer("/healthz"))[0] == 200  # restarting it would not bring the allocator back
            told = (await answer("/metrics"))[1]
            assert "podtide_controller_allocator_reachable 0.0" in told
            assert 'allocator_calls_total{method="demand",outcome="AllocatorUnavailable"}' in told
            database = f"sqlite:///{tmp_path}/subnets.db"
            async with running("allocator", "--database", database, "--listen", address) as allocator:
                await until(is_ready)
                assert "podtide_controller_allocator_reachable 1.0" in (await answer("/metrics"))[1]
                await controller.stop()
                await allocator.stop()


@pytest.mark.real_time
async def test_a_controller_that_waits_for_a_lease_says_so(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    async with served_cluster(kubeconfig) as cluster:
        place = ObjectMeta(name=LEASE, namespace=SYSTEM_NAMESPACE)
        held = LeaseSpec(holder_identity="the-other", lease_duration_seconds=15)
        await cluster.create(Lease(metadata=place, spec=held), manager="test")
        options = ("--kubeconfig", kubeconfig, "--database", f"sqlite:///{tmp_path}/subnets.db")
        async with running("controller", *NAMES, *options) as controller:
            line = await controller.logged("waiting for the Lease")
            assert (line["level"], line["lease"], line["holder"]) == (
                "info",
                f"{SYSTEM_NAMESPACE}/{LEASE}",
                "the-other",
            )
            assert line["reason"] == (
                "it is taken when its holder gives it up, or when it has not been renewed for 15s"
            )
            await controller.stop()


def nowhere(directory: Path) -> tuple[str, str]:
    """A cluster that does not answer."""
    kubeconfig = directory / "kubeconfig"
    write_kubeconfig(kubeconfig, "http://127.0.0.1:1")
    return "--kubeconfig", str(kubeconfig)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "either --allocator URL, or --database URL"),
        (
            ("--allocator", "http://a", "--database", "sqlite:///x"),
            "either --allocator URL, or --database URL",
        ),
        (("--database", "sqlite:///x", "--token-file", "/dev/null"), "a database asks for neither"),
        (("--database", "sqlite:///x", "--subnet", ""), "the controller's subnet is empty"),
        (("--database", "sqlite:///x", "--subnet-v6", "pods"), "given for both addresses"),
        (("--database", "sqlite:///x", "--metrics-listen", "9090"), "not an address to listen on"),
        (("--database", "sqlite:///x", "--batch", "0"), "--batch=0 is refused"),
        (("--database", "sqlite:///x", "--lower-threshold", "0.95"), "give less than upper_threshold"),
        (("--database", "mysql://x"), "'mysql' is refused"),
        (
            ("--database", "sqlite:///x", "--cluster-name", "east west"),
            "--cluster-name 'east west' is not a valid name",
        ),
        (
            ("--database", "sqlite:///x", "--subnet", "Pods_A"),
            "--subnet 'Pods_A' is not a valid Kubernetes name",
        ),
        (("--allocator", "http://a", "--token-file", ""), "the path is empty"),
        (
            ("--allocator", "http://a", "--token-file", "/none"),
            "'--token-file': the file /none does not exist",
        ),
        (("--database", "sqlite:///x", "--kubeconfig", "/none"), "/none cannot be read"),
    ],
)
def test_what_cannot_be_run_by_is_refused_in_one_line(
    podtide: Run, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    outcome = podtide("controller", *NAMES, *nowhere(tmp_path), *options)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1), outcome.err
    assert words in outcome.err


def test_a_port_that_is_taken_is_one_line(podtide: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ("--database", "sqlite:///:memory:", "--metrics-listen", address, "--log-level", "error")
        outcome = podtide("controller", *NAMES, *nowhere(tmp_path), *options)
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert outcome.err.startswith(f"podtide: cannot listen on {address} (")
