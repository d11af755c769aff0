"""Objects over HTTP: what is sent is kept, what is asked for comes back, what cannot be is a Status."""

from pathlib import Path

import pytest

from cluster.served.http_client import CONFIGS, MERGE, PODS, TABLE, config, open_client, pod

pytestmark = pytest.mark.real_time

NODES = "/api/v1/nodes"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


async def test_a_pods_full_document_survives_a_round_trip() -> None:
    async with open_client() as client:
        made = await client.ask("POST", PODS, pod())
        read = await client.ask("GET", f"{PODS}/web")
        assert (made.code, read.code) == (201, 200)
        assert read.document == made.document
        assert read.document["spec"] == pod()["spec"]
        listed = await client.ask("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-a")
        assert listed.document["kind"] == "PodList"
        assert listed.document["items"] == [read.document]


async def test_what_struct_fields_say_can_be_changed_without_losing_the_others() -> None:
    async with open_client() as client:
        await client.ask("POST", PODS, pod())
        change = {"status": {"phase": "Running", "podIP": "10.0.0.5"}}
        answer = await client.ask("PATCH", f"{PODS}/web/status", change, MERGE)
        assert answer.document["spec"] == pod()["spec"]
        assert answer.document["status"] == {"phase": "Running", "podIP": "10.0.0.5"}


async def test_a_number_is_taken_for_a_quantity_and_kept_as_text() -> None:
    async with open_client() as client:
        sent = pod()
        sent["spec"]["containers"][0]["resources"] = {
            "requests": {"podtide.io/ipv4": 1, "cpu": 0.5, "memory": "1Gi"}
        }
        made = await client.ask("POST", PODS, sent)
        requests = made.document["spec"]["containers"][0]["resources"]["requests"]
        assert requests == {"podtide.io/ipv4": "1", "cpu": "0.5", "memory": "1Gi"}
        await client.ask("POST", NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
        change = {"status": {"capacity": {"pods": 110}, "conditions": [{"type": "Ready", "status": "True"}]}}
        answer = await client.ask("PATCH", f"{NODES}/a/status", change, MERGE)
        assert answer.document["status"] == {**change["status"], "capacity": {"pods": "110"}}
        refused = await client.ask(
            "PATCH", f"{NODES}/a/status", {"status": {"capacity": {"pods": True}}}, MERGE
        )
        assert refused.code == 422


async def test_a_file_keeps_what_was_sent(tmp_path: Path) -> None:
    async with open_client(tmp_path / "state.db") as client:
        made = await client.ask("POST", PODS, pod())
    async with open_client(tmp_path / "state.db") as client:
        read = await client.ask("GET", f"{PODS}/web")
        assert read.document == made.document


async def test_lists_come_in_pages_with_a_token() -> None:
    async with open_client() as client:
        for name in "abc":
            await client.ask("POST", CONFIGS, config(name))
        first = (await client.ask("GET", f"{CONFIGS}?limit=2")).document
        more = first["metadata"]["continue"]
        second = (await client.ask("GET", f"{CONFIGS}?limit=2&continue={more}")).document
        names = [[item["metadata"]["name"] for item in page["items"]] for page in (first, second)]
        assert names == [["a", "b"], ["c"]]
        assert second["metadata"] == {
            "resourceVersion": first["metadata"]["resourceVersion"],
            "continue": "",
        }


async def test_a_write_that_makes_an_object_is_201_and_one_that_changes_it_200() -> None:
    async with open_client() as client:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "leader"},
            "spec": {},
        }
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/leader"
        made = await client.ask("PUT", path, lease)
        again = await client.ask("PUT", path, made.document)
        assert (made.code, again.code) == (201, 200)
        applies = [
            (await client.ask("PATCH", f"{CONFIGS}/node-a?fieldManager=me", config(), APPLY)).code
            for _ in range(2)
        ]
        assert applies == [201, 200]


async def test_an_apply_may_be_written_in_yaml() -> None:
    async with open_client() as client:
        text = b"apiVersion: acn.azure.com/v1alpha\nkind: NodeNetworkConfig\nspec: {requestedIPCount: 3}\n"
        answer = await client.ask("PATCH", f"{CONFIGS}/node-a?fieldManager=me", text, APPLY)
        assert answer.document["spec"] == {"requestedIPCount": 3}
        (entry,) = answer.document["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"]) == ("me", "Apply")


async def test_patches_of_every_type_change_what_they_say() -> None:
    async with open_client() as client:
        await client.ask("POST", CONFIGS, config())
        await client.ask("PATCH", f"{CONFIGS}/node-a", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        operations = [{"op": "replace", "path": "/spec/requestedIPCount", "value": 5}]
        answer = await client.ask("PATCH", f"{CONFIGS}/node-a", operations, JSON_PATCH)
        assert answer.document["metadata"]["labels"] == {"a": "b"}
        assert answer.document["spec"] == {"requestedIPCount": 5}
        await client.ask("POST", PODS, pod())
        env = {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]}}
        answer = await client.ask("PATCH", f"{PODS}/web", env, STRATEGIC)
        (container,) = answer.document["spec"]["containers"]
        assert container["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
        assert container["image"] == "registry.invalid/web"


async def test_a_patch_that_carries_a_version_is_a_conflict_unless_it_is_the_current_one() -> None:
    async with open_client() as client:
        made = await client.ask("POST", CONFIGS, config())
        change = {"metadata": {"resourceVersion": made.document["metadata"]["resourceVersion"], "labels": {}}}
        await client.ask("PATCH", f"{CONFIGS}/node-a", {"spec": {"requestedIPCount": 1}}, MERGE)
        stale = await client.ask("PATCH", f"{CONFIGS}/node-a", change, MERGE)
        assert (stale.code, stale.reason) == (409, "Conflict")


async def test_who_patches_is_known_by_the_program_when_no_manager_is_named() -> None:
    async with open_client() as client:
        agent = {"User-Agent": "curl/8.0 (linux)"}
        answer = await client.ask("POST", CONFIGS, config(), **agent)
        assert [entry["manager"] for entry in answer.document["metadata"]["managedFields"]] == ["curl"]


async def test_nulls_and_empty_names_say_nothing() -> None:
    async with open_client() as client:
        body = config(status=None)
        body["metadata"] |= {"creationTimestamp": None, "resourceVersion": "", "namespace": ""}
        answer = await client.ask("POST", CONFIGS, body)
        assert answer.code == 201
        assert answer.document["metadata"]["namespace"] == "kube-system"
        assert "status" not in answer.document


async def test_deleting_answers_success_or_what_is_left() -> None:
    async with open_client() as client:
        held = config("held")
        held["metadata"]["finalizers"] = ["podtide.example/held"]
        for body in (config(), held):
            await client.ask("POST", CONFIGS, body)
        gone = await client.ask("DELETE", f"{CONFIGS}/node-a")
        assert gone.document["status"] == "Success"
        assert gone.document["details"]["kind"] == "nodenetworkconfigs"
        left = await client.ask("DELETE", f"{CONFIGS}/held")
        assert left.document["metadata"]["deletionTimestamp"]
        assert (await client.ask("GET", f"{CONFIGS}/held")).document == left.document


async def test_a_bound_pod_is_marked_and_goes_when_no_grace_is_asked_for() -> None:
    async with open_client() as client:
        await client.ask("POST", PODS, pod())
        marked = await client.ask("DELETE", f"{PODS}/web")
        assert marked.document["metadata"]["deletionGracePeriodSeconds"] == 30
        last = await client.ask("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
        assert last.document["kind"] == "Pod"
        assert (await client.ask("GET", f"{PODS}/web")).code == 404


async def test_a_deletion_meant_for_another_object_is_a_conflict() -> None:
    async with open_client() as client:
        await client.ask("POST", CONFIGS, config())
        other = await client.ask("DELETE", f"{CONFIGS}/node-a", {"preconditions": {"uid": "another"}})
        assert (other.code, other.reason) == (409, "Conflict")


async def test_a_table_shows_the_columns_of_the_kind() -> None:
    async with open_client() as client:
        await client.ask("POST", CONFIGS, config())
        table = (await client.ask("GET", CONFIGS, Accept=TABLE)).document
        assert table["kind"] == "Table"
        assert [column["name"] for column in table["columnDefinitions"]][:3] == [
            "Name",
            "Requested IPs",
            "Allocated IPs",
        ]
        (row,) = table["rows"]
        assert row["cells"][:3] == ["node-a", 16, None]
        assert row["object"]["kind"] == "PartialObjectMetadata"
        single = (await client.ask("GET", f"{CONFIGS}/node-a?includeObject=Object", Accept=TABLE)).document
        assert single["rows"][0]["object"]["spec"] == {"requestedIPCount": 16}


async def test_namespaces_are_there_from_the_start_and_emptied_when_deleted() -> None:
    async with open_client() as client:
        listed = (await client.ask("GET", "/api/v1/namespaces")).document["items"]
        assert {item["metadata"]["name"]: item["status"]["phase"] for item in listed} == {
            "default": "Active",
            "kube-system": "Active",
        }
        spare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "spare"}}
        await client.ask("POST", "/api/v1/namespaces", spare)
        await client.ask("POST", "/api/v1/namespaces/spare/pods", pod())
        await client.ask("POST", PODS, pod())
        assert (await client.ask("DELETE", "/api/v1/namespaces/spare")).code == 200
        assert (await client.ask("GET", "/api/v1/namespaces/spare/pods/web")).code == 404
        assert (await client.ask("GET", f"{PODS}/web")).code == 200
        assert (await client.ask("DELETE", "/api/v1/namespaces/default")).reason == "Forbidden"


async def test_a_client_may_restate_who_owns_which_field() -> None:
    """As kubectl does when it takes to server-side apply what it applied from its own side before."""
    async with open_client() as client:
        made = await client.ask("POST", f"{CONFIGS}?fieldManager=client-side", config())
        (entry,) = made.document["metadata"]["managedFields"]
        moved = [
            {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "me"},
            {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"},
        ]
        answer = await client.ask("PATCH", f"{CONFIGS}/node-a", moved, JSON_PATCH)
        assert answer.document["metadata"]["managedFields"] == [
            entry | {"manager": "me", "operation": "Apply"}
        ]
        body = config(spec={"requestedIPCount": 1})
        assert (await client.ask("PATCH", f"{CONFIGS}/node-a?fieldManager=me", body, APPLY)).code == 200
        assert (
            await client.ask("PATCH", f"{CONFIGS}/node-a?fieldManager=other", config(), APPLY)
        ).code == 409


@pytest.mark.parametrize(
    "entries", ["me", [], [{"manager": "me"}], [{"manager": "me", "operation": "Apply", "fieldsV1": 1}]]
)
async def test_what_is_no_record_of_owners_leaves_the_owners_as_they_were(entries: object) -> None:
    async with open_client() as client:
        made = await client.ask("POST", CONFIGS, config())
        body = made.document | {"metadata": made.document["metadata"] | {"managedFields": entries}}
        put = await client.ask("PUT", f"{CONFIGS}/node-a", body)
        assert put.document == made.document
