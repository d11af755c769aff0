"""The service keeps its own word: whatever is sent to it, it answers as its description says.

Requests are made up from the description, fitting and unfitting. Names that are made up meet nothing, so in every
second one they are replaced by those of what is there.
"""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from typing import Any, TypeAlias
from urllib.request import urlopen

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import booleans, one_of
from schemathesis import GenerationMode
from schemathesis.checks import negative_data_rejection, positive_data_acceptance
from schemathesis.core.result import Ok

from allocator.contract.harness import a_wish
from allocator.service.running import open_store, served
from podtide.allocator.subnets import SubnetSpec

Case: TypeAlias = schemathesis.Case[Any]

FAMILIAR = {
    "network": "blue",
    "subnet": "pods",
    "cluster": "east",
    "container_id": "a",
    "uid": "u",
    "holder": "h",
    "node": "node-a",
}

USABLE: dict[str, Any] = {
    "network": "blue",
    "subnet": "pods",
    "cidrs": ["10.2.0.0/24"],
    "gateway": None,
    "keep_back": [],
    "buffer": "0.5",
    "lower": "0.8",
    "upper": "0.9",
    "min_batch": 1,
    "stated": {"low": 1, "high": 8, "batch": 16, "buffer": "0.5"},
}
TOO_STRICT = [positive_data_acceptance, negative_data_rejection]
"""No pattern can say what a CIDR is, and an unfitting path that is made to fit is accepted."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A service in another thread, with a subnet and a container in it."""
    started, stopped = threading.Event(), threading.Event()
    urls: list[str] = []

    async def serve() -> None:
        async with await open_store() as store, served(store) as url:
            await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
            await store.put_container(a_wish("a", 3))
            urls.append(url)
            started.set()
            await asyncio.to_thread(stopped.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        started.wait(20)
        yield urls[0]
    finally:
        stopped.set()
        thread.join()


def test_every_reference_of_the_description_leads_somewhere(url: str) -> None:
    with urlopen(f"{url}/openapi.json") as answer:  # noqa: S310 - our own server on loopback
        document = answer.read().decode()
    described = json.loads(document)["components"]["schemas"]
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', document))
    assert referred - described.keys() == set()


@pytest.mark.slow
def test_every_answer_is_one_that_the_description_has(url: str) -> None:
    answered: set[int] = set()
    for found in schemathesis.openapi.from_url(f"{url}/openapi.json").get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        fitting = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        unfitting = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
        has_input = any(True for _ in operation.iter_parameters()) or operation.body

        @settings(
            max_examples=20,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=one_of(fitting, unfitting) if has_input else fitting, familiar=booleans())
        def answers_as_described(case: Case, familiar: bool) -> None:
            if familiar:
                meet_what_is_there(case)
            response = case.call()
            answered.add(response.status_code)
            case.validate_response(response, excluded_checks=TOO_STRICT)

        answers_as_described()
    assert answered >= {200, 204, 400, 404, 409}


def meet_what_is_there(case: Case) -> None:
    case.path_parameters = {name: FAMILIAR[name] for name in case.path_parameters or {}}
    if isinstance(case.body, dict):
        case.body |= {name: value for name, value in USABLE.items() if name in case.body}
