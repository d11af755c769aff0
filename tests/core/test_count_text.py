import pytest

from podtide.core.subnet.count_text import are_text, capacity_text, count_text


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0"),
        (251, "251"),
        (2**24 - 3, "16777213"),
        (10**12, "1000000000000"),
        (2**40, "~2^40"),
        (2**53 - 2, "~2^53"),
        (2**53, "~2^53"),
        (2**53 + 1, "~2^53"),
        (2**54 - 1, "~2^54"),
        (2**64, "~2^64"),
    ],
)
def test_a_count_is_exact_as_long_as_it_can_be_read(count: int, words: str) -> None:
    assert count_text(count) == words


@pytest.mark.parametrize(
    ("capacity", "cidrs", "words"),
    [
        (251, ["10.0.0.0/24"], "251 addresses in 10.0.0.0/24"),
        (504, ["10.0.0.0/24", "10.0.2.0/24"], "504 addresses in 10.0.0.0/24, 10.0.2.0/24"),
        (2**40 - 3, ["fd00::/88"], "~2^40 addresses in fd00::/88"),
        (2**53 - 3, ["fd00::/75"], "~2^53 addresses in fd00::/75"),
        (2**53 - 2, ["fd00::/64"], "2^64 addresses in fd00::/64, of which the first 2^53 are used"),
        (
            2**53 - 2,
            ["fd00::/120", "fd01::/64"],
            "more than 2^64 addresses in fd00::/120, fd01::/64, of which the first 2^53 are used",
        ),
    ],
)
def test_a_wide_ipv6_subnet_says_what_there_is_and_what_is_used(
    capacity: int, cidrs: list[str], words: str
) -> None:
    assert capacity_text(capacity, cidrs) == words


def test_one_is_and_many_are() -> None:
    assert [are_text(count, "address", "addresses") for count in (0, 1, 2)] == [
        "0 addresses are",
        "1 address is",
        "2 addresses are",
    ]
    assert [are_text(count) for count in (0, 1, 2)] == ["0 are", "1 is", "2 are"]
