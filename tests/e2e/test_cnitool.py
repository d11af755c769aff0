"""Networks run by libcni, as container runtimes run them: the one that an agent installs, by cnitool, and GC."""

import hashlib
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from msgspec import Struct

from cni_programs import CNITOOL, LIBCNI_GC
from e2e.cni import POD_NAMESPACE, Document, Sandbox, addresses
from e2e.pools import assigned_count
from e2e.traffic import called_from
from e2e.virtual_nodes import VirtualCluster, VirtualNode
from e2e.waiting import wait_until
from go_program import GoProgram
from patience import PATIENCE_SECONDS
from podtide.cni.conflist import ListVersion, PrimaryNetwork, render_conflist

INTERFACE = "eth0"
"""What cnitool calls every interface."""

NEW_NETWORK = "of-1-1"
AS_INSTALLED: Document = json.loads(
    render_conflist(PrimaryNetwork(name=NEW_NETWORK, cni_version=ListVersion.V1_1))
)
"""What an agent installs with `--cni-version 1.1.0`."""
OF_1_1: Document = AS_INSTALLED | {"plugins": [{"type": "podtide", "ipam": {"type": "podtide"}}]}
"""libcni asks plugins for STATUS and GC from 1.1.0 on, and Debian's interface plugins know 1.0.0 at most. So this network
has podtide's plugin alone: pods get addresses, and no interface."""


class Libcni(Struct, frozen=True):
    """Programs on a node that call libcni, by a network there."""

    node: VirtualNode
    networks: Path
    """The directory that the network's file is in."""
    network: str
    cnitool: Path
    collector: Path

    def run(self, verb: str, sandbox: Sandbox) -> subprocess.CompletedProcess[str]:
        """One verb, as cnitool spells it. Whether it failed is for the caller to look at."""
        pod = f"IgnoreUnknown=1;K8S_POD_NAMESPACE={POD_NAMESPACE};K8S_POD_NAME={sandbox.pod}"
        return self._run(self.cnitool, verb, self.network, sandbox.namespace.path, CNI_ARGS=pod)

    def do(self, verb: str, sandbox: Sandbox) -> Document:
        """One verb that succeeds; what it printed."""
        done = self.run(verb, sandbox)
        assert done.returncode == 0, done.stderr
        answer: Document = json.loads(done.stdout or "{}")
        return answer

    def collect(self, *alive: Sandbox) -> None:
        """GC of all that is not these sandboxes'."""
        in_use = [f"{_container(each)}/{INTERFACE}" for each in alive]
        done = self._run(self.collector, self.network, *in_use)
        assert done.returncode == 0, done.stderr

    def forget(self, sandbox: Sandbox) -> None:
        """Lose what libcni has kept of a sandbox: it cannot delete it any more, and plugins alone know of it."""
        (self._kept / "cni" / "results" / f"{self.network}-{_container(sandbox)}-{INTERFACE}").unlink()

    @property
    def _kept(self) -> Path:
        return self.node.directory / "var-lib"

    def _run(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        plugins = self.node.plugins
        # libcni keeps its results below /var/lib, of this machine if it is not told otherwise.
        self._kept.mkdir(exist_ok=True)
        mount = f"mount --bind {shlex.quote(str(self._kept))} /var/lib"
        return subprocess.run(
            [*plugins.inside, "sh", "-c", f"{mount} && exec {shlex.join(map(str, command))}"],
            env={
                "PATH": os.environ["PATH"],
                "CNI_PATH": ":".join(map(str, plugins.directories)),
                "NETCONFPATH": str(self.networks),
                **variables,
                **plugins.environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )


def _container(sandbox: Sandbox) -> str:
    """What cnitool calls a sandbox."""
    digest = hashlib.sha512(str(sandbox.namespace.path).encode()).digest()
    return f"cnitool-{digest[:10].hex()}"


OnNode: TypeAlias = Callable[[VirtualNode], Libcni]


@pytest.fixture(scope="module")
def installed(cni_program: Callable[[GoProgram], Path]) -> OnNode:
    """By the network that a node's agent has installed."""
    programs = cni_program(CNITOOL), cni_program(LIBCNI_GC)
    return lambda node: Libcni(node, node.network_directory, "podtide", *programs)


@pytest.fixture
def of_1_1(installed: OnNode, tmp_path: Path) -> OnNode:
    """By a network of CNI 1.1.0."""
    return _by(OF_1_1, installed, tmp_path)


@pytest.fixture
def with_old_interface_plugins(installed: OnNode, tmp_path: Path) -> OnNode:
    """By a network of CNI 1.1.0 on a node whose interface plugins know 1.0.0 at most."""
    return _by(AS_INSTALLED, installed, tmp_path)


def _by(network: Document, installed: OnNode, directory: Path) -> OnNode:
    (directory / f"{NEW_NETWORK}.conflist").write_text(json.dumps(network))

    def on(node: VirtualNode) -> Libcni:
        there = installed(node)
        return Libcni(node, directory, NEW_NETWORK, there.cnitool, there.collector)

    return on


def test_libcni_runs_the_network_that_the_agent_installed(
    virtual_cluster: VirtualCluster, installed: OnNode
) -> None:
    nodes = virtual_cluster.nodes[:2]
    libcni = [installed(node) for node in nodes]
    with virtual_cluster.pods(*nodes) as pods:
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
        # At 1.0.0 libcni collects by DELs of what it has kept itself.
        libcni[1].collect()
        assert libcni[1].run("check", pods[1]).returncode
        assert [assigned_count(node.socket) for node in nodes] == [0, 0]


def test_gc_by_libcni_frees_what_it_does_not_list_and_nothing_else(
    virtual_cluster: VirtualCluster,
    installed: OnNode,
    of_1_1: OnNode,
) -> None:
    node = virtual_cluster.nodes[2]
    libcni, of_another_network = of_1_1(node), installed(node)
    with virtual_cluster.pods(node, node, node) as (alive, dead, elsewhere):
        for pod in (alive, dead):
            libcni.do("add", pod)
        of_another_network.do("add", elsewhere)
        libcni.forget(dead)
        assert assigned_count(node.socket) == 3

        libcni.collect(alive)
        assert assigned_count(node.socket) == 2
        libcni.do("check", alive)
        of_another_network.do("check", elsewhere)

        libcni.forget(alive)
        libcni.collect()
        assert assigned_count(node.socket) == 1
        of_another_network.do("del", elsewhere)


def test_a_gc_that_lists_nothing_at_all_is_refused_and_frees_nothing(
    virtual_cluster: VirtualCluster, of_1_1: OnNode
) -> None:
    """That is how cnitool asks: without the list, as if everything were garbage."""
    node = virtual_cluster.nodes[2]
    libcni = of_1_1(node)
    with virtual_cluster.pods(node) as (pod,):
        libcni.do("add", pod)
        libcni.forget(pod)
        assert "cni.dev/valid-attachments" in libcni.run("gc", pod).stderr
        assert assigned_count(node.socket) == 1
        libcni.collect()
        assert assigned_count(node.socket) == 0


def test_status_by_libcni_says_whether_there_is_an_agent(
    virtual_cluster: VirtualCluster, of_1_1: OnNode
) -> None:
    node = virtual_cluster.nodes[2]
    libcni = of_1_1(node)
    with virtual_cluster.pods(node) as (pod,):
        libcni.do("status", pod)
        node.agent.kill()
        assert libcni.run("status", pod).returncode
        node.agent.start()
        wait_until(lambda: libcni.run("status", pod).returncode == 0, "an agent that is ready again")


def test_by_1_1_an_interface_plugin_that_does_not_know_it_fails_status_and_add_and_keeps_no_address(
    virtual_cluster: VirtualCluster, with_old_interface_plugins: OnNode
) -> None:
    """Why 1.0.0 is the default: the runtime asks every plugin of the list by one version."""
    node = virtual_cluster.nodes[2]
    libcni = with_old_interface_plugins(node)
    with virtual_cluster.pods(node) as (pod,):
        assert "missing containerID" in libcni.run("status", pod).stderr
        assert "incompatible CNI versions" in libcni.run("add", pod).stderr
        assert assigned_count(node.socket) == 0
