from podtide.agent.request.pod_requests import PodRequests
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import IPV4_RESOURCE
from podtide.resources.pod import Pod, PodContainer, PodSpec, ResourceRequirements


def test_an_address_that_outlives_its_pod_is_used_without_a_request() -> None:
    one = ResourceRequirements(requests={IPV4_RESOURCE: "1"}, limits={IPV4_RESOURCE: "1"})
    pod = Pod(
        metadata=ObjectMeta(name="web", namespace="default", uid="1"),
        spec=PodSpec(containers=[PodContainer(name="main", resources=one)]),
    )
    requests = PodRequests()
    requests.note(pod)
    assert requests.unrequested(needed=1, outlived=0) == 0
    assert requests.unrequested(needed=2, outlived=0) == 1, "a sandbox of a pod that was deleted by force"
    requests.forget(pod)
    assert requests.unrequested(needed=2, outlived=0) == 2
    requests.note(pod)
    assert requests.unrequested(needed=0, outlived=0) == 0, "it ends, and its address is free already"
