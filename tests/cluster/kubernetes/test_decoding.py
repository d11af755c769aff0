from typing import Any

import msgspec
import pytest

from cluster.kubernetes.loopback_server import status
from podtide.cluster.kubernetes.decoding import decode_event, decode_item, decode_page
from podtide.cluster.port import Change, Forbidden, Gone, R, Unavailable, WatchEvent
from podtide.resources.base import Resource
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodPhase

DOING = "watch it"


def metadata(version: str = "7", **more: Any) -> dict[str, Any]:
    return {"name": "a", "namespace": "default", "uid": "u-1", "resourceVersion": version, **more}


def event(kind: type[R], change: str, document: Any) -> WatchEvent[R]:
    return decode_event(kind, msgspec.json.encode({"type": change, "object": document}), DOING)


def added(kind: type[R], document: Any) -> R:
    item = event(kind, "ADDED", document).item
    assert item is not None
    return item


def test_an_event_carries_its_object_and_the_version_to_resume_from() -> None:
    read = event(Pod, "MODIFIED", {"metadata": metadata(), "status": {"phase": "Running", "qosClass": "x"}})
    assert (read.change, read.resource_version) == (Change.MODIFIED, "7")
    assert read.item is not None
    assert read.item.status.phase is PodPhase.RUNNING


def test_a_kind_that_keeps_the_unknown_keeps_it_in_events_and_lists() -> None:
    document = {"metadata": metadata(), "spec": {"requestedIPCount": 16, "theirs": True}}
    read = added(NodeNetworkConfig, document)
    page = decode_page(
        NodeNetworkConfig,
        msgspec.json.encode({"metadata": {"resourceVersion": "9"}, "items": [document]}),
        DOING,
    )
    for item in (read, *page.items):
        assert item.spec.requested_ip_count == 16
        assert item.original is not None
        assert item.original.document["spec"]["theirs"] is True


def test_nulls_as_go_writes_them_are_read() -> None:
    document = {"metadata": metadata(labels=None), "spec": {"containers": None}}
    assert added(Pod, document).spec.containers == []
    body = msgspec.json.encode({"metadata": {"resourceVersion": "9"}, "items": [document]})
    assert decode_page(Pod, body, DOING).items[0].metadata.labels == {}
    for kind in (Pod, NodeNetworkConfig):
        assert decode_page(kind, b'{"metadata":{"resourceVersion":"9"},"items":null}', DOING).items == []


@pytest.mark.parametrize("kind", [Pod, Node, NodeNetworkConfig])
def test_a_bookmark_is_a_version_and_no_object(kind: type[Resource]) -> None:
    bare = {"metadata": {"resourceVersion": "7", "creationTimestamp": None}, "spec": {"containers": None}}
    assert event(kind, "BOOKMARK", bare) == WatchEvent(Change.BOOKMARK, None, "7")


@pytest.mark.parametrize("kind", [Pod, Node, NodeNetworkConfig])
def test_an_error_in_the_midst_of_a_watch_is_raised_as_what_it_means(kind: type[Resource]) -> None:
    with pytest.raises(Gone, match="too old resource version"):
        event(kind, "ERROR", status(410, "Expired", "too old resource version: 1 (2)"))
    with pytest.raises(Forbidden):
        event(kind, "ERROR", status(403, "Forbidden"))
    with pytest.raises(Unavailable):
        event(kind, "ERROR", {})


@pytest.mark.parametrize("kind", [Pod, NodeNetworkConfig])
@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b'{"type":"RENAMED","object":{}}',
        b'{"type":"ADDED","object":{"metadata":7}}',
    ],
)
def test_a_line_that_cannot_be_read_says_nothing_about_the_cluster(kind: type[Resource], line: bytes) -> None:
    with pytest.raises(Unavailable, match="cannot be read"):
        decode_event(kind, line, DOING)


@pytest.mark.parametrize("kind", [Pod, NodeNetworkConfig])
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{}", b'{"items":7}', b'{"metadata":{},"items":[{"metadata":7}]}']
)
def test_an_answer_that_cannot_be_read_says_nothing_about_the_cluster(
    kind: type[Resource], body: bytes
) -> None:
    with pytest.raises(Unavailable, match="cannot be read"):
        decode_page(kind, body, DOING)


def test_what_is_no_object_of_an_api_server_is_not_taken_for_an_empty_one() -> None:
    for kind in (Pod, NodeNetworkConfig):
        for body in (b"{}", b'{"metadata":{"name":"a"}}', b'{"status":{}}'):
            with pytest.raises(Unavailable, match="cannot be read"):
                decode_item(kind, body, DOING)
        for body in (b'{"metadata":{"resourceVersion":"9"}}', b'{"metadata":{},"items":[]}'):
            with pytest.raises(Unavailable, match="cannot be read"):
                decode_page(kind, body, DOING)
        with pytest.raises(Unavailable, match="cannot be read"):
            event(kind, "ADDED", {"metadata": {"name": "a"}})


def test_an_object_that_cannot_be_read_is_named() -> None:
    document = {"metadata": metadata(), "spec": {"requestedIPCount": "many"}}
    with pytest.raises(Unavailable, match=r"default/a .*requestedIPCount"):
        decode_item(NodeNetworkConfig, msgspec.json.encode(document), "get NodeNetworkConfig default/a")
