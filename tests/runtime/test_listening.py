"""Where a service may listen."""

import pytest

from podtide.runtime.listening import InvalidListenAddress, ListenAddress, parse_listen_address

OPEN = "there is no authentication: listen on 127.0.0.1"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8001", ListenAddress("127.0.0.1", 8001)),
        ("127.0.0.2:0", ListenAddress("127.0.0.2", 0)),
        ("localhost:1", ListenAddress("127.0.0.1", 1)),
        ("[::1]:65535", ListenAddress("::1", 65535)),
    ],
)
def test_a_loopback_address_and_a_port_are_where_to_listen(text: str, address: ListenAddress) -> None:
    assert parse_listen_address(text, open_because=OPEN) == address


@pytest.mark.parametrize(
    "text", ["0.0.0.0:80", "[::]:80", "10.0.0.1:80", "example.com:80", "localhost.evil:1"]
)
def test_an_address_that_others_can_reach_is_refused_where_nobody_is_asked_who_they_are(text: str) -> None:
    with pytest.raises(InvalidListenAddress, match=r"could be reached by others.*listen on 127\.0\.0\.1"):
        parse_listen_address(text, open_because=OPEN)
    assert str(parse_listen_address(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8001",
        "127.0.0.1",
        ":80",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:65536",
        "127.0.0.1:" + "9" * 5000,
        "[::1",
        "[::1]",
        "::1",
        "::1:80",
        "[::1:80",
        "::1]:80",
        "[]:80",
        "[[::1]]:80",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidListenAddress, match="not an address to listen on"):
        parse_listen_address(text)


def test_an_ipv6_address_is_shown_in_brackets() -> None:
    assert str(ListenAddress("::1", 80)) == "[::1]:80"
