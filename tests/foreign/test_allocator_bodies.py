"""Whatever is sent to the allocator, it is the sender's mistake, in one line, and no failure of the service."""

import asyncio
import io
import json
import re
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.service.running import open_store
from allocator.service.shared_application import shared_application
from examples import examples
from foreign.hostile import as_bytes, documents, fragments, plain_texts, planted

SUBNET = {"cidrs": ["10.0.0.0/24"], "gateways": ["10.0.0.1"], "keep_back": ["10.0.0.9"], "keep_back_first": 0}
WISH = {
    "network": "blue", "subnet": "pods", "node": "n", "request_uid": "u", "generation": 1, "count": 3, "release": ["x"],
    "waiting_pods": 0, "stated": {"low": 0, "high": 3, "demand": 3, "batch": 16, "buffer": "0.5"}, "statement_number": 4,
    "instead_of": {"request_uid": "", "generation": 0}, "cluster_uid": "e", "seen": 0,
    "machine": {"machine_id": "m", "system_uuid": "s", "boot_id": "b"},
}  # fmt: skip
BOUNDS = {"batch": 16, "buffer": "0.5", "lower": "0.8", "upper": "0.9", "min_batch": 1}
IN_FORCE = {
    "batch": 16, "buffer": "0.5", "top": 16, "exhausted": False, "starved": False, "step": "raise", "reason": "x", "serial": 0,
}  # fmt: skip
TERM = {"cluster_uid": "e", "holder": "h", "seen": [{"network": "blue", "subnet": "pods", "version": 0}]}
HELD = {
    "network": "blue", "subnet": "pods", "cluster_uid": "e", "node": "n", "primary": "10.0.0.7", "version": 1, "request_uid": "u",
    "generation": 1, "recovery": 1, "addresses": [{"name": "c-1-8", "ip": "10.0.0.8"}],
}  # fmt: skip
SHOWN = {"network": "blue", "subnet": "pods", "cluster_uid": "e", "recovery": 1, "addresses": ["10.0.0.8"]}
ONE = "/networks/blue/subnets/pods"
EAST = "/clusters/east"
RESERVATION = {
    "network": "blue",
    "subnet": "pods",
    "cluster_uid": "e",
    "node": "n",
    "primary": "10.0.0.80",
    "request_uid": "u",
    "generation": 1,
    "addresses": ["10.0.0.81"],
}
BODIES: dict[tuple[str, str], Any] = {
    ("PUT", ONE): SUBNET,
    ("POST", f"{ONE}/cidrs"): {"cidrs": ["10.0.1.0/24"], "gateways": ["10.0.1.9"]},
    ("POST", f"{ONE}/draining"): {"cidrs": ["10.0.1.0/24"], "at_once": False},
    ("PUT", f"{EAST}/containers/c"): WISH,
    ("POST", f"{EAST}/containers/c/move"): WISH,
    ("PUT", f"{EAST}/containers/d/reservation"): RESERVATION,
    ("POST", f"{EAST}/containers/c/end-quarantine"): {"addresses": ["10.0.0.8"], "reason": "looked"},
    ("PUT", f"{EAST}/term"): TERM,
    ("PUT", f"{EAST}/report/c"): HELD,
    ("PUT", f"{EAST}/report/pods/n"): SHOWN,
    ("PUT", f"{EAST}/report"): {"cluster_uid": "e", "recovery": 1},
    ("PUT", f"{EAST}/uid"): {"uid": "e"},
    ("PUT", f"{ONE}/bounds/east"): BOUNDS,
    ("PUT", f"{ONE}/in-force"): IN_FORCE,
}
requests = st.sampled_from(list(BODIES.items())).flatmap(
    lambda route: st.tuples(st.just(route[0]), documents(route[1]))
)


async def answers(asked: list[tuple[str, str, bytes]]) -> tuple[list[tuple[int, str]], str]:
    """What the service answers, and what it writes in its log."""
    log = io.StringIO()
    async with (
        await open_store() as store,
        shared_application().served(store, log_to=log) as url,
        aiohttp.ClientSession(url) as session,
    ):
        found = []
        for method, path, body in asked:
            async with session.request(
                method, path, data=body, headers={"Content-Type": "application/json"}
            ) as response:
                found.append((response.status, await response.text()))
    return found, log.getvalue()


@pytest.mark.real_time
async def test_every_path_that_has_a_body_is_tried_with_one_that_is_understood() -> None:
    asked = [(method, path, json.dumps(valid).encode()) for (method, path), valid in BODIES.items()]
    ((_, description), *found), _ = await answers([("GET", "/openapi.json", b""), *asked])
    with_body = [
        (method.upper(), re.sub("{[^}]+}", "[^/]+", path))
        for path, methods in json.loads(description)["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    ]
    untried = [
        (method, path)
        for method, path in with_body
        if not any(method == tried and re.fullmatch(path, there) for tried, there in BODIES)
    ]
    assert (untried, len(with_body)) == ([], len(BODIES))
    assert {status for status, _ in found} <= {200, 201, 204, 404, 409}, [
        each for each in found if each[0] == 400
    ]


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_body_that_is_nested_deeply_is_refused_and_no_failure() -> None:
    asked = [
        (method, path, as_bytes(body))
        for (method, path), valid in BODIES.items()
        for body in (*planted(valid), json.dumps(valid)[:-1] + f', "unknown": {"[" * 1200}')
    ]
    found, log = await answers([("PUT", ONE, json.dumps(SUBNET).encode()), *asked])
    assert {status for status, _ in found[1:]} <= {400, 413}
    assert "Traceback" not in log


@examples(quick=10)
@given(requests)
def test_a_body_is_understood_or_refused(request: tuple[tuple[str, str], str]) -> None:
    (method, path), body = request
    found, log = asyncio.run(
        answers([("PUT", ONE, json.dumps(SUBNET).encode()), (method, path, as_bytes(body))])
    )
    status, text = found[1]
    assert status < 500, text
    if status >= 400:
        assert "\n" not in json.loads(text)["message"]
    assert "Traceback" not in log


@examples(quick=10)
@given(plain_texts.filter(lambda text: len(text) < 10_000), fragments.filter(lambda text: len(text) < 4_000))
def test_paths_and_queries_are_understood_or_refused(name: str, number: str) -> None:
    quoted, count = quote(name, safe="", errors="replace"), quote(number, safe="", errors="replace")
    found, log = asyncio.run(
        answers(
            [
                ("GET", f"/networks/{quoted}/subnets", b""),
                ("GET", f"/containers?limit={count}&more={quoted}&cluster={quoted}", b""),
                ("GET", f"{ONE}/history?since={count}&until={count}", b""),
            ]
        )
    )
    assert all(status < 500 for status, _ in found), found
    assert "Traceback" not in log
