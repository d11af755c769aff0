"""What a text that cannot be read as a definition still tells."""

import pytest

from podtide.core.ranges import parse_network
from podtide.networks.hints import hints_in

BROKEN = (
    '{"type":"whereabouts","network_name":"blue","range":"10.0.0.77/99","ipRanges":[{"range":"fd00:1::/64"}'
)


@pytest.mark.parametrize(
    ("names", "range_", "expected"),
    [
        (("blue",), None, True),
        (("red", "blue"), "192.168.0.0/24", True),
        (("red",), "10.0.0.0/22", True),
        (("red",), "fd00:1::/48", True),
        (("red",), "10.1.0.0/22", False),
        (("lue",), None, False),
        ((), "fd00:2::/64", False),
        ((), None, False),
    ],
)
def test_a_text_has_hints_of_networks_that_it_names_or_has_an_address_of(
    names: tuple[str, ...], range_: str | None, expected: bool
) -> None:
    network = parse_network(range_) if range_ else None
    assert hints_in(BROKEN).are_of(frozenset(names), network) is expected


@pytest.mark.parametrize("text", ["", "{", "\0\ud800", "::::", "999.1.2.3 1.2.3", "[" * 5000])
def test_a_text_without_any_has_none(text: str) -> None:
    assert hints_in(text).addresses == frozenset()
