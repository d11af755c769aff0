"""The agent on a real socket: the plugin's protocol to the byte, callers who behave badly, and the end."""

import asyncio
import json
import os
import resource
import socket
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.calling import SANDBOX, Journal, code, config, environment
from agent.pool_addresses import PoolAddresses
from patience import PATIENCE_SECONDS
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.api.plugin_protocol import (
    ACKNOWLEDGE_AFTER_SECONDS,
    Answer,
    decode_answer,
    decode_call,
    encode_call,
)
from podtide.agent.api.server import make_api, serving
from podtide.agent.api.unix_socket import SocketInUse
from podtide.runtime.clock import SystemClock
from podtide.runtime.listening import CannotListen, ListenAddress
from podtide.runtime.port_limits import PortLimits

pytestmark = pytest.mark.real_time


class Node:
    """An agent's API, served at a socket."""

    def __init__(self, directory: Path, *, wait_seconds: float = 60.0) -> None:
        self.socket = directory / "agent.sock"
        clock = SystemClock()
        self.journal = Journal(clock)
        self.addresses = PoolAddresses(clock, wait_seconds)
        notes = DeletionNotes.beside(self.socket, self.addresses, log=self.journal.log)
        self.running = True
        self.listen: ListenAddress | None = None
        self.api = make_api(
            self.addresses,
            notes,
            add_wait_seconds=wait_seconds,
            is_running=lambda: self.running,
            clock=clock,
            log=self.journal.log,
        )

    @asynccontextmanager
    async def served(self, listen: ListenAddress | None = None) -> AsyncIterator["Node"]:
        async with serving(self.api, self.socket, listen) as self.listen:
            yield self

    async def connect(self) -> "Plugin":
        reader, writer = await asyncio.open_unix_connection(self.socket)
        return Plugin(reader, writer)

    async def call(self, verb: str, sandbox: str = SANDBOX) -> Answer:
        """A call of the plugin from beginning to end."""
        plugin = await self.connect()
        plugin.send(encode_call(environment(verb, sandbox), config()))
        return await plugin.answer()

    def http(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession("http://agent", connector=aiohttp.UnixConnector(os.fspath(self.socket)))

    async def until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not so():  # noqa: ASYNC110 - what is waited for happens in code that tells nobody
                await asyncio.sleep(0.005)


class Plugin:
    """The plugin's end of a connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, body: bytes, *, announced: int | None = None) -> None:
        length = len(body) if announced is None else announced
        self.writer.write(f"POST /cni HTTP/1.0\r\nContent-Length: {length}\r\n\r\n".encode() + body)

    async def head(self) -> dict[str, str]:
        """The acknowledgement: the headers by their names, once the status line said 200."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        assert lines[0].split()[:2] == ["HTTP/1.0", "200"]
        return {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines[1:] if line}

    async def body(self) -> Answer:
        async with asyncio.timeout(PATIENCE_SECONDS):
            answer = decode_answer(await self.reader.read())
        await self.leave()
        assert answer is not None
        return answer

    async def answer(self) -> Answer:
        await self.head()
        return await self.body()

    async def leave(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def waiting_add(node: Node) -> AsyncIterator[Plugin]:
    """An ADD that was acknowledged and waits for an address."""
    plugin = await node.connect()
    plugin.send(encode_call(environment("ADD"), config()))
    await plugin.head()
    await node.until(lambda: node.addresses.waiting == 1)
    yield plugin


async def test_a_call_that_needs_no_wait_is_answered_in_one_go(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        node.addresses.grant("10.1.0.5")
        plugin = await node.connect()
        plugin.send(encode_call(environment("ADD"), config()))
        head = await plugin.head()
        assert "podtide-wait" not in head
        answer = await plugin.body()
        assert int(head["content-length"]) == len(f"0 {len(answer.output)}\n") + len(answer.output)
        assert json.loads(answer.output)["ips"] == [{"address": "10.1.0.5/16", "gateway": "10.1.0.1"}]
        assert await node.call("DEL") == Answer(0)


async def test_a_call_that_waits_is_acknowledged_with_how_long_that_may_take(tmp_path: Path) -> None:
    async with Node(tmp_path, wait_seconds=29.5).served() as node:
        plugin = await node.connect()
        plugin.send(encode_call(environment("ADD"), config()))
        assert (await plugin.head())["podtide-wait"] == "35"
        node.addresses.grant("10.1.0.5")
        assert (await plugin.body()).exit_status == 0


async def test_an_add_that_waits_is_not_undone_by_the_note_of_an_earlier_del(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        note = tmp_path / "deleted" / f"{SANDBOX}@eth0"
        note.write_bytes(encode_call(environment("DEL"), config()))
        async with waiting_add(node) as plugin:
            assert not note.exists()
            node.addresses.grant("10.1.0.5")
            assert (await plugin.body()).exit_status == 0


async def test_a_del_beats_an_add_that_came_just_before_it_and_has_to_wait(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        adding, deleting = await node.connect(), await node.connect()
        adding.send(encode_call(environment("ADD"), config()))
        deleting.send(encode_call(environment("DEL"), config()))
        assert await deleting.answer() == Answer(0)
        node.addresses.grant("10.1.0.5")
        assert code(await adding.answer()) == 11
        assert node.addresses.held() == {}


async def test_an_add_that_waited_is_written_down_once(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        async with waiting_add(node) as plugin:
            assert node.journal.lines() == []
            node.addresses.grant("10.1.0.5")
            await plugin.body()
        assert [line["outcome"] for line in node.journal.lines()] == ["ok"]


async def test_the_longest_answer_arrives_whole(tmp_path: Path) -> None:
    """What cannot be understood is quoted, and a byte of it may take five."""
    body = encode_call(environment("ADD", CNI_ARGS="\1" * 16_000), config())
    async with Node(tmp_path).served() as node:
        plugin = await node.connect()
        plugin.send(body)
        await asyncio.sleep(0.1)
        answer = await plugin.answer()
    assert code(answer) == 4
    assert len(answer.output) > 5 * 16_000


async def test_an_add_that_waits_is_carried_out_once_where_it_was_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[bytes] = []

    def decode(body: bytes) -> tuple[dict[str, str], bytes]:
        decoded.append(body)
        return decode_call(body)

    monkeypatch.setattr("podtide.agent.api.cni_calls.decode_call", decode)
    async with Node(tmp_path).served() as node:
        async with waiting_add(node) as plugin:
            node.addresses.grant("10.1.0.5")
            assert (await plugin.body()).exit_status == 0
        assert len(decoded) == 1
        assert node.addresses.started == 1


async def test_an_answer_that_comes_within_a_moment_needs_no_acknowledgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtide.agent.api.plugin_connections.ACKNOWLEDGE_AFTER_SECONDS", PATIENCE_SECONDS)
    async with Node(tmp_path).served() as node:
        plugin = await node.connect()
        plugin.send(encode_call(environment("ADD"), config()))
        await node.until(lambda: node.addresses.waiting == 1)
        node.addresses.grant("10.1.0.5")
        head = await plugin.head()
        assert "podtide-wait" not in head
        answer = await plugin.body()
        assert answer.exit_status == 0
        assert int(head["content-length"]) == len(f"0 {len(answer.output)}\n") + len(answer.output)


@pytest.mark.parametrize("steps", range(6))
async def test_nothing_follows_an_answer_that_comes_just_before_its_acknowledgement(
    tmp_path: Path, steps: int
) -> None:
    """A busy agent finds an address and a moment that is over at once, in either order."""
    async with Node(tmp_path).served() as node:
        plugin = await node.connect()
        plugin.send(encode_call(environment("ADD"), config()))
        await node.until(lambda: node.addresses.waiting == 1)
        node.addresses.grant("10.1.0.5")
        for _ in range(steps):
            await asyncio.sleep(0)
        time.sleep(ACKNOWLEDGE_AFTER_SECONDS)  # noqa: ASYNC251 - the loop itself is busy, which is the point
        head = await plugin.head()
        sent = await plugin.reader.read()
        await plugin.leave()
        answer = decode_answer(sent)
        assert answer is not None, sent
        assert answer.exit_status == 0
        assert int(head.get("content-length", len(sent))) == len(sent)


async def test_as_many_calls_wait_as_the_port_allows_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtide.agent.api.server._PLUGIN_LIMITS", PortLimits(connections=2))
    async with Node(tmp_path).served() as node:
        adds = [asyncio.create_task(node.call("ADD", sandbox)) for sandbox in ("one", "two")]
        await node.until(lambda: node.addresses.waiting == 2)
        plugin = await node.connect()
        plugin.send(encode_call(environment("ADD", "three"), config()))
        assert await plugin.reader.read() == b"", "the plugin knows what to do for each verb"
        await plugin.leave()
        assert (await node.call("STATUS")).exit_status == 0
        node.addresses.grant("10.1.0.5", "10.1.0.6")
        assert [answer.exit_status for answer in await asyncio.gather(*adds)] == [0, 0]
        refused = node.journal.lines()[0]
        assert refused["outcome"] == "TooManyWaiting"
        assert "2 calls wait, and this agent allows no more" in refused["error"]


async def test_who_says_more_than_its_request_while_it_waits_is_not_the_plugin(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        async with waiting_add(node) as plugin:
            plugin.writer.write(b"more")
            with pytest.raises(ConnectionResetError):
                await plugin.reader.read()
        await node.until(lambda: node.addresses.waiting == 0)


async def test_two_adds_of_one_sandbox_at_once_get_the_same_answer(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        adds = [asyncio.create_task(node.call("ADD")) for _ in range(2)]
        await node.until(lambda: node.addresses.waiting == 2)
        node.addresses.grant("10.1.0.5", "10.1.0.6")
        first, second = await asyncio.gather(*adds)
        assert first == second


async def test_a_burst_of_adds_and_dels_leaves_nothing_behind(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        node.addresses.grant(*(f"10.1.1.{each}" for each in range(1, 101)))
        sandboxes = [f"sandbox-{each}" for each in range(100)]
        added = await asyncio.gather(*(node.call("ADD", each) for each in sandboxes))
        assert len({json.loads(answer.output)["ips"][0]["address"] for answer in added}) == 100
        await asyncio.gather(*(node.call("DEL", each) for each in sandboxes))
        assert node.addresses.held() == {}


async def test_who_goes_away_while_waiting_is_given_nothing_later(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        async with waiting_add(node) as plugin:
            await plugin.leave()
        await node.until(lambda: node.addresses.waiting == 0)
        node.addresses.grant("10.1.0.5")
        await asyncio.sleep(0.05)
        assert node.addresses.held() == {}
        assert node.journal.lines()[-1]["outcome"] == "abandoned"


async def test_who_has_gone_before_the_agent_looked_is_given_nothing(tmp_path: Path) -> None:
    """An agent that was stopped for a while finds calls of plugins that have long given up."""
    async with Node(tmp_path).served() as node:
        node.addresses.grant("10.1.0.5")
        with socket.socket(socket.AF_UNIX) as plugin:
            plugin.connect(os.fspath(node.socket))
            body = encode_call(environment("ADD"), config())
            plugin.sendall(f"POST /cni HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await asyncio.sleep(0.1)
        assert node.addresses.held() == {}


async def test_a_request_that_breaks_off_is_nothing(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        node.addresses.grant("10.1.0.5")
        body = encode_call(environment("ADD"), config())
        for piece in (body[:10], body[:-1], b""):
            plugin = await node.connect()
            plugin.send(piece, announced=len(body))
            await plugin.leave()
        assert (await node.call("STATUS")).exit_status == 0
        assert node.addresses.held() == {}


async def test_a_caller_who_is_slow_to_speak_holds_up_no_other(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        node.addresses.grant("10.1.0.5", "10.1.0.6")
        body = encode_call(environment("ADD", "slow"), config())
        plugin = await node.connect()
        plugin.send(body[:10], announced=len(body))
        await plugin.writer.drain()
        assert (await node.call("ADD", "quick")).exit_status == 0
        plugin.writer.write(body[10:])
        assert (await plugin.answer()).exit_status == 0


async def test_a_request_may_come_in_any_pieces(tmp_path: Path) -> None:
    body = encode_call(environment("STATUS"), config())
    request = f"POST /cni HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    async with Node(tmp_path).served() as node:
        for length in (1, 20, len(request) - len(body), len(request) - 1):
            plugin = await node.connect()
            await asyncio.sleep(0.01)
            plugin.writer.write(request[:length])
            await asyncio.sleep(0.01)
            plugin.writer.write(request[length:])
            assert await plugin.answer() == Answer(0)


async def test_a_caller_who_says_nothing_is_let_go_at_the_end(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        plugin = await node.connect()
        assert (await node.call("STATUS")).exit_status == 0
    assert await plugin.reader.read() == b""
    await plugin.leave()


async def test_callers_wait_while_there_are_no_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("podtide.runtime.open_port._PAUSE_SECONDS", 0.05)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with Node(tmp_path).served() as node:
        plugin = await node.connect()
        await node.call("STATUS")
        with socket.socket(socket.AF_UNIX) as late:
            resource.setrlimit(resource.RLIMIT_NOFILE, (late.fileno(), hard))
            try:
                late.connect(os.fspath(node.socket))
                await node.until(lambda: "cannot accept connections" in caplog.text)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            body = encode_call(environment("STATUS"), config())
            late.sendall(f"POST /cni HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            reader, writer = await asyncio.open_unix_connection(sock=late)
            assert await Plugin(reader, writer).answer() == Answer(0)
        await plugin.leave()


async def test_a_caller_who_never_finishes_is_shown_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtide.runtime.http_server._BODY_SECONDS", 0.05)
    async with Node(tmp_path).served() as node:
        plugin = await node.connect()
        plugin.send(b"CNI_", announced=1000)
        assert b" 408 " in await plugin.reader.readline()
        await plugin.leave()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", 6),
        (b"rubbish", 6),
        (b"CNI_COMMAND\0\0", 4),
        (b"\0", 4),
        (b"\xff\0\0{}", 4),
        (encode_call(environment("ADD"), b"x" * (1 << 20)), 6),
        (encode_call(environment("ADD"), b" " * (2 << 20)), 6),
    ],
    ids=["empty", "no end", "no value", "no environment", "no text", "huge garbage", "too much"],
)
async def test_garbage_is_a_cni_error(tmp_path: Path, body: bytes, expected: int) -> None:
    async with Node(tmp_path).served() as node:
        plugin = await node.connect()
        plugin.send(body)
        assert code(await plugin.answer()) == expected


async def test_what_is_no_http_is_refused_and_survived(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node:
        plugin = await node.connect()
        plugin.writer.write(b"\0\1\2 hello\r\n\r\n")
        assert b" 400 " in await plugin.reader.readline()
        await plugin.leave()
        assert (await node.call("STATUS")).exit_status == 0


async def test_who_waits_is_sent_away_when_the_agent_stops(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with node.served():
        plugin = await waiting_add(node).__aenter__()
        started = time.monotonic()
    answer = await plugin.body()
    assert code(answer) == 11
    assert b"the agent stops" in answer.output
    assert time.monotonic() - started < 5
    assert node.addresses.waiting == 0


async def test_nobody_new_is_let_in_after_the_stop(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with node.served():
        pass
    assert not node.socket.exists()
    with pytest.raises(FileNotFoundError):
        await node.connect()


async def test_the_socket_is_its_owners_alone(tmp_path: Path) -> None:
    async with Node(tmp_path / "run").served() as node:
        assert stat.S_IMODE(node.socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(node.socket.parent.stat().st_mode) == 0o700


async def test_a_directory_that_is_there_is_kept_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    directory.chmod(0o755)
    async with Node(directory).served():
        assert stat.S_IMODE(directory.stat().st_mode) == 0o755


async def test_the_socket_of_a_dead_agent_is_replaced(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(node.socket))
    async with node.served():
        assert (await node.call("STATUS")).exit_status == 0


async def test_the_socket_of_a_living_agent_is_left_to_it(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as first:
        with pytest.raises(SocketInUse, match="another agent listens"):
            async with Node(tmp_path).served():
                pass
        assert (await first.call("STATUS")).exit_status == 0


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.socket.write_text("mine")
    with pytest.raises(CannotListen, match="not a socket"):
        async with node.served():
            pass
    assert node.socket.read_text() == "mine"


async def test_a_socket_that_is_another_agents_by_now_is_not_taken_away(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with node.served():
        node.socket.unlink()
        node.socket.write_text("somebody else's")
    assert node.socket.read_text() == "somebody else's"


async def test_a_path_too_long_for_a_socket_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(CannotListen, match="name a shorter one"):
        async with Node(tmp_path / ("x" * 100)).served():
            pass


async def test_a_port_that_is_taken_is_refused_in_words_and_leaves_no_socket(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(CannotListen, match="cannot listen on 127"),
    ):
        async with node.served(ListenAddress("127.0.0.1", taken.getsockname()[1])):
            pass
    assert not node.socket.exists()


ASKED = {"infraContainerID": SANDBOX, "orchestratorContext": {"podName": "web-1", "podNamespace": "shop"}}


@asynccontextmanager
async def both_doors(node: Node) -> AsyncIterator[list[aiohttp.ClientSession]]:
    async with (
        node.served(ListenAddress("127.0.0.1", 0)),
        node.http() as by_socket,
        aiohttp.ClientSession(f"http://{node.listen}") as by_port,
    ):
        yield [by_socket, by_port]


async def test_the_api_of_cns_is_behind_both_doors(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.addresses.grant("10.1.0.5")
    async with both_doors(node) as doors:
        for door in doors:
            for path in ("/network/requestipconfigs", "/network/requestipconfig"):
                async with door.post(path, json=ASKED) as response:
                    assert (response.status, response.headers["cns_return_code"]) == (200, "Success")
                    assert response.content_type == "application/json"
                    document: dict[str, Any] = await response.json()
                    info = document.get("PodIpInfo") or document["podIPInfo"][0]
                    assert info["PodIPConfig"]["IPAddress"] == "10.1.0.5"
            async with door.post(
                "/debug/ipaddresses", json={"IPConfigStateFilter": ["Assigned"]}
            ) as response:
                assert len((await response.json())["IPConfigurationStatus"]) == 1
            for path in ("/network/releaseipconfigs", "/network/releaseipconfig"):
                async with door.post(path, json=ASKED) as response:
                    assert (response.status, response.headers["cns_return_code"]) == (200, "Success")
            assert node.addresses.held() == {}


async def test_the_plugins_path_is_behind_the_socket_alone(tmp_path: Path) -> None:
    async with both_doors(Node(tmp_path)) as (by_socket, by_port):
        body = encode_call(environment("STATUS"), config())
        async with by_socket.post("/cni", data=body) as response:
            assert response.status == 200
        async with by_port.post("/cni", data=body) as response:
            assert response.status == 404


async def test_a_refusal_is_an_answer_and_what_does_not_decode_is_none(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node, node.http() as door:
        for path in ("/network/requestipconfigs", "/network/releaseipconfig"):
            async with door.post(path, json={}) as response:
                assert (response.status, response.headers["cns_return_code"]) == (
                    200,
                    "EmptyOrchestratorContext",
                )
            async with door.post(path, data=b"{") as response:
                assert (response.status, (await response.text()).count("\n")) == (400, 1)
            async with door.post(path, data=BytesIO(b" " * (3 << 20))) as response:
                assert response.status == 400
        async with door.get("/network/requestipconfigs") as response:
            assert response.status == 405


async def test_a_client_of_cns_who_waits_is_sent_away_too(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with node.http() as door:
        async with node.served():

            async def ask() -> tuple[str, dict[str, Any]]:
                async with door.post("/network/requestipconfigs", json=ASKED) as response:
                    return response.headers["cns_return_code"], await response.json()

            asked: Awaitable[tuple[str, dict[str, Any]]] = asyncio.create_task(ask())
            await node.until(lambda: node.addresses.waiting == 1)
        header, document = await asked
    assert (header, document["response"]["ReturnCode"]) == ("FailedToAllocateIpConfig", 32)


async def test_a_client_of_cns_who_goes_away_is_given_nothing_later(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node, node.http() as door:
        with pytest.raises(TimeoutError):
            await door.post("/network/requestipconfigs", json=ASKED, timeout=aiohttp.ClientTimeout(total=0.2))
        await node.until(lambda: node.addresses.waiting == 0)
        node.addresses.grant("10.1.0.5")
        await asyncio.sleep(0.05)
        assert node.addresses.held() == {}


async def test_health_is_that_the_program_runs_and_readiness_that_it_knows_its_node(tmp_path: Path) -> None:
    node = Node(tmp_path)

    async def ask(door: aiohttp.ClientSession, path: str) -> tuple[int, str]:
        async with door.get(path) as response:
            return response.status, await response.text()

    async with both_doors(node) as doors:
        for door in doors:
            node.running = node.addresses.ready = True
            assert await ask(door, "/healthz") == await ask(door, "/readyz") == (200, "ok")
            node.running = node.addresses.ready = False
            assert await ask(door, "/healthz") == (503, "the agent's program has ended")
            assert await ask(door, "/readyz") == (503, "the pods are not known yet: wait")


async def test_metrics_are_in_prometheus_format(tmp_path: Path) -> None:
    async with Node(tmp_path).served() as node, node.http() as door:
        await node.call("STATUS")
        async with door.get("/metrics") as response:
            assert response.content_type == "text/plain"
            text = await response.text()
    assert 'podtide_agent_calls_total{outcome="ok",verb="STATUS"} 1.0' in text
