"""Masks of sixteen addresses."""

from hypothesis import given
from hypothesis import strategies as st

from podtide.core.intervals import Interval
from podtide.core.subnet.chunks import CHUNK_SIZE, WHOLE, lowest, mask_between, masks_of, positions

masks = st.integers(0, WHOLE)


@given(masks)
def test_positions_are_the_bits_of_the_mask_lowest_first(mask: int) -> None:
    assert list(positions(mask)) == [bit for bit in range(CHUNK_SIZE) if mask >> bit & 1]


@given(masks, st.integers(0, 20))
def test_the_lowest_of_a_mask_are_its_first_positions(mask: int, count: int) -> None:
    assert list(positions(lowest(mask, count))) == list(positions(mask))[:count]


@given(st.integers(-40, 40), st.integers(-40, 40))
def test_a_mask_between_two_positions_has_all_of_the_chunk_that_lie_there(first: int, last: int) -> None:
    assert list(positions(mask_between(first, last))) == [
        bit for bit in range(CHUNK_SIZE) if first <= bit <= last
    ]


def test_a_whole_chunk_has_sixteen_addresses() -> None:
    assert mask_between(0, CHUNK_SIZE - 1) == WHOLE
    assert len(list(positions(WHOLE))) == 16


def test_masks_of_intervals_have_the_numbers_in_their_chunks() -> None:
    found = masks_of([Interval(3, 3), Interval(14, 33)])
    numbers = {chunk * CHUNK_SIZE + at for chunk, mask in found.items() for at in positions(mask)}
    assert numbers == {3, *range(14, 34)}
