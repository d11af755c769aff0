import pytest

from podtide.agent.pool.pods import CONFIG_HASH_ANNOTATION, pod_on_node, shown_addresses
from podtide.core.pool.demand import PodOnNode
from podtide.resources.base import ObjectMeta
from podtide.resources.pod import Pod, PodIP, PodPhase, PodSpec, PodStatus


def pod(*, host: bool = False, phase: PodPhase | None = None, deleted: str | None = None) -> Pod:
    metadata = ObjectMeta(name="web", namespace="default", uid="uid", deletion_timestamp=deleted)
    return Pod(
        metadata=metadata,
        spec=PodSpec(node_name="node", host_network=host),
        status=PodStatus(phase=phase, pod_ip="10.0.0.1", pod_ips=[PodIP(ip="10.0.0.1"), PodIP(ip="fd00::1")]),
    )


@pytest.mark.parametrize("phase", [None, PodPhase.PENDING, PodPhase.RUNNING, PodPhase.UNKNOWN])
def test_a_pod_that_has_not_ended_needs_an_address(phase: PodPhase | None) -> None:
    assert pod_on_node(pod(phase=phase)) == PodOnNode("uid", "default", "web")


def test_pods_on_the_hosts_network_ended_ones_and_those_being_deleted_need_none() -> None:
    assert not pod_on_node(pod(host=True)).needs_address
    assert not pod_on_node(pod(deleted="2026-01-01T00:00:00Z")).needs_address
    ended = pod_on_node(pod(phase=PodPhase.FAILED))
    assert (ended.needs_address, ended.ended) == (False, True)


def test_a_mirror_carries_the_hash_of_its_static_pod() -> None:
    mirror = Pod(metadata=ObjectMeta(name="web", uid="uid", annotations={CONFIG_HASH_ANNOTATION: "hash"}))
    assert pod_on_node(mirror).config_hash == "hash"


def test_a_pod_shows_its_addresses_unless_they_are_the_hosts_or_were() -> None:
    assert shown_addresses(pod()) == ("10.0.0.1", "fd00::1")
    assert shown_addresses(pod(host=True)) == ()
    assert shown_addresses(pod(phase=PodPhase.SUCCEEDED)) == ()
    assert shown_addresses(Pod(status=PodStatus(pod_ip="10.0.0.2"))) == ("10.0.0.2",)
    assert shown_addresses(Pod()) == ()
