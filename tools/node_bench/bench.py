"""A whole cluster of real nodes: a control plane on the fabric, and nodes that join it."""

import http.client
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from control_plane.commands import ALL_CONTROLLERS, NodeNetwork
from control_plane.errors import RequestFailed
from control_plane.process import Nursery, Process
from namespaces.namespace import CannotMake, made
from namespaces.relay import HERE, relay_command
from node_bench.fabric import ROUTER, Fabric, Place
from node_bench.machine import Machine, MachineSpec
from node_bench.node import Node
from node_bench.programs import NodePrograms

CLEANING = Path(__file__).with_name("cleaning.py")
CONFIGS = "/apis/acn.azure.com/v1alpha/nodenetworkconfigs"
DELIVERY_SECONDS = 0.3


class NodeBench:
    """Nodes and their control plane. Use it in a `with`: it leaves nothing behind."""

    def __init__(
        self,
        binaries: Binaries,
        programs: NodePrograms,
        *,
        init: Path,
        images: Sequence[Path],
        nodes: Sequence[str],
    ) -> None:
        self._stack = ExitStack()
        self._binaries = binaries
        self._programs = programs
        self._init = init
        self._images = images
        self._names = nodes
        self.nodes: list[Node] = []
        self._stopped = threading.Event()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it all at once, and remove it."""
        self._stopped.set()
        self._stack.close()

    def node(self, name: str) -> Node:
        """The node of this name."""
        (found,) = (each for each in self.nodes if each.name == name)
        return found

    @property
    def logs(self) -> Path:
        """Where the nodes' programs log to, while they run."""
        return self._nursery.directory

    @property
    def kubectl(self) -> Callable[..., subprocess.CompletedProcess[str]]:
        """Run kubectl as the administrator."""
        return self.control_plane.kubectl

    def add_node(self, name: str) -> Node:
        """A further node; it is registered when this is done."""
        number = len(self.nodes) + 1
        spec = MachineSpec(
            name=name,
            group=f"{self.prefix}n{number}",
            directory=self.directory / name,
            place=Place.of(number),
            init=self._init,
        )
        machine = Machine(spec, self.fabric)
        node = Node(machine, self._programs, self.control_plane, self._nursery, self._images)
        self.nodes.append(node)
        self._stack.callback(node.power_cut)
        node.start()
        return node

    def _start(self) -> None:
        # Interfaces are named after it, too, and their names have at most 15 characters.
        self.prefix = f"pt{uuid.uuid4().hex[:8]}"
        self.directory = Path(tempfile.mkdtemp(prefix="podtide-nodes-"))
        self._stack.enter_context(_cleaned(self.prefix, self.directory))
        [namespace] = self._stack.enter_context(made("fabric"))
        self.fabric = Fabric(namespace)
        self.control_plane = ControlPlane(
            self._binaries, controllers=ALL_CONTROLLERS, nodes=NodeNetwork(self.fabric.inside, ROUTER)
        )
        self._nursery = Nursery()
        self._stack.callback(self._nursery.close)
        relay = Process(
            self._nursery,
            relay_command(self.control_plane.ports, self.fabric.name, [HERE]),
            lambda: True,
            log=self._nursery.directory / "relay.log",
        )
        self._stack.callback(relay.kill)
        relay.start()
        self._stack.enter_context(self.control_plane)
        self.control_plane.start_controllers()
        self.control_plane.start_scheduler()
        for name in self._names:
            self.add_node(name)
        delivery = threading.Thread(target=self._deliver, name="delivery", daemon=True)
        self._stack.callback(delivery.join)
        self._stack.callback(self._stopped.set)
        delivery.start()

    def _deliver(self) -> None:
        """Keep telling the fabric which node holds which address, as a cloud's network knows it."""
        while not self._stopped.wait(DELIVERY_SECONDS):
            with suppress(OSError, http.client.HTTPException, RequestFailed, CannotMake):
                self.fabric.deliver(self._holders())

    def _holders(self) -> dict[str, Place]:
        configs = self.control_plane.admin.request("GET", CONFIGS)["items"]
        places = {node.name: node.machine.place for node in self.nodes}
        return {
            assignment["ip"]: places[config["metadata"]["name"]]
            for config in configs
            if config["metadata"]["name"] in places
            for container in config.get("status", {}).get("networkContainers", ())
            for assignment in container.get("ipAssignments", ())
        }


@contextmanager
def _cleaned(prefix: str, directory: Path) -> Iterator[None]:
    """Everything of that prefix is removed when the context or this process ends."""
    # In a session of its own, so that Ctrl-C at a terminal does not keep it from its work.
    command = [sys.executable, "-I", "-S", str(CLEANING), prefix, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield
