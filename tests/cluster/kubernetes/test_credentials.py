"""What requests show to say who is asking, and what happens when that changes."""

import asyncio
import base64
from pathlib import Path

import pytest

from cluster.kubernetes.loopback_server import Answering, Handler, Received, client, serving, status
from podtide.cluster.kubernetes import ApiServerTimeouts
from podtide.cluster.kubernetes.access import InvalidAccess, Plugin, Secret, User
from podtide.cluster.port import Forbidden
from podtide.resources.node import Node

pytestmark = pytest.mark.real_time

PATIENT = ApiServerTimeouts(connect_seconds=10, answer_seconds=20, silence_seconds=20)
VERSION = "client.authentication.k8s.io/v1"


def accepting(*authorizations: str) -> Handler:
    """A server that knows only these."""

    async def answer(request: Received, answering: Answering) -> None:
        if request.headers.get("authorization") in authorizations:
            await answering.answer(200, {"metadata": {"name": "a", "resourceVersion": "1"}})
        else:
            await answering.answer(401, status(401, "Unauthorized", "Unauthorized"))

    return answer


def counting_plugin(directory: Path, answer: str) -> Plugin:
    """A plugin that notes each run in `runs`, and prints `answer` with the run's number in place of N."""
    script = directory / "plugin"
    runs = directory / "runs"
    script.write_text(
        f"#!/bin/sh\necho >> {runs}\nN=$(wc -l < {runs})\ncat <<END | sed s/NUMBER/$N/\n{answer}\nEND\n"
    )
    script.chmod(0o755)
    return Plugin(command=str(script), api_version=VERSION)


def token_answer(expiry: str = "", written: str = "t-NUMBER") -> str:
    """A token, `written` as JSON has it."""
    expires = f', "expirationTimestamp": "{expiry}"' if expiry else ""
    return f'{{"apiVersion": "{VERSION}", "kind": "ExecCredential", "status": {{"token": "{written}"{expires}}}}}'


def runs(directory: Path) -> int:
    return (directory / "runs").read_text().count("\n")


@pytest.mark.parametrize(
    ("user", "header"),
    [
        (User(), None),
        (User(token=Secret("t-1")), "Bearer t-1"),
        (
            User(username="me", password=Secret("pw")),
            f"Basic {base64.b64encode(b'me:pw').decode()}",
        ),
        (User(token=Secret("t-1"), username="me", password=Secret("pw")), "Bearer t-1"),
        (User(token=Secret("t-1"), plugin=Plugin(command="/nowhere", api_version=VERSION)), "Bearer t-1"),
    ],
)
async def test_a_request_carries_what_the_user_has(user: User, header: str | None) -> None:
    async def answer(_request: Received, answering: Answering) -> None:
        await answering.answer(200, {"metadata": {"name": "a", "resourceVersion": "1"}})

    async with serving(answer) as server, client(server.url, user, PATIENT) as cluster:
        await cluster.get(Node, "a")
        assert server.received[0].headers.get("authorization") == header


async def test_a_token_file_is_read_again_for_every_request(tmp_path: Path) -> None:
    file = tmp_path / "token"
    user = User(token_file=file, token=Secret("older"))
    async with (
        serving(accepting("Bearer t-1", "Bearer t-2")) as server,
        client(server.url, user, PATIENT) as cluster,
    ):
        for token in ("t-1", "t-2"):
            file.write_text(f"{token}\n")
            await cluster.get(Node, "a")
        assert [request.headers["authorization"] for request in server.received] == [
            "Bearer t-1",
            "Bearer t-2",
        ]


async def test_a_token_that_was_rotated_while_it_was_under_way_is_shown_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("t-1")

    async def rotate(request: Received, answering: Answering) -> None:
        file.write_text("t-2")
        await accepting("Bearer t-2")(request, answering)

    async with serving(rotate) as server, client(server.url, User(token_file=file), PATIENT) as cluster:
        await cluster.get(Node, "a")
        assert len(server.received) == 2


@pytest.mark.parametrize("content", [None, "", " \n", "abc\ndef", "abc def", "abc\0", b"\xff"])
async def test_a_token_file_without_a_token_that_can_be_shown_is_named(
    tmp_path: Path, content: str | bytes | None
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    async with client("http://127.0.0.1:1", User(token_file=file), PATIENT) as cluster:
        with pytest.raises(Forbidden, match=f"cannot get Node a: the token in {file}"):
            await cluster.get(Node, "a")


async def test_white_space_around_a_token_is_not_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(" t-1\r\n")
    plugin = counting_plugin(tmp_path, token_answer(written=r"t-1\n"))
    for user in (User(token_file=file), User(token=Secret("t-1\n")), User(plugin=plugin)):
        async with serving(accepting("Bearer t-1")) as server, client(server.url, user, PATIENT) as cluster:
            await cluster.get(Node, "a")


@pytest.mark.parametrize("token", ["hush\nhush", "hush hush", "hush\0", "hush\ud800", " \n"])
def test_a_token_that_no_header_can_carry_is_refused_at_once_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidAccess, match=r"^the token of the kubeconfig's user .*$") as failure:
        client("http://127.0.0.1:1", User(token=Secret(token)), PATIENT)
    assert "hush" not in str(failure.value)


async def test_a_plugin_whose_token_no_header_can_carry_is_named_and_asked_again(tmp_path: Path) -> None:
    user = User(plugin=counting_plugin(tmp_path, token_answer(written=r"hush\nhush")))
    async with client("http://127.0.0.1:1", user, PATIENT) as cluster:
        for _ in range(2):
            with pytest.raises(
                Forbidden, match=r"the token that the credential plugin .*/plugin gave"
            ) as failure:
                await cluster.get(Node, "a")
            assert "hush" not in str(failure.value)
    assert runs(tmp_path) == 2


async def test_what_the_libraries_below_refuse_to_send_is_one_of_the_ports_errors_and_not_shown() -> None:
    proxy = Secret("http://me:hush@proxy:port")
    async with client("http://127.0.0.1:1", timeouts=PATIENT, proxy=proxy) as cluster:
        with pytest.raises(Forbidden, match=r"^cannot get Node a: no such request can be sent: ") as failure:
            await cluster.get(Node, "a")
    assert "hush" not in str(failure.value)
    assert failure.value.__cause__ is None


async def test_a_credential_that_is_refused_and_cannot_be_renewed_is_not_shown_twice() -> None:
    async with (
        serving(accepting("Bearer other")) as server,
        client(server.url, User(token=Secret("t-1")), PATIENT) as cluster,
    ):
        with pytest.raises(Forbidden):
            await cluster.get(Node, "a")
        assert len(server.received) == 1


async def test_a_plugin_runs_once_for_many_requests(tmp_path: Path) -> None:
    user = User(plugin=counting_plugin(tmp_path, token_answer()))
    async with (
        serving(accepting("Bearer t-1")) as server,
        client(server.url, user, PATIENT) as cluster,
    ):
        await asyncio.gather(*(cluster.get(Node, "a") for _ in range(5)))
        await cluster.get(Node, "a")
    assert runs(tmp_path) == 1


async def test_a_plugin_runs_again_once_its_credential_is_refused_and_the_request_is_sent_again(
    tmp_path: Path,
) -> None:
    user = User(plugin=counting_plugin(tmp_path, token_answer()))
    async with (
        serving(accepting("Bearer t-2")) as server,
        client(server.url, user, PATIENT) as cluster,
    ):
        await cluster.get(Node, "a")
        await cluster.get(Node, "a")
        assert len(server.received) == 3
    assert runs(tmp_path) == 2


async def test_however_many_are_refused_at_once_the_plugin_runs_once_more(tmp_path: Path) -> None:
    user = User(plugin=counting_plugin(tmp_path, token_answer()))
    async with (
        serving(accepting("Bearer t-2")) as server,
        client(server.url, user, PATIENT) as cluster,
    ):
        await asyncio.gather(*(cluster.get(Node, "a") for _ in range(5)))
    assert runs(tmp_path) == 2


async def test_a_request_is_refused_for_good_when_the_renewed_credential_is_refused_too(
    tmp_path: Path,
) -> None:
    user = User(plugin=counting_plugin(tmp_path, token_answer()))
    async with serving(accepting()) as server, client(server.url, user, PATIENT) as cluster:
        with pytest.raises(Forbidden, match="Unauthorized"):
            await cluster.get(Node, "a")
        assert len(server.received) == 2


async def test_a_credential_that_has_expired_is_not_shown_any_more(tmp_path: Path) -> None:
    user = User(plugin=counting_plugin(tmp_path, token_answer("2020-01-01T00:00:00Z")))
    async with (
        serving(accepting("Bearer t-1", "Bearer t-2")) as server,
        client(server.url, user, PATIENT) as cluster,
    ):
        for _ in range(2):
            await cluster.get(Node, "a")
        assert [request.headers["authorization"] for request in server.received] == [
            "Bearer t-1",
            "Bearer t-2",
        ]


async def test_a_credential_that_has_not_expired_is_kept(tmp_path: Path) -> None:
    user = User(plugin=counting_plugin(tmp_path, token_answer("2999-01-01T00:00:00Z")))
    async with serving(accepting("Bearer t-1")) as server, client(server.url, user, PATIENT) as cluster:
        for _ in range(2):
            await cluster.get(Node, "a")
    assert runs(tmp_path) == 1


async def test_a_plugin_that_fails_is_said_by_the_request_that_needed_it() -> None:
    user = User(plugin=Plugin(command="/nowhere/login", api_version=VERSION, install_hint="install login"))
    async with client("http://127.0.0.1:1", user, PATIENT) as cluster:
        with pytest.raises(Forbidden, match="cannot get Node a: the credential plugin /nowhere/login"):
            await cluster.get(Node, "a")
