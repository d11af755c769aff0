"""podtide as an earlier commit had it, installed on a bench by that commit's own docs/installing.md: what an upgrade begins with."""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from container_images.earlier_sources import COMMIT, earlier_sources
from container_images.podtide_image import podtide_image
from control_plane.go_toolchain import Say
from node_bench.bench import NodeBench
from node_bench.cluster import NodeCluster, Parts
from node_bench.podtide_installation import PODTIDE, Installation
from node_bench.workloads import Workloads

SUBNET = "10.1.0.0/24"
TAG = COMMIT[:7]
"""Both are of one version; images of two contents need two names."""


class EarlierPodtide(Struct, frozen=True):
    """Its sources and its image."""

    sources: Path
    image: Path

    @classmethod
    def built(cls, say: Say) -> "EarlierPodtide":
        """Both, made if they are not there. CannotBuild says what that lacks."""
        sources = earlier_sources(say)
        return cls(sources, podtide_image(say, sources, TAG))


class EarlierInstallation(Installation):
    """Installed as its own documents say: tokens by hand, its chart, and subnets by its own command."""

    def __init__(self, bench: NodeBench, helm: Path, directory: Path, earlier: EarlierPodtide) -> None:
        super().__init__(bench, helm, directory, {"image.tag": TAG})
        self._earlier = earlier
        self.admin_token = directory / "admin-token"
        """The file that has the administrator's; the cluster has its hash alone."""

    def install(self) -> None:
        """All of it: programs run then, and the subnet is there."""
        self._make_room_for_database()
        self._make_tokens()
        self.helm("install", "podtide", str(self._earlier.sources / "deploy" / "chart"), *self._value_options)
        with self._allocator_port() as port:
            add = [*PODTIDE, "subnet", "add", "default", "pods", SUBNET]
            there = ["--allocator", f"http://127.0.0.1:{port}", "--token-file", str(self.admin_token)]
            self._run([*add, *there], PYTHONPATH=str(self._earlier.sources / "src"))

    def _make_tokens(self) -> None:
        token, admin = secrets.token_hex(32), secrets.token_hex(32)
        self.admin_token.write_text(admin)
        known = f"{_hash(token)}  cluster default\n{_hash(admin)}  administration\n"
        for name, content in {
            "podtide-allocator-token": f"token={token}",
            "podtide-allocator-tokens": f"tokens={known}",
        }.items():
            self.kubectl("create", "secret", "generic", name, f"--from-literal={content}")


@contextmanager
def earlier_cluster(
    parts: Parts, earlier: EarlierPodtide, directory: Path, nodes: Sequence[str]
) -> Iterator[tuple[NodeCluster, EarlierInstallation]]:
    """A cluster with the earlier podtide on it, whose nodes have the images of both."""
    images = [*parts.images, earlier.image]
    with NodeBench(parts.binaries, parts.programs, init=parts.init, images=images, nodes=nodes) as bench:
        podtide = EarlierInstallation(bench, parts.helm, directory, earlier)
        podtide.install()
        podtide.wait_until_ready()
        yield NodeCluster(bench, podtide, Workloads(bench)), podtide


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
