import pytest

from podtide.resources.metadata_keys import (
    UNREQUESTED_ANNOTATION,
    WAITING_PODS_ANNOTATION,
    network_resource,
    unrequested_in,
    waiting_pods_in,
)


@pytest.mark.parametrize(
    ("written", "read"),
    [("", 0), ("7", 7), ("-7", 0), ("many", 0), ("\u0667", 0), ("7\n", 0), ("9" * 5000, 0)],
)
def test_the_number_of_waiting_pods_is_read_where_it_is_one(written: str, read: int) -> None:
    assert waiting_pods_in({WAITING_PODS_ANNOTATION: written}) == read
    assert waiting_pods_in({}) == 0


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", None),
        ("7", 7),
        ("-7", -7),
        ("+7", None),
        ("--7", None),
        ("\u0667", None),
        ("7\n", None),
        ("9" * 5000, None),
    ],
)
def test_what_is_used_and_not_requested_is_read_where_it_is_a_number(written: str, read: int | None) -> None:
    assert unrequested_in({UNREQUESTED_ANNOTATION: written}) == read
    assert unrequested_in({}) is None


def test_a_secondary_network_has_a_resource_where_its_name_fits_into_one() -> None:
    assert network_resource("storage") == "podtide.io/net-storage"
    assert network_resource("a" * 59) == f"podtide.io/net-{'a' * 59}"
    assert [network_resource(name) for name in ("", "a" * 60, "storage.", "a b", "a/b")] == [None] * 5
