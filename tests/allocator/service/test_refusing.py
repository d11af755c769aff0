"""What is refused, in which words, and that nothing happens then."""

import io
import json
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from allocator.contract.harness import a_wish
from allocator.service.running import QUICK, a_client, ask, open_store
from allocator.service.shared_application import shared_application
from podtide.allocator import errors
from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.errors import AllocatorError, AllocatorUnavailable
from podtide.allocator.store import DatabaseAllocator
from podtide.allocator.subnets import SubnetSpec
from podtide.allocator.wire import LARGEST_BODY_BYTES, STATUSES, kind_of
from podtide.core.errors import InvalidInput

pytestmark = pytest.mark.real_time

CONTAINER = "/clusters/east/containers/a"
PODS = SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",))
WISH = {"network": "blue", "subnet": "pods", "node": "n", "request_uid": "r", "generation": 1, "count": 3}
BOUNDS = {"batch": 16, "buffer": "0.5", "lower": "0.8", "upper": "0.9"}
IN_FORCE = {
    "batch": 16,
    "buffer": "0.5",
    "top": 16,
    "exhausted": False,
    "starved": False,
    "step": "",
    "reason": "",
    "serial": 0,
}

ERRORS = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AllocatorError)
]


class Refusing(DatabaseAllocator):
    """Says one thing to every wish."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        del wish
        raise self._error


def test_every_error_of_the_port_has_a_status() -> None:
    assert set(STATUSES) == {*ERRORS, InvalidInput} - {AllocatorError}
    assert all(kind_of(kind("why")) is kind for kind in STATUSES)


def test_only_a_database_that_is_away_is_the_services_own_failure() -> None:
    assert [kind for kind, status in STATUSES.items() if status >= 500] == [AllocatorUnavailable]


@pytest.mark.parametrize("kind", STATUSES, ids=lambda kind: kind.__name__)
async def test_the_client_raises_the_error_that_the_allocator_raised(kind: type[AllocatorError]) -> None:
    # The service asks to be left alone for a second, and that is all there is.
    once = replace(QUICK, deadline_seconds=1.0)
    async with (
        shared_application().served(Refusing(kind("the subnet says no"))) as url,
        a_client(url, once) as client,
    ):
        with pytest.raises(kind, match="cannot put container a of east: the subnet says no"):
            await client.put_container(a_wish("a", 3))


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("", 400, "it needs a body of JSON"),
        ("{", 400, "cannot be read"),
        ("[]", 400, "the body: Expected `object`"),
        (json.dumps(WISH | {"node": "nœud"}), 400, "node is not a valid name"),
        (json.dumps(WISH | {"node": "x'; DROP TABLE containers; --"}), 400, "node is not a valid name"),
        (json.dumps(WISH | {"relase": []}), 400, "unknown field `relase`"),
        (json.dumps(WISH | {"stated": {"hihg": 3}}), 400, "unknown field `hihg`"),
        (json.dumps(WISH | {"stated": {"buffer": "half"}}), 400, "stated buffer 'half' is not a number"),
        (json.dumps(WISH | {"count": -1}), 400, "count: Expected `int` >= 0"),
        (json.dumps(WISH | {"count": 1.5}), 400, "count: Expected `int`"),
        (json.dumps(WISH | {"count": 10**30}), 400, "count: "),
        (
            json.dumps(WISH | {"release": ["a"] * 100_000}),
            400,
            "release: Expected `array` of length <= 65536",
        ),
        (
            json.dumps(WISH | {"release": ["long-name"] * 100_000}),
            413,
            f"larger than {LARGEST_BODY_BYTES} bytes",
        ),
        (json.dumps(WISH | {"node": "x" * 10_000_000}), 413, f"larger than {LARGEST_BODY_BYTES} bytes"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_a_body_that_no_node_can_mean_is_refused_and_changes_nothing(
    body: str, status: int, reason: str
) -> None:
    async with await open_store() as store, shared_application().served(store) as url:
        await store.add_subnet(PODS)
        answer = await ask(url, "PUT", CONTAINER, body.encode())
        assert answer.status == status
        assert reason in json.loads(answer.text)["message"]
        assert len(answer.text) < 1_000
        assert (await store.list_containers()).items == ()
        assert (await store.get_subnet("blue", "pods")).reserved == 0


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("in-force", IN_FORCE | {"age_seconds": 3}, "unknown field `age_seconds`"),
        ("in-force", IN_FORCE | {"batch": 0}, "batch: Expected `int` >= 1"),
        ("in-force", {"batch": 4}, "missing required field `buffer`"),
        ("bounds/east", BOUNDS | {"minBatch": 3}, "unknown field `minBatch`"),
        ("bounds/east", BOUNDS | {"lower": "0.95"}, "do not make a band"),
        ("bounds/-", BOUNDS, "cluster is not a valid name"),
    ],
    ids=str,
)
async def test_a_batch_or_bounds_that_no_controller_can_mean_are_refused_and_change_nothing(
    path: str, body: dict[str, object], reason: str
) -> None:
    async with await open_store() as store, shared_application().served(store) as url:
        await store.add_subnet(PODS)
        await store.put_container(a_wish("a", 1))
        answer = await ask(url, "PUT", f"/networks/blue/subnets/pods/{path}", json.dumps(body).encode())
        assert answer.status == 400
        assert reason in json.loads(answer.text)["message"]
        demand = await store.demand("blue", "pods")
        assert (demand.bounds, demand.subnet.in_force.serial) == ((), 0)


async def test_a_body_that_does_not_say_how_long_it_is_has_the_same_limit() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(1_100):
            yield b"x" * 1_000

    async with await open_store() as store, shared_application().served(store) as url:
        answer = await ask(url, "PUT", CONTAINER, pieces())
        assert answer.status == 413


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/", 404, "GET / is refused: there is no such path"),
        ("GET", "/nowhere/at%0Aall", 404, "GET /nowhere/at%0Aall is refused: there is no such path"),
        ("POST", "/subnets", 405, "POST /subnets is refused: the path has no such method"),
        ("GET", "/networks/bl%C3%BCe/subnets", 400, "network is not a valid name"),
        ("GET", "/networks/blue%0A/subnets", 400, "network is not a valid name"),
        ("GET", f"/networks/{'x' * 254}/subnets", 400, "network: Expected `str` of length <= 253"),
        ("GET", "/networks/blue/subnets/a'%20OR%20'a'='a/utilization", 400, "subnet is not a valid name"),
        ("GET", "/networks/blue/subnets/none/utilization", 404, "none"),
        ("GET", "/containers?limit=0", 400, "limit: Expected `int` >= 1"),
        ("GET", "/containers?limit=many", 400, "limit: "),
        ("GET", "/containers?cluster=%27", 400, "cluster is not a valid name"),
        ("GET", "/containers?more=%27%20OR%201", 400, "more"),
        ("GET", "/networks/blue/subnets/pods/history?since=nan", 400, "since: "),
        ("GET", "/networks/blue/subnets/pods/history?since=-1", 400, "since: "),
        ("GET", f"/{'x' * 20_000}", 404, "is refused: there is no such path"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_every_refusal_is_a_small_document_with_a_name_and_one_line(
    method: str, path: str, status: int, reason: str
) -> None:
    async with await open_store() as store, shared_application().served(store) as url:
        answer = await ask(url, method, path)
        refusal = json.loads(answer.text)
        assert (answer.status, set(refusal)) == (status, {"error", "message"})
        assert reason in refusal["message"]
        assert "\n" not in refusal["message"]
        assert len(answer.text) < 1_000


async def test_what_nobody_foresaw_is_told_to_the_log_and_not_to_the_caller() -> None:
    log = io.StringIO()
    async with shared_application().served(
        Refusing(ZeroDivisionError("a secret of ours")), log_to=log
    ) as url:
        answer = await ask(
            url, "PUT", CONTAINER, json.dumps(WISH).encode(), headers={"X-Request-ID": "the-one-that-failed"}
        )
    assert answer.status == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert json.loads(answer.text)["error"] == "AllocatorUnavailable"
    told = [json.loads(line) for line in log.getvalue().splitlines()]
    (failure,) = [line for line in told if line["event"] == "a request failed"]
    assert failure["request_id"] == "the-one-that-failed"
    assert "ZeroDivisionError: a secret of ours" in failure["exception"]


async def test_a_database_that_is_away_is_to_be_asked_again_in_a_moment() -> None:
    async with shared_application().served(Refusing(AllocatorUnavailable("the database is away"))) as url:
        answer = await ask(url, "PUT", CONTAINER, json.dumps(WISH).encode())
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert json.loads(answer.text) == {"error": "AllocatorUnavailable", "message": "the database is away"}


def test_a_special_case_of_bad_input_travels_as_bad_input() -> None:
    class Special(InvalidInput):
        pass

    assert kind_of(Special("x")) is InvalidInput
