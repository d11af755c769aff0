"""Whom we trust, and whom we say we are, at the level of connections."""

import asyncio
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from accepted_connections import LOOPBACK, accepting
from cluster.kubernetes.loopback_server import Answering, Received, client, serving
from control_plane import certificates
from control_plane.certificates import CertificateAuthority
from podtide.cluster.kubernetes import ApiServerTimeouts
from podtide.cluster.kubernetes.access import Endpoint, KeyPair, Pem, Secret, User
from podtide.cluster.port import Forbidden, Unavailable
from podtide.resources.node import Node

pytestmark = pytest.mark.real_time

PATIENT = ApiServerTimeouts(connect_seconds=10, answer_seconds=20, silence_seconds=20)


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


def server_context(authority: CertificateAuthority, directory: Path, *, ask: bool = False) -> ssl.SSLContext:
    pair = authority.server(LOOPBACK)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.certificate)
    path = directory / "server.pem"
    path.write_text(pair.certificate + pair.key)
    context.load_cert_chain(path)
    context.verify_mode = ssl.CERT_REQUIRED if ask else ssl.CERT_NONE
    return context


def in_place(pair: certificates.KeyPair) -> KeyPair:
    return KeyPair(Secret(pair.certificate), Secret(pair.key))


def in_files(pair: certificates.KeyPair, directory: Path) -> KeyPair:
    certificate, key = directory / "me.crt", directory / "me.key"
    certificate.write_text(pair.certificate)
    key.write_text(pair.key)
    return KeyPair(certificate, key)


async def greet(_request: Received, answering: Answering) -> None:
    await answering.answer(200, {"metadata": {"name": "a", "resourceVersion": "1"}}, Connection="close")


@pytest.mark.parametrize("kept", ["in place", "in a file"])
async def test_a_server_is_trusted_by_the_authority_that_was_given(
    authority: CertificateAuthority, tmp_path: Path, kept: str
) -> None:
    file = tmp_path / "ca.crt"
    file.write_text(authority.certificate)
    pem: Pem = file if kept == "in a file" else Secret(authority.certificate)
    async with (
        serving(greet, server_context(authority, tmp_path)) as server,
        client(server.url, timeouts=PATIENT, authority=pem) as cluster,
    ):
        assert (await cluster.get(Node, "a")).metadata.name == "a"


async def test_a_scheme_in_capitals_is_https_all_the_same(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    async with (
        serving(greet, server_context(authority, tmp_path)) as server,
        client(
            server.url.replace("https", "HTTPS"), timeouts=PATIENT, authority=Secret(authority.certificate)
        ) as cluster,
    ):
        assert (await cluster.get(Node, "a")).metadata.name == "a"


@pytest.mark.parametrize("trusted", ["another authority", "the machine's"])
async def test_a_server_signed_by_another_authority_is_refused_in_one_line(
    authority: CertificateAuthority, tmp_path: Path, trusted: str
) -> None:
    pem = Secret(CertificateAuthority().certificate) if trusted == "another authority" else None
    async with (
        serving(greet, server_context(authority, tmp_path)) as server,
        client(server.url, timeouts=PATIENT, authority=pem) as cluster,
    ):
        with pytest.raises(Unavailable) as caught:
            await cluster.get(Node, "a")
        message = str(caught.value)
        assert f"{server.url} shows a certificate we do not trust (" in message
        assert message.endswith("correct the authority in the test's kubeconfig")
        assert "\n" not in message
        assert server.received == []


async def test_a_certificate_for_another_name_is_refused_unless_that_name_is_expected(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    trusted = Secret(authority.certificate)
    async with serving(greet, server_context(authority, tmp_path)) as server:
        by_name = server.url.replace(LOOPBACK, "localhost")
        async with client(by_name, timeouts=PATIENT, authority=trusted) as cluster:
            with pytest.raises(Unavailable, match="certificate"):
                await cluster.get(Node, "a")
        async with client(by_name, timeouts=PATIENT, authority=trusted, server_name=LOOPBACK) as cluster:
            await cluster.get(Node, "a")


async def test_who_says_so_is_not_shown_a_certificate_at_all(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    async with (
        serving(greet, server_context(authority, tmp_path)) as server,
        client(server.url, timeouts=PATIENT, insecure=True) as cluster,
    ):
        await cluster.get(Node, "a")


async def test_a_server_that_speaks_no_tls_is_said_to_do_so(authority: CertificateAuthority) -> None:
    async def mistake_it_for_http(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with accepting(mistake_it_for_http) as port:
        url = f"https://{LOOPBACK}:{port}"
        async with client(url, timeouts=PATIENT, authority=Secret(authority.certificate)) as cluster:
            with pytest.raises(Unavailable, match=f"the TLS handshake with {url} failed"):
                await cluster.get(Node, "a")


def common_name(certificate: dict[str, tuple[tuple[tuple[str, str], ...], ...]]) -> str:
    return dict(part[0] for part in certificate["subject"])["commonName"]


@pytest.mark.parametrize("kept", ["in place", "in files"])
async def test_a_client_certificate_is_shown(
    authority: CertificateAuthority, tmp_path: Path, kept: str
) -> None:
    pair = authority.client("agent-7")
    user = User(key_pair=in_place(pair) if kept == "in place" else in_files(pair, tmp_path))
    async with (
        serving(greet, server_context(authority, tmp_path, ask=True)) as server,
        client(server.url, user, PATIENT, authority=Secret(authority.certificate)) as cluster,
    ):
        await cluster.get(Node, "a")
        assert common_name(server.client_certificates[0]) == "agent-7"


async def test_a_certificate_that_is_replaced_on_disk_is_shown_from_then_on(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    user = User(key_pair=in_files(authority.client("first"), tmp_path))
    async with (
        serving(greet, server_context(authority, tmp_path, ask=True)) as server,
        client(server.url, user, PATIENT, authority=Secret(authority.certificate)) as cluster,
    ):
        await cluster.get(Node, "a")
        in_files(authority.client("second-one"), tmp_path)
        await cluster.get(Node, "a")
        assert [common_name(each) for each in server.client_certificates] == ["first", "second-one"]


@pytest.mark.parametrize(
    ("endpoint", "user", "complaint"),
    [
        ({"authority": Secret("no pem")}, User(), "the certificate authority given in place cannot be used"),
        ({"authority": Path("/nowhere")}, User(), "/nowhere cannot be read: No such file"),
        (
            {},
            User(key_pair=KeyPair(Secret("s3cret"), Secret("s3cret"))),
            "the client certificate given in place with the key given in place cannot be used",
        ),
    ],
)
async def test_what_cannot_be_used_is_said_in_one_line_without_showing_it(
    endpoint: dict[str, Pem], user: User, complaint: str
) -> None:
    async with client(f"https://{LOOPBACK}:1", user, PATIENT, **endpoint) as cluster:
        with pytest.raises(Forbidden) as caught:
            await cluster.get(Node, "a")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


async def test_a_key_that_is_locked_is_said_to_be_so_and_nobody_is_asked_for_its_password(
    authority: CertificateAuthority,
) -> None:
    pair = authority.client("agent-7")
    key = serialization.load_pem_private_key(pair.key.encode(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"s3cret"),
    )
    user = User(key_pair=KeyPair(Secret(pair.certificate), Secret(locked.decode())))
    async with client(f"https://{LOOPBACK}:1", user, PATIENT) as cluster:
        with pytest.raises(Forbidden, match="cannot be used: the key is locked by a password"):
            await cluster.get(Node, "a")


def test_an_endpoint_that_is_printed_shows_nothing_of_its_proxys_password() -> None:
    endpoint = Endpoint(server="https://a", proxy=Secret("http://me:s3cret@proxy:1"))
    assert "s3cret" not in repr(endpoint)
