from hypothesis import given
from hypothesis import strategies as st

from podtide.resources.address_requests import addresses_requested
from podtide.resources.metadata_keys import IPV4_RESOURCE, IPV6_RESOURCE
from podtide.resources.pod import Pod, PodContainer, PodInitContainer, PodSpec, ResourceRequirements

COUNTS = st.integers(min_value=0, max_value=5)


def requesting(count: int | str) -> ResourceRequirements:
    return ResourceRequirements(requests={IPV4_RESOURCE: str(count)}, limits={IPV4_RESOURCE: str(count)})


def requested(containers: list[int], starting: list[tuple[int, bool]] | None = None) -> int:
    """What a pod requests in all; `starting` are its init containers, and whether each is a sidecar."""
    spec = PodSpec(
        containers=[PodContainer(name=f"c{i}", resources=requesting(n)) for i, n in enumerate(containers)],
        init_containers=[
            PodInitContainer(
                name=f"i{i}", resources=requesting(n), restart_policy="Always" if is_sidecar else ""
            )
            for i, (n, is_sidecar) in enumerate(starting or [])
        ],
    )
    return addresses_requested(Pod(spec=spec), IPV4_RESOURCE)


def test_containers_run_beside_each_other_so_their_requests_add_up() -> None:
    assert requested([1, 2]) == 3
    assert requested([]) == 0


def test_init_containers_run_one_after_the_other_so_the_largest_counts_if_it_is_more() -> None:
    assert requested([1], [(1, False), (2, False), (1, False)]) == 2
    assert requested([1, 2], [(2, False)]) == 3


def test_a_sidecar_adds_to_all_that_starts_later() -> None:
    assert requested([1], [(1, True)]) == 2
    assert requested([1], [(1, True), (3, False)]) == 4
    assert requested([1], [(3, False), (1, True)]) == 3
    assert requested([0], [(1, True), (1, True), (2, False), (1, True)]) == 4


def test_only_the_resource_that_is_asked_for_counts() -> None:
    container = PodContainer(
        name="c", resources=ResourceRequirements(requests={IPV6_RESOURCE: "1", "cpu": "2"})
    )
    pod = Pod(spec=PodSpec(containers=[container]))
    assert (addresses_requested(pod, IPV4_RESOURCE), addresses_requested(pod, IPV6_RESOURCE)) == (0, 1)


def test_text_that_no_api_server_lets_pass_requests_none() -> None:
    pod = Pod(spec=PodSpec(containers=[PodContainer(name="c", resources=requesting("many"))]))
    assert addresses_requested(pod, IPV4_RESOURCE) == 0


@given(st.lists(COUNTS, max_size=4), st.lists(st.tuples(COUNTS, st.booleans()), max_size=5))
def test_it_is_the_most_that_ever_runs_at_once(
    containers: list[int], starting: list[tuple[int, bool]]
) -> None:
    at_once = [
        sum(n for n, is_sidecar in starting[:step] if is_sidecar) + count
        for step, (count, _) in enumerate(starting)
    ]
    in_the_end = sum(n for n, is_sidecar in starting if is_sidecar) + sum(containers)
    assert requested(containers, starting) == max([*at_once, in_the_end])
