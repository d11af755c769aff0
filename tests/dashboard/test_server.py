"""The page over HTTP: every route on a cluster in this process, and what happens when things are missing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cli.drawn_cluster import DrawnCluster, addresses
from dashboard.pages import Browser, cells, owners, page_on
from patience import PATIENCE_SECONDS
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.dashboard import server
from podtide.dashboard.address_map import CellState
from podtide.dashboard.page_files import read_page_files
from podtide.resources.cluster_subnet import ClusterSubnet, SubnetCidr
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import SystemClock

pytestmark = pytest.mark.real_time

TOKEN = "a-token-of-the-page"  # noqa: S105 - of this test
RANGE = SubnetCidr(cidr="10.1.0.0/24", gateway="10.1.0.1")


async def draw() -> DrawnCluster:
    """A node with five addresses, of which a pod has one; one that is owed; a pod that waits on it."""
    drawn = DrawnCluster()
    await drawn.subnet("pods", cidrs=[RANGE], capacity=253, reserved=8)
    await drawn.config("fine", requested=5, granted=addresses(5))
    await drawn.config("owed", requested=5, granted=addresses(1, 40), short=True)
    await drawn.pod("web", "fine", "10.1.0.10")
    await drawn.pod("late", "owed")
    await drawn.lead()
    return drawn


async def get(url: str, **headers: str) -> tuple[int, Any, Any]:
    """Status, JSON and headers of an answer."""
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        body = await answer.read()
        is_json = answer.content_type == "application/json"
        return answer.status, json.loads(body) if is_json else body, answer.headers


async def read_nodes(url: str) -> None:
    """Wait until the page has read the cluster."""
    async with streaming(url) as events:
        async for _, _, data in events:
            if data.get("nodes") and data.get("subnets"):
                return


@asynccontextmanager
async def streaming(
    url: str, **headers: str
) -> AsyncIterator[AsyncIterator[tuple[str, str, dict[str, Any]]]]:
    """The events of a stream: id, kind and data."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{url}/api/stream", headers=headers) as answer,
    ):
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        yield _events(answer.content)


async def _events(content: aiohttp.StreamReader) -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
    fields: dict[str, str] = {}
    async with asyncio.timeout(PATIENCE_SECONDS):
        # Snapshots may be longer than what readline takes.
        rest = b""
        async for chunk in content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                name, _, value = line.decode().partition(": ")
                if not line and "data" in fields:
                    yield fields["id"], fields["event"], json.loads(fields.pop("data"))
                elif name:
                    fields[name] = value


async def test_every_answer_has_the_headers_that_keep_a_browser_safe() -> None:
    async with page_on(await draw()) as url:
        for path in ("/", "/nothing", "/api/waiting", "/api/nodes/none", "/api/subnets/pods/map?from=x"):
            _, _, headers = await get(url + path)
            assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert "Set-Cookie" not in headers
            if path.startswith("/api/"):
                assert headers["Cache-Control"] == "no-store"


async def test_files_are_those_of_the_page_and_are_not_sent_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "views" / "map.js").write_text("export {};")
    files = read_page_files(tmp_path)
    monkeypatch.setattr(server, "read_page_files", lambda: files)
    async with page_on(await draw(), token=TOKEN) as url:
        status, body, headers = await get(f"{url}/")
        assert (status, body, headers["Content-Type"]) == (
            200,
            b"<!doctype html>",
            "text/html; charset=utf-8",
        )
        assert headers["Cache-Control"] == "no-cache"
        status, body, again = await get(f"{url}/", **{"If-None-Match": headers["ETag"]})
        assert (status, body, again["ETag"]) == (304, b"", headers["ETag"])
        status, _, headers = await get(f"{url}/static/views/map.js")
        assert (status, headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
        for path in ("/static/none.js", "/static/%2e%2e/server.py", "/static//etc/passwd", "/static/views"):
            assert (await get(url + path))[0] == 404


async def test_the_stream_begins_with_everything_and_goes_on_with_differences() -> None:
    drawn = await draw()
    browser = Browser()
    async with page_on(drawn) as url, streaming(url) as events:
        async for _, kind, data in events:
            browser.apply(kind, data)
            if browser.shown["health"]["api"]["ok"]:
                break
        assert sorted(browser.shown["nodes"]) == ["fine", "owed"]
        assert browser.shown["nodes"]["owed"]["owed"] == 4
        await drawn.config("new", requested=2, granted=addresses(2, 60))
        async for _, kind, data in events:
            assert kind == "change"
            browser.apply(kind, data)
            if browser.shown["nodes"].get("new", {}).get("held") == 2:
                break
    assert browser.shown["subnets"]["pods"]["nodes"] == 3
    assert {"pods": [0]} in browser.blocks
    assert browser.snapshots == 1


async def test_a_page_that_reconnects_gets_what_it_missed_and_one_of_another_server_everything() -> None:
    drawn = await draw()
    async with page_on(drawn) as url:
        await read_nodes(url)
        async with streaming(url) as events:
            last, kind, _ = await anext(events)
            assert kind == "snapshot"
        await drawn.config("new", requested=2, granted=addresses(2, 60))
        names: set[str] = set()
        async with streaming(url, **{"Last-Event-ID": last}) as events:
            async for _, kind, data in events:
                assert kind == "change"
                names |= {each["name"] for each in data.get("nodes", ())}
                if "new" in names:
                    break
        assert names == {"new"}
        for stale in ("other.1", f"{last.partition('.')[0]}.9999999", f"{last}9x", "." * 50):
            async with streaming(url, **{"Last-Event-ID": stale}) as events:
                assert (await anext(events))[1] == "snapshot"


async def test_one_stream_too_many_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_STREAMS", 1)
    async with page_on(await draw()) as url, streaming(url) as events:
        await anext(events)
        status, answer, _ = await get(f"{url}/api/stream")
        assert (status, answer["error"]) == (
            503,
            "1 pages are open already: close one, or look again later",
        )


async def test_with_a_token_the_page_is_public_and_everything_else_is_not() -> None:
    async with page_on(await draw(), token=TOKEN) as url:
        assert (await get(f"{url}/"))[0] in {200, 404}
        assert (await get(f"{url}/", Host="elsewhere.example"))[0] in {200, 404}
        for path in ("/api/stream", "/api/waiting", "/api/nodes/fine", "/api/nothing"):
            status, answer, _ = await get(url + path)
            assert (status, answer["error"]) == (
                401,
                "a token is needed: send the one that this page was started with",
            )
            for wrong in (f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ", TOKEN, "Bearer é"):
                status, answer, _ = await get(url + path, Authorization=wrong)
                assert (status, answer["error"].split(":")[0]) == (401, "the token is wrong")
        assert (await get(f"{url}/api/waiting", Authorization=f"Bearer {TOKEN}"))[0] == 200


async def test_without_a_token_a_request_must_name_this_machine() -> None:
    async with page_on(await draw()) as url:
        assert (await get(f"{url}/api/waiting", Host="localhost:8321"))[0] == 200
        status, answer, _ = await get(f"{url}/api/waiting", Host="evil.example")
        assert status == 403
        assert "loopback" in answer["error"]


async def test_the_map_shows_nodes_and_which_of_their_addresses_pods_have() -> None:
    async with page_on(await draw()) as url:
        await read_nodes(url)
        status, answer, _ = await get(f"{url}/api/subnets/pods/map?from=0&count=1")
        assert (status, answer["blocks"], answer["size"], answer["pods"]) == (200, 1, 256, "all")
        assert (answer["first"], answer["bases"]) == (0, ["10.1.0.0"])
        states, nodes = cells(answer), owners(answer)
        assert [CellState(states[last]) for last in (0, 1, 2, 10, 11, 40, 255)] == [
            CellState.KEPT_BACK,
            CellState.KEPT_BACK,
            CellState.FREE,
            CellState.POD,
            CellState.HELD,
            CellState.HELD,
            CellState.KEPT_BACK,
        ]
        assert [nodes[last] for last in (2, 10, 14, 40)] == ["", "fine", "fine", "owed"]
        status, answer, _ = await get(f"{url}/api/subnets/pods/utilization?from=0&count=5")
        assert (answer["used"], answer["prefix"], answer["bases"]) == ([6], 24, ["10.1.0.0"])


async def test_a_pod_that_starts_on_an_address_of_its_node_changes_the_map_that_is_looked_at() -> None:
    drawn = await draw()
    async with page_on(drawn) as url, streaming(url) as events:
        async for _, _, data in events:
            if data.get("nodes") and data.get("subnets"):
                break
        await get(f"{url}/api/subnets/pods/map?count=1")
        await drawn.pod("second", "fine", "10.1.0.11")
        async for _, _, data in events:
            if data.get("blocks") == {"pods": [0]}:
                break
        _, answer, _ = await get(f"{url}/api/subnets/pods/map?count=1")
        assert cells(answer)[11] == CellState.POD


async def test_an_address_tells_its_node_and_its_pod() -> None:
    async with page_on(await draw()) as url:
        await read_nodes(url)
        _, answer, _ = await get(f"{url}/api/addresses/10.1.0.10")
        assert (answer["node"], answer["pod"], answer["state"]) == ("fine", "default/web", "on a pod")
        assert answer["podUid"]
        _, answer, _ = await get(f"{url}/api/addresses/10.1.0.11")
        assert (answer["node"], answer["pod"], answer["state"]) == ("fine", None, "held by a node")
        _, answer, _ = await get(f"{url}/api/addresses/10.1.0.200")
        assert (answer["node"], answer["state"]) == (None, "free")
        assert (await get(f"{url}/api/addresses/192.0.2.1"))[0] == 404
        status, answer, _ = await get(f"{url}/api/addresses/seven")
        assert (status, answer["error"]) == (400, "'seven' is not an address: give one such as 10.1.0.7")


async def test_a_node_has_its_addresses_pods_and_conditions() -> None:
    async with page_on(await draw()) as url:
        await read_nodes(url)
        _, answer, _ = await get(f"{url}/api/nodes/fine")
        assert answer["held"] == 5
        assert {"10.1.0.10": "default/web", "10.1.0.11": None}.items() <= {
            each["address"]: each["pod"] for each in answer["addresses"]
        }.items()
        assert [(each["name"], each["address"]) for each in answer["pods"]] == [("default/web", "10.1.0.10")]
        assert answer["conditions"][0]["reason"] == "Complete"
        assert answer["decision"]["text"] == "fine asks for 5 addresses; its agent stated no terms"
        status, answer, _ = await get(f"{url}/api/nodes/none")
        assert (status, answer["error"]) == (404, "there is no node 'none' in this cluster (any more)")


async def test_a_pod_that_waits_is_told_why() -> None:
    drawn = await draw()
    await drawn.pod("unplaced")
    async with page_on(drawn) as url:
        await read_nodes(url)
        _, answer, _ = await get(f"{url}/api/waiting")
        assert answer["truncated"] is False
        found = {each["pod"]: each for each in answer["pods"]}
        assert (found["default/late"]["node"], found["default/late"]["reason"]) == ("owed", "no leader")
        assert "was last renewed" in found["default/late"]["message"]
        assert found["default/unplaced"]["reason"] == "no node"


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("subnets/none/map", 404, "there is no subnet 'none'"),
        ("subnets/none/usage", 404, "there is no subnet 'none'"),
        ("subnets/pods/map?from=-1", 400, "from '-1' is not a number"),
        ("subnets/pods/map?count=257", 400, "count 1 to 256"),
        ("subnets/pods/map?count=0", 400, "count 1 to 256"),
        ("subnets/pods/map?count=99999999999999999999", 400, "is not a number"),
        ("subnets/pods/utilization?count=4097", 400, "count 1 to 4096"),
        ("subnets/pods/usage", 503, "started without one"),
        ("subnets/pods/forecast", 503, "started without one"),
        ("networks/none", 404, "there is no secondary network 'none'"),
        ("nothing", 404, "there is nothing at '/api/nothing'"),
    ],
)
async def test_a_question_without_an_answer_is_one_clear_sentence(path: str, status: int, words: str) -> None:
    async with page_on(await draw()) as url:
        await read_nodes(url)
        found, answer, _ = await get(f"{url}/api/{path}")
        assert found == status
        assert words in answer["error"]


async def test_the_page_only_reads() -> None:
    async with (
        page_on(await draw()) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/api/waiting") as answer,
    ):
        assert (answer.status, (await answer.json())["error"]) == (405, "the page only reads: use GET")


async def test_a_subnet_that_vanishes_while_it_is_looked_at_is_gone_from_the_stream_and_404() -> None:
    drawn = await draw()
    async with page_on(drawn) as url, streaming(url) as events:
        browser = Browser()
        async for _, kind, data in events:
            browser.apply(kind, data)
            if "pods" in browser.shown["subnets"]:
                break
        for name in ("fine", "owed"):
            await drawn.cluster.delete(NodeNetworkConfig, name, SYSTEM_NAMESPACE)
        await drawn.cluster.delete(ClusterSubnet, "pods", SYSTEM_NAMESPACE)
        async for _, kind, data in events:
            browser.apply(kind, data)
            if not browser.shown["subnets"]:
                break
        assert browser.snapshots == 1
        assert (await get(f"{url}/api/subnets/pods/map"))[0] == 404


async def test_the_allocators_numbers_history_and_quarantine_are_shown(tmp_path: Path) -> None:
    drawn = await draw()
    async with await open_allocator(
        f"sqlite:///{tmp_path}/a.db", clock=SystemClock(), migrate=True
    ) as allocator:
        await allocator.add_subnet(
            SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",), keep_back_first=3)
        )
        async with page_on(drawn, allocator=allocator) as url, streaming(url) as events:
            browser = Browser()
            async for _, kind, data in events:
                browser.apply(kind, data)
                if browser.shown["subnets"].get("pods", {}).get("quarantined") is not None:
                    break
            assert browser.shown["subnets"]["pods"]["reserved"] == 0
            _, answer, _ = await get(f"{url}/api/subnets/pods/map?count=1")
            assert list(cells(answer)[1:6]) == [CellState.KEPT_BACK] * 4 + [CellState.FREE]
            status, answer, _ = await get(f"{url}/api/subnets/pods/usage?step=1m")
            assert (status, answer["subnet"]) == (200, "pods")
            await allocator.sample()
            _, answer, _ = await get(f"{url}/api/subnets/pods/usage")
            assert (answer["step"], answer["demand"][-1], answer["need"][-1]) == (5, 0, 0)
            for bad in (
                "step=2m",
                "since=yesterday",
                "since=2026-11-05T12:00:00Z&until=2026-11-04T12:00:00Z",
            ):
                status, answer, _ = await get(f"{url}/api/subnets/pods/usage?{bad}")
                assert status == 400, bad
            status, answer, _ = await get(f"{url}/api/subnets/pods/forecast")
            assert (status, answer["refused"]) == (200, answer["basis"])
            assert "no date is named" in answer["refused"]


async def test_an_allocator_that_went_away_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    drawn = await draw()
    allocator = await open_allocator(f"sqlite:///{tmp_path}/a.db", clock=SystemClock(), migrate=True)
    async with allocator:
        pass
    async with page_on(drawn, allocator=allocator) as url, streaming(url) as events:
        browser = Browser()
        async for _, kind, data in events:
            browser.apply(kind, data)
            if browser.shown["health"]["allocator"]["ok"] is False and browser.shown["subnets"]:
                break
        assert browser.shown["subnets"]["pods"]["reserved"] == 8
        status, answer, _ = await get(f"{url}/api/subnets/pods/usage")
        assert status == 503
        assert answer["error"]
