"""The network that an agent installs, run by libcni: cnitool does what container runtimes do with a list of plugins."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct

from cni_programs import CNITOOL
from e2e.cni import POD_NAMESPACE, Document, Sandbox, addresses
from e2e.pools import assigned_count
from e2e.traffic import called_from
from e2e.virtual_nodes import VirtualCluster, VirtualNode
from go_program import GoProgram
from podtide.agent.installing import CONFLIST

PATIENCE_SECONDS = 180.0


class Libcni(Struct, frozen=True):
    """cnitool on a node, by the network that is installed there."""

    program: Path
    node: VirtualNode

    def run(self, verb: str, sandbox: Sandbox) -> subprocess.CompletedProcess[str]:
        """One verb, as cnitool spells it. Whether it failed is for the caller to look at."""
        network = json.loads((self.node.network_directory / CONFLIST).read_bytes())["name"]
        # libcni keeps its results below /var/lib, of this machine if it is not told otherwise.
        kept = self.node.directory / "var-lib"
        kept.mkdir(exist_ok=True)
        command = shlex.join([str(self.program), verb, network, str(sandbox.namespace.path)])
        plugins = self.node.plugins
        return subprocess.run(
            [
                *plugins.inside,
                "sh",
                "-c",
                f"mount --bind {shlex.quote(str(kept))} /var/lib && exec {command}",
            ],
            env={
                "PATH": os.environ["PATH"],
                "CNI_PATH": ":".join(map(str, plugins.directories)),
                "NETCONFPATH": str(self.node.network_directory),
                "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE={POD_NAMESPACE};K8S_POD_NAME={sandbox.pod}",
                **plugins.environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )

    def do(self, verb: str, sandbox: Sandbox) -> Document:
        """One verb that succeeds; what it printed."""
        done = self.run(verb, sandbox)
        assert done.returncode == 0, done.stderr
        answer: Document = json.loads(done.stdout or "{}")
        return answer


@pytest.fixture(scope="module")
def program(cni_program: Callable[[GoProgram], Path]) -> Path:
    return cni_program(CNITOOL)


def test_libcni_runs_the_network_that_the_agent_installed(
    virtual_cluster: VirtualCluster, program: Path
) -> None:
    nodes = virtual_cluster.nodes[:2]
    libcni = [Libcni(program, node) for node in nodes]
    with virtual_cluster.pods(*nodes) as pods:
        for there, pod in zip(libcni, pods, strict=True):
            there.do("status", pod)
        one, other = [there.do("add", pod) for there, pod in zip(libcni, pods, strict=True)]
        [its], [others] = addresses(one), addresses(other)
        virtual_cluster.deliver()
        assert called_from(pods[0].namespace, pods[1].namespace, others) == its
        assert called_from(pods[1].namespace, pods[0].namespace, its) == others
        for there, pod in zip(libcni, pods, strict=True):
            there.do("check", pod)

        libcni[0].do("del", pods[0])
        libcni[0].do("del", pods[0])
        assert libcni[0].run("check", pods[0]).returncode
        libcni[1].do("gc", pods[1])
        assert libcni[1].run("check", pods[1]).returncode
        assert [assigned_count(node.socket) for node in nodes] == [0, 0]
