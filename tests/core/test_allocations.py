"""The rule of a Whereabouts pool: same pod, same address; lowest free otherwise; a DEL frees what its sandbox holds."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import permutations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from examples import examples
from podtide.core.errors import InvalidRange, RangeFull, RetryError
from podtide.core.networks.allocations import Allocation, Allocations, is_same_holder
from podtide.core.networks.pool_copy import PoolCopy
from podtide.core.ranges import IPAddress, parse_range


def anybody(_found: Allocation) -> bool:
    return True


def nobody(_found: Allocation) -> bool:
    return False


def assign(
    allocations: Allocations, sandbox: str, podref: str, ifname: str, pod_uid: str = "", *, ours: bool = True
) -> IPAddress:
    """An ADD: earlier sandboxes of the pod are this node's, unless it is said that they are not."""
    asking = Allocation(sandbox, podref, ifname, pod_uid)
    address = allocations.choose(asking, allocations.range, is_ours=anybody if ours else nobody)
    allocations.put(address, asking.taking_over(allocations.holder(address)))
    return address


def release(allocations: Allocations, sandbox: str, ifname: str) -> list[IPAddress]:
    """A DEL; answers what is free now. Pools written by others may hold several for one interface."""
    copy = PoolCopy(allocations.range.network, {})
    copy.allocations = allocations
    held = allocations.held_by(sandbox, ifname)
    copy.release(sandbox, ifname)
    return [address for address in held if allocations.holder(address) is None]


def pool(text: str = "10.0.0.0/29", entries: dict[str, Allocation] | None = None) -> Allocations:
    return Allocations(parse_range(text).range, entries)


def test_addresses_are_given_from_the_lowest_up() -> None:
    allocations = pool()
    assert str(assign(allocations, "c1", "ns/a", "net1")) == "10.0.0.1"
    assert str(assign(allocations, "c2", "ns/b", "net1")) == "10.0.0.2"
    assert len(allocations) == 2


def test_a_repeated_add_gives_the_same_address_and_updates_the_id() -> None:
    allocations = pool()
    first = assign(allocations, "c1", "ns/a", "net1")
    assert assign(allocations, "c2", "ns/a", "net1") == first
    assert list(allocations) == [(first, Allocation("c2", "ns/a", "net1", earlier=("c1",)))]
    assert release(allocations, "c1", "net1") == [], "the new sandbox has it"
    assert list(allocations) == [(first, Allocation("c2", "ns/a", "net1"))]
    assert release(allocations, "c2", "net1") == [first]


def test_what_a_late_add_took_over_is_the_living_sandboxs_again_after_the_late_ones_del() -> None:
    allocations = pool()
    first = assign(allocations, "living", "ns/a", "net1", "uid-1")
    assert assign(allocations, "late", "ns/a", "net1", "uid-1") == first
    assert allocations.held_by("living", "net1") == [first]
    assert release(allocations, "late", "net1") == []
    assert list(allocations) == [(first, Allocation("living", "ns/a", "net1", "uid-1"))]
    assert release(allocations, "living", "net1") == [first]


@pytest.mark.parametrize("order", list(permutations(["c1", "c2", "c3"])))
def test_an_address_is_free_when_every_sandbox_that_had_it_is_deleted_in_whatever_order(
    order: tuple[str, ...],
) -> None:
    allocations = pool()
    first, *_ = [assign(allocations, sandbox, "ns/a", "net1") for sandbox in ("c1", "c2", "c3")]
    assert [release(allocations, sandbox, "net1") for sandbox in order] == [[], [], [first]]


def test_a_sandbox_that_asks_again_is_the_last_that_asked() -> None:
    allocations = pool()
    first, *_ = [assign(allocations, sandbox, "ns/a", "net1") for sandbox in ("c1", "c2", "c1")]
    assert allocations.holder(first) == Allocation("c1", "ns/a", "net1", earlier=("c2",))


def test_only_so_many_earlier_sandboxes_are_remembered_the_last_ones() -> None:
    allocations = pool()
    first, *_ = [assign(allocations, f"c{number}", "ns/a", "net1") for number in range(12)]
    holder = allocations.holder(first)
    assert holder is not None
    assert holder.sandboxes == tuple(f"c{number}" for number in range(3, 12))


def test_an_entry_that_names_no_sandbox_leaves_none_to_wait_for() -> None:
    assert Allocation("c1", "ns/a", "net1").taking_over(Allocation("", "ns/a", "net1")).earlier == ()


@pytest.mark.parametrize(
    ("before", "known"),
    [
        (None, "mynet"),
        (Allocation("c1", "ns/a", "net1", configuration="mynet"), "mynet"),
        (Allocation("c1", "ns/a", "net1", configuration="other"), ""),
        (Allocation("c1", "ns/a", "net1"), ""),
        (Allocation("c2", "ns/a", "net1", configuration="other"), "mynet"),
        (Allocation("", "ns/a", "net1"), "mynet"),
        (Allocation("c2", "ns/a", "net1", earlier=("c1",)), ""),
    ],
    ids=[
        "nobody",
        "same",
        "another",
        "unknown",
        "itself by another",
        "no sandbox",
        "itself after one unknown",
    ],
)
def test_the_configuration_is_known_while_all_that_have_the_address_got_it_by_that_one(
    before: Allocation | None, known: str
) -> None:
    asking = Allocation("c2", "ns/a", "net1", configuration="mynet")
    assert asking.taking_over(before).configuration == known


def test_an_entry_that_names_a_sandbox_twice_is_read_as_if_it_did_once() -> None:
    allocations = pool(entries={"3": Allocation("c1", "ns/a", "net1", earlier=("c0", "c1", "c0"))})
    assert release(allocations, "c0", "net1") == []
    assert list(map(str, release(allocations, "c1", "net1"))) == ["10.0.0.3"]


def test_another_interface_of_the_pod_gets_another_address() -> None:
    allocations = pool()
    assert assign(allocations, "c1", "ns/a", "net1") != assign(allocations, "c1", "ns/a", "net2")


def test_a_released_address_is_the_lowest_free_again() -> None:
    allocations = pool()
    first = assign(allocations, "c1", "ns/a", "net1")
    assign(allocations, "c2", "ns/b", "net1")
    assert release(allocations, "c1", "net1") == [first]
    assert assign(allocations, "c3", "ns/c", "net1") == first


@pytest.mark.parametrize(("sandbox", "ifname"), [("c9", "net1"), ("c1", "net2")])
def test_releasing_the_unknown_frees_nothing(sandbox: str, ifname: str) -> None:
    allocations = pool()
    assign(allocations, "c1", "ns/a", "net1")
    assert release(allocations, sandbox, ifname) == []
    assert len(allocations) == 1


def test_a_sandbox_that_holds_several_addresses_gives_all_of_them_back() -> None:
    allocations = pool(entries={"3": Allocation("c1", "ns/a", "net1"), "2": Allocation("c1", "ns/b", "net1")})
    assert list(map(str, release(allocations, "c1", "net1"))) == ["10.0.0.2", "10.0.0.3"]
    assert len(allocations) == 0


def test_a_pod_that_holds_several_addresses_gets_the_lowest_again() -> None:
    allocations = pool(entries={"5": Allocation("c1", "ns/a", "net1"), "4": Allocation("c2", "ns/a", "net1")})
    assert str(assign(allocations, "c3", "ns/a", "net1")) == "10.0.0.4"
    assert allocations.render() == {
        "5": Allocation("c1", "ns/a", "net1"),
        "4": Allocation("c3", "ns/a", "net1", earlier=("c2",)),
    }


def test_a_full_range_says_so_and_may_be_retried() -> None:
    allocations = pool("10.0.0.0/30")
    assign(allocations, "c1", "ns/a", "net1")
    allocations.withhold(IPv4Address("10.0.0.2"))
    with pytest.raises(RangeFull) as refusal:
        assign(allocations, "c2", "ns/b", "net1")
    assert isinstance(refusal.value, RetryError)
    assert str(refusal.value) == (
        "no address of 10.0.0.0/30 is free for ns/b: of 2 that may be handed out, pods hold 1 and 1 are reserved "
        "elsewhere; wait until pods leave, or widen the range"
    )
    assert len(allocations) == 1, "a refusal changes nothing"


def test_a_withheld_address_is_given_to_nobody_until_it_is_restored() -> None:
    allocations = pool()
    first, second = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
    allocations.withhold(first)
    assert assign(allocations, "c1", "ns/a", "net1") == second
    allocations.restore(first)
    assert assign(allocations, "c2", "ns/b", "net1") == first


def test_a_held_address_may_be_withheld_and_restored_without_leaving_its_pod() -> None:
    allocations = pool()
    first = assign(allocations, "c1", "ns/a", "net1")
    allocations.withhold(first)
    assert assign(allocations, "c1", "ns/a", "net1") == first
    allocations.restore(first)
    assert assign(allocations, "c2", "ns/b", "net1") != first


def test_an_address_released_while_withheld_stays_withheld() -> None:
    allocations = pool()
    first = assign(allocations, "c1", "ns/a", "net1")
    allocations.withhold(first)
    release(allocations, "c1", "net1")
    assert assign(allocations, "c2", "ns/b", "net1") != first


def test_an_address_outside_of_the_network_cannot_be_withheld() -> None:
    with pytest.raises(InvalidRange):
        pool().withhold(IPv4Address("10.0.1.1"))


def test_a_held_address_that_the_range_no_longer_allows_stays_its_pods() -> None:
    narrowed = parse_range("10.0.0.0/24", start="10.0.0.100").range
    allocations = Allocations(narrowed, {"5": Allocation("c1", "ns/a", "net1")})
    assert str(assign(allocations, "c2", "ns/a", "net1")) == "10.0.0.5"
    assert str(assign(allocations, "c3", "ns/b", "net1")) == "10.0.0.100"


def test_a_key_beyond_64_bits_is_an_exact_address() -> None:
    allocations = pool("fd00:1::/48", {str(5 * 2**64 + 1): Allocation("c1", "ns/a", "net1")})
    assert release(allocations, "c1", "net1") == [IPv6Address("fd00:1:0:5::1")]


@pytest.mark.parametrize("key", ["8", "300", "-1", "abc", "", "1_0", "٣", " 1", "9" * 5000])
def test_a_key_that_is_no_offset_here_is_kept_and_holds_nothing(key: str) -> None:
    entry = Allocation("c1", "ns/a", "net1")
    allocations = pool(entries={key: entry})
    assert len(allocations) == 0
    assert release(allocations, "c1", "net1") == []
    assert str(assign(allocations, "c2", "ns/b", "net1")) == "10.0.0.1"
    assert allocations.render() == {key: entry, "1": Allocation("c2", "ns/b", "net1")}


def test_two_spellings_of_one_offset_are_one_entry() -> None:
    allocations = pool(
        entries={"3": Allocation("c1", "ns/a", "net1"), "03": Allocation("c2", "ns/b", "net1")}
    )
    assert allocations.render() == {"3": Allocation("c2", "ns/b", "net1")}
    assert release(allocations, "c1", "net1") == []


def test_a_pods_new_sandbox_keeps_the_address_when_the_uid_is_the_same() -> None:
    allocations = pool()
    first = assign(allocations, "c1", "ns/a", "net1", "uid-1", ours=False)
    assert assign(allocations, "c2", "ns/a", "net1", "uid-1", ours=False) == first
    assert allocations.holder(first) == Allocation("c2", "ns/a", "net1", "uid-1", ("c1",))


def test_a_pod_that_came_back_under_its_name_takes_nothing_from_the_one_that_may_live() -> None:
    allocations = pool()
    first = assign(allocations, "c1", "ns/db-0", "net1", "uid-1")
    assert assign(allocations, "c2", "ns/db-0", "net1", "uid-2") != first, "not even on the same node"
    assert allocations.holder(first) == Allocation("c1", "ns/db-0", "net1", "uid-1")


@pytest.mark.parametrize(("earlier", "later"), [("", "uid-1"), ("uid-1", ""), ("", "")])
@pytest.mark.parametrize("ours", [True, False])
def test_where_a_uid_is_not_known_an_earlier_sandbox_counts_if_it_was_this_nodes(
    earlier: str, later: str, ours: bool
) -> None:
    allocations = pool()
    first = assign(allocations, "c1", "ns/a", "net1", earlier)
    assert (assign(allocations, "c2", "ns/a", "net1", later, ours=ours) == first) is ours


def test_the_sandboxs_own_address_goes_before_any_other_of_its_pod() -> None:
    allocations = pool(entries={"1": Allocation("c1", "ns/a", "net1"), "2": Allocation("c2", "ns/a", "net1")})
    assert str(assign(allocations, "c2", "ns/a", "net1")) == "10.0.0.2"


def test_bounds_are_those_of_the_call_as_several_configurations_share_a_pool() -> None:
    allocations = pool("10.0.0.0/24")
    narrow = parse_range("10.0.0.0/24", start="10.0.0.100").range
    asking = Allocation("c1", "ns/a", "net1")
    assert str(allocations.choose(asking, narrow, is_ours=nobody)) == "10.0.0.100"
    assert str(allocations.choose(asking, allocations.range, is_ours=nobody)) == "10.0.0.1"


def test_a_preferred_address_is_given_though_withheld_unless_somebody_has_it_or_it_is_out_of_bounds() -> None:
    allocations = pool("10.0.0.0/24")
    seventh, outside = IPv4Address("10.0.0.7"), IPv4Address("10.0.0.255")
    allocations.withhold(seventh)
    asking = Allocation("c1", "ns/a", "net1")

    def chosen(*preferred: IPAddress) -> str:
        return str(allocations.choose(asking, allocations.range, is_ours=nobody, preferred=preferred))

    assert chosen(outside, seventh) == "10.0.0.7"
    allocations.put(seventh, Allocation("c2", "ns/b", "net1"))
    assert chosen(outside, seventh) == "10.0.0.1"


def test_what_an_interface_holds_is_told_in_address_order() -> None:
    entries = {str(offset): Allocation("c1", f"ns/{offset}", "net1") for offset in (5, 3, 4)}
    allocations = pool(entries=entries)
    assert list(map(str, allocations.held_by("c1", "net1"))) == ["10.0.0.3", "10.0.0.4", "10.0.0.5"]
    assert allocations.held_by("c1", "net2") == []


def test_a_dropped_address_is_free_and_has_no_holder() -> None:
    allocations = pool()
    first = assign(allocations, "c1", "ns/a", "net1")
    allocations.drop(first)
    assert allocations.holder(first) is None
    allocations.drop(first)
    assert assign(allocations, "c2", "ns/b", "net1") == first


ASKING = Allocation("c1", "ns/a", "net1", "uid-1")


@pytest.mark.parametrize(
    ("found", "same"),
    [
        (Allocation("c1", "ns/a", "net1", "uid-1"), True),
        (Allocation("c1", "ns/a", "net1"), True),
        (Allocation("c0", "ns/a", "net1", "uid-1"), True),
        (Allocation("", "ns/a", "net1", "uid-1"), True),
        (Allocation("c0", "ns/a", "net1", "uid-0"), False),
        (Allocation("c0", "ns/a", "net1"), False),
        (Allocation("", "ns/a", "net1"), False),
        (Allocation("c1", "ns/a", "net2", "uid-1"), False),
        (Allocation("c0", "ns/b", "net1", "uid-1"), False),
    ],
)
def test_a_holder_is_the_same_by_its_sandbox_or_by_its_pods_uid(found: Allocation, same: bool) -> None:
    assert is_same_holder(found, ASKING) is same


def test_without_a_uid_or_a_sandbox_nobody_is_the_same() -> None:
    assert not is_same_holder(Allocation("", "ns/a", "net1"), Allocation("", "ns/a", "net1"))


PODS = st.sampled_from(["ns/a", "ns/b", "ns/c", "ns/d"])
SANDBOXES = st.sampled_from(["c1", "c2", "c3"])
INTERFACES = st.sampled_from(["net1", ""])
OFFSETS = st.integers(0, 15)


class AgreesWithAWalkOverTheList(RuleBasedStateMachine):
    """Whereabouts walks its list of reservations; so does this oracle."""

    def __init__(self) -> None:
        super().__init__()
        self.range = parse_range("10.0.0.0/28", excludes=["10.0.0.2/31"], gateway="10.0.0.5").range
        self.entries: dict[IPAddress, Allocation] = {}
        self.withheld: set[IPAddress] = set()
        self.subject = Allocations(self.range)

    @initialize(
        entries=st.dictionaries(
            OFFSETS.map(str), st.builds(Allocation, SANDBOXES, PODS, INTERFACES), max_size=6
        )
    )
    def found(self, entries: dict[str, Allocation]) -> None:
        self.subject = Allocations(self.range, entries)
        self.entries = {ip_address("10.0.0.0") + int(key): entry for key, entry in entries.items()}

    @rule(sandbox=SANDBOXES, podref=PODS, ifname=INTERFACES)
    def assign(self, sandbox: str, podref: str, ifname: str) -> None:
        held = [
            address
            for address, entry in self.entries.items()
            if sandbox in entry.sandboxes and entry.ifname == ifname
        ] or [
            address
            for address, entry in self.entries.items()
            if (entry.podref, entry.ifname) == (podref, ifname)
        ]
        free = [
            address
            for address in self.range.network
            if address in self.range and address not in self.entries and address not in self.withheld
        ]
        if not held and not free:
            with pytest.raises(RangeFull):
                assign(self.subject, sandbox, podref, ifname)
            return
        expected = min(held, key=int) if held else free[0]
        assert assign(self.subject, sandbox, podref, ifname) == expected
        before = self.entries.get(expected)
        self.entries[expected] = Allocation(sandbox, podref, ifname).taking_over(before)

    @rule(sandbox=SANDBOXES, ifname=INTERFACES)
    def release(self, sandbox: str, ifname: str) -> None:
        freed = []
        for address, entry in tuple(self.entries.items()):
            if sandbox in entry.sandboxes and entry.ifname == ifname:
                del self.entries[address]
                if left := entry.without(sandbox):
                    self.entries[address] = left
                else:
                    freed.append(address)
        assert release(self.subject, sandbox, ifname) == sorted(freed, key=int)

    @rule(offset=OFFSETS)
    def withhold(self, offset: int) -> None:
        self.subject.withhold(self.range.address(offset))
        self.withheld.add(self.range.address(offset))

    @rule(offset=OFFSETS)
    def restore(self, offset: int) -> None:
        self.subject.restore(self.range.address(offset))
        self.withheld.discard(self.range.address(offset))

    @rule()
    def write_and_read_again(self) -> None:
        self.subject = Allocations(self.range, self.subject.render())
        for address in self.withheld:
            self.subject.withhold(address)

    @invariant()
    def holds_the_same_in_address_order(self) -> None:
        assert list(self.subject) == sorted(self.entries.items(), key=lambda item: int(item[0]))


TestAgreesWithAWalkOverTheList = AgreesWithAWalkOverTheList.TestCase
TestAgreesWithAWalkOverTheList.settings = examples(50)
