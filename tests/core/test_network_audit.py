"""What is broken in secondary networks is found, and what is only under way is not."""

from ipaddress import ip_address, ip_network

from msgspec.structs import replace

from podtide.core.audit.invariants import Violation
from podtide.core.audit.networks import (
    NetworkPicture,
    PoolView,
    ReservationView,
    SliceView,
    audit_networks,
    audit_settled_networks,
)
from podtide.core.networks.allocations import Allocation


def holder(pod: str, uid: str = "") -> Allocation:
    return Allocation(f"sandbox-{pod}", f"ns/{pod}", "net1", uid)


def pool(
    name: str,
    cidr: str,
    held: dict[str, str] | None = None,
    *,
    network: str = "blue",
    guarded_as: str | None = None,
) -> PoolView:
    return PoolView(
        pool=name,
        network=network,
        range=ip_network(cidr),
        holders={ip_address(ip): holder(pod) for ip, pod in (held or {}).items()},
        guarded_as=guarded_as,
    )


def reservation(ip: str, pod: str, guarded_as: str = "blue") -> ReservationView:
    return ReservationView(
        name=f"{guarded_as}-{ip}", guarded_as=guarded_as, address=ip_address(ip), holder=holder(pod)
    )


def slice_(node: str, cidr: str, network: str = "blue") -> SliceView:
    return SliceView(network=network, node=node, slice=ip_network(cidr))


def found(violations: tuple[Violation, ...]) -> list[tuple[int, str]]:
    return [(violation.invariant, violation.subject) for violation in violations]


def test_a_network_in_order_is_clean() -> None:
    picture = NetworkPicture(
        pools=(
            pool("blue-a", "10.0.0.0/28", {"10.0.0.1": "web"}, guarded_as="blue"),
            pool("blue-b", "10.0.0.16/28", {"10.0.0.17": "db"}, guarded_as="blue"),
        ),
        reservations=(reservation("10.0.0.1", "web"), reservation("10.0.0.17", "db")),
        slices=(slice_("a", "10.0.0.0/28"), slice_("b", "10.0.0.16/28")),
        pods={"ns/web": frozenset({"1"}), "ns/db": frozenset({"2"})},
    )
    assert audit_settled_networks(picture) == ()


def test_an_address_held_in_two_pools_of_a_network_is_found_once() -> None:
    picture = NetworkPicture(
        pools=(
            pool("blue-a", "10.0.0.0/28", {"10.0.0.1": "web"}, guarded_as="blue"),
            pool("blue-b", "10.0.0.0/24", {"10.0.0.1": "db"}, guarded_as="blue"),
        ),
        reservations=(reservation("10.0.0.1", "web"),),
    )
    first, second = audit_networks(picture)
    assert str(first) == (
        "invariant 1: 10.0.0.1 is held by ns/web in pool blue-a and by ns/db in pool blue-b"
    )
    assert second.invariant == 2  # and one of the two is not reserved


def test_two_sandboxes_of_one_pod_may_have_its_address_in_two_pools_until_there_is_peace() -> None:
    old, new = (Allocation(sandbox, "ns/web", "net1", "uid-1") for sandbox in ("c1", "c2"))
    address = ip_address("10.0.0.1")
    before = replace(pool("blue-a", "10.0.0.0/28"), holders={address: old})
    after = replace(pool("blue-10.0.0.0-24", "10.0.0.0/24"), holders={address: new})
    assert audit_networks(NetworkPicture(pools=(before, after))) == ()
    assert found(audit_settled_networks(NetworkPicture(pools=(before, after)))) == [(1, "10.0.0.1")]
    another = replace(after, holders={address: replace(new, pod_uid="uid-2")})
    assert found(audit_networks(NetworkPicture(pools=(before, another)))) == [(1, "10.0.0.1")]


def test_guarded_pools_of_two_networks_with_one_name_must_not_share_an_address() -> None:
    one = pool("10.0.0.0-24", "10.0.0.0/24", {"10.0.0.1": "web"}, network="one", guarded_as="")
    other = pool("10.0.0.0-16", "10.0.0.0/16", {"10.0.0.1": "db"}, network="other", guarded_as="")
    assert (1, "10.0.0.1") in found(audit_networks(NetworkPicture(pools=(one, other))))


def test_networks_that_have_nothing_to_do_with_each_other_may_use_the_same_addresses() -> None:
    one = pool("10.0.0.0-24", "10.0.0.0/24", {"10.0.0.1": "web"}, network="one")
    other = pool("10.0.0.0-16", "10.0.0.0/16", {"10.0.0.1": "db"}, network="other")
    nobodys = pool("left", "10.0.0.0/8", {"10.0.0.1": "db"}, network="")
    assert audit_networks(NetworkPicture(pools=(one, other, nobodys, replace(nobodys, pool="too")))) == ()


def test_slices_of_two_nodes_that_overlap_are_found() -> None:
    picture = NetworkPicture(
        slices=(
            slice_("a", "10.0.0.0/24"),
            slice_("b", "10.0.0.64/26"),
            slice_("c", "10.0.0.128/26"),
            slice_("d", "10.0.1.0/24"),
        )
    )
    assert found(audit_networks(picture)) == [(1, "10.0.0.128/26"), (1, "10.0.0.64/26")]
    assert audit_networks(picture)[0].words == (
        "slice 10.0.0.128/26 of node c overlaps slice 10.0.0.0/24 of node a in network blue"
    )


def test_a_nodes_own_slices_and_those_of_other_networks_and_families_do_not_overlap() -> None:
    picture = NetworkPicture(
        slices=(
            slice_("a", "10.0.0.0/24"),
            slice_("a", "10.0.0.0/26"),
            slice_("b", "10.0.0.0/24", network="red"),
            slice_("c", "::/96"),
        )
    )
    assert audit_networks(picture) == ()


def test_an_address_that_is_held_and_not_reserved_is_never_right() -> None:
    guarded = pool("blue-a", "10.0.0.0/28", {"10.0.0.1": "web", "10.0.0.2": "db"}, guarded_as="blue")
    picture = NetworkPicture(pools=(guarded,), reservations=(reservation("10.0.0.1", "thief"),))
    assert [str(violation) for violation in audit_networks(picture)] == [
        "invariant 2: 10.0.0.1 is held by ns/web in pool blue-a, but reserved for ns/thief",
        "invariant 2: 10.0.0.2 is held by ns/db in pool blue-a, but not reserved",
    ]


def test_a_reservation_alone_is_an_add_under_way_and_wrong_only_when_there_is_peace() -> None:
    picture = NetworkPicture(
        pools=(pool("blue-a", "10.0.0.0/28", guarded_as="blue"),),
        reservations=(reservation("10.0.0.1", "web"),),
    )
    assert audit_networks(picture) == ()
    [violation] = audit_settled_networks(picture)
    assert violation == Violation(
        2, "10.0.0.1", "10.0.0.1 is reserved for ns/web (blue-10.0.0.1), but no pool has it so"
    )


def test_a_reservation_may_outlive_the_definition_that_its_pool_is_guarded_by() -> None:
    orphan = pool("10.0.0.0-28", "10.0.0.0/28", {"10.0.0.1": "web"}, network="")
    theirs = reservation("10.0.0.1", "web", guarded_as="")
    assert audit_settled_networks(NetworkPicture(pools=(orphan,), reservations=(theirs,))) == ()
    another = reservation("10.0.0.1", "db", guarded_as="")
    assert found(audit_settled_networks(NetworkPicture(pools=(orphan,), reservations=(another,)))) == [
        (2, "10.0.0.1")
    ]


def test_what_is_held_for_a_pod_that_is_gone_is_a_leak_when_there_is_peace() -> None:
    picture = NetworkPicture(
        pools=(pool("blue-a", "10.0.0.0/28", {"10.0.0.1": "web"}, guarded_as="blue"),),
        reservations=(reservation("10.0.0.1", "web"),),
        pods={},
    )
    assert audit_networks(picture) == ()
    assert found(audit_settled_networks(picture)) == [(6, "10.0.0.1"), (6, "10.0.0.1")]
    assert audit_settled_networks(replace(picture, pods=None)) == ()


def test_a_pod_of_the_same_name_is_another_where_the_uid_tells() -> None:
    held = {ip_address("10.0.0.1"): holder("web", "1")}
    picture = NetworkPicture(pools=(replace(pool("blue-a", "10.0.0.0/28"), holders=held),), pods={})
    assert found(audit_settled_networks(replace(picture, pods={"ns/web": frozenset({"2"})}))) == [
        (6, "10.0.0.1")
    ]
    assert audit_settled_networks(replace(picture, pods={"ns/web": frozenset({"1", "hash"})})) == ()
