"""podtide on a bench, as an operator installs it: docs/installing.md step by step, by helm, kubectl and podtide's own commands."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from control_plane.ports import free_ports
from node_bench.bench import NodeBench
from node_bench.node import Node

CHART = Path(__file__).parents[2] / "deploy" / "chart"
NAMESPACE = "kube-system"
PODTIDE = (sys.executable, "-m", "podtide")
DATABASE_DIRECTORY = "/var/lib/podtide-allocator"
USER = 65532
"""Whom the allocator runs as."""
WAIT_SECONDS = 180.0
POLL_SECONDS = 0.1


class Installation:
    """podtide on a bench. `values` are the chart's, by their path (`cni.type`), beside those that a bench needs."""

    def __init__(self, bench: NodeBench, helm: Path, directory: Path, values: Mapping[str, object]) -> None:
        self.bench = bench
        self._helm = helm
        self._directory = directory
        self.values: dict[str, object] = {
            "image.pullPolicy": "Never",
            "allocator.persistence.hostPath": DATABASE_DIRECTORY,
            "allocator.nodeSelector": {"kubernetes.io/hostname": self._home.name},
            # They use their nodes' own network, so two of them need two nodes.
            "controller.replicas": min(2, len(bench.nodes)),
            **values,
        }

    def install(self) -> None:
        """`helm install`; programs start then."""
        self._make_room_for_database()
        self.helm("install", "podtide", str(CHART), *self._value_options)

    def upgrade(self, **values: object) -> None:
        """`helm upgrade` with further values; a value `cni__type` is `cni.type`."""
        self.values |= {name.replace("__", "."): value for name, value in values.items()}
        self.helm("upgrade", "podtide", str(CHART), *self._value_options)

    def uninstall(self) -> None:
        """`helm uninstall`, which waits until what it removes is gone."""
        self.helm("uninstall", "podtide", "--wait")

    def administer(self, *arguments: str) -> str:
        """Run a podtide command that asks the allocator, over a port-forward."""
        token = self._directory / "admin-token"
        template = "--template={{ .data.token | base64decode }}"
        token.write_text(self.kubectl("get", "secret", "podtide-admin-token", template))
        with self._allocator_port() as port:
            return self.podtide(
                *arguments, "--allocator", f"http://127.0.0.1:{port}", "--token-file", str(token)
            )

    def test(self) -> str:
        """`helm test`, which ends well or fails."""
        return self.helm("test", "podtide")

    def check(self) -> str:
        """`podtide check` of everything: cluster and allocator."""
        return self.administer("check", "--kubeconfig", str(self.bench.control_plane.kubeconfig))

    def podtide(self, *arguments: str) -> str:
        """What a podtide command says."""
        return self._run([*PODTIDE, *arguments])

    def helm(self, *arguments: str) -> str:
        """What Helm says."""
        kubeconfig = f"--kubeconfig={self.bench.control_plane.kubeconfig}"
        return self._run([str(self._helm), *arguments, f"--namespace={NAMESPACE}", kubeconfig])

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl says, in the installation's namespace."""
        done = self.bench.kubectl(*arguments, f"--namespace={NAMESPACE}", stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def wait_until_ready(self) -> None:
        """Until every node is Ready and every program of podtide's too."""
        wait_until(lambda: all(node.is_ready for node in self.bench.nodes), "every node Ready")
        for kind in (
            "daemonset/podtide-agent",
            "deployment/podtide-controller",
            "statefulset/podtide-allocator",
        ):
            self.kubectl("rollout", "status", kind, f"--timeout={WAIT_SECONDS:.0f}s")

    @contextmanager
    def _allocator_port(self) -> Iterator[int]:
        """A port of this machine's that leads to the allocator."""
        self.kubectl("rollout", "status", "statefulset/podtide-allocator", f"--timeout={WAIT_SECONDS:.0f}s")
        [port] = free_ports(1)
        kubectl = self.bench.control_plane.kubectl_command
        command = [
            *kubectl,
            f"--namespace={NAMESPACE}",
            "port-forward",
            "service/podtide-allocator",
            f"{port}:9390",
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
            try:
                assert forwarding.stdout is not None
                assert "Forwarding" in forwarding.stdout.readline(), "kubectl port-forward does not forward"
                yield port
            finally:
                forwarding.terminate()

    def _make_room_for_database(self) -> None:
        home = self._home.machine
        home.run("mkdir", "-p", DATABASE_DIRECTORY)
        home.run("chown", f"{USER}:{USER}", DATABASE_DIRECTORY)

    @property
    def _home(self) -> Node:
        """The node that the allocator's database is on."""
        return self.bench.nodes[0]

    @property
    def _value_options(self) -> list[str]:
        return [f"--set-json={name}={json.dumps(value)}" for name, value in self.values.items()]

    def _run(self, command: list[str], **variables: str) -> str:
        environment = {"HOME": str(self._directory), "PATH": "/usr/bin:/bin", **variables}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=WAIT_SECONDS, env=environment
        )
        assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
        return done.stdout


def wait_until(holds: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Until it holds; `what` says what did not come."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"after {seconds:.0f} s there is not: {what}"
        time.sleep(POLL_SECONDS)
