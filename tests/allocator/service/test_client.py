"""The client: what is no answer is asked again until the time is over, and what is one is final."""

import asyncio
import json
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from allocator.contract.harness import a_wish
from allocator.service.running import QUICK, a_client, a_log, open_store, served
from cluster.kubernetes.loopback_server import Answering, Received, serving
from control_plane.certificates import CertificateAuthority
from podtide.allocator.client import AllocatorAddress, HttpAllocator
from podtide.allocator.errors import AllocatorUnavailable, NotAllowed, StaleWish
from podtide.allocator.service.certificate import Certificate
from podtide.allocator.subnets import Bounds, SubnetInForce, SubnetSpec
from podtide.core.errors import InvalidInput

pytestmark = pytest.mark.real_time

REFUSAL = {"error": "StaleWish", "message": "too late"}
BOUNDS = Bounds(batch=16, buffer="0.5", lower="0.8", upper="0.9")
AWAY = {"error": "AllocatorUnavailable", "message": "the database is away"}


async def test_what_is_no_answer_is_asked_again() -> None:
    ways = iter(("hang up", "gibberish", "proxy", "away", "answer"))

    async def handle(_request: Received, answering: Answering) -> None:
        match next(ways):
            case "hang up":
                raise ConnectionAbortedError
            case "gibberish":
                await answering.send(b"what?\r\n\r\n")
                raise ConnectionAbortedError
            case "proxy":
                await answering.answer(502, b"<html>Bad Gateway</html>")
            case "away":
                await answering.answer(503, AWAY, **{"Retry-After": "0"})
            case "answer":
                await answering.answer(200, [])

    async with serving(handle) as server, a_client(server.url) as client:
        assert await client.list_subnets() == ()
    assert next(ways, None) is None


async def test_a_refusal_is_final() -> None:
    async def refuse(_request: Received, answering: Answering) -> None:
        await answering.answer(409, REFUSAL)

    async with serving(refuse) as server, a_client(server.url) as client:
        with pytest.raises(StaleWish, match="cannot put container a of east: too late"):
            await client.put_container(a_wish("a", 1))
        assert len(server.received) == 1


async def test_a_lost_answer_changes_nothing() -> None:
    """The first answer is cut off after it took effect; the client asks again and gets the same container."""
    async with await open_store() as store, served(store) as url, a_client(url) as direct:
        await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
        lose = iter((True, False))

        async def relay(request: Received, answering: Answering) -> None:
            wish = a_wish("a", json.loads(request.body)["count"])
            container = await direct.put_container(wish)
            if next(lose):
                raise ConnectionAbortedError
            await answering.answer(200, container)

        async with serving(relay) as server, a_client(server.url) as client:
            container = await client.put_container(a_wish("a", 3))
            assert len(server.received) == 2
        assert (container.version, len(container.addresses)) == (1, 3)
        assert (await store.get_subnet("blue", "pods")).reserved == 4


async def test_a_lost_answer_to_a_decision_is_no_reason_to_be_overtaken() -> None:
    async with await open_store() as store:
        await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
        lose = iter((True, False))

        async def relay(request: Received, answering: Answering) -> None:
            decided = msgspec.json.decode(request.body, type=SubnetInForce)
            subnet = await store.put_in_force("blue", "pods", decided)
            if next(lose):
                raise ConnectionAbortedError
            await answering.answer(200, subnet)

        async with serving(relay) as server, a_client(server.url) as client:
            decided = SubnetInForce(batch=4, buffer="0.5", top=16, exhausted=True, step="BatchReduced")
            subnet = await client.put_in_force("blue", "pods", decided)
            assert len(server.received) == 2
        assert (subnet.in_force.batch, subnet.in_force.serial) == (4, 1)


async def test_when_the_time_is_over_it_says_so_and_how_often_it_asked() -> None:
    async def hang_up(_request: Received, _answering: Answering) -> None:
        raise ConnectionAbortedError

    timeouts = replace(QUICK, deadline_seconds=0.1)
    async with serving(hang_up) as server, a_client(server.url, timeouts) as client:
        with pytest.raises(AllocatorUnavailable, match=r"cannot list subnets: .*\(asked \d+ times\)"):
            await client.list_subnets()


async def test_what_fails_at_once_is_tried_no_longer_than_wanted_however_long_an_answer_may_take() -> None:
    async def hang_up(_request: Received, _answering: Answering) -> None:
        raise ConnectionAbortedError

    timeouts = replace(QUICK, deadline_seconds=10.0, retry_seconds=0.0)
    async with serving(hang_up) as server, a_client(server.url, timeouts) as client:
        with pytest.raises(AllocatorUnavailable, match=r"cannot list subnets: .*\(asked once\)"):
            await client.list_subnets()


async def test_a_server_that_says_nothing_is_given_up_on_in_time() -> None:
    async def hang(_request: Received, answering: Answering) -> None:
        await answering.hang()

    timeouts = replace(QUICK, answer_seconds=0.05, deadline_seconds=0.2)
    async with serving(hang) as server, a_client(server.url, timeouts) as client:
        async with asyncio.timeout(20):
            with pytest.raises(AllocatorUnavailable, match="did not answer in time"):
                await client.list_subnets()
        assert len(server.received) > 1


async def test_a_service_that_names_a_time_is_not_asked_before() -> None:
    async def away(_request: Received, answering: Answering) -> None:
        await answering.answer(503, AWAY, **{"Retry-After": "3600"})

    async with serving(away) as server, a_client(server.url) as client:
        with pytest.raises(AllocatorUnavailable, match="the database is away \\(asked once\\)"):
            await client.list_subnets()


async def test_an_answer_that_no_allocator_gives_is_said_to_be_so() -> None:
    async def welcome(_request: Received, answering: Answering) -> None:
        await answering.answer(200, b"<html>Welcome</html>")

    async with serving(welcome) as server, a_client(server.url) as client:
        with pytest.raises(AllocatorUnavailable, match="the answer is not that of an allocator"):
            await client.list_subnets()


async def test_calls_share_a_connection() -> None:
    async def answer(_request: Received, answering: Answering) -> None:
        await answering.answer(200, [])

    async with serving(answer) as server, a_client(server.url) as client:
        for _ in range(5):
            await client.list_subnets()
        assert (len(server.received), server.connections) == (5, 1)


async def test_the_token_is_read_anew_for_every_request(tmp_path: Path) -> None:
    async def answer(_request: Received, answering: Answering) -> None:
        await answering.answer(200, [])

    token = tmp_path / "token"
    async with serving(answer) as server, a_client(server.url, token_file=token) as client:
        for text in ("first\n", "second\n"):
            token.write_text(text)
            await client.list_subnets()
        shown = [request.headers["authorization"] for request in server.received]
        assert shown == ["Bearer first", "Bearer second"]
        token.unlink()
        with pytest.raises(InvalidInput, match="cannot be read"):
            await client.list_subnets()


async def test_over_tls_the_service_is_known_by_its_authority_and_a_renewed_certificate_is_shown(
    tmp_path: Path,
) -> None:
    authority, other = CertificateAuthority(), CertificateAuthority()
    (tmp_path / "ca").write_text(authority.certificate)
    (tmp_path / "other").write_text(other.certificate)
    certificate, key = tmp_path / "cert", tmp_path / "key"

    def write(signed_by: CertificateAuthority) -> None:
        pair = signed_by.server("127.0.0.1")
        certificate.write_text(pair.certificate)
        key.write_text(pair.key)

    write(authority)
    async with (
        await open_store() as store,
        served(store, certificate=Certificate(certificate, key, a_log())) as url,
    ):
        async with a_client(url, authority=tmp_path / "ca") as client:
            assert await client.list_subnets() == ()
        async with a_client(
            url, replace(QUICK, deadline_seconds=0.5), authority=tmp_path / "other"
        ) as client:
            with pytest.raises(AllocatorUnavailable, match="shows a certificate we do not trust"):
                await client.list_subnets()
        write(other)
        async with a_client(url, authority=tmp_path / "other") as client:
            assert await client.list_subnets() == ()
        key.write_text("half a ke")
        async with a_client(url, authority=tmp_path / "other") as client:
            assert await client.list_subnets() == ()


@pytest.mark.parametrize(
    "url",
    [
        *("", "nonsense", "ftp://allocator", "http://", "https:///path"),
        *("http://allocator/a b", "http://allocator/\x7f", "http://allocator?a=b", "http://me:pw@allocator"),
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid URL of an allocator"):
        AllocatorAddress(url=url)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
async def test_a_name_that_would_be_another_path_is_refused_before_it_is_sent(name: str) -> None:
    async with HttpAllocator(AllocatorAddress(url="http://127.0.0.1:1"), randomness=Random(1)) as client:
        for question in (
            client.get_subnet("blue", name),
            client.get_container(name, cluster="east"),
            client.delete_container("a", cluster=name),
            client.demand("blue", name),
            client.set_bounds("blue", "pods", cluster=name, bounds=BOUNDS),
        ):
            with pytest.raises(InvalidInput, match="is not a valid name"):
                await question


async def test_a_wish_too_long_to_be_read_is_refused_before_it_is_sent() -> None:
    async with HttpAllocator(AllocatorAddress(url="http://127.0.0.1:1"), randomness=Random(1)) as client:
        with pytest.raises(InvalidInput, match="at most 1000000 are allowed"):
            await client.put_container(a_wish("a", 1, release=("x" * 253,) * 10_000))


async def test_a_token_that_is_revoked_is_refused_at_once() -> None:
    async def refuse(_request: Received, answering: Answering) -> None:
        await answering.answer(401, {"error": "NotAllowed", "message": "the token is not known here"})

    async with serving(refuse) as server, a_client(server.url) as client:
        with pytest.raises(NotAllowed):
            await client.list_subnets()
        assert len(server.received) == 1
