"""What those who run the service are told: health, readiness, metrics, log, description."""

import asyncio
import io
import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from allocator.contract.harness import HandClock, a_wish
from allocator.service.running import a_client, a_log, ask, open_store, served
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.service.operations import ServiceReadiness
from podtide.allocator.service.utilization import UtilizationCache
from podtide.allocator.store import DatabaseAllocator
from podtide.allocator.subnets import SubnetSpec, Utilization

PODS = SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/28",))
ROOT = Path(__file__).parent.parent.parent.parent


async def a_store_that_is_away() -> DatabaseAllocator:
    store = await open_store()
    await store.close()
    return store


def metrics_in(text: str) -> dict[tuple[str, ...], float]:
    """By name and the values of their labels, which are in the order of the labels' names."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("podtide_")
    }


@pytest.mark.real_time
async def test_the_service_is_healthy_and_ready_when_its_database_answers() -> None:
    async with await open_store() as store, served(store) as url:
        for path in ("/healthz", "/readyz"):
            answer = await ask(url, "GET", path)
            assert (answer.status, answer.text) == (200, "ok")


@pytest.mark.real_time
async def test_without_its_database_it_lives_and_is_not_ready() -> None:
    async with served(await a_store_that_is_away()) as url:
        assert (await ask(url, "GET", "/healthz")).status == 200
        answer = await ask(url, "GET", "/readyz")
        assert answer.status == 503
        assert answer.text.startswith("the database cannot be written: ")
        metrics = metrics_in((await ask(url, "GET", "/metrics")).text)
        assert metrics["podtide_allocator_database_up",] == 0


async def test_what_nobody_foresaw_in_a_proof_of_readiness_is_tried_again_and_not_kept() -> None:
    log = io.StringIO()
    outcomes = [RuntimeError("a driver's own fault"), None]

    async def prove() -> None:
        if (outcome := outcomes.pop(0)) is not None:
            raise outcome

    readiness = ServiceReadiness(prove, HandClock(), a_log(log))
    words = "the database cannot be written: RuntimeError; see the allocator's log"
    assert await readiness.objection() == words
    assert "a driver's own fault" in log.getvalue()
    assert await readiness.objection() == ""


@pytest.mark.real_time
async def test_metrics_say_how_full_subnets_are_and_what_became_of_requests() -> None:
    async with await open_store() as store, served(store) as url, a_client(url) as client:
        await client.add_subnet(PODS)
        await client.put_container(a_wish("a", 20))
        for path in ("/nowhere", "/elsewhere", "/networks/blue/subnets/none"):
            await ask(url, "GET", path)
        metrics = metrics_in((await ask(url, "GET", "/metrics")).text)
        gauges = {
            name: metrics[f"podtide_allocator_{name}", "blue", "pods"]
            for name in ("capacity", "reserved", "owed", "containers")
        }
        assert gauges == {"capacity": 13, "reserved": 13, "owed": 8, "containers": 1}
        assert metrics["podtide_allocator_database_up",] == 1
        total = "podtide_allocator_requests_total"
        container = "/clusters/{cluster}/containers/{container_id}"
        assert metrics[total, "PUT", "ok", container] == 1
        assert metrics[total, "GET", "NoSuchSubnet", "/networks/{network}/subnets/{subnet}"] == 1
        assert metrics[total, "none", "InvalidInput", "none"] == 2
        assert metrics["podtide_allocator_request_seconds_count", "PUT", container] == 1


@pytest.mark.real_time
async def test_a_subnet_that_is_removed_is_no_longer_in_the_metrics() -> None:
    async with await open_store() as store, served(store) as url:
        await store.add_subnet(PODS)
        assert 'subnet="pods"' in (await ask(url, "GET", "/metrics")).text
        await store.remove_subnet("blue", "pods")
        assert 'subnet="pods"' not in (await ask(url, "GET", "/metrics")).text


@pytest.mark.real_time
async def test_every_metric_is_documented_and_no_other() -> None:
    async with served(await a_store_that_is_away()) as url:
        text = (await ask(url, "GET", "/metrics")).text
    offered = {
        family.name for family in text_string_to_metric_families(text) if family.name.startswith("podtide_")
    }
    page = (ROOT / "docs" / "allocator.md").read_text()
    documented = set(re.findall(r"^\| `(podtide_allocator_\w+)`", page, flags=re.MULTILINE))
    assert {name.removesuffix("_total") for name in documented} == offered


@pytest.mark.real_time
async def test_every_path_is_documented_and_no_other() -> None:
    async with served(await a_store_that_is_away()) as url:
        paths = json.loads((await ask(url, "GET", "/openapi.json")).text)["paths"]
    offered = {
        f"{method.upper()} {path}"
        for path, methods in paths.items()
        for method in methods
        if method in {"get", "put", "post", "delete"}
    }
    page = (ROOT / "docs" / "allocator.md").read_text()
    documented = set(re.findall(r"^\| `((?:GET|PUT|POST|DELETE) /\S*)` \|", page, flags=re.MULTILINE))
    assert documented == offered | {"GET /openapi.json"}


@pytest.mark.real_time
async def test_a_change_is_a_line_in_the_log_with_the_callers_request_id() -> None:
    log = io.StringIO()
    async with await open_store() as store, served(store, log_to=log) as url:
        answer = await ask(url, "DELETE", "/networks/blue/subnets/pods", headers={"X-Request-ID": "abc-1"})
        assert answer.headers["X-Request-ID"] == "abc-1"
        spoofed = await ask(url, "GET", "/healthz", headers={"X-Request-ID": 'no"good ' * 20})
        assert re.fullmatch(r"[0-9a-f-]{36}", spoofed.headers["X-Request-ID"])
    told = [json.loads(line) for line in log.getvalue().splitlines()]
    (line,) = [line for line in told if line.get("request_id") == "abc-1"]
    assert (line["level"], line["event"], line["method"], line["status"], line["outcome"]) == (
        "info",
        "answered",
        "DELETE",
        204,
        "ok",
    )
    assert {line["level"] for line in told if line.get("path") == "/healthz"} == {"debug"}


@pytest.mark.real_time
async def test_utilization_has_the_shape_that_its_clients_read() -> None:
    async with await open_store() as store, served(store) as url:
        await store.add_subnet(PODS)
        await store.put_container(a_wish("a", 3))
        answer = await ask(url, "GET", "/networks/blue/subnets/pods/utilization")
        (reading,) = json.loads(answer.text)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", reading.pop("timestamp"))
        assert reading == {"capacity": 13, "reserved": 4}
        assert (await ask(url, "GET", "/networks/blue/subnets/%20/utilization")).status == 400


class Counting(DatabaseAllocator):
    """Counts how often it is asked how full a subnet is, and takes its time to answer."""

    def __init__(self) -> None:
        self.asked = 0

    async def utilization(self, network: str, name: str) -> tuple[Utilization, ...]:
        self.asked += 1
        await asyncio.sleep(0.01)
        if name == "none":
            raise AllocatorUnavailable(f"no answer about {network}/{name}")
        return (Utilization("2026-11-15T12:00:00Z", 13, self.asked),)


async def test_the_database_is_asked_once_per_refresh_however_many_ask() -> None:
    clock, allocator = HandClock(), Counting()
    cache = UtilizationCache(allocator, clock, refresh_seconds=1.0)
    answers = await asyncio.gather(*(cache.read("blue", "pods") for _ in range(100)))
    assert {answer[0].reserved for answer in answers} == {1}
    clock.pass_by(0.9)
    assert (await cache.read("blue", "pods"))[0].reserved == 1
    clock.pass_by(0.1)
    assert (await cache.read("blue", "pods"))[0].reserved == 2


async def test_a_failure_is_not_kept() -> None:
    cache = UtilizationCache(allocator := Counting(), HandClock(), refresh_seconds=60.0)
    for _ in range(2):
        with pytest.raises(AllocatorUnavailable):
            await cache.read("blue", "none")
    assert allocator.asked == 2


async def test_whoever_goes_away_does_not_take_the_answer_from_the_others() -> None:
    cache = UtilizationCache(Counting(), HandClock(), refresh_seconds=60.0)
    impatient = asyncio.create_task(cache.read("blue", "pods"))
    patient = asyncio.create_task(cache.read("blue", "pods"))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient)[0].reserved == 1


async def test_a_subnet_that_changes_is_looked_at_again() -> None:
    cache = UtilizationCache(Counting(), HandClock(), refresh_seconds=60.0)
    await cache.read("blue", "pods")
    cache.forget("blue", "pods")
    assert (await cache.read("blue", "pods"))[0].reserved == 2


@pytest.mark.real_time
@pytest.mark.parametrize(("uid", "told"), [(None, "all"), ("", "none"), ("uid-east", "uid-east")])
async def test_whoever_forgets_a_cluster_is_in_the_log_with_the_reason(uid: str | None, told: str) -> None:
    log = io.StringIO()
    async with await open_store() as store, served(store, log_to=log) as url, a_client(url) as client:
        await client.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/28",)))
        await client.put_container(a_wish("a", 1, cluster_uid=uid or ""))
        assert await client.forget_cluster("east", uid=uid, reason="sold, with all & everything") == 1
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (line,) = [line for line in lines if line["event"] == "cluster forgotten"]
    assert (line["reason"], line["caller"]) == ("sold, with all & everything", "anybody")
    assert (line["cluster"], line["uid"], line["containers"]) == ("east", told, 1)


@pytest.mark.real_time
async def test_whoever_ends_a_quarantine_is_in_the_log_with_the_reason() -> None:
    log = io.StringIO()
    async with await open_store() as store, served(store, log_to=log) as url, a_client(url) as client:
        await client.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/28",)))
        await client.put_container(a_wish("a", 1))
        await client.delete_container("a", cluster="east")
        await client.end_quarantine("a", ("10.1.0.2",), cluster="east", reason="machine scrapped")
    told = [json.loads(line) for line in log.getvalue().splitlines()]
    (line,) = [line for line in told if line["event"] == "quarantine ended"]
    assert (line["level"], line["reason"], line["caller"]) == ("info", "machine scrapped", "anybody")
    assert (line["cluster"], line["container"], line["addresses"], line["ended"]) == (
        "east",
        "a",
        ["10.1.0.2"],
        1,
    )


@pytest.mark.real_time
async def test_a_store_that_waits_for_reports_is_ready_for_them_and_says_so() -> None:
    async with await open_store() as store, served(store) as url:
        await store.add_subnet(PODS)
        await store.put_container(a_wish("a", 1))
        await store.begin_recovery("a test")
        answer = await ask(url, "GET", "/readyz")
        words = "ok, but nothing is granted: the store went back (a test), and waits for east"
        assert (answer.status, answer.text) == (200, words)
        metrics = metrics_in((await ask(url, "GET", "/metrics")).text)
        assert metrics["podtide_allocator_recovering",] == 1
        assert metrics["podtide_allocator_awaited_clusters",] == 1
