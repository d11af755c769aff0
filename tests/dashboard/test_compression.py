"""What the page sends is compressed where the browser takes it, and each event can be read as it comes."""

import zlib

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from podtide.dashboard.compression import StreamCompression, compress, takes_gzip


def asked(encoding: str) -> web.Request:
    return make_mocked_request("GET", "/api/stream", headers={"Accept-Encoding": encoding})


@pytest.mark.parametrize(
    ("encoding", "is_taken"),
    [
        ("gzip, deflate, br", True),
        ("br;q=1, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("br", False),
        ("", False),
    ],
)
def test_gzip_is_used_only_where_the_browser_offers_it(encoding: str, is_taken: bool) -> None:
    assert takes_gzip(asked(encoding)) is is_taken


def test_every_event_can_be_read_before_the_next_one_is_written() -> None:
    response = web.StreamResponse()
    packed = StreamCompression(asked("gzip"), response)
    assert response.headers["Content-Encoding"] == "gzip"
    reading = zlib.decompressobj(wbits=31)
    for event in (b"data: one\n\n", b"data: " + b"x" * 70_000 + b"\n\n", b": alive\n\n"):
        assert reading.decompress(packed.whole(event)) == event


def test_a_stream_to_a_client_without_gzip_is_sent_as_it_is() -> None:
    response = web.StreamResponse()
    assert StreamCompression(asked("identity"), response).whole(b"data: one\n\n") == b"data: one\n\n"
    assert "Content-Encoding" not in response.headers


def test_short_answers_are_left_alone_and_long_ones_are_not() -> None:
    short, long = web.Response(body=b"{}"), web.Response(body=b"[" + b"0," * 5_000 + b"0]")
    compress(asked("gzip"), short)
    compress(asked("gzip"), long)
    assert "Content-Encoding" not in short.headers
    assert long.headers["Content-Encoding"] == "gzip"
    assert isinstance(long.body, bytes)
    assert len(long.body) < 200
    assert zlib.decompress(long.body, wbits=31) == b"[" + b"0," * 5_000 + b"0]"
