"""What tests run on real nodes, as a user writes it: Deployments, Services, Jobs, and what became of their pods."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from node_bench.bench import NodeBench
from node_bench.podtide_installation import wait_until

IMAGE = "localhost/workload:1"
NAMESPACE = "default"
SERVE = ("sh", "-c", "mkdir -p /tmp/www && hostname > /tmp/www/name && exec httpd -f -p 8080 -h /tmp/www")
"""Answers with the pod's name."""
Document = dict[str, Any]


class Pod(Struct, frozen=True):
    """A pod as the API server has it."""

    document: Document

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.document["metadata"]["name"]
        return name

    @property
    def uid(self) -> str:
        """Its uid."""
        uid: str = self.document["metadata"]["uid"]
        return uid

    @property
    def node(self) -> str:
        """The node it is bound to, if any."""
        node: str = self.document["spec"].get("nodeName", "")
        return node

    @property
    def addresses(self) -> list[str]:
        """As its status shows them."""
        return [each["ip"] for each in self.document["status"].get("podIPs", ())]

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet says so."""
        conditions = self.document["status"].get("conditions", ())
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    @property
    def is_of_the_node(self) -> bool:
        """Whether it uses its node's own network."""
        return bool(self.document["spec"].get("hostNetwork"))

    @property
    def restarts(self) -> int:
        """Of all its containers."""
        return sum(each["restartCount"] for each in self.document["status"].get("containerStatuses", ()))


def pod_template(
    app: str,
    *,
    node: str = "",
    command: Sequence[str] = SERVE,
    annotations: Mapping[str, str] | None = None,
    **spec: object,
) -> Document:
    """A pod that answers HTTP until it is told to end, bound to a node if one is named."""
    placed: Document = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": list(command),
    }
    return {
        "metadata": {"labels": {"app": app}, "annotations": dict(annotations or {})},
        "spec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            **placed,
            **spec,
        },
    }


class Workloads:
    """Objects of the namespace `default`."""

    def __init__(self, bench: NodeBench) -> None:
        self._bench = bench

    def apply(self, *documents: Document) -> None:
        """`kubectl apply` of these."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        done = self._bench.kubectl("apply", "--namespace", NAMESPACE, "--filename=-", stdin=text)
        assert done.returncode == 0, done.stderr

    def deploy(self, app: str, replicas: int, **template: Any) -> None:
        """A Deployment of so many pods, or another number of an existing one."""
        self.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": app},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": {"app": app}},
                    "template": pod_template(app, **template),
                },
            }
        )

    def scale(self, app: str, replicas: int, kind: str = "deployment") -> None:
        """Another number of pods."""
        done = self._bench.kubectl(
            "scale", f"{kind}/{app}", f"--replicas={replicas}", "--namespace", NAMESPACE
        )
        assert done.returncode == 0, done.stderr

    def remove(self, *names: str) -> None:
        """Delete these (`deployment/web`) and wait until no pod of them is left."""
        done = self._bench.kubectl(
            "delete", *names, "--namespace", NAMESPACE, "--ignore-not-found", "--timeout=50s"
        )
        assert done.returncode == 0, done.stderr
        for name in names:
            app = name.split("/")[1]
            wait_until(lambda app=app: not self.pods(app), f"no pod of {name}")  # type: ignore[misc]

    def pods(self, app: str = "", namespace: str = NAMESPACE) -> list[Pod]:
        """The pods of an app, or all."""
        selector = f"?labelSelector=app%3D{app}" if app else ""
        path = f"/api/v1/namespaces/{namespace}/pods{selector}"
        return [Pod(each) for each in self._bench.control_plane.admin.request("GET", path)["items"]]

    def wait_until_ready(self, app: str, count: int, seconds: float = 180.0) -> list[Pod]:
        """The pods of an app, once all of so many are ready and have addresses."""

        def are_ready() -> bool:
            pods = self.pods(app)
            return len(pods) == count and all(each.is_ready and each.addresses for each in pods)

        wait_until(are_ready, f"{count} ready pods of {app}", seconds)
        return self.pods(app)

    def run_in(self, pod: Pod, *command: str) -> str:
        """What a command prints in a pod."""
        done = self._bench.kubectl("exec", pod.name, "--namespace", NAMESPACE, "--", *command)
        assert done.returncode == 0, f"{pod.name}: {' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout

    def ping(self, pod: Pod, address: str) -> None:
        """Whether an address answers a pod."""
        self.run_in(pod, "ping", "-c", "1", "-W", "10", address)

    def fetch(self, pod: Pod, address: str, port: int = 8080) -> str:
        """The name of the pod that answers at an address."""
        # By nc: wget of a static busybox looks for libraries that are not there.
        asked = f"printf 'GET /name HTTP/1.0\\r\\n\\r\\n' | nc -w 10 {address} {port}"
        return self.run_in(pod, "sh", "-c", asked).strip().rpartition("\n")[2].strip()

    def events(self, reason: str) -> list[Document]:
        """The Events of this reason about pods of the namespace."""
        path = f"/api/v1/namespaces/{NAMESPACE}/events?fieldSelector=reason%3D{reason}"
        items: list[Document] = self._bench.control_plane.admin.request("GET", path)["items"]
        return items


def service(app: str, **spec: object) -> Document:
    """A Service in front of an app's pods."""
    ports = [{"port": 80, "targetPort": 8080}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": app},
        "spec": {"selector": {"app": app}, "ports": ports, **spec},
    }


def by_node(pods: Sequence[Pod]) -> Mapping[str, list[Pod]]:
    """Pods by the node that they run on."""
    nodes: dict[str, list[Pod]] = {}
    for pod in pods:
        nodes.setdefault(pod.node, []).append(pod)
    return nodes
