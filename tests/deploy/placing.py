"""The policies by which pods request addresses, in force on a real API server."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from msgspec import structs

from control_plane.cluster import ControlPlane
from deploy.chart import Chart, Document
from deploy.installed import wait_until

MUTATING = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
NETWORKS = [
    {"attachment": "default/blue", "network": "blue"},
    {"attachment": "other/blue", "network": "blue"},
    {"attachment": "other/red", "network": "red"},
]
OPTED_IN = "opted-in"
_KINDS = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
_PROBE = {"containers": [{"name": "main", "image": "none"}]}
_OWN = re.compile("podtide.io/")


def on_a_new_server(chart: Chart) -> Chart:
    """The chart as it is rendered where the API server has such policies."""
    return structs.replace(chart, api_versions=(MUTATING,))


class Placing:
    """An API server that adds requests to pods."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.control_plane = control_plane

    def made(
        self,
        spec: Document,
        *,
        namespace: str = "default",
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
    ) -> Document:
        """The pod as the API server would store it."""
        metadata = {"name": "pod", "annotations": annotations or {}, "labels": labels or {}}
        path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
        pod: Document = self.control_plane.admin.request("POST", path, {"metadata": metadata, "spec": spec})
        return pod

    def requested(self, spec: Document, **where: Any) -> dict[str, dict[str, str]]:
        """What each container requests of podtide's resources; limits must be the same."""
        pod = self.made(spec, **where)
        found = {}
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]):
            resources = container.get("resources", {})
            asked = {
                name: amount for name, amount in resources.get("requests", {}).items() if _OWN.match(name)
            }
            assert asked.items() <= resources.get("limits", {}).items(), resources
            found[container["name"]] = asked
        return found

    def refusal(self, spec: Document) -> str:
        """What the API server says to a pod that it refuses."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
        answer = self.control_plane.kubectl(
            "create", "--dry-run=server", "--filename=-", stdin=json.dumps(pod)
        )
        assert answer.returncode, answer.stdout
        return answer.stderr

    def requests_in(self, namespace: str) -> bool:
        """Whether pods there request addresses by themselves."""
        return bool(self.requested(_PROBE, namespace=namespace)["main"])


@contextmanager
def placing(chart: Chart, control_plane: ControlPlane, **values: object) -> Iterator[Placing]:
    """The policies that the chart makes of these values, until the context ends."""
    rendered = on_a_new_server(chart).objects(placement__enabled=True, **values)
    policies = yaml.safe_dump_all(each for each in rendered if each["kind"] in _KINDS)
    answer = control_plane.kubectl("apply", "--filename=-", stdin=policies)
    assert answer.returncode == 0, answer.stderr
    assert "Warning" not in answer.stderr, answer.stderr
    it = Placing(control_plane)
    wait_until(lambda: it.requests_in(OPTED_IN))
    yield it
    control_plane.kubectl("delete", "--filename=-", stdin=policies)
    wait_until(lambda: not it.requests_in(OPTED_IN))
