from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import structs

from examples import examples
from podtide.core.pool.demand import Demand, PodOnNode, reference_of
from podtide.core.pool.pool import Owner

WEB = PodOnNode(uid="uid-1", namespace="default", name="web")


def sandbox(number: int, pod: PodOnNode | None = WEB) -> Owner:
    if pod is None:
        return Owner(f"sandbox-{number}", "eth0")
    return Owner(f"sandbox-{number}", "eth0", pod.uid, pod.namespace, pod.name)


def test_a_pod_counts_before_and_after_it_got_its_address_and_once() -> None:
    demand = Demand()
    demand.pod_seen(WEB)
    assert (demand.total, demand.waiting) == (1, 1)
    demand.taken(sandbox(1))
    assert (demand.total, demand.waiting) == (1, 0)
    demand.taken(sandbox(1))
    assert (demand.total, demand.waiting) == (1, 0)
    demand.freed("sandbox-1", "eth0")
    assert (demand.total, demand.waiting) == (1, 1)


def test_the_same_pod_again_is_no_news_and_neither_is_the_end_of_an_unknown_one() -> None:
    demand = Demand()
    assert demand.pod_seen(WEB)
    assert not demand.pod_seen(structs.replace(WEB))
    assert demand.pod_gone(WEB.uid)
    assert not demand.pod_gone(WEB.uid)
    assert demand.total == 0


def test_a_sandbox_counts_until_it_gives_back_whatever_became_of_its_pod() -> None:
    demand = Demand()
    demand.pod_seen(WEB)
    demand.taken(sandbox(1))
    demand.pod_seen(structs.replace(WEB, needs_address=False, ended=True))
    demand.pod_gone(WEB.uid)
    assert demand.total == 1
    assert demand.freed("sandbox-1", "eth0") == sandbox(1)
    assert demand.freed("sandbox-1", "eth0") is None
    assert demand.total == 0


def test_a_pod_that_needs_no_address_counts_only_while_a_sandbox_of_it_holds_one() -> None:
    demand = Demand()
    deleted = structs.replace(WEB, needs_address=False)
    demand.pod_seen(deleted)
    assert demand.total == 0
    demand.taken(sandbox(1))
    assert demand.total == 1


def test_two_sandboxes_of_one_pod_count_twice() -> None:
    demand = Demand()
    demand.pod_seen(WEB)
    demand.taken(sandbox(1))
    demand.taken(sandbox(2))
    assert (demand.total, demand.waiting) == (2, 0)
    assert demand.owners() == demand.owners_of(WEB.uid) == (sandbox(1), sandbox(2))
    assert demand.owner("sandbox-2", "eth0") == sandbox(2)
    demand.freed("sandbox-1", "eth0")
    assert (demand.total, demand.waiting) == (1, 0)
    assert demand.owners_of(WEB.uid) == (sandbox(2),)


def test_a_static_pod_is_known_by_its_hash() -> None:
    demand = Demand()
    mirror = structs.replace(WEB, config_hash="0123abcd")
    demand.pod_seen(mirror)
    demand.taken(structs.replace(sandbox(1), pod="0123abcd"))
    assert (demand.total, demand.waiting) == (1, 0)
    assert demand.pod("0123abcd") == mirror


def test_a_sandbox_without_a_uid_belongs_to_the_pod_of_its_name() -> None:
    demand = Demand()
    demand.pod_seen(WEB)
    demand.taken(structs.replace(sandbox(1), pod=""))
    assert (demand.total, demand.waiting) == (1, 0)


def test_a_sandbox_that_says_nothing_belongs_to_nobody() -> None:
    demand = Demand()
    demand.pod_seen(WEB)
    demand.taken(sandbox(1, None))
    assert reference_of(sandbox(1, None)) == ""
    assert (demand.total, demand.waiting) == (2, 1)


def test_a_pod_of_the_same_name_takes_the_place_of_the_earlier_one() -> None:
    demand = Demand()
    demand.pod_seen(WEB)
    again = structs.replace(WEB, uid="uid-2")
    demand.pod_seen(again)
    assert demand.total == 1
    assert demand.pod("default/web") == again
    assert demand.pod("uid-1") is None
    assert not demand.pod_gone("uid-1")


def test_who_asks_counts_where_the_pod_does_not() -> None:
    demand = Demand()
    demand.asked(sandbox(1))
    assert (demand.total, demand.waiting) == (1, 1)
    demand.pod_seen(WEB)
    assert (demand.total, demand.waiting) == (1, 1), "it is the pod's own sandbox that asks"
    demand.gave_up(sandbox(1))
    assert (demand.total, demand.waiting) == (1, 1)
    demand.taken(sandbox(1))
    demand.asked(sandbox(2))
    assert (demand.total, demand.waiting) == (2, 1), "the earlier sandbox was never given back"
    demand.gave_up(sandbox(2))
    assert (demand.total, demand.waiting) == (1, 0)


def test_the_newest_sandbox_is_remembered_as_long_as_it_matters() -> None:
    demand = Demand()
    assert demand.newest_sandbox(WEB.uid) is None
    demand.taken(sandbox(1))
    assert demand.newest_sandbox(WEB.uid) == "sandbox-1"
    demand.asked(sandbox(2))
    demand.gave_up(sandbox(2))
    assert demand.newest_sandbox(WEB.uid) == "sandbox-2", "it will ask again"
    demand.freed("sandbox-1", "eth0")
    assert demand.newest_sandbox(WEB.uid) is None


PODS = st.builds(
    PodOnNode,
    uid=st.sampled_from(["u1", "u2", "u3", "u4"]),
    namespace=st.just("ns"),
    name=st.sampled_from(["a", "b", "c"]),
    config_hash=st.sampled_from(["", "", "h1", "h2"]),
    needs_address=st.booleans(),
    ended=st.booleans(),
)
OWNERS = st.builds(
    Owner,
    sandbox=st.sampled_from([f"s{number}" for number in range(6)]),
    interface=st.sampled_from(["eth0", "net1"]),
    pod=st.sampled_from(["", "u1", "u2", "u3", "h1", "h2"]),
    namespace=st.just("ns"),
    name=st.sampled_from(["", "a", "b", "c"]),
)


@given(PODS)
def test_a_pod_goes_by_uid_hash_and_name(pod: PodOnNode) -> None:
    assert set(pod.references) == {pod.uid, f"ns/{pod.name}"} | ({pod.config_hash} - {""})


class DemandMachine(RuleBasedStateMachine):
    """Counting step by step gives what counting everything anew would."""

    def __init__(self) -> None:
        super().__init__()
        self.demand = Demand()
        self.pods: dict[str, PodOnNode] = {}
        self.owners: dict[tuple[str, str], Owner] = {}
        self.asking: list[Owner] = []

    @rule(pod=PODS)
    def see(self, pod: PodOnNode) -> None:
        self.demand.pod_seen(pod)
        shared = set(pod.references)
        self.pods = {uid: each for uid, each in self.pods.items() if not shared & set(each.references)}
        self.pods[pod.uid] = pod

    @rule(uid=st.sampled_from(["u1", "u2", "u3", "u4"]))
    def lose(self, uid: str) -> None:
        assert self.demand.pod_gone(uid) == (self.pods.pop(uid, None) is not None)

    @rule(owner=OWNERS)
    def take(self, owner: Owner) -> None:
        self.demand.taken(owner)
        self.owners.setdefault((owner.sandbox, owner.interface), owner)

    @rule(owner=OWNERS)
    def free(self, owner: Owner) -> None:
        key = (owner.sandbox, owner.interface)
        assert self.demand.freed(*key) == self.owners.pop(key, None)

    @rule(owner=OWNERS)
    def ask(self, owner: Owner) -> None:
        self.demand.asked(owner)
        self.asking.append(owner)

    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        if self.asking:
            owner = self.asking.pop(data.draw(st.integers(0, len(self.asking) - 1)))
            self.demand.gave_up(owner)

    @invariant()
    def counts_as_if_anew(self) -> None:
        held = {reference_of(owner) for owner in self.owners.values()}
        asking = [reference_of(owner) for owner in self.asking]
        waiting = 0
        for pod in self.pods.values():
            own = sum(reference in pod.references for reference in asking)
            waiting += max(own, pod.needs_address and not held & set(pod.references))
        known = {reference for pod in self.pods.values() for reference in pod.references}
        waiting += sum(reference not in known for reference in asking)
        assert self.demand.waiting == waiting
        assert self.demand.total == len(self.owners) + waiting
        assert all(
            self.demand.holds_address(pod) == bool(held & set(pod.references)) for pod in self.pods.values()
        )


TestDemandMachine = DemandMachine.TestCase
TestDemandMachine.settings = examples(60, stateful_step_count=30)


def test_a_sandbox_that_asks_after_it_was_deleted_is_not_its_pods_newest_unless_it_is_the_only_one() -> None:
    demand, late, new = Demand(), sandbox(1), sandbox(2)
    demand.deleted(late.sandbox)
    demand.asked(late)
    assert demand.newest_sandbox(WEB.uid) == late.sandbox
    demand.taken(new)
    demand.taken(late)
    assert demand.newest_sandbox(WEB.uid) == new.sandbox


def test_a_sandbox_that_is_known_to_live_is_its_pods_newest_until_another_one_asks() -> None:
    demand, lives, late = Demand(), sandbox(1), sandbox(2)
    demand.taken(lives)
    demand.taken(late)
    demand.lives(lives)
    assert demand.newest_sandbox(WEB.uid) == lives.sandbox
    demand.asked(sandbox(3))
    assert demand.newest_sandbox(WEB.uid) == sandbox(3).sandbox


def test_only_the_last_deleted_sandboxes_are_remembered() -> None:
    demand, forgotten = Demand(), sandbox(1)
    demand.deleted(forgotten.sandbox)
    for number in range(1024):
        demand.deleted(f"another-{number}")
    demand.taken(sandbox(2))
    demand.taken(forgotten)
    assert demand.newest_sandbox(WEB.uid) == forgotten.sandbox
