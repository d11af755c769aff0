"""A new user's commands, taken from README and run as they are on real nodes: nothing is done by hand."""

from collections.abc import Iterator

import pytest

from node_bench.bench import NodeBench
from node_bench.cluster import Parts
from node_bench.readme_commands import run_commands
from node_bench.workloads import Workloads


@pytest.fixture
def bench(parts: Parts) -> Iterator[NodeBench]:
    """Nodes without a network."""
    with NodeBench(
        parts.binaries, parts.programs, init=parts.init, images=parts.images, nodes=["node-a", "node-b"]
    ) as running:
        yield running


def test_after_readmes_commands_nodes_are_ready_and_pods_get_addresses(
    bench: NodeBench, parts: Parts, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert not any(node.is_ready for node in bench.nodes)
    ran = [timed.command for timed in run_commands(bench, parts.helm, tmp_path_factory.mktemp("user"))]
    assert [" ".join(each.split()[:2]) for each in ran] == ["helm install", "kubectl wait"]
    assert all(node.is_ready for node in bench.nodes)
    workloads = Workloads(bench)
    workloads.deploy("web", 4)
    assert all(pod.addresses[0].startswith("10.1.") for pod in workloads.wait_until_ready("web", 4))
