"""Whose a container is, and who may act for a cluster."""

import pytest

from podtide.core.subnet.cluster_identity import (
    TERM_SECONDS,
    ContainerOwner,
    HeldTerm,
    is_anothers,
    may_open_term,
    owner_of,
)


@pytest.mark.parametrize(
    ("recorded", "owner"),
    [
        ("here", ContainerOwner.THIS_CLUSTER),
        ("there", ContainerOwner.ANOTHER_CLUSTER),
        ("", ContainerOwner.UNKNOWN),
    ],
)
def test_a_container_is_ours_only_if_it_records_our_uid(recorded: str, owner: ContainerOwner) -> None:
    assert owner_of(recorded, "here") is owner


@pytest.mark.parametrize(
    ("holder", "until", "may"),
    [
        ("me", 105.0, True),  # its own term may be renewed
        ("other", 105.0, False),
        ("other", 100.0, True),  # over at this very moment
        ("other", 90.0, True),
        ("other", 100.0 + TERM_SECONDS, False),
        ("other", 101.0 + TERM_SECONDS, True),  # no term ends so late: the clock was set back since
        ("", 105.0, True),
    ],
)
def test_a_term_is_refused_while_another_holder_has_a_live_one(holder: str, until: float, may: bool) -> None:
    assert may_open_term("me", [HeldTerm("me", 103.0), HeldTerm(holder, until)], 100.0) is may


def test_a_name_is_refused_to_all_but_the_uid_that_it_is_bound_to() -> None:
    assert is_anothers("here", "there")
    assert is_anothers("here", "")
    assert not is_anothers("here", "here")
    assert not is_anothers("", "there")


def test_the_first_term_is_open_to_anybody() -> None:
    assert may_open_term("me", [], 100.0)
