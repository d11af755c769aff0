"""Whose an address is when records are lost: what pods show, and what another program recorded of their sandboxes."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from examples import examples
from podtide.core.pool.adoption import (
    AdoptionPlan,
    RecordedEndpoint,
    ShowingPod,
    is_stand_in,
    plan_adoption,
    stand_in_for,
)
from podtide.core.pool.demand import PodOnNode
from podtide.core.pool.pool import Owner
from podtide.core.pool.states import State

IP, OTHER = "10.1.0.10", "10.1.0.11"
WEB = PodOnNode(uid="uid-web", namespace="default", name="web")
DB = PodOnNode(uid="uid-db", namespace="default", name="db")


def endpoint(sandbox: str, pod: PodOnNode, *ips: str) -> RecordedEndpoint:
    return RecordedEndpoint(sandbox, "eth0", pod.namespace, pod.name, ips)


def plan(
    pods: list[ShowingPod], recorded: list[RecordedEndpoint], states: dict[str, State] | None = None
) -> AdoptionPlan:
    return plan_adoption(pods, recorded, states or dict.fromkeys((IP, OTHER), State.QUARANTINED))


def test_without_a_record_what_a_pod_shows_is_the_pod_s_under_an_invented_sandbox() -> None:
    decided = plan([ShowingPod(WEB, (IP,))], [])
    assert decided == AdoptionPlan(((IP, stand_in_for(WEB)),), (), ())
    assert is_stand_in(stand_in_for(WEB))


def test_what_a_pod_shows_and_its_record_agrees_with_is_the_recorded_sandbox_s() -> None:
    decided = plan([ShowingPod(WEB, (IP,))], [endpoint("a", WEB, IP)])
    assert decided == AdoptionPlan(((IP, Owner("a", "eth0", "uid-web", "default", "web")),), (), ())
    assert not is_stand_in(decided.adoptions[0][1])


def test_a_static_pod_s_sandbox_is_known_by_the_hash_of_its_configuration() -> None:
    mirror = replace(WEB, config_hash="hash")
    decided = plan([ShowingPod(mirror, (IP,))], [endpoint("a", mirror, IP)])
    assert decided.adoptions[0][1].pod == "hash"


def test_what_is_recorded_and_not_shown_yet_is_the_recorded_sandbox_s() -> None:
    decided = plan([ShowingPod(WEB)], [endpoint("a", WEB, IP)])
    assert decided == AdoptionPlan(((IP, Owner("a", "eth0", "uid-web", "default", "web")),), (), ())


def test_a_record_of_a_pod_that_is_gone_keeps_its_address_until_the_leak_rule_frees_it() -> None:
    decided = plan([], [endpoint("a", WEB, IP)])
    assert decided == AdoptionPlan(((IP, Owner("a", "eth0", "", "default", "web")),), (), ())


def test_a_record_of_another_pod_than_the_one_that_shows_the_address_withholds_it_and_is_said() -> None:
    for others in ([ShowingPod(DB)], []):
        decided = plan([ShowingPod(WEB, (IP,)), *others], [endpoint("a", DB, IP)])
        assert (decided.adoptions, decided.contested) == ((), (IP,))
        assert decided.contradictions == (
            f"{IP} is recorded for pod default/db in sandbox a; the pods that show it: default/web",
        )


def test_one_address_in_the_records_of_two_sandboxes_is_withheld_and_said() -> None:
    decided = plan([ShowingPod(WEB, (IP,))], [endpoint("a", WEB, IP), endpoint("b", WEB, IP)])
    assert (decided.adoptions, decided.contested) == ((), (IP,))
    [words] = decided.contradictions
    assert words == (
        f"{IP} is recorded for pod default/web in sandbox a and for pod default/web in sandbox b; the pods that show it: "
        "default/web"
    )


def test_a_record_without_a_pod_is_withheld_because_nothing_could_prove_its_sandbox_dead() -> None:
    decided = plan([], [RecordedEndpoint("a", "eth0", "", "", (IP,))])
    assert (decided.adoptions, decided.contested) == ((), (IP,))
    assert decided.contradictions == (
        f"{IP} is recorded for a pod without a name in sandbox a; no pod shows it",
    )


def test_what_two_pods_show_is_withheld_and_no_alarm_without_a_record() -> None:
    both = [ShowingPod(WEB, (IP,)), ShowingPod(DB, (IP,))]
    assert plan(both, []) == AdoptionPlan((), (IP,), ())
    decided = plan(both, [endpoint("a", WEB, IP)])
    assert (decided.adoptions, decided.contested, len(decided.contradictions)) == ((), (IP,), 1)


def test_what_a_pod_showed_last_is_its_own_after_it_is_gone() -> None:
    decided = plan_adoption([], [], {IP: State.QUARANTINED}, [ShowingPod(WEB, (IP,))])
    assert decided == AdoptionPlan(((IP, stand_in_for(WEB)),), (), ())


def test_a_pod_that_is_gone_claims_nothing_that_is_shown_or_recorded_now() -> None:
    gone, states = [ShowingPod(WEB, (IP,))], {IP: State.QUARANTINED}
    decided = plan_adoption([ShowingPod(DB, (IP,))], [], states, gone)
    assert decided == AdoptionPlan(((IP, stand_in_for(DB)),), (), ())
    decided = plan_adoption([], [endpoint("a", DB, IP)], states, gone)
    assert [owner.sandbox for _ip, owner in decided.adoptions] == ["a"]


def test_of_two_pods_that_are_gone_the_later_one_has_what_both_showed() -> None:
    gone = [ShowingPod(WEB, (IP,)), ShowingPod(DB, (IP,))]
    decided = plan_adoption([], [], {IP: State.QUARANTINED}, gone)
    assert decided == AdoptionPlan(((IP, stand_in_for(DB)),), (), ())


def test_a_recorded_address_that_the_node_does_not_have_or_gave_up_is_said_and_nobody_s() -> None:
    for states in ({OTHER: State.QUARANTINED}, {IP: State.PENDING_RELEASE}):
        decided = plan([ShowingPod(WEB, (IP,))], [endpoint("a", WEB, IP)], states)
        assert (decided.adoptions, decided.contested) == ((), ())
        assert decided.contradictions == (
            f"{IP} is recorded for pod default/web in sandbox a, and is not an address of this node",
        )


def test_what_is_decided_already_is_not_decided_again() -> None:
    for state in (State.ASSIGNED, State.AVAILABLE):
        assert plan([], [endpoint("a", WEB, IP)], {IP: state}) == AdoptionPlan((), (), ())


def test_the_sandbox_whose_address_its_pod_shows_is_adopted_last_and_so_the_newest() -> None:
    decided = plan([ShowingPod(WEB, (OTHER,))], [endpoint("b", WEB, OTHER), endpoint("a", WEB, IP)])
    assert [owner.sandbox for _ip, owner in decided.adoptions] == ["a", "b"]


_IPS = [f"10.1.0.{number}" for number in range(10, 16)]
_PODS = [PodOnNode(uid=f"uid-{number}", namespace="default", name=f"pod-{number}") for number in range(4)]
_some_ips = st.lists(st.sampled_from(_IPS), max_size=2, unique=True).map(tuple)
_endpoints = st.builds(
    RecordedEndpoint,
    st.sampled_from("abcdef"),
    st.just("eth0"),
    st.just("default"),
    st.sampled_from(["", *(pod.name for pod in _PODS)]),
    _some_ips,
)


@examples(300)
@given(
    pods=st.lists(st.builds(ShowingPod, st.sampled_from(_PODS), _some_ips), unique_by=lambda each: each.pod),
    recorded=st.lists(_endpoints, max_size=6, unique_by=lambda each: each.sandbox),
    states=st.dictionaries(st.sampled_from(_IPS), st.sampled_from(State)),
)
def test_no_address_has_two_owners_and_none_that_is_claimed_is_left_for_others(
    pods: list[ShowingPod], recorded: list[RecordedEndpoint], states: dict[str, State]
) -> None:
    decided = plan_adoption(pods, recorded, states)
    adopted = [ip for ip, _owner in decided.adoptions]
    assert len(set(adopted)) == len(adopted)
    assert not set(adopted) & set(decided.contested)
    quarantined = {ip for ip, state in states.items() if state is State.QUARANTINED}
    claimed = {ip for pod in pods for ip in pod.addresses} | {
        ip for each in recorded for ip in each.addresses
    }
    assert {*adopted, *decided.contested} == quarantined & claimed
    for ip, owner in decided.adoptions:
        assert owner.name, "a sandbox that names no pod could never be proven dead"
        assert all(each.pod.name == owner.name for each in pods if ip in each.addresses)
        assert all(each.sandbox == owner.sandbox for each in recorded if ip in each.addresses)
