"""podtide's programs on a control plane: an allocator with one subnet, a controller, and agents."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from control_plane.cluster import ControlPlane
from control_plane.ports import LOOPBACK, free_ports
from control_plane.process import Nursery, Process
from e2e.processes import agent_is_ready, is_well, podtide, run_podtide

NETWORK = "e2e"
SUBNET = "pods"


class Site(Struct, frozen=True):
    """Where the programs run."""

    control_plane: ControlPlane
    nursery: Nursery
    logs: Path

    @property
    def directory(self) -> Path:
        """Goes when they go. What is in it has paths that are short enough for sockets."""
        return self.nursery.directory

    def agent(self, node: str, *options: str | Path, inside: tuple[str, ...] = ()) -> Process:
        """The agent of a node, to be started; `agent_socket` is where it answers."""
        socket = self.agent_socket(node)
        return podtide(
            *(self.nursery, self.logs / f"agent-{node}.log", "agent", "--node-name", node),
            *("--kubeconfig", self.control_plane.kubeconfig, "--socket", socket),
            *("--state-directory", self.directory / node / "state", *options),
            is_ready=lambda: agent_is_ready(socket),
            inside=inside,
        )

    def agent_socket(self, node: str) -> Path:
        """Where the plugin finds the agent of a node."""
        return self.directory / node / "agent.sock"


@contextmanager
def running(program: Process) -> Iterator[Process]:
    """The program at work, until the context ends."""
    try:
        program.start()
        yield program
    finally:
        program.kill()


@contextmanager
def allocator(site: Site, cidr: str) -> Iterator[str]:
    """An allocator with this subnet; yields its URL."""
    [port] = free_ports(1)
    url = f"http://{LOOPBACK}:{port}"
    program = podtide(
        *(site.nursery, site.logs / "allocator.log", "allocator", "--listen", f"{LOOPBACK}:{port}"),
        *("--database", f"sqlite:///{site.directory}/subnets.db"),
        is_ready=lambda: is_well(port, "/readyz"),
    )
    with running(program):
        added = run_podtide("subnet", "add", NETWORK, SUBNET, cidr, "--allocator", url)
        assert added.returncode == 0, added.stderr
        yield url


@contextmanager
def controller(site: Site, allocator_url: str, *options: str) -> Iterator[Process]:
    """A controller, which leads."""
    log = site.logs / "controller.log"
    # As the chart has it: given up already, so that nobody waits whether somebody comes to renew it.
    lease = {"metadata": {"name": "podtide-controller"}, "spec": {"leaseDurationSeconds": 1}}
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    site.control_plane.admin.request("POST", leases, lease)
    program = podtide(
        *(site.nursery, log, "controller", "--kubeconfig", site.control_plane.kubeconfig),
        *("--allocator", allocator_url, "--cluster-name", NETWORK),
        *("--network", NETWORK, "--subnet", SUBNET, *options),
        is_ready=lambda: "leading" in events(log),
    )
    with running(program):
        yield program


def events(log: Path) -> list[str]:
    """What a program has logged, as far as it is written."""
    text = log.read_text() if log.exists() else ""
    return [json.loads(line)["event"] for line in text.splitlines(keepends=True) if line.endswith("\n")]
