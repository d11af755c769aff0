"""What the adapter makes of a server, or of what stands before it, that does not behave."""

import asyncio
import io
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

import pytest

from accepted_connections import LOOPBACK
from cluster.kubernetes.loopback_server import (
    QUICK,
    Answering,
    Handler,
    Received,
    client,
    serving,
    status,
)
from podtide.cluster.informer import Informer
from podtide.cluster.kubernetes import ApiServerTimeouts, KubernetesCluster
from podtide.cluster.port import (
    Change,
    ClusterError,
    Forbidden,
    Gone,
    NotFound,
    Throttled,
    Unavailable,
    WatchEvent,
)
from podtide.resources.base import ObjectMeta
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

pytestmark = pytest.mark.real_time

PATIENT = ApiServerTimeouts(connect_seconds=10, answer_seconds=20, silence_seconds=20)
"""For servers that are expected to do well: only a test that has failed waits so long."""


def node(name: str = "a", version: str = "5", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": version}, **more}


def listing(*items: dict[str, Any], version: str = "5") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}, "items": list(items)}


async def watched(
    url: str, version: str = "5", timeouts: ApiServerTimeouts = PATIENT
) -> tuple[list[WatchEvent[Node]], ClusterError | None]:
    """All events of a watch of nodes, and the error it ended with."""
    events = []
    async with client(url, timeouts=timeouts) as cluster, asyncio.timeout(30):
        try:
            async with aclosing(cluster.watch(Node, resource_version=version)) as watch:
                async for event in watch:
                    events.append(event)  # noqa: PERF401 - those before an error count too
        except ClusterError as error:
            return events, error
    return events, None


async def failure(url: str, timeouts: ApiServerTimeouts = PATIENT) -> ClusterError:
    """The error that reading a node ends with."""
    async with client(url, timeouts=timeouts) as cluster, asyncio.timeout(30):
        with pytest.raises(ClusterError) as caught:
            await cluster.get(Node, "a")
    return caught.value


async def test_who_is_throttled_learns_when_to_come_back_and_asks_only_once() -> None:
    async def throttle(_request: Received, answering: Answering) -> None:
        await answering.answer(429, status(429, "TooManyRequests", "slow down"), **{"Retry-After": "17"})

    async with serving(throttle) as server:
        error = await failure(server.url)
        assert isinstance(error, Throttled)
        assert error.retry_after_seconds == 17
        assert len(server.received) == 1


async def test_an_error_of_the_server_is_not_tried_again() -> None:
    async def fail(_request: Received, answering: Answering) -> None:
        await answering.answer(500, status(500, "InternalError", "etcd is gone"))

    async with serving(fail) as server:
        error = await failure(server.url)
        assert type(error) is Unavailable
        assert str(error) == "cannot get Node a: etcd is gone"
        assert len(server.received) == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda cluster: cluster.get(Node, "a"),
        lambda cluster: cluster.replace(Node(metadata=ObjectMeta(name="a")), manager="test"),
        lambda cluster: cluster.delete(Node, "a"),
    ],
)
async def test_a_request_whose_connection_breaks_is_sent_only_once(
    ask: Callable[[KubernetesCluster], Awaitable[object]],
) -> None:
    async def drop(request: Received, answering: Answering) -> None:
        if "first" in request.path:
            await answering.answer(200, node("first"))
        else:
            raise ConnectionAbortedError

    async with serving(drop) as server, client(server.url, timeouts=PATIENT) as cluster:
        await cluster.get(Node, "first")  # so that the next goes over a connection that was used before
        with pytest.raises(Unavailable, match="broke"):
            await ask(cluster)
        assert len(server.received) == 2


async def test_a_server_that_is_not_there_is_unavailable_at_once() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
    error = await failure(f"http://{LOOPBACK}:{port}")
    assert type(error) is Unavailable
    assert str(error).startswith(f"cannot get Node a: http://{LOOPBACK}:{port} cannot be reached (")


async def test_a_server_that_never_answers_is_unavailable_after_a_while() -> None:
    async def hang(_request: Received, answering: Answering) -> None:
        await answering.hang()

    async with serving(hang) as server:
        error = await failure(server.url, QUICK)
        assert type(error) is Unavailable
        assert "did not answer in time" in str(error)


async def test_an_answer_that_stops_in_the_middle_is_unavailable() -> None:
    async def stop(_request: Received, answering: Answering) -> None:
        await answering.send(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"metadata":')
        await answering.hang()

    async def cut(_request: Received, answering: Answering) -> None:
        await answering.send(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"metadata":')
        raise ConnectionAbortedError

    async with serving(stop) as server:
        assert type(await failure(server.url, QUICK)) is Unavailable
    async with serving(cut) as server:
        assert type(await failure(server.url)) is Unavailable


async def test_a_redirection_is_not_followed_because_no_api_server_sends_one() -> None:
    async def redirect(_request: Received, answering: Answering) -> None:
        await answering.answer(302, b"", Location="/login")

    async with serving(redirect) as server:
        error = await failure(server.url)
        assert type(error) is Unavailable
        assert "redirection" in str(error)
        assert len(server.received) == 1


async def test_what_is_no_http_is_unavailable() -> None:
    async def babble(_request: Received, answering: Answering) -> None:
        await answering.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    async with serving(babble) as server:
        assert type(await failure(server.url)) is Unavailable


async def test_a_login_page_is_no_object() -> None:
    async def page(_request: Received, answering: Answering) -> None:
        await answering.answer(200, b"<html>Please log in</html>")

    async with serving(page) as server:
        assert type(await failure(server.url)) is Unavailable


async def test_a_watch_that_the_server_ends_just_ends() -> None:
    async def end(_request: Received, answering: Answering) -> None:
        await answering.begin_watch()
        await answering.event("ADDED", node(version="6"))
        await answering.event("BOOKMARK", {"metadata": {"resourceVersion": "9"}})
        await answering.end_watch()

    async with serving(end) as server:
        events, error = await watched(server.url)
        assert error is None
        assert [(event.change, event.resource_version) for event in events] == [
            (Change.ADDED, "6"),
            (Change.BOOKMARK, "9"),
        ]


async def test_a_watch_that_is_cut_within_a_line_gives_what_was_whole_and_is_unavailable() -> None:
    async def cut(_request: Received, answering: Answering) -> None:
        await answering.begin_watch()
        await answering.event("ADDED", node(version="6"))
        await answering.chunk(b'{"type":"ADDED","object":{"metadata":{"name":"b"')
        raise ConnectionAbortedError

    async with serving(cut) as server:
        events, error = await watched(server.url)
        assert [event.resource_version for event in events] == ["6"]
        assert type(error) is Unavailable


async def test_a_watch_that_ends_in_good_order_but_within_a_line_is_unavailable_too() -> None:
    async def cut(_request: Received, answering: Answering) -> None:
        await answering.begin_watch()
        await answering.chunk(b'{"type":"ADDED","object":{"metadata":{"name":"b"')
        await answering.end_watch()

    async with serving(cut) as server:
        events, error = await watched(server.url)
        assert events == []
        assert type(error) is Unavailable


async def test_an_error_event_ends_the_watch_with_what_it_means() -> None:
    async def expire(_request: Received, answering: Answering) -> None:
        await answering.begin_watch()
        await answering.event("ERROR", status(410, "Expired", "too old resource version: 5 (99)"))
        await answering.hang()

    async with serving(expire) as server:
        events, error = await watched(server.url)
        assert events == []
        assert isinstance(error, Gone)
        assert str(error) == "cannot watch Node: too old resource version: 5 (99)"


async def test_a_refusal_in_place_of_a_watch_is_raised() -> None:
    async def refuse(_request: Received, answering: Answering) -> None:
        await answering.answer(403, status(403, "Forbidden", "nodes is forbidden"))

    async with serving(refuse) as server:
        _, error = await watched(server.url)
        assert isinstance(error, Forbidden)


async def test_a_garbage_line_breaks_the_watch_after_what_came_before() -> None:
    async def garble(_request: Received, answering: Answering) -> None:
        await answering.begin_watch()
        await answering.event("ADDED", node(version="6"))
        await answering.chunk(b"\x00garbage\n")
        await answering.hang()

    async with serving(garble) as server:
        events, error = await watched(server.url)
        assert [event.resource_version for event in events] == ["6"]
        assert type(error) is Unavailable


async def test_an_object_of_many_megabytes_passes() -> None:
    annotations = {f"key-{number}": "x" * 1000 for number in range(4000)}
    large = {"metadata": {"name": "a", "resourceVersion": "6", "annotations": annotations}}

    async def send(request: Received, answering: Answering) -> None:
        if "watch" not in request.query:
            await answering.answer(200, listing(large))
            return
        await answering.begin_watch()
        data = json.dumps({"type": "ADDED", "object": large}).encode() + b"\n"
        for start in range(0, len(data), 50_000):
            await answering.chunk(data[start : start + 50_000])
        await answering.end_watch()

    async with serving(send) as server:
        events, error = await watched(server.url)
        assert error is None
        assert events[0].item is not None
        assert len(events[0].item.metadata.annotations) == 4000
        async with client(server.url, timeouts=PATIENT) as cluster:
            assert len((await cluster.list(Node)).items[0].metadata.annotations) == 4000


async def test_a_watch_whose_head_does_not_come_is_unavailable() -> None:
    async def hang(_request: Received, answering: Answering) -> None:
        await answering.hang()

    async with serving(hang) as server:
        _, error = await watched(server.url, timeouts=QUICK)
        assert type(error) is Unavailable


async def test_a_watch_that_falls_silent_ends_so_that_its_reader_resumes_over_another_connection() -> None:
    async def fall_silent(request: Received, answering: Answering) -> None:
        if "watch" not in request.query:
            await answering.answer(200, listing(version="8"))
            return
        await answering.begin_watch()
        await answering.event("ADDED", node(version="6"))
        await answering.hang()

    async with serving(fall_silent) as server:
        events, error = await watched(server.url, timeouts=QUICK)
        assert error is None
        assert len(events) == 1
        assert server.received[-1].query == {"limit": "1"}


async def test_a_silent_watch_of_a_server_that_answers_nobody_is_unavailable() -> None:
    async def fall_silent(request: Received, answering: Answering) -> None:
        if "watch" in request.query:
            await answering.begin_watch()
        await answering.hang()

    async with serving(fall_silent) as server:
        _, error = await watched(server.url, timeouts=QUICK)
        assert type(error) is Unavailable


async def test_a_silent_watch_from_a_version_ahead_of_the_servers_own_is_gone() -> None:
    async def from_a_backup(request: Received, answering: Answering) -> None:
        if "watch" in request.query:
            await answering.begin_watch()
            await answering.hang()
        await answering.answer(200, listing(version="99"))

    async with serving(from_a_backup) as server:
        _, error = await watched(server.url, version="100", timeouts=QUICK)
        assert isinstance(error, Gone)
        assert "ahead" in str(error)


@pytest.mark.parametrize("version", ["latest", pytest.param("9" * 5000, id="5000 digits")])
async def test_a_silent_watch_whose_last_version_is_no_number_just_ends(version: str) -> None:
    async def fall_silent(request: Received, answering: Answering) -> None:
        if "watch" in request.query:
            await answering.begin_watch()
            await answering.event("ADDED", node(version=version))
            await answering.hang()
        await answering.answer(200, listing(version="99"))

    async with serving(fall_silent) as server:
        events, error = await watched(server.url, timeouts=QUICK)
        assert error is None
        assert len(events) == 1


async def test_closing_a_watch_closes_its_connection() -> None:
    async def go_on(_request: Received, answering: Answering) -> None:
        await answering.begin_watch()
        while True:
            await answering.event("MODIFIED", node())
            await asyncio.sleep(0.01)

    async with serving(go_on) as server, client(server.url, timeouts=PATIENT) as cluster:
        async with aclosing(cluster.watch(Node, resource_version="5")) as watch:
            await anext(watch)
        async with asyncio.timeout(10):
            await server.was_left.wait()


async def test_cancelling_a_request_closes_its_connection() -> None:
    async def hang(_request: Received, answering: Answering) -> None:
        while True:
            await answering.send(b"HTTP/1.1 102 Processing\r\n\r\n")
            await asyncio.sleep(0.01)

    async with serving(hang) as server, client(server.url, timeouts=PATIENT) as cluster:
        asking = asyncio.create_task(cluster.get(Node, "a"))
        async with asyncio.timeout(10):
            await server.was_asked.wait()
            asking.cancel()
            await server.was_left.wait()


async def test_the_length_of_a_watch_is_drawn_at_random_so_that_watches_do_not_end_together() -> None:
    async def end(_request: Received, answering: Answering) -> None:
        await answering.begin_watch()
        await answering.end_watch()

    async with serving(end) as server, client(server.url, timeouts=PATIENT) as cluster:
        for _ in range(8):
            async for _event in cluster.watch(Node, resource_version="5"):
                pass
        lengths = {int(request.query["timeoutSeconds"]) for request in server.received}
        assert len(lengths) > 1
        assert all(300 <= length <= 600 for length in lengths)


async def test_a_deletion_that_was_left_to_the_kubelet_is_finished_for_a_pod_that_has() -> None:
    pod = {
        "metadata": {"name": "a", "namespace": "default", "uid": "u-1", "deletionGracePeriodSeconds": 30},
        "status": {"phase": "Failed"},
    }
    requests: list[Any] = []

    async def delete(request: Received, answering: Answering) -> None:
        requests.append(json.loads(request.body))
        if len(requests) == 1:
            await answering.answer(200, pod)
        else:
            await answering.answer(404, status(404, "NotFound"))

    async with serving(delete) as server, client(server.url, timeouts=PATIENT) as cluster:
        await cluster.delete(Pod, "a", "default")
    assert [request.get("gracePeriodSeconds") for request in requests] == [None, 0]
    assert requests[1]["preconditions"] == {"uid": "u-1"}


@pytest.mark.slow
async def test_a_server_that_fails_sees_an_informer_a_few_times_only() -> None:
    """Each in its own way, all at once: the waits are real."""

    async def refuse(_request: Received, answering: Answering) -> None:
        await answering.answer(500, status(500, "InternalError"))

    async def drop(_request: Received, _answering: Answering) -> None:
        raise ConnectionAbortedError

    async def throttle(_request: Received, answering: Answering) -> None:
        await answering.answer(429, status(429), **{"Retry-After": "2"})

    async def end_watches(request: Received, answering: Answering) -> None:
        if "watch" in request.query:
            await answering.begin_watch()
            await answering.end_watch()
        else:
            await answering.answer(200, listing())

    async def follow(handler: Handler) -> int:
        clock = SystemClock()
        async with serving(handler) as server, client(server.url, timeouts=PATIENT) as cluster:
            informer = Informer(
                cluster,
                NodeNetworkConfig,
                runtime=Runtime(
                    clock=clock, randomness=seeded_randomness(3), log=make_logger(io.StringIO(), clock)
                ),
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(2.5):
                    await informer.run()
            return len(server.received)

    for seen in await asyncio.gather(*(follow(each) for each in (refuse, drop, throttle, end_watches))):
        assert 1 <= seen <= 5


async def test_absence_is_what_the_server_says_and_not_what_stands_before_it() -> None:
    async def answer(request: Received, answering: Answering) -> None:
        if request.path.endswith("/gone"):
            await answering.answer(404, status(404, "NotFound", 'nodes "gone" not found'))
        else:
            await answering.answer(404, b"<html>404</html>")

    async with serving(answer) as server, client(server.url, timeouts=PATIENT) as cluster:
        with pytest.raises(NotFound, match="gone"):
            await cluster.get(Node, "gone")
        with pytest.raises(Unavailable):
            await cluster.get(Node, "hidden")
