"""Between which bounds the batch is decided, for one cluster and for several."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.strategies import thresholds
from podtide.core.errors import InvalidScaler
from podtide.core.subnet.batch_bounds import BatchBounds, check_fit, merge_bounds
from podtide.core.subnet.exhaustion import Thresholds

HALF = Fraction(1, 2)


@st.composite
def all_bounds(draw: st.DrawFn) -> BatchBounds:
    batch = draw(st.integers(1, 64))
    return BatchBounds(
        batch,
        draw(st.sampled_from([Fraction(0), Fraction(1, 4), HALF, Fraction(2)])),
        draw(thresholds()),
        draw(st.integers(1, batch)),
        draw(st.none() | st.integers(1, 64)),
    )


def batches(bounds: BatchBounds) -> list[int]:
    return [rung.batch for rung in bounds.rungs]


def test_rungs_are_powers_of_two_up_to_the_largest_batch_and_that_batch() -> None:
    assert batches(BatchBounds(16)) == [1, 2, 4, 8, 16]
    assert batches(BatchBounds(10)) == [1, 2, 4, 8, 10]
    assert batches(BatchBounds(17)) == [1, 2, 4, 8, 16, 17]
    assert batches(BatchBounds(2)) == [1, 2]
    assert batches(BatchBounds(1)) == [1]


def test_the_lowest_batch_and_a_pin_are_rungs_whatever_they_are() -> None:
    assert batches(BatchBounds(16, min_batch=6)) == [1, 2, 4, 6, 8, 16]
    pinned = BatchBounds(16, fixed=6)
    assert (batches(pinned), pinned.top, pinned.lowest) == ([1, 2, 4, 6], 6, 6)


def test_at_batch_1_no_more_than_one_address_is_kept_free() -> None:
    four = Fraction(4)
    assert [rung.buffer for rung in BatchBounds(4, four).rungs] == [1, four, four]
    assert [rung.buffer for rung in BatchBounds(2, HALF).rungs] == [HALF, HALF]


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"batch": 0}, "batch 0 is too small"),
        ({"buffer": Fraction(-1)}, "buffer -1 is negative"),
        ({"min_batch": 17}, "minBatch 17 is refused: give a number from 1 to the largest batch, which is 16"),
        ({"min_batch": 0}, "minBatch 0 is refused"),
        ({"fixed": 0}, "fixed 0 is too small"),
    ],
)
def test_bounds_that_no_pool_can_be_sized_by_are_refused(stated: dict[str, int], words: str) -> None:
    with pytest.raises(InvalidScaler, match=words):
        BatchBounds(**stated)  # type: ignore[arg-type] # a table of several types


def test_what_no_node_could_hold_is_refused() -> None:
    check_fit(BatchBounds(250), 250)
    with pytest.raises(InvalidScaler, match="batch 251 is more than the 250 addresses a node may have"):
        check_fit(BatchBounds(251), 250)
    with pytest.raises(InvalidScaler, match="a buffer of 320 addresses is more than the 250"):
        check_fit(BatchBounds(16, Fraction(20)), 250)


def test_the_words_for_people() -> None:
    assert BatchBounds().words == "batch up to 16, buffer 0.5"
    assert BatchBounds(min_batch=4).words == "batch 4 to 16, buffer 0.5"
    assert BatchBounds(fixed=8, buffer=Fraction(1, 3)).words == "batch 8, fixed, buffer 1/3"
    early = BatchBounds(thresholds=Thresholds(Fraction(1, 2), Fraction(3, 5)))
    assert early.words == "batch up to 16, buffer 0.5, thresholds 0.5 and 0.6"


def test_of_two_clusters_the_more_frugal_counts() -> None:
    east = BatchBounds(16, HALF, Thresholds(), min_batch=2)
    west = BatchBounds(8, Fraction(1, 4), Thresholds(Fraction(1, 2), Fraction(3, 5)), min_batch=4)
    assert merge_bounds([east, west]) == BatchBounds(8, Fraction(1, 4), west.thresholds, min_batch=4)
    pinned = merge_bounds([east, BatchBounds(fixed=4)])
    assert (pinned.fixed, pinned.top, pinned.lowest) == (4, 4, 4)
    too_large = merge_bounds([BatchBounds(8), BatchBounds(fixed=16)])
    assert (too_large.fixed, too_large.top) == (8, 8)
    assert merge_bounds([BatchBounds(16, min_batch=16), BatchBounds(4)]).min_batch == 4


@given(st.lists(all_bounds(), min_size=1, max_size=4))
def test_it_does_not_matter_who_asked_first_or_how_often(asked: list[BatchBounds]) -> None:
    merged = merge_bounds(asked)
    assert merge_bounds(reversed(asked)) == merged
    assert merge_bounds([*asked, asked[0]]) == merged
    assert merged.top == min(each.top for each in asked)
    assert merged.lowest <= merged.top
