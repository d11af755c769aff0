"""README's commands of an installation, as a new user types them, on a bench: each is taken from the page and run by bash.

What the page takes for granted is there before: nodes, a volume for the allocator's database, and `helm` and `kubectl` that find
the cluster. Only the first command is not run, because here is neither Docker nor a registry: its image is built by
`container_images` from the same Dockerfile, and nodes have it under the name that the command pushes it to.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from container_images.context import ROOT
from container_images.podtide_image import podtide_name
from node_bench.bench import NodeBench
from node_bench.podtide_installation import DATABASE_DIRECTORY, WAIT_SECONDS
from node_bench.workloads import Workloads

README = ROOT / "README.md"
BUILD = re.compile(r"docker build .*--tag (\S+) .*&& docker push \1")


class Timed(Struct, frozen=True):
    """A command, and how long it took."""

    command: str
    seconds: float


def commands(page: str) -> list[str]:
    """Those of the first block that installs podtide, in their order."""
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    block = next(each for each in blocks if "helm install" in each)
    return re.sub(r"\\\n\s*", "", block).splitlines()


def run_commands(bench: NodeBench, helm: Path, directory: Path) -> Iterator[Timed]:
    """Run README's commands one after the other; AssertionError if one fails. `directory` is the user's."""
    build, *others = commands(README.read_text())
    pushed = BUILD.fullmatch(build)
    assert pushed, f"the first command is not `docker build` and `docker push`: {build}"
    for node in bench.nodes:
        node.ctr("images", "tag", podtide_name(), pushed[1])
    _make_volume(bench)
    environment = _environment(bench, helm, directory)
    for command in others:
        yield run(command, environment)


def run(command: str, environment: dict[str, str]) -> Timed:
    """One command, from the repository's root, as README says."""
    began = time.monotonic()
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * WAIT_SECONDS,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return Timed(command, time.monotonic() - began)


def _environment(bench: NodeBench, helm: Path, directory: Path) -> dict[str, str]:
    kubectl, *_ = bench.control_plane.kubectl_command
    tools = directory / "bin"
    tools.mkdir()
    (tools / "helm").symlink_to(helm)
    (tools / "kubectl").symlink_to(kubectl)
    return {
        "PATH": f"{tools}{os.pathsep}/usr/bin:/bin",
        "HOME": str(directory),
        "KUBECONFIG": str(bench.control_plane.kubeconfig),
    }


def _make_volume(bench: NodeBench) -> None:
    """What a storage class would make for the allocator's database."""
    home = bench.nodes[0]
    home.machine.run("mkdir", "-p", "-m", "777", DATABASE_DIRECTORY)
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [home.name]}
    Workloads(bench).apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "for-the-allocator"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "local": {"path": DATABASE_DIRECTORY},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
            },
        }
    )
