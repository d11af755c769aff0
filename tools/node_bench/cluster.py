"""A cluster of real nodes with podtide on it as Helm installs it: what tests, `make node` and benchmarks run on."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field

from container_images.podtide_image import podtide_image
from container_images.small_images import pause_image, pause_program, workload_image
from control_plane.binaries import Binaries, binaries
from control_plane.go_toolchain import FindGo, Say, find_go
from helm_binary import helm
from node_bench.bench import NodeBench
from node_bench.podtide_installation import Installation
from node_bench.programs import NodePrograms, node_programs
from node_bench.workloads import Workloads


class Parts(Struct, frozen=True):
    """What clusters of nodes are made of."""

    binaries: Binaries
    programs: NodePrograms
    init: Path
    images: Sequence[Path]
    helm: Path

    @classmethod
    def built(cls, say: Say, find: FindGo = find_go) -> "Parts":
        """All programs and images, built if they are not there. CannotBuild says what that lacks."""
        control_plane = binaries(say, find)
        return cls(
            binaries=control_plane,
            programs=node_programs(control_plane, say, find),
            init=pause_program(say),
            images=[image(say) for image in (pause_image, workload_image, podtide_image)],
            helm=helm(say, find),
        )


class ClusterSpec(Struct, frozen=True, kw_only=True):
    """Which nodes, and how podtide is installed on them."""

    nodes: Sequence[str] = ("node-a", "node-b")
    subnets: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"pods": ["10.1.0.0/24"]})
    """Their CIDRs by name."""
    labels: Mapping[str, Mapping[str, str]] = {}
    """Of nodes, which they have before podtide comes."""
    values: Mapping[str, object] = {}
    """Of the chart, by their path (`cni.type`), beside those that a cluster without a registry and without volumes needs."""


class NodeCluster(Struct, frozen=True):
    """Nodes with podtide on them."""

    bench: NodeBench
    podtide: Installation
    workloads: Workloads


@contextmanager
def node_cluster(parts: Parts, directory: Path, spec: ClusterSpec) -> Iterator[NodeCluster]:
    """A cluster that is ready for pods; `directory` is the operator's."""
    with NodeBench(
        parts.binaries, parts.programs, init=parts.init, images=parts.images, nodes=spec.nodes
    ) as bench:
        for node, labels in spec.labels.items():
            bench.kubectl("label", "node", node, *(f"{name}={value}" for name, value in labels.items()))
        subnets = [{"name": name, "cidrs": cidrs} for name, cidrs in spec.subnets.items()]
        podtide = Installation(bench, parts.helm, directory, {"subnets": subnets, **spec.values})
        podtide.install()
        podtide.wait_until_ready()
        yield NodeCluster(bench, podtide, Workloads(bench))
