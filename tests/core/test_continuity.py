"""What tells that a store went back."""

import pytest

from podtide.core.subnet.store_continuity import (
    StoreMark,
    awaited_reports,
    doubt_about,
    is_behind,
    is_forgotten,
)


def test_a_sequence_is_behind_only_when_a_cluster_has_seen_more() -> None:
    assert is_behind(4, 5)
    assert not is_behind(5, 5)
    assert not is_behind(6, 5)


def test_a_cluster_is_forgotten_that_has_seen_something_and_is_not_known() -> None:
    assert is_forgotten(is_known=False, seen=[0, 1])
    assert not is_forgotten(is_known=False, seen=[0])
    assert not is_forgotten(is_known=False, seen=[])
    assert not is_forgotten(is_known=True, seen=[7])


@pytest.mark.parametrize(
    ("store", "progress", "mark", "doubt"),
    [
        ("", 0, None, ""),
        ("", 0, StoreMark("s", 7), "the database is new"),
        ("s", 7, None, "missing"),
        ("s", 7, StoreMark("t", 7), "of another one"),
        ("s", 7, StoreMark("s", 8), "stands at 7, and had come to 8"),
        ("s", 7, StoreMark("s", 7), ""),
        (
            "s",
            7,
            StoreMark("s", 6),
            "",
        ),  # the mark is not synced: after a loss of power it is a little behind
    ],
)
def test_a_store_is_doubted_by_its_mark(
    store: str, progress: int, mark: StoreMark | None, doubt: str
) -> None:
    found = doubt_about(store, progress, mark)
    assert doubt in found
    assert bool(found) is bool(doubt)


def test_every_expected_cluster_is_awaited_until_it_has_reported() -> None:
    assert awaited_reports(["west", "east", "north"], ["east", "gone"]) == ("north", "west")
