"""podtide's programs for a whole cluster, as processes: an allocator on SQLite with one subnet, and a controller."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from control_plane.cluster import ControlPlane
from control_plane.json_http import JsonHttp
from control_plane.ports import LOOPBACK, free_ports
from control_plane.process import Nursery, Process
from podtide.controller.program import LEASE
from process_costs import cpu_seconds

PODTIDE = (sys.executable, "-m", "podtide")
NETWORK = "bench"
SUBNET = "pods"
CIDR = "10.0.0.0/16"


class CpuSeconds(Struct, frozen=True):
    """Time on the processor."""

    controller: float
    allocator: float


class FleetPrograms:
    """They work as long as this is open."""

    def __init__(self, control_plane: ControlPlane, cidr: str = CIDR) -> None:
        self._control_plane = control_plane
        self._cidr = cidr
        self._options: tuple[str, ...] = ()
        self._nursery = Nursery()
        allocator, controller = (JsonHttp(f"http://{LOOPBACK}:{port}") for port in free_ports(2))
        self._allocator_url = allocator.url
        self._allocator = self._program(
            *("allocator", "--listen", allocator.url.removeprefix("http://")),
            *("--database", f"sqlite:///{self._nursery.directory / 'subnets.db'}"),
            server=allocator,
        )
        self._controller = Process(
            self._nursery,
            lambda: [
                *(*PODTIDE, "controller", "--kubeconfig", control_plane.kubeconfig),
                *("--allocator", allocator.url, "--cluster-name", "bench"),
                *("--network", NETWORK, "--subnet", SUBNET),
                *("--metrics-listen", controller.url.removeprefix("http://")),
                *self._options,
            ],
            is_ready=lambda: controller.is_up("/healthz"),
            log=self._nursery.directory / "controller.log",
        )
        self._controller_server = controller

    def __enter__(self) -> Self:
        try:
            self._allocator.start()
            self._change_subnet("add", self._cidr)
            # As the chart has it: given up already, so that nobody waits whether somebody comes to renew it.
            lease = {"metadata": {"name": LEASE.name}, "spec": {"leaseDurationSeconds": 1}}
            leases = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE.namespace}/leases"
            self._control_plane.admin.request("POST", leases, lease)
            self._controller.start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @property
    def controller_pid(self) -> int:
        """The controller's process."""
        return self._controller.pid

    def restart_controller(self, *options: str) -> None:
        """Let the controller go on with these options."""
        self._controller.stop()  # it gives the Lease up
        self._options = options
        self._controller.start()

    def grow_subnet(self, cidr: str) -> None:
        """Add a CIDR to the subnet."""
        self._change_subnet("grow", cidr)

    def writes(self, kind: str) -> int:
        """How often the controller has written objects of a kind, by its own metrics."""
        lines = self._controller_server.text("/metrics").splitlines()
        counter = f'podtide_controller_writes_total{{kind="{kind}"}} '
        return sum(int(float(line.removeprefix(counter))) for line in lines if line.startswith(counter))

    def cpu_seconds(self) -> CpuSeconds:
        """What they have cost so far."""
        return CpuSeconds(cpu_seconds(self._controller.pid), cpu_seconds(self._allocator.pid))

    def _change_subnet(self, verb: str, cidr: str) -> None:
        change = ("subnet", verb, NETWORK, SUBNET, cidr, "--allocator", self._allocator_url)
        subprocess.run([*PODTIDE, *change], check=True, stdout=subprocess.DEVNULL)

    def _close(self) -> None:
        self._controller.kill()
        self._allocator.kill()
        self._nursery.close()

    def _program(self, *arguments: str | Path, server: JsonHttp) -> Process:
        return Process(
            self._nursery,
            [*PODTIDE, *arguments],
            is_ready=lambda: server.is_up("/healthz"),
            log=self._nursery.directory / f"{arguments[0]}.log",
        )
