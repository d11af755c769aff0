import pytest

from podtide.core.similar_keys import near_miss

KNOWN = ("range", "range_start", "range_end", "ipRanges", "exclude", "type", "dns", "gw", "network_name")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("rnage", "range"),
        ("rang", "range"),
        ("ranges", "range"),
        ("rance", "range"),
        ("RNAGE", "range"),
        ("rangeStart", "range_start"),
        ("range-end", "range_end"),
        ("ip_ranges", "ipRanges"),
        ("ipRange", "ipRanges"),
        ("exlcude", "exclude"),
        ("tpye", "type"),
        ("DNS", "dns"),
        ("g-w", "gw"),
        ("netwrokname", "network_name"),
    ],
)
def test_a_misspelt_key_is_recognised(key: str, meant: str) -> None:
    assert near_miss(key, KNOWN) == meant


@pytest.mark.parametrize(
    "key", ["", "colour", "mode", "master", "network", "dnss", "tyep1", "rnaeg2", "subnet", "x" * 100_000]
)
def test_a_key_that_is_like_none_is_let_be(key: str) -> None:
    assert near_miss(key, KNOWN) is None


@pytest.mark.parametrize("key", ["_range", "#range", "//range", "-range", " range"])
def test_a_key_that_was_put_out_of_use_is_let_be(key: str) -> None:
    assert near_miss(key, KNOWN) is None


def test_of_several_that_are_near_the_nearest_was_meant() -> None:
    assert near_miss("range_stard", ("range_end", "range_start", "range_starts")) == "range_start"
    assert near_miss("rnage", ()) is None
