"""Requests through an HTTP proxy, which only ever sees the tunnel."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from traceback import format_exception

import pytest

from accepted_connections import LOOPBACK, accepting
from cluster.kubernetes.loopback_server import Answering, Received, client, serving
from control_plane.certificates import CertificateAuthority
from podtide.cluster.kubernetes import ApiServerTimeouts
from podtide.cluster.kubernetes.access import Secret
from podtide.cluster.port import Unavailable
from podtide.resources.node import Node

pytestmark = pytest.mark.real_time

PATIENT = ApiServerTimeouts(connect_seconds=10, answer_seconds=20, silence_seconds=20)


async def greet(_request: Received, answering: Answering) -> None:
    await answering.answer(200, {"metadata": {"name": "a", "resourceVersion": "1"}})


@asynccontextmanager
async def connecting_proxy(heads: list[str], verdict: str = "200 OK") -> AsyncIterator[str]:
    """A proxy that notes what it was asked, and says so; where it can be reached."""

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        writer.write(f"HTTP/1.1 {verdict}\r\n\r\n".encode())
        if not verdict.startswith("200"):
            writer.close()
            return
        host, port = head.split(" ")[1].split(":")
        answers, requests = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(pipe(reader, requests), pipe(answers, writer), return_exceptions=True)
        finally:
            requests.close()

    async with accepting(take) as port:
        yield f"{LOOPBACK}:{port}"


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


def context(authority: CertificateAuthority, directory: Path) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = authority.server(LOOPBACK)
    (directory / "server.pem").write_text(pair.certificate + pair.key)
    made.load_cert_chain(directory / "server.pem")
    return made


async def test_requests_go_through_the_proxy_and_the_certificate_is_still_the_servers(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    heads: list[str] = []
    async with (
        serving(greet, context(authority, tmp_path)) as server,
        connecting_proxy(heads) as proxy,
        client(
            server.url,
            timeouts=PATIENT,
            authority=Secret(authority.certificate),
            proxy=Secret(f"http://me:pw@{proxy}"),
        ) as cluster,
    ):
        assert (await cluster.get(Node, "a")).metadata.name == "a"
        assert heads[0].startswith(f"CONNECT {server.url.removeprefix('https://')} ")
        assert "Proxy-Authorization: Basic bWU6cHc=" in heads[0]
        assert "authorization" not in server.received[0].headers


@pytest.mark.parametrize("more", ["", "\r\nContent-Length: 0", "\r\nContent-Length: 0\r\nConnection: close"])
async def test_whatever_headers_a_proxy_agrees_with_it_is_told_nothing_but_where_to_connect(
    authority: CertificateAuthority, tmp_path: Path, more: str
) -> None:
    heads: list[str] = []
    async with (
        serving(greet, context(authority, tmp_path)) as server,
        connecting_proxy(heads, f"200 OK{more}") as proxy,
        client(
            server.url,
            timeouts=PATIENT,
            authority=Secret(authority.certificate),
            proxy=Secret(f"http://{proxy}"),
        ) as cluster,
    ):
        nodes = await asyncio.gather(*(cluster.get(Node, "a") for _ in range(5)))
        assert {node.metadata.name for node in nodes} == {"a"}
        assert {head.split(" ")[0] for head in heads} == {"CONNECT"}


async def test_a_proxy_that_does_not_let_us_through_is_named_without_its_password() -> None:
    async with (
        connecting_proxy([], "407 Proxy Authentication Required") as proxy,
        client("https://192.0.2.1", timeouts=PATIENT, proxy=Secret(f"http://me:s3cret@{proxy}")) as cluster,
    ):
        with pytest.raises(
            Unavailable, match=r"the proxy to https://192.0.2.1 refused the connection with status 407"
        ) as caught:
            await cluster.get(Node, "a")
        assert "s3cret" not in "".join(format_exception(caught.value))


async def test_a_proxy_that_is_not_there_is_named() -> None:
    async with client(
        "https://192.0.2.1", timeouts=PATIENT, proxy=Secret(f"http://me:s3cret@{LOOPBACK}:1")
    ) as cluster:
        with pytest.raises(Unavailable, match=r"the proxy to https://192.0.2.1 cannot be reached") as caught:
            await cluster.get(Node, "a")
        assert "s3cret" not in "".join(format_exception(caught.value))
