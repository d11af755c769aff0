import msgspec
from msgspec.structs import replace

from podtide.resources.base import ObjectMeta
from podtide.resources.codec import decode, to_document
from podtide.resources.event import Event, EventSource, EventType, ObjectReference
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodPhase
from podtide.resources.timestamps import to_micro_time

POD = b"""{
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": "7",
    "annotations": {"kubernetes.io/config.hash": "abc"},
    "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}]},
  "spec": {"nodeName": "node-1", "hostNetwork": true, "tolerations": [{"operator": "Exists"}],
    "containers": [{"name": "web", "image": "nginx", "resources": {}}]},
  "status": {"phase": "Running", "podIP": "10.0.0.5", "podIPs": [{"ip": "10.0.0.5"}, {"ip": "fd00::5"}],
    "conditions": [{"type": "Ready", "status": "True"}]}
}"""


def test_of_a_pod_only_what_concerns_addresses_is_read() -> None:
    pod = decode(Pod, POD)
    assert (pod.spec.node_name, pod.spec.host_network, pod.status.phase) == ("node-1", True, PodPhase.RUNNING)
    assert [each.ip for each in pod.status.pod_ips] == ["10.0.0.5", "fd00::5"]
    assert pod.metadata.annotations == {"kubernetes.io/config.hash": "abc"}
    assert pod.original is None


def test_pods_can_be_watched_by_node_and_phase() -> None:
    assert {"metadata.name", "spec.nodeName", "status.phase"} <= set(Pod.api.field_selectors)


def test_a_node_s_addresses_are_read() -> None:
    node = decode(
        Node,
        b"""{"metadata": {"name": "n", "uid": "u"}, "spec": {"providerID": "x"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.1.0.4"}], "images": []}}""",
    )
    assert [(each.type, each.address) for each in node.status.addresses] == [("InternalIP", "10.1.0.4")]


def test_a_node_s_taints_and_resources_are_read() -> None:
    node = decode(
        Node,
        b"""{"metadata": {"name": "n", "uid": "u"},
        "spec": {"podCIDR": "10.1.0.0/24", "unschedulable": true, "taints": [
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]},
        "status": {"capacity": {"pods": "110", "podtide.io/ipv4": "1k"}, "allocatable": {"pods": "100"}}}""",
    )
    (taint,) = node.spec.taints
    assert (taint.key, taint.value, taint.effect) == ("node.kubernetes.io/not-ready", "", "NoExecute")
    assert taint.time_added == "2026-01-01T00:00:00Z"
    assert node.spec.unschedulable
    assert node.status.capacity == {"pods": "110", "podtide.io/ipv4": "1k"}
    assert node.status.allocatable == {"pods": "100"}


def test_what_a_pod_requests_is_read_and_written() -> None:
    spec = {
        "initContainers": [{"name": "mesh", "image": "m", "restartPolicy": "Always"}],
        "containers": [{"name": "web", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}],
    }
    pod = decode(Pod, msgspec.json.encode({"metadata": {"name": "web"}, "spec": spec}))
    assert to_document(pod)["spec"] == spec
    (mesh,), (web,) = pod.spec.init_containers, pod.spec.containers
    assert mesh.is_sidecar
    assert (web.resources.requests, web.resources.limits) == ({"cpu": "1"}, {"cpu": "2"})


def test_a_lease_of_another_program_keeps_what_only_that_program_knows() -> None:
    lease = decode(
        Lease,
        b"""{"metadata": {"name": "l"}, "spec": {"holderIdentity": "theirs", "leaseDurationSeconds": 15,
        "strategy": "OldestEmulationVersion", "preferredHolder": "other"}}""",
    )
    given_up = replace(lease, spec=replace(lease.spec, holder_identity="", renew_time=to_micro_time(0)))
    assert to_document(given_up)["spec"] == {
        "leaseDurationSeconds": 15,
        "renewTime": "1970-01-01T00:00:00.000000Z",
        "strategy": "OldestEmulationVersion",
        "preferredHolder": "other",
    }


def test_a_new_lease_says_who_holds_it_and_how_long() -> None:
    spec = LeaseSpec(holder_identity="node-1", lease_duration_seconds=15, lease_transitions=2)
    assert to_document(Lease(metadata=ObjectMeta(name="l", namespace="kube-system"), spec=spec)) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l", "namespace": "kube-system"},
        "spec": {"holderIdentity": "node-1", "leaseDurationSeconds": 15, "leaseTransitions": 2},
    }


def test_an_event_is_about_an_object_as_it_was_read() -> None:
    nnc = NodeNetworkConfig(
        metadata=ObjectMeta(name="node-1", namespace="kube-system", uid="u1", resource_version="42")
    )
    event = Event(
        metadata=ObjectMeta(generate_name="node-1.", namespace="kube-system"),
        involved_object=ObjectReference.to(nnc),
        reason="SubnetFull",
        message="5 of 48 granted",
        source=EventSource(component="podtide-controller"),
        count=1,
    )
    assert to_document(event) == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "node-1.", "namespace": "kube-system"},
        "involvedObject": {
            "apiVersion": "acn.azure.com/v1alpha",
            "kind": "NodeNetworkConfig",
            "namespace": "kube-system",
            "name": "node-1",
            "uid": "u1",
            "resourceVersion": "42",
        },
        "type": "Normal",
        "reason": "SubnetFull",
        "message": "5 of 48 granted",
        "source": {"component": "podtide-controller"},
        "count": 1,
    }
    assert event.type is EventType.NORMAL
