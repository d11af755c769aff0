"""A Kubernetes node: a machine with containerd, a kubelet and kube-proxy, each of which can be killed and started again."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from control_plane.cluster import ControlPlane
from control_plane.process import Nursery, Process
from node_bench import settings
from node_bench.image_store import ImageStore
from node_bench.machine import Machine
from node_bench.programs import NodePrograms

MAX_PODS = 110


class ProcessInside(Process):
    """A program on a machine. What is started here is `nsenter`, which waits for the program in its namespaces."""

    @property
    def pid(self) -> int:
        """The program's, not that of who waits for it."""
        waiting = super().pid
        children = Path(f"/proc/{waiting}/task/{waiting}/children").read_text().split()
        return int(children[0])

    def stop(self) -> None:
        """Ask it to end, as an upgrade would, and wait for that."""
        self._signal(signal.SIGTERM)
        super().stop()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._signal(signal.SIGKILL)
        super().kill()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(AssertionError, OSError, IndexError):  # it does not run
            os.kill(self.pid, number)


class Node:
    """One node, by the name that it registers under."""

    def __init__(
        self,
        machine: Machine,
        programs: NodePrograms,
        control_plane: ControlPlane,
        nursery: Nursery,
        images: Sequence[Path],
    ) -> None:
        self.machine = machine
        self.name = machine.name
        self._programs = programs
        self._control_plane = control_plane
        self._nursery = nursery
        self._images = images
        self._store = ImageStore(images, programs.commands["containerd"])
        kubeconfigs = control_plane.credentials
        url = control_plane.url_for_nodes
        user = f"system:node:{self.name}"
        self._kubelet_kubeconfig = kubeconfigs.kubeconfig_for_user(user, groups=["system:nodes"], url=url)
        self._proxy_kubeconfig = kubeconfigs.kubeconfig_for_user("system:kube-proxy", url=url)
        self.containerd = self._program(["containerd"], self._containerd_answers)
        place = machine.place
        self.kubelet = self._program(
            settings.kubelet(
                self.name,
                (place.address, place.address_v6),
                str(self._kubelet_kubeconfig),
                "/etc/kubernetes/kubelet.json",
            ),
            self._is_registered,
        )
        self.kube_proxy = self._program(
            settings.kube_proxy(self.name, str(self._proxy_kubeconfig)), lambda: True
        )

    def start(self) -> None:
        """Boot the machine and start everything on it; it is registered then, and Ready once it has a network."""
        self._install()
        has_images = self._store.is_kept
        if has_images:
            self._store.copy_to(self.machine.directory / "containerd")
        self.machine.power_on()
        self.containerd.start()
        if not has_images:
            self._import_images()
        self.kubelet.start()
        self.kube_proxy.start()

    def power_cut(self) -> None:
        """End everything on it at once."""
        self.machine.power_cut()
        for program in self._all:
            program.kill()

    def reboot(self) -> None:
        """A power cut, and everything started again as it is when a machine boots."""
        self.power_cut()
        self.machine.power_on()
        for program in self._all:
            program.start()

    def replace(self) -> None:
        """Put another machine in its place, under its name and address."""
        self.power_cut()
        self.machine.wipe()
        self.start()

    @property
    def object(self) -> dict[str, Any]:
        """The Node, as the API server has it."""
        node: dict[str, Any] = self._control_plane.admin.request("GET", f"/api/v1/nodes/{self.name}")
        return node

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet says so."""
        conditions = self.object.get("status", {}).get("conditions", ())
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def pod_addresses(self) -> set[str]:
        """The addresses that the kernel has in the network namespaces of this node's pods."""
        addresses = set[str]()
        for namespace in sorted(self.machine.path("/run/netns").glob("cni-*")):
            shown = self.machine.attempt(
                "nsenter", f"--net=/run/netns/{namespace.name}", "ip", "-j", "address"
            )
            if shown.returncode == 0:  # else it went meanwhile
                addresses |= {
                    address["local"]
                    for interface in json.loads(shown.stdout)
                    for address in interface["addr_info"]
                    if address["scope"] == "global"
                }
        return addresses

    def ctr(self, *arguments: str | Path) -> str:
        """What containerd's own command says, in Kubernetes' part of it."""
        return self.machine.run(
            "ctr", f"--address={settings.CONTAINERD_SOCKET}", "--namespace=k8s.io", *arguments
        )

    @property
    def _all(self) -> tuple[ProcessInside, ...]:
        return self.containerd, self.kubelet, self.kube_proxy

    def _install(self) -> None:
        """Put programs and configuration on the machine's disk."""
        machine = self.machine
        commands = machine.directory / "bin"
        commands.mkdir()
        for name, program in self._programs.commands.items():
            (commands / name).symlink_to(program)
        plugins = machine.directory / "opt" / "upper" / "cni" / "bin"
        plugins.mkdir(parents=True)
        for name, program in self._programs.plugins.items():
            shutil.copy(program, plugins / name)
        machine.write("/etc/containerd/config.toml", settings.CONTAINERD)
        machine.write("/etc/resolv.conf", "")
        machine.write("/etc/hostname", f"{self.name}\n")
        machine.write(f"{settings.STATIC_PODS}/.keep", "")
        configuration = settings.kubelet_configuration(
            cgroup=machine.group,
            certificate_authority=str(self._control_plane.certificate_authority),
            max_pods=MAX_PODS,
        )
        machine.write("/etc/kubernetes/kubelet.json", configuration)

    def _import_images(self) -> None:
        for image in self._images:
            self.ctr("images", "import", image)
        self.containerd.stop()
        self._store.keep(self.machine.directory / "containerd")
        self.containerd.start()

    def _containerd_answers(self) -> bool:
        return (
            self.machine.attempt("ctr", f"--address={settings.CONTAINERD_SOCKET}", "version").returncode == 0
        )

    def _is_registered(self) -> bool:
        return self._control_plane.admin.is_up(f"/api/v1/nodes/{self.name}")

    def _program(self, command: Sequence[str], is_ready: Callable[[], bool]) -> ProcessInside:
        return ProcessInside(
            self._nursery,
            lambda: [*self.machine.inside, "env", *_as_words(self.machine.environment), *command],
            is_ready,
            log=self._nursery.directory / f"{self.name}-{command[0]}.log",
        )


def _as_words(environment: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in environment.items()]
