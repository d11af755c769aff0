from msgspec import structs

from podtide.core.pool.demand import Demand, PodOnNode
from podtide.core.pool.leaks import SuspectedSandboxes, Suspicion, suspicion_of
from podtide.core.pool.pool import Owner

POD = PodOnNode(uid="uid", namespace="default", name="web")
OLD = Owner("old", "eth0", "uid", "default", "web")
NEW = Owner("new", "eth0", "uid", "default", "web")
GRACE = 300.0


def bench() -> tuple[Demand, SuspectedSandboxes]:
    demand = Demand()
    return demand, SuspectedSandboxes(demand)


def test_nothing_speaks_against_the_one_sandbox_of_a_living_pod() -> None:
    demand, suspects = bench()
    demand.pod_seen(POD)
    demand.taken(OLD)
    suspects.reconsider((POD.uid,), 0.0)
    assert suspicion_of(OLD, demand) is None
    assert suspects.oldest_since is None
    assert suspects.due(1e9, GRACE) == ()


def test_a_sandbox_is_suspected_when_its_pod_is_gone_has_ended_or_has_a_newer_one() -> None:
    demand, _ = bench()
    demand.taken(OLD)
    assert suspicion_of(OLD, demand) is Suspicion.GONE
    demand.pod_seen(structs.replace(POD, ended=True))
    assert suspicion_of(OLD, demand) is Suspicion.ENDED
    demand.taken(NEW)
    assert suspicion_of(OLD, demand) is Suspicion.SUPERSEDED
    assert suspicion_of(NEW, demand) is Suspicion.ENDED


def test_two_interfaces_of_one_sandbox_do_not_supersede_each_other() -> None:
    demand, _ = bench()
    demand.pod_seen(POD)
    demand.taken(OLD)
    second = structs.replace(OLD, interface="net1")
    demand.taken(second)
    assert suspicion_of(OLD, demand) is suspicion_of(second, demand) is None


def test_who_does_not_say_whose_it_is_is_never_suspected() -> None:
    demand, suspects = bench()
    nobody = Owner("sandbox", "eth0")
    demand.taken(nobody)
    suspects.reconsider(("",), 0.0)
    assert suspicion_of(nobody, demand) is None
    assert suspects.oldest_since is None


def test_suspects_are_due_after_the_grace_the_oldest_first() -> None:
    demand, suspects = bench()
    other = Owner("other", "eth0", "other-uid", "default", "db")
    demand.taken(OLD)
    suspects.reconsider((POD.uid,), 10.0)
    demand.taken(other)
    suspects.reconsider(("other-uid",), 20.0)
    suspects.reconsider((POD.uid,), 30.0)
    assert suspects.oldest_since == 10.0
    assert suspects.due(309.0, GRACE) == ()
    assert suspects.due(310.0, GRACE) == (OLD,)
    assert suspects.due(320.0, GRACE) == (OLD, other)
    assert [suspects.since(each) for each in (OLD, other, NEW)] == [10.0, 20.0, None]


def test_a_suspect_whose_pod_shows_up_is_cleared() -> None:
    demand, suspects = bench()
    demand.taken(OLD)
    suspects.reconsider((POD.uid,), 0.0)
    demand.pod_seen(POD)
    suspects.reconsider(POD.references, 1.0)
    assert suspects.oldest_since is None


def test_one_who_is_put_off_has_the_whole_grace_again() -> None:
    demand, suspects = bench()
    demand.taken(OLD)
    suspects.reconsider((POD.uid,), 0.0)
    suspects.put_off(OLD, 300.0)
    assert suspects.due(599.0, GRACE) == ()
    assert suspects.due(600.0, GRACE) == (OLD,)


def test_who_holds_nothing_any_more_is_forgotten() -> None:
    demand, suspects = bench()
    demand.taken(OLD)
    suspects.reconsider((POD.uid,), 0.0)
    demand.freed("old", "eth0")
    suspects.forget("old", "eth0")
    assert suspects.due(1e9, GRACE) == ()
