"""The copy of a pool: how large its object is at any time, and that what came to nothing is no change."""

from ipaddress import ip_address
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from podtide.agent.networks.pool_object import copy_of, with_entries
from podtide.core.networks.allocations import Allocation
from podtide.resources.base import ObjectMeta
from podtide.resources.codec import decode, encode
from podtide.resources.ip_pool import IPPool, IPPoolSpec

NAMES = st.text("abc-0", min_size=1, max_size=70)
EARLIER = st.lists(NAMES, max_size=3).map(tuple)
MAYBE = st.just("") | NAMES
HOLDERS = st.none() | st.builds(Allocation, NAMES, NAMES, NAMES, MAYBE, EARLIER, MAYBE)


UNCERTAIN = len('"f:poduid":{},') + len(",,")
"""What may be counted for an entry and not be stored."""
UNCERTAIN_COUNT = 60
"""The same of the pool's count: its digits, and who owns it."""


def kept_beside(written: bytes) -> dict[str, Any]:
    """What an API server writes down of who owns the fields of an object's entries (managedFields, FieldsV1)."""
    entries = json.decode(written)["spec"]["allocations"]
    return {f"f:{key}": {".": {}} | {f"f:{field}": {} for field in entry} for key, entry in entries.items()}


def empty() -> IPPool:
    return IPPool(
        metadata=ObjectMeta(name="p", namespace="n"), spec=IPPoolSpec(range="fd00::/48", allocations={})
    )


@given(st.lists(st.tuples(st.integers(1, 2**70), HOLDERS), max_size=20))
def test_the_size_that_is_followed_is_that_of_the_object(
    changes: list[tuple[int, Allocation | None]],
) -> None:
    copy = copy_of(empty())
    for offset, holder in changes:
        copy.set_holder(ip_address("fd00::") + offset, holder)
    written = encode(with_entries(empty(), copy, 2**48 - 2))
    read = copy_of(decode(IPPool, written))
    stored = len(written) + len(json.encode(kept_beside(written))) - len("{}")
    for each in (copy, read):
        assert 0 <= each.size - stored <= UNCERTAIN * len(copy.allocations) + UNCERTAIN_COUNT


def test_what_was_undone_is_no_change() -> None:
    copy = copy_of(empty())
    address, holder = ip_address("fd00::5"), Allocation("c1", "ns/a", "net1")
    copy.set_holder(address, holder)
    changed = [copy.is_changed]
    copy.set_holder(address, None)
    changed.append(copy.is_changed)
    assert changed == [True, False]
    assert with_entries(empty(), copy, 2**48 - 2).spec == empty().spec


def test_what_was_written_is_no_change_any_more() -> None:
    copy = copy_of(empty())
    address, holder = ip_address("fd00::5"), Allocation("c1", "ns/a", "net1")
    copy.set_holder(address, holder)
    copy.written()
    changed = [copy.is_changed]
    for next_holder in (holder, None):
        copy.set_holder(address, next_holder)
        changed.append(copy.is_changed)
    assert changed == [False, False, True]
