"""HTTP to one server: which connections are used again, and what ends an answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accepted_connections import LOOPBACK, accepting
from podtide.runtime.http_client import BrokenAnswer, HttpClient, HttpDestination, NotHttp

pytestmark = pytest.mark.real_time


class Server:
    """Answers each request with the next of these bytes; an empty one closes the connection."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.connections = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while await reader.readuntil(b"\r\n\r\n"):
            answer = self.answers.pop(0)
            writer.write(answer)
            if b"\r\nContent-Length" not in answer and b"chunked" not in answer:
                await writer.drain()
                writer.close()
                return


@asynccontextmanager
async def talking(*answers: bytes) -> AsyncIterator[tuple[HttpClient, Server]]:
    server = Server(*answers)
    async with accepting(server.take) as port:
        client = HttpClient(HttpDestination(url=f"http://{LOOPBACK}:{port}"), connect_seconds=5)
        try:
            yield client, server
        finally:
            client.close()


async def body(client: HttpClient) -> bytes:
    async with asyncio.timeout(20):
        return await (await client.send("GET", "/", headers={})).read()


def answer(content: bytes, *lines: bytes) -> bytes:
    head = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(content), *lines]
    return b"\r\n".join([*head, b"", content])


async def test_a_connection_is_used_again_after_a_whole_answer() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    async with talking(answer(b"one"), chunked, answer(b"two")) as (client, server):
        assert [await body(client) for _ in range(3)] == [b"one", b"abc", b"two"]
        assert server.connections == 1


async def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    async with talking(answer(b"one", b"Connection: close"), answer(b"two")) as (client, server):
        assert [await body(client), await body(client)] == [b"one", b"two"]
        assert server.connections == 2


async def test_what_follows_an_answer_belongs_to_no_other_request() -> None:
    async with talking(answer(b"one") + answer(b"stray"), answer(b"two")) as (client, server):
        assert [await body(client), await body(client)] == [b"one", b"two"]
        assert server.connections == 2


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async with talking(b"HTTP/1.1 200 OK\r\n\r\nall of it") as (client, _):
        assert await body(client) == b"all of it"


async def test_an_interim_answer_is_not_the_answer() -> None:
    async with talking(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + answer(b"one")) as (client, _):
        assert await body(client) == b"one"


async def test_an_answer_that_is_cut_off_is_broken() -> None:
    async with talking(b"HTTP/1.1 200 OK\r\nX-Y: Z\r\nTransfer-Encoding: chunk" + b"ed\r\n\r\n3\r\na") as (
        client,
        server,
    ):
        server.answers.append(b"")
        asked = await client.send("GET", "/", headers={})
        client.close()
        with pytest.raises(BrokenAnswer):
            await asked.read()


async def test_a_head_without_an_end_is_refused() -> None:
    async with talking(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000) as (client, _):
        with pytest.raises(NotHttp):
            await body(client)


async def test_pieces_come_as_they_are_read_however_much_is_sent() -> None:
    async with talking(answer(b"x" * 5_000_000)) as (client, _):
        asked = await client.send("GET", "/", headers={})
        await asyncio.sleep(0.1)  # meanwhile no more comes than may wait to be read
        lengths = [len(piece) async for piece in asked.pieces(5)]
        assert sum(lengths) == 5_000_000
        assert lengths[0] < 2_000_000


async def test_an_answer_that_is_not_read_holds_up_no_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    just_too_long = answer(b"x" * ((1 << 18) + 1))
    async with talking(just_too_long, answer(b"two")) as (client, server):
        whole, keep = asyncio.Event(), client.keep

        def keep_and_tell(connection: Any) -> None:
            keep(connection)
            whole.set()

        monkeypatch.setattr(client, "keep", keep_and_tell)
        await client.send("GET", "/", headers={})
        async with asyncio.timeout(20):
            await whole.wait()
        assert (await body(client), server.connections) == (b"two", 1)


async def test_who_gives_up_a_whole_answer_leaves_the_connection_to_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with talking(answer(b"one"), answer(b"two")) as (client, server):
        asking = asyncio.create_task(client.send("GET", "/", headers={}))
        keep, following = client.keep, []

        def keep_and_go_on(connection: Any) -> None:
            keep(connection)
            asking.cancel()
            following.append(asyncio.create_task(body(client)))

        monkeypatch.setattr(client, "keep", keep_and_go_on)
        with pytest.raises(asyncio.CancelledError):
            await asking
        monkeypatch.undo()
        assert (await following[0], server.connections) == (b"two", 1)


async def test_an_answer_without_a_length_that_is_given_up_is_not_whole() -> None:
    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nsome")
        await reader.read()
        writer.close()

    async with accepting(begin) as port:
        client = HttpClient(HttpDestination(url=f"http://{LOOPBACK}:{port}"), connect_seconds=5)
        cut_off = await client.send("GET", "/", headers={})
        client.close()
        with pytest.raises(BrokenAnswer):
            await cut_off.read()


async def test_nothing_is_sent_without_tls_to_a_server_that_is_to_speak_it() -> None:
    client = HttpClient(HttpDestination(url=f"HTTPS://{LOOPBACK}:1"), connect_seconds=5)
    with pytest.raises(ValueError, match="TLS is for servers whose URL says https"):
        await client.send("GET", "/", headers={})


async def test_a_line_that_would_end_another_is_not_sent() -> None:
    async with talking() as (client, server):
        for target, headers in (("/a b", {}), ("/", {"X": "a\r\nY: b"}), ("/\u00e9", {})):
            with pytest.raises(ValueError):  # noqa: PT011 - it has no words of its own
                await client.send("GET", target, headers=headers)
        assert server.connections == 0
