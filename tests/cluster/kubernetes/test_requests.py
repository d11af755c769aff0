import msgspec
import pytest

from podtide.cluster.kubernetes import requests
from podtide.cluster.kubernetes.requests import ListSelection
from podtide.cluster.port import DeletePreconditions, Invalid, Patch
from podtide.resources.base import ObjectMeta, Original
from podtide.resources.ip_pool import IPPool, IPPoolSpec
from podtide.resources.node import Node
from podtide.resources.pod import Pod


def pool(**metadata: str) -> IPPool:
    return IPPool(
        metadata=ObjectMeta(**{"name": "a", "namespace": "kube-system", **metadata}),  # type: ignore[arg-type]  # all text
        spec=IPPoolSpec(range="10.0.0.0/24", allocations={}),
        original=Original({"spec": {"theirs": 1}}),
    )


def pods(fields: str = "", labels: str = "") -> ListSelection:
    return ListSelection(api=Pod.api, namespace="default", fields=fields, labels=labels)


def test_paths_follow_the_group_the_namespace_and_the_name() -> None:
    assert requests.get(Pod.api, "default", "web").path == "/api/v1/namespaces/default/pods/web"
    assert requests.get(Node.api, "", "node-a").path == "/api/v1/nodes/node-a"
    root = "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools"
    assert requests.create(pool(), "agent").path == root
    assert requests.replace(pool(), "agent").path == f"{root}/a"
    assert requests.replace_status(pool(), "agent").path == f"{root}/a/status"


def test_a_name_cannot_leave_its_place_in_the_path() -> None:
    assert requests.get(Pod.api, "default", "a b?c#d").path == "/api/v1/namespaces/default/pods/a%20b%3Fc%23d"
    for name in ("", ".", "..", "a/b", "a%2fb"):
        with pytest.raises(Invalid, match="name"):
            requests.get(Pod.api, "default", name)


def test_a_list_asks_for_the_present_whatever_page_it_is() -> None:
    query = requests.list_page(pods("spec.nodeName=a", "app=web"), limit=500, more="token").query
    assert query == {
        "fieldSelector": "spec.nodeName=a",
        "labelSelector": "app=web",
        "limit": "500",
        "continue": "token",
    }
    assert requests.list_page(pods(), limit=0).query == {}


def test_a_watch_asks_for_bookmarks_and_for_an_end() -> None:
    assert requests.watch(pods(), resource_version="17", timeout_seconds=400).query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "17",
        "timeoutSeconds": "400",
    }


@pytest.mark.parametrize(
    "version",
    [
        *("", "0", "-1", "latest", "1\n", "\N{ARABIC-INDIC DIGIT SEVEN}", str(2**64)),
        pytest.param("9" * 5000, id="5000 digits"),
    ],
)
def test_what_no_server_can_have_given_as_a_version_is_not_watched_from(version: str) -> None:
    with pytest.raises(Invalid, match="is not a resource version to watch from") as failure:
        requests.watch(pods(), resource_version=version, timeout_seconds=400)
    assert len(str(failure.value)) < 200


def test_an_apply_says_what_the_struct_says_and_nothing_that_was_only_read() -> None:
    request = requests.apply(pool(uid="u-1"), "agent", force=False)
    assert (request.method, request.content_type) == ("PATCH", "application/apply-patch+yaml")
    assert request.query == {"fieldManager": "agent", "force": "false"}
    assert request.body is not None
    document = msgspec.json.decode(request.body)
    assert document["metadata"]["uid"] == "u-1"
    assert "theirs" not in document["spec"]


def test_a_replace_carries_what_was_read_and_no_struct_names() -> None:
    body = requests.replace(pool(), "agent").body
    assert body is not None
    assert msgspec.json.decode(body)["spec"]["theirs"] == 1


def test_a_patch_says_the_changes_and_on_what_conditions() -> None:
    request = requests.patch(
        Patch(
            Node,
            "a",
            changes={"status": {"capacity": {"example.com/x": None}}},
            uid="u-1",
            resource_version="17",
            status=True,
        ),
        manager="controller",
    )
    assert (request.method, request.content_type) == ("PATCH", "application/merge-patch+json")
    assert (request.path, request.query) == ("/api/v1/nodes/a/status", {"fieldManager": "controller"})
    assert request.doing == "patch the status of Node a"
    assert request.body is not None
    assert msgspec.json.decode(request.body) == {
        "metadata": {"uid": "u-1", "resourceVersion": "17"},
        "status": {"capacity": {"example.com/x": None}},
    }


def test_changes_that_are_not_json_are_not_sent() -> None:
    endless: dict[str, object] = {}
    endless["spec"] = endless
    for changes in ({"spec": object()}, {"spec": "\ud800"}, endless):
        with pytest.raises(Invalid, match="cannot patch Pod default/web: these changes cannot be written"):
            requests.patch(Patch(Pod, "web", namespace="default", changes=changes), manager="x")


def test_a_delete_names_what_it_expects_and_leaves_what_is_owned_to_the_collector() -> None:
    body = requests.delete(
        Pod.api, "default", "web", DeletePreconditions(uid="u-1", resource_version="17")
    ).body
    assert body is not None
    options = msgspec.json.decode(body)
    assert options["preconditions"] == {"uid": "u-1", "resourceVersion": "17"}
    assert options["propagationPolicy"] == "Background"
    assert "gracePeriodSeconds" not in options


def test_a_write_names_its_manager() -> None:
    with pytest.raises(Invalid, match="manager"):
        requests.apply(pool(), "", force=True)


def test_what_is_asked_is_said_in_words() -> None:
    assert requests.get(Node.api, "", "a").doing == "get Node a"
    assert requests.list_page(pods(), limit=0).doing == "list Pod in default"
    assert requests.replace_status(pool(), "x").doing == "replace the status of IPPool kube-system/a"
    generated = requests.create(pool(name="", generate_name="part-"), "x")
    assert generated.doing == "create IPPool kube-system/part-"
