"""Whether all who know of addresses agree: the kernel, the API server, each node's agent, and the allocator."""

import http.client
import json
import socket
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from node_bench.bench import NodeBench
from node_bench.node import Node
from node_bench.podtide_installation import Installation, wait_until
from node_bench.workloads import Pod

ANSWER_SECONDS = 10.0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(ANSWER_SECONDS)
        self.sock.connect(str(self._path))


def agreed(installation: Installation) -> None:
    """Wait until everybody says the same of who has which address, and `podtide check` finds nothing.

    While pods come and go there are moments in which one knows more than the other; an address that is two pods' is wrong at
    once.
    """
    bench = installation.bench
    wait_until(lambda: not differences(bench), f"agreement: {differences(bench)}", 60)
    assert "clean" in installation.check()


def differences(bench: NodeBench) -> list[str]:
    """What the kernel, the API server and the agents say differently about pods' addresses, node by node."""
    pods = _pods(bench)
    shown = Counter(address for pod in pods if not pod.is_of_the_node for address in pod.addresses)
    twice = [address for address, count in shown.items() if count > 1]
    assert not twice, f"pods share {twice}"
    found = []
    for node in bench.nodes:
        if not node.machine.is_on:
            continue
        api = {
            address
            for pod in pods
            if pod.node == node.name and not pod.is_of_the_node
            for address in pod.addresses
        }
        kernel, agent = node.pod_addresses(), assigned(node)
        for who, addresses in (("kernel", kernel), ("agent", agent)):
            if more := addresses - api:
                found.append(f"{node.name}: the {who} has {sorted(more)}, the API server has not")
            if less := api - addresses:
                found.append(f"{node.name}: the API server has {sorted(less)}, the {who} has not")
    return found


def assigned(node: Node) -> set[str]:
    """The addresses that a node's agent has given to sandboxes of its primary network."""
    connection = _UnixConnection(node.machine.path("/run/podtide/agent.sock"))
    try:
        body = json.dumps({"IPConfigStateFilter": ["Assigned"]})
        connection.request("POST", "/debug/ipaddresses", body, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
    except OSError:
        return set()
    finally:
        connection.close()
    return {each["IPAddress"] for each in answer["IPConfigurationStatus"]}


def told(pods: Sequence[Pod]) -> list[str]:
    """What must not change of pods that are left alone."""
    return sorted(json.dumps([pod.uid, pod.addresses, pod.restarts]) for pod in pods)


def processes_of(node: Node, command: str) -> list[int]:
    """The ids of podtide's programs of this command on a node."""
    found = []
    for process in node.machine.processes():
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if command.encode() in words[:4] and any(b"podtide" in word for word in words[:3]):
            found.append(process)
    return found


def _pods(bench: NodeBench) -> list[Pod]:
    pods = [Pod(each) for each in bench.control_plane.admin.request("GET", "/api/v1/pods")["items"]]
    return [pod for pod in pods if pod.document["status"].get("phase") not in {"Succeeded", "Failed"}]
