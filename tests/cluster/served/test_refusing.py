"""What is not done is answered by a Status with the code, the reason and one line for a person."""

import asyncio
from io import BytesIO

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from cluster.served.http_client import CONFIGS, MERGE, PODS, Client, config, open_client, pod
from examples import examples
from podtide.resources.crds import crds

pytestmark = pytest.mark.real_time

CONFIG = f"{CONFIGS}/node-a"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        ("GET", "/nowhere", 404, "NotFound"),
        ("GET", "/apis/acn.azure.com/v1alpha/podtides", 404, "NotFound"),
        ("GET", f"{CONFIGS}/missing", 404, "NotFound"),
        ("PUT", "/api/v1/nodes/missing/proxy", 404, "NotFound"),
        ("DELETE", CONFIGS, 405, "MethodNotAllowed"),
        ("POST", "/api/v1/pods", 405, "MethodNotAllowed"),
        ("GET", f"{CONFIGS}?limit=many", 400, "BadRequest"),
        ("GET", f"{CONFIGS}?limit={'9' * 5000}", 400, "BadRequest"),
        ("GET", f"{CONFIGS}?limit=-1", 400, "BadRequest"),
        ("GET", f"{CONFIGS}?continue=nonsense", 400, "BadRequest"),
        ("GET", f"{CONFIGS}?continue=%C3%BC", 400, "BadRequest"),
        ("GET", f"{CONFIGS}?fieldSelector=spec.requestedIPCount%3D1", 400, "BadRequest"),
        ("GET", f"{CONFIGS}?labelSelector=a+b", 400, "BadRequest"),
        ("GET", f"{CONFIGS}?watch=true&resourceVersion=x", 400, "BadRequest"),
        ("GET", f"{CONFIGS}?watch=true&resourceVersion={'9' * 5000}", 400, "BadRequest"),
        ("GET", f"{CONFIGS}?watch=true&resourceVersion=99", 410, "Expired"),
        ("GET", f"{CONFIGS}?resourceVersion=1&resourceVersionMatch=Exact", 400, "BadRequest"),
    ],
)
async def test_a_request_without_a_body(method: str, path: str, code: int, reason: str) -> None:
    async with open_client() as client:
        answer = await client.ask(method, path)
        assert (answer.code, answer.reason) == (code, reason)
        assert "\n" not in answer.document["message"]


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type", "code"),
    [
        ("POST", CONFIGS, b'{"a"', "application/json", 400),
        ("POST", CONFIGS, [], "application/json", 400),
        ("POST", CONFIGS, pod(), "application/json", 400),
        ("POST", CONFIGS, config(metadata={"name": "a", "namespace": "other"}), "application/json", 400),
        ("POST", CONFIGS, config(metadata={"name": "a", "labels": ["x"]}), "application/json", 400),
        ("POST", CONFIGS, config(metadata={}), "application/json", 422),
        ("POST", CONFIGS, config("Upper"), "application/json", 422),
        ("POST", CONFIGS, config(spec={"requestedIPCount": "many"}), "application/json", 422),
        ("POST", CONFIGS, config(), "text/plain", 415),
        ("POST", f"{CONFIGS}?dryRun=All", config(), "application/json", 400),
        ("PUT", CONFIG, config("other"), "application/json", 400),
        ("PUT", CONFIG, config(), "application/json", 422),
        ("PUT", CONFIG, config(metadata={"name": "node-a", "resourceVersion": "1"}), "application/json", 409),
        ("POST", CONFIGS, config(), "application/json", 409),
        ("PATCH", CONFIG, {}, "application/json", 415),
        ("PATCH", CONFIG, {}, STRATEGIC, 415),
        ("PATCH", f"{CONFIG}/status", config(), APPLY, 415),
        ("PATCH", f"{CONFIGS}/missing", {}, MERGE, 404),
        ("PATCH", CONFIG, {"metadata": {"name": "other"}}, MERGE, 400),
        ("PATCH", CONFIG, {"metadata": {"uid": "another"}}, MERGE, 409),
        ("PATCH", CONFIG, {"op": "add"}, JSON_PATCH, 400),
        ("PATCH", CONFIG, [{"op": "remove", "path": "/spec/missing"}], JSON_PATCH, 422),
        ("PATCH", CONFIG, config(), APPLY, 400),
        ("PATCH", f"{CONFIG}?fieldManager=me", config(metadata={"managedFields": []}), APPLY, 400),
        ("PATCH", f"{CONFIG}?fieldManager=me", config(spec={"requestedIPCount": 1}), APPLY, 409),
        ("DELETE", CONFIG, {"propagationPolicy": "Orphan"}, "application/json", 400),
        ("DELETE", f"{CONFIG}?gracePeriodSeconds=soon", None, "application/json", 400),
        ("DELETE", CONFIG, {"dryRun": ["All"]}, "application/json", 400),
    ],
)
async def test_a_write_that_cannot_be_is_refused_and_changes_nothing(
    method: str, path: str, body: object, content_type: str, code: int
) -> None:
    async with open_client() as client:
        before = (await client.ask("POST", CONFIGS, config())).document
        answer = await client.ask(method, path, body, content_type)
        assert (answer.code, answer.document["kind"]) == (code, "Status"), answer.document
        assert "\n" not in answer.document["message"]
        assert (await client.ask("GET", CONFIGS)).document["items"] == [before]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (b'{"a": &a [*a]}', "alias"),
        (b'{"a": &a [1, 1], "b": &b [*a, *a], "c": [*b, *b]}', "alias"),
        (b'{"a": ' + b"[" * 101 + b"]" * 101 + b"}", "nested too deeply"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"a": ' + b'{"b":' * 500 + b"1" + b"}" * 500 + b"}", "nested too deeply"),
        (b'{"a": 2026-99-99}', "neither JSON nor YAML"),
        (b'{"a": "\xff"}', "neither JSON nor YAML"),
    ],
    ids=["in itself", "again and again", "101 lists", "100,000 lists", "500 objects", "no day", "no text"],
)
async def test_a_body_that_cannot_be_written_out_is_a_bad_request(spec: bytes, words: str) -> None:
    async with open_client() as client:
        before = (await client.ask("POST", CONFIGS, config())).document
        head = b'{"apiVersion": "acn.azure.com/v1alpha", "kind": "NodeNetworkConfig", "metadata": {"name": "node-a"}'
        answer = await client.ask(
            "PATCH", f"{CONFIG}?fieldManager=me", head + b', "spec": ' + spec + b"}", APPLY
        )
        assert (answer.code, answer.reason) == (400, "BadRequest")
        assert words in answer.document["message"]
        assert "\n" not in answer.document["message"]
        assert (await client.ask("GET", CONFIGS)).document["items"] == [before]


async def test_a_misspelt_field_is_refused_when_the_client_asks_for_that() -> None:
    async with open_client() as client:
        body = config(
            spec={"requestdIPCount": 1, "ipsNotInUse": []},
            status={"networkContainers": [{"id": "nc", "ipAssignments": [{"address": "10.0.0.1"}]}]},
        )
        answer = await client.ask("POST", f"{CONFIGS}?fieldValidation=Strict", body)
        assert answer.code == 400
        assert 'unknown field "spec.requestdIPCount"' in answer.document["message"]
        assert "status.networkContainers[0].ipAssignments[0].address" in answer.document["message"]
        assert (await client.ask("POST", f"{CONFIGS}?fieldValidation=Ignore", body)).code == 201
        assert (await client.ask("POST", f"{PODS}?fieldValidation=Strict", pod())).code == 201


async def test_definitions_of_built_in_kinds_are_kept_and_others_refused() -> None:
    async with open_client() as client:
        for definition in crds(with_network_attachments=True):
            made = await client.ask("POST", DEFINITIONS, definition)
            assert made.code == 201
            assert made.document["spec"] == definition["spec"]
            assert {"type": "Established", "status": "True"} in made.document["status"]["conditions"]
        names = {"kind": "Foo", "plural": "foos"}
        foreign = crds()[0] | {
            "metadata": {"name": "foos.example"},
            "spec": {"group": "example", "names": names},
        }
        garbled = {**crds()[0], "spec": {"group": [], "names": {"plural": {}}}}
        applied = f"{DEFINITIONS}/{garbled['metadata']['name']}?fieldManager=me&force=true"
        assert (await client.ask("PATCH", applied, garbled, APPLY)).code == 422
        answer = await client.ask("POST", DEFINITIONS, foreign)
        assert (answer.code, answer.reason) == (422, "Invalid")
        assert "foos.example cannot be defined here, for kinds are built in" in answer.document["message"]


async def test_a_body_that_is_too_large_is_413() -> None:
    async with open_client() as client:
        answer = await client.ask("POST", CONFIGS, BytesIO(b"x" * (4 << 20)))
        assert (answer.code, answer.reason) == (413, "RequestEntityTooLarge")


async def test_only_json_can_be_had() -> None:
    async with open_client() as client:
        answer = await client.ask("GET", CONFIGS, Accept="application/vnd.kubernetes.protobuf")
        assert (answer.code, answer.reason) == (406, "NotAcceptable")


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:80", 200),
        ("localhost", 200),
        ("[::1]:1", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil", 403),
    ],
)
async def test_names_that_are_not_this_machines_own_are_not_answered(host: str, code: int) -> None:
    async with open_client() as client:
        assert (await client.ask("GET", "/version", Host=host)).code == code


async def test_a_failure_of_our_own_is_a_status_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_client() as client:

        def fail(*_arguments: object, **_options: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(client.server, "get", fail)
        answer = await client.ask("GET", f"{CONFIGS}/a")
        assert (answer.code, answer.reason) == (500, "InternalError")


async def test_a_cluster_that_is_closed_is_unavailable() -> None:
    async with open_client() as client:
        client.server.close()
        answer = await client.ask("GET", CONFIGS)
        assert (answer.code, answer.reason) == (503, "ServiceUnavailable")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "name",
        "namespace",
        "labels",
        "finalizers",
        "ownerReferences",
        "managedFields",
        "uid",
        "resourceVersion",
        "generation",
    ]
)


@st.composite
def bodies(draw: st.DrawFn) -> object:
    """Anything, and NodeNetworkConfigs with anything in the places where the rules look."""
    whole = config(
        metadata={"name": "node-a"} | draw(st.dictionaries(FIELDS, JSON, max_size=2)),
        spec=draw(st.just({"requestedIPCount": 1}) | JSON),
        status=draw(st.none() | st.fixed_dictionaries({"conditions": JSON}) | JSON),
    )
    return draw(st.one_of(st.just(whole), JSON))


METHODS = st.sampled_from(
    [
        ("POST", CONFIGS, "application/json"),
        ("PUT", CONFIG, "application/json"),
        ("PUT", f"{CONFIG}/status", "application/json"),
        ("PATCH", CONFIG, MERGE),
        ("PATCH", f"{CONFIG}/status", MERGE),
        ("PATCH", CONFIG, JSON_PATCH),
        ("PATCH", f"{CONFIG}?fieldManager=me&force=true", APPLY),
        ("PATCH", f"{PODS}/web", STRATEGIC),
        ("DELETE", CONFIG, "application/json"),
    ]
)


@given(requests=st.lists(st.tuples(METHODS, bodies()), min_size=1, max_size=12))
@examples(40, suppress_health_check=[HealthCheck.too_slow])
def test_no_body_makes_the_server_fail(requests: list[tuple[tuple[str, str, str], object]]) -> None:
    async def send(client: Client) -> None:
        await client.ask("POST", CONFIGS, config())
        await client.ask("POST", PODS, pod())
        for (method, path, content_type), body in requests:
            answer = await client.ask(method, path, body, content_type)
            assert answer.code < 500, (method, path, body, answer.document)
            listed = await client.ask("GET", CONFIGS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
            assert listed.code == 200

    async def run() -> None:
        async with open_client() as client:
            await send(client)

    asyncio.run(run())
