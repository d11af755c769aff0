"""The book of secondary networks finds what is broken in the very write that breaks it, and nothing that is in order."""

from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.metadata_keys import (
    NETWORK_ANNOTATION,
    NODE_ANNOTATION,
    POOL_UID_ANNOTATION,
    SYSTEM_NAMESPACE,
)
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.simulation.checks.network_book import NetworkBook
from podtide.simulation.nodes.kubelet import Sandbox
from podtide.simulation.nodes.network_definitions import definitions
from podtide.simulation.trace import ClusterWrite

SHARED, OVERLAPPING = "10.20.0.0-22", "10.20.0.0-23"


def a_book() -> NetworkBook:
    return NetworkBook(definitions(4, nodes=3))


def write(book: NetworkBook, item: Resource) -> None:
    book.hear(entry(type(item), item.metadata.name, item))


def delete(book: NetworkBook, kind: type[Resource], name: str) -> None:
    book.hear(entry(kind, name, None))


def entry(kind: type[Resource], name: str, item: Resource | None) -> ClusterWrite:
    return ClusterWrite(at=0.0, program="test", verb="write", kind=kind.api.kind, name=name, item=item)


def pool(
    name: str, range_: str, node: str = "", network: str = "", *, confirmed: bool = True, **held: str
) -> IPPool:
    """A pool; `held` has pods by offset."""
    annotations = {NODE_ANNOTATION: node, NETWORK_ANNOTATION: network} if node else {}
    if confirmed:
        annotations[POOL_UID_ANNOTATION] = f"uid of {name}"
    allocations = {
        key.removeprefix("_"): IPAllocation(id=f"box-of-{pod}", podref=pod, ifname="net2")
        for key, pod in held.items()
    }
    return IPPool(
        metadata=ObjectMeta(
            name=name, namespace=SYSTEM_NAMESPACE, uid=f"uid of {name}", annotations=annotations
        ),
        spec=IPPoolSpec(range=range_, allocations=allocations),
    )


def reservation(address: str, pod: str) -> OverlappingRangeIPReservation:
    return OverlappingRangeIPReservation(
        metadata=ObjectMeta(name=address, namespace=SYSTEM_NAMESPACE),
        spec=OverlappingRangeIPReservationSpec(podref=pod),
    )


def slices(**entries: str) -> NodeSlicePool:
    return NodeSlicePool(
        metadata=ObjectMeta(name="sliced", namespace=SYSTEM_NAMESPACE),
        spec=NodeSlicePoolSpec(range="10.10.0.0/22", slice_size="/24"),
        status=NodeSlicePoolStatus(
            allocations=[
                NodeSliceAllocation(node_name=node, slice_range=cut) for node, cut in entries.items()
            ]
        ),
    )


def runs(book: NetworkBook, pod: str, address: str) -> None:
    """The pod's sandbox was answered this address of the shared network."""
    sandbox = Sandbox(f"box-of-{pod}", pod)
    book.sandbox_changed({"net2": (address,)}, sandbox, Sandbox(sandbox.id, pod, ("10.0.0.1",)))


def words(book: NetworkBook) -> list[str]:
    return [violation.words for violation in book.findings]


def test_what_is_reserved_then_held_then_given_is_in_order_and_so_is_its_way_back() -> None:
    book = a_book()
    write(book, reservation("10.20.0.5", "a/web"))
    write(book, pool(SHARED, "10.20.0.0/22", _5="a/web"))
    runs(book, "a/web", "10.20.0.5")
    assert {(str(address), pod) for address, pod in book.had_by_the_living()} == {("10.20.0.5", "a/web")}
    book.gone(Sandbox("box-of-a/web", "a/web"))
    write(book, pool(SHARED, "10.20.0.0/22"))
    delete(book, OverlappingRangeIPReservation, "10.20.0.5")
    assert words(book) == []
    assert book.had_by_the_living() == set()


def test_an_answer_before_the_write_is_found() -> None:
    book = a_book()
    runs(book, "a/web", "10.20.0.5")
    assert words(book) == ["10.20.0.5 was given to pod a/web, and no pool has it so"]


def test_an_address_that_two_living_pods_have_is_found() -> None:
    book = a_book()
    write(book, reservation("10.20.0.5", "a/web"))
    write(book, pool(SHARED, "10.20.0.0/22", _5="a/web"))
    runs(book, "a/web", "10.20.0.5")
    runs(book, "a/db", "10.20.0.5")
    assert "10.20.0.5 is had by pod a/db, and by pod a/web" in words(book)


def test_an_address_that_is_taken_from_under_a_pod_is_found() -> None:
    book = a_book()
    write(book, reservation("10.20.0.5", "a/web"))
    write(book, pool(SHARED, "10.20.0.0/22", _5="a/web"))
    runs(book, "a/web", "10.20.0.5")
    write(book, pool(SHARED, "10.20.0.0/22"))
    assert words(book) == [f"10.20.0.5 is had by pod a/web, and pool {SHARED} lost it"]


def test_one_address_in_two_pools_that_overlap_is_found() -> None:
    book = a_book()
    write(book, reservation("10.20.0.5", "a/web"))
    write(book, pool(SHARED, "10.20.0.0/22", _5="a/web"))
    write(book, pool(OVERLAPPING, "10.20.0.0/23", _5="a/web"))
    assert words(book) == [f"10.20.0.5 is held in pools {SHARED} and {OVERLAPPING}"]


def test_what_is_held_and_not_reserved_is_found_and_so_is_what_is_reserved_no_more() -> None:
    book = a_book()
    write(book, pool(SHARED, "10.20.0.0/22", _5="a/web"))
    write(book, reservation("10.20.0.5", "a/web"))
    delete(book, OverlappingRangeIPReservation, "10.20.0.5")
    assert words(book) == [
        f"10.20.0.5 is held by a/web in pool {SHARED}, and not reserved so",
        f"10.20.0.5 is held by a/web in pool {SHARED}, and reserved no more",
    ]


def test_a_pool_before_its_entry_and_an_entry_freed_before_its_pool_are_found() -> None:
    book = a_book()
    node_pool = pool("sliced-n1", "10.10.0.0/24", node="n1", network="sliced")
    write(book, node_pool)
    write(book, slices(n1="10.10.0.0/24"))
    write(book, slices())
    assert words(book) == [
        "10.10.0.0/24 is the slice of pool sliced-n1, and no list has it so",
        "10.10.0.0/24 is freed, and pool sliced-n1 has it still",
    ]


def test_an_inert_pool_is_nobodys_and_one_that_is_used_is_found() -> None:
    book = a_book()
    write(book, pool("sliced-n1", "10.10.0.0/24", node="n1", network="sliced", confirmed=False))
    write(book, slices(n2="10.10.0.0/24"))
    assert words(book) == []
    write(book, pool("sliced-n1", "10.10.0.0/24", node="n1", network="sliced", confirmed=False, _5="a/web"))
    assert "10.10.0.0/24 is of pool sliced-n1, which is used and was never confirmed" in words(book)


def test_slices_that_overlap_are_found() -> None:
    book = a_book()
    write(book, slices(n1="10.10.0.0/24", n2="10.10.0.0/24"))
    assert [violation.invariant for violation in book.findings] == [1]


def test_an_entry_before_its_pool_and_a_pool_deleted_before_its_entry_are_in_order() -> None:
    book = a_book()
    write(book, slices(n1="10.10.0.0/24"))
    write(book, pool("sliced-n1", "10.10.0.0/24", node="n1", network="sliced"))
    delete(book, IPPool, "sliced-n1")
    write(book, slices())
    assert words(book) == []


def test_an_add_whose_reservation_went_with_a_restore_may_be_written_but_not_answered() -> None:
    book = a_book()
    write(book, reservation("10.20.0.5", "a/web"))
    book.restored([pool(SHARED, "10.20.0.0/22")])
    write(book, pool(SHARED, "10.20.0.0/22", _5="a/web"))
    assert words(book) == []
    runs(book, "a/web", "10.20.0.5")
    assert words(book) == ["10.20.0.5 was given to pod a/web, and is not reserved so"]


def test_what_such_an_add_left_in_its_pool_is_nobodys_when_another_pool_gives_it() -> None:
    book = a_book()
    write(book, reservation("10.20.0.5", "a/web"))
    book.restored([pool(SHARED, "10.20.0.0/22")])
    write(book, pool(SHARED, "10.20.0.0/22", _5="a/web"))
    write(book, reservation("10.20.0.5", "a/db"))
    write(book, pool(OVERLAPPING, "10.20.0.0/23", _5="a/db"))
    assert words(book) == []


def test_an_add_that_is_reserved_again_after_a_restore_may_be_answered() -> None:
    book = a_book()
    write(book, reservation("10.20.0.5", "a/web"))
    book.restored([pool(SHARED, "10.20.0.0/22")])
    write(book, pool(SHARED, "10.20.0.0/22", _5="a/web"))
    write(book, reservation("10.20.0.5", "a/web"))
    runs(book, "a/web", "10.20.0.5")
    assert words(book) == []
    write(book, pool(SHARED, "10.20.0.0/22", _5="a/web", _6="a/db"))
    assert words(book) == ["10.20.0.6 is held by a/db in pool 10.20.0.0-22, and not reserved so"]
