"""AddressSet against a plain set, at sizes from nothing to all of IPv6."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from examples import examples
from podtide.core import address_set
from podtide.core.address_set import AddressSet

SMALL = 5000
"""Sizes up to here can be searched one by one."""


def naive_lowest_absent(members: set[int], size: int, start: int) -> int | None:
    number = start
    while number in members:
        number += 1
    return number if number < size else None


class AgreesWithAPlainSet(RuleBasedStateMachine):
    """Random operations near each other and near the edges of masks, where levels fill and empty again."""

    def __init__(self) -> None:
        super().__init__()
        self.members: set[int] = set()

    @initialize(
        size=st.one_of(
            st.integers(1, SMALL),
            st.sampled_from([1 << 10, 1 << 20, (1 << 20) + 1, 1 << 24, 1 << 64, 1 << 128]),
            st.integers(SMALL, 1 << 128),
        )
    )
    def start(self, size: int) -> None:
        self.size = size
        self.subject = AddressSet(size)

    def near(self, data: st.DataObject) -> int:
        edge = data.draw(st.sampled_from([0, 1024, 1 << 20, self.size // 2, self.size - 1]))
        return min(max(edge + data.draw(st.integers(-3, 3)), 0), self.size - 1)

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        number = self.near(data)
        self.subject.add(number)
        self.members.add(number)

    @rule(data=st.data(), count=st.integers(1, 1100))
    def add_a_run(self, data: st.DataObject, count: int) -> None:
        first = self.near(data)
        for number in range(first, min(first + count, self.size)):
            self.subject.add(number)
            self.members.add(number)

    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        number = self.near(data)
        self.subject.discard(number)
        self.members.discard(number)

    @rule()
    def discard_everything(self) -> None:
        for number in list(self.members):
            self.subject.discard(number)
        self.members.clear()
        assert all(not level for level in self.subject._levels), "masks without bits are dropped"

    @rule(data=st.data())
    def search(self, data: st.DataObject) -> None:
        start = self.near(data)
        assert self.subject.lowest_absent(start) == naive_lowest_absent(self.members, self.size, start)
        assert (start in self.subject) == (start in self.members)

    @invariant()
    def counts_and_order_agree(self) -> None:
        if hasattr(self, "subject"):
            assert len(self.subject) == len(self.members)
            assert list(self.subject) == sorted(self.members)
            assert self.subject.lowest_absent() == naive_lowest_absent(self.members, self.size, 0)


TestAgreesWithAPlainSet = AgreesWithAPlainSet.TestCase
TestAgreesWithAPlainSet.settings = examples(50, stateful_step_count=25)


@pytest.fixture
def four_bit_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With masks of four bits, three hundred numbers need five levels, and all of them come to be used."""
    monkeypatch.setattr(address_set, "_SHIFT", 2)
    monkeypatch.setattr(address_set, "_WIDTH", 4)
    monkeypatch.setattr(address_set, "_BIT", 3)
    monkeypatch.setattr(address_set, "_FULL", 15)


@pytest.mark.usefixtures("four_bit_masks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 300), st.data())
def test_every_level_fills_and_empties_as_the_lowest_does(size: int, data: st.DataObject) -> None:
    members = set(range(data.draw(st.integers(0, size)), size))
    subject = AddressSet(size, members)
    for number in data.draw(st.lists(st.integers(0, size - 1), max_size=40)):
        if number in members:
            subject.discard(number)
            members.discard(number)
        else:
            subject.add(number)
            members.add(number)
        start = data.draw(st.integers(0, size - 1))
        assert subject.lowest_absent(start) == naive_lowest_absent(members, size, start)
    assert list(subject) == sorted(members)


@pytest.mark.usefixtures("four_bit_masks")
@pytest.mark.parametrize("gap", [0, 1, 255, 256, 2500, 4095])
def test_a_search_looks_into_each_level_twice_at_most_whatever_is_taken(
    gap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = AddressSet(4096, range(4096))
    subject.discard(gap)
    looks = Counter[int]()
    look = AddressSet._zeroes

    def counted(self: AddressSet, level: int, node: int) -> int:
        looks[level] += 1
        return look(self, level, node)

    monkeypatch.setattr(AddressSet, "_zeroes", counted)
    for start in range(0, 4096, 5):
        looks.clear()
        assert subject.lowest_absent(start) == (gap if start <= gap else None)
        assert max(looks.values()) <= 2


@given(st.integers(1, SMALL), st.data())
def test_a_full_set_of_any_size_has_one_gap_after_one_discard(size: int, data: st.DataObject) -> None:
    subject = AddressSet(size, range(size))
    assert subject.lowest_absent() is None
    gap = data.draw(st.integers(0, size - 1))
    subject.discard(gap)
    assert subject.lowest_absent() == gap
    assert subject.lowest_absent(gap) == gap
    assert subject.lowest_absent(gap + 1) is None


def test_a_level_that_is_full_to_its_end_sends_the_search_beyond_the_size_and_home_empty() -> None:
    size = 3 * 1024
    subject = AddressSet(size, range(1024, size))
    assert subject.lowest_absent(1024) is None
    assert subject.lowest_absent(1023) == 1023


def test_searching_from_the_size_on_finds_nothing() -> None:
    assert AddressSet(10).lowest_absent(10) is None
    assert AddressSet(0).lowest_absent() is None


def test_repeating_an_add_or_discard_changes_nothing() -> None:
    subject = AddressSet(10, [3, 3])
    assert len(subject) == 1
    subject.discard(4)
    subject.discard(99)
    assert list(subject) == [3]


@pytest.mark.parametrize("number", [-1, 10, 1 << 130])
def test_numbers_beyond_the_size_are_no_members_and_cannot_be_added(number: int) -> None:
    subject = AddressSet(10, range(10))
    assert number not in subject
    with pytest.raises(ValueError, match="outside of this set's 0 to 9"):
        subject.add(number)


def test_memory_follows_the_members_and_not_the_size() -> None:
    subject = AddressSet(1 << 128, [1 << 127])
    assert sum(len(level) for level in subject._levels) == 1
