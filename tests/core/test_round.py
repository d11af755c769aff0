"""One round: what is reserved, written and answered, for requests that wait together."""

from ipaddress import ip_address, ip_network

from podtide.core.errors import InvalidConfig, RangeFull, RetryError
from podtide.core.intervals import Interval
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.pool_copy import PoolCopy, PoolTooLarge
from podtide.core.networks.reservations import Reservations, ReservationVersion
from podtide.core.networks.restoration import HOLD_SECONDS, Restoration
from podtide.core.networks.round import AddRequest, DelRequest, Placed, Round, Unanswered
from podtide.core.ranges import AddressRange

NETWORK = ip_network("10.0.0.0/29")
BOUNDS = AddressRange(NETWORK, (Interval(1, 6),))
FIRST, SECOND, THIRD = map(ip_address, ("10.0.0.1", "10.0.0.2", "10.0.0.3"))
MADE = ReservationVersion("uid", "1")


def holder(sandbox: str, pod: str = "") -> Allocation:
    pod = pod or f"pod-of-{sandbox}"
    return Allocation(sandbox, f"default/{pod}", "net1", f"uid-of-{pod}")


def add(sandbox: str, pod: str = "", *, guarded: bool = True) -> AddRequest:
    return AddRequest(holder(sandbox, pod), BOUNDS, str if guarded else None)


class Node:
    """A pool, and what the node knows of it."""

    def __init__(self, **entries: Allocation) -> None:
        self.copy = PoolCopy(NETWORK, {key.removeprefix("_"): entry for key, entry in entries.items()})
        self.reservations = Reservations()
        self.restoration = Restoration(is_shared=True, patience_seconds=360.0)

    def round(self, *adds: AddRequest, dels: tuple[str, ...] = (), is_fresh: bool = True) -> Round:
        leaving = [DelRequest((sandbox, "net1"), str) for sandbox in dels]
        return Round(
            self.copy,
            self.reservations,
            self.restoration,
            adds,
            leaving,
            is_ours=lambda _: False,
            is_fresh=is_fresh,
            now=0.0,
        )

    def entries(self) -> dict[str, str]:
        return {key: entry.id for key, entry in self.copy.allocations.render().items()}


def placed(decided: Round) -> dict[str, str]:
    return {add.holder.id: str(each.address) for add, each in decided.placed}


def test_nothing_is_placed_before_it_is_reserved() -> None:
    node = Node()
    decided = node.round(add("c1"), add("c2"))
    assert [(each.name, each.holder.id) for each in decided.wanted] == [
        ("10.0.0.1", "c1"),
        ("10.0.0.2", "c2"),
    ]
    assert decided.placed == []
    decided.take([MADE, MADE], over=(), now=0.0)
    assert placed(decided) == {"c1": "10.0.0.1", "c2": "10.0.0.2"}
    assert decided.wanted == []
    assert node.entries() == {"1": "c1", "2": "c2"}


def test_where_nothing_is_reserved_a_round_is_decided_at_once() -> None:
    first = add("c1", guarded=False)
    decided = Node().round(first)
    assert decided.placed == [(first, Placed(FIRST, is_new=True))]


def test_an_address_of_another_pod_is_passed_over() -> None:
    node = Node()
    decided = node.round(add("c1"))
    decided.take([None], over=(), now=0.0)
    assert [each.name for each in decided.wanted] == ["10.0.0.2"]
    decided.take([MADE], over=(), now=0.0)
    assert placed(decided) == {"c1": "10.0.0.2"}
    assert node.entries() == {"2": "c1"}
    assert decided.contested == []


def test_an_allocated_address_that_is_reserved_for_another_pod_is_told_of() -> None:
    node = Node(_1=holder("c1"))
    decided = node.round(again := add("c1"))
    decided.take([None], over=(), now=0.0)
    assert decided.contested == [(again, FIRST)]
    decided.take([MADE], over=(), now=0.0)
    assert node.entries() == {"2": "c1"}


def test_sandboxes_of_one_pod_are_served_one_after_the_other_and_get_one_address() -> None:
    node = Node()
    decided = node.round(add("c1", "web"), add("c2", "web"))
    assert len(decided.wanted) == 1
    decided.take([MADE], over=(), now=0.0)
    assert [each.before and each.before.id for each in decided.wanted] == ["c1"]
    decided.take([MADE], over=(), now=0.0)
    assert placed(decided) == {"c1": "10.0.0.1", "c2": "10.0.0.1"}
    assert decided.placed[1][1].is_new is False


def test_a_reservation_without_an_answer_is_tried_again_with_the_same_address() -> None:
    node = Node()
    decided = node.round(first := add("c1"), add("c2"))
    decided.take([Unanswered(RetryError("no answer"), will_pass=True), MADE], over=(), now=0.0)
    assert (decided.again, decided.trouble) == ([first], "no answer")
    assert node.entries() == {"2": "c2"}
    assert [each.name for each in node.round(first).wanted] == ["10.0.0.1"]


def test_a_reservation_that_cannot_be_made_is_an_answer() -> None:
    decided = Node().round(first := add("c1"))
    error = RetryError("forbidden")
    decided.take([Unanswered(error, will_pass=False)], over=(), now=0.0)
    assert (decided.failed, decided.again) == ([(first, error)], [])


def test_an_interface_that_asks_no_longer_gets_nothing() -> None:
    node = Node()
    decided = node.round(add("c1"), add("c2", "web"), add("c3", "web"))
    decided.take([MADE, MADE], over=[("c1", "net1"), ("c3", "net1")], now=0.0)
    assert placed(decided) == {"c2": "10.0.0.2"}
    assert node.entries() == {"2": "c2"}
    assert decided.wanted == []


def test_what_an_interface_has_already_stays_its_own_though_it_asks_no_longer() -> None:
    node = Node(_1=holder("c1"))
    decided = node.round(add("c1"))
    decided.take([MADE], over=[("c1", "net1")], now=0.0)
    assert node.entries() == {"1": "c1"}


def test_a_request_that_the_pool_must_not_serve_is_refused() -> None:
    refusal = InvalidConfig("another range")
    request = AddRequest(holder("c1"), BOUNDS, str, refusal)
    decided = Node().round(request)
    assert decided.failed == [(request, refusal)]


def test_only_a_pool_that_was_just_read_is_full() -> None:
    full = {f"_{number}": holder(f"x{number}") for number in range(1, 7)}
    request = add("c1")
    assert Node(**full).round(request, is_fresh=False).reread.startswith("no address of 10.0.0.0/29 is free")
    ((failed, error),) = Node(**full).round(request).failed
    assert failed is request
    assert isinstance(error, RangeFull)


def test_a_pool_that_would_grow_too_large_is_full_too() -> None:
    node = Node()
    node.copy = PoolCopy(NETWORK, {}, name="n/p", size=1_499_990, entry_size=lambda _key, _holder: 11)
    ((_, error),) = node.round(add("c1")).failed
    assert isinstance(error, PoolTooLarge)
    assert "IPPool n/p has 1499990 bytes" in str(error)


def test_a_del_frees_the_entry_first_and_leaves_the_reservation_to_be_deleted() -> None:
    node = Node(_1=holder("c1"))
    decided = node.round(add("c2"), dels=("c1", "unknown"))
    assert decided.freed == [(FIRST,), ()]
    assert node.reservations.leaving(("c1", "net1"))[FIRST].name == "10.0.0.1"
    assert [each.name for each in decided.wanted] == ["10.0.0.2"], (
        "what is still reserved is offered to no other"
    )


def test_a_del_of_a_newer_sandbox_leaves_the_address_and_its_reservation_to_the_earlier_one() -> None:
    node = Node(_1=holder("c2", "web").taking_over(holder("c1", "web")))
    decided = node.round(dels=("c2",))
    assert decided.freed == [()]
    assert node.entries() == {"1": "c1"}
    assert node.reservations.leaving(("c2", "net1")) == {}
    assert node.reservations.preferred(("c1", "net1")) == (FIRST,)


def test_a_reservation_of_a_slice_that_is_another_by_now_withholds_nothing() -> None:
    node = Node()
    decided = node.round(add("c1"))
    decided.take([MADE], over=(), now=0.0)
    node.copy = PoolCopy(ip_network("10.0.7.0/29"), {})
    assert node.round(dels=("c1",)).freed == [()]
    node.copy.restore([FIRST])
    assert list(node.reservations.leaving(("c1", "net1"))) == [FIRST]


def test_while_others_may_have_to_put_back_nothing_new_is_given_of_a_shared_pool() -> None:
    node = Node(_1=holder("c1"))
    node.restoration.went_back(1.0 - HOLD_SECONDS)
    decided = node.round(first := add("c2"), dels=("c1",))
    assert (decided.again, decided.placed, decided.wanted) == ([first], [], [])
    assert decided.freed == [(FIRST,)]
