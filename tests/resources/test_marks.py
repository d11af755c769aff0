import pytest

from podtide.resources.metadata_keys import WAITING_PODS_ANNOTATION, waiting_pods_in


@pytest.mark.parametrize(
    ("written", "read"),
    [("", 0), ("7", 7), ("-7", 0), ("many", 0), ("\u0667", 0), ("7\n", 0), ("9" * 5000, 0)],
)
def test_the_number_of_waiting_pods_is_read_where_it_is_one(written: str, read: int) -> None:
    assert waiting_pods_in({WAITING_PODS_ANNOTATION: written}) == read
    assert waiting_pods_in({}) == 0
