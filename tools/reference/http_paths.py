"""Every path of the programs' HTTP ports: the allocator's from its OpenAPI document, the agent's from its routes."""

import asyncio
from collections.abc import Iterator
from io import StringIO
from typing import Any, cast

import httpx

from podtide.agent.api.routes import AgentApi, Routes
from podtide.allocator.service.application import make_service
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from reference.markdown import Undescribed, code, described, table

_AGENT = {
    "POST /cni": "a call of the plugin; on the socket alone",
    "POST /addresses/release": "free an address by hand, as `podtide release --agent-socket` asks for it; on the socket alone",
    "POST /network/requestipconfigs": "ADD, as Azure CNS words it: one address of each family",
    "POST /network/requestipconfig": "the same for older clients; refused on a node whose pods get two addresses",
    "POST /network/releaseipconfigs": "DEL, as Azure CNS words it",
    "POST /network/releaseipconfig": "the same for older clients",
    "POST /debug/ipaddresses": "the pool's addresses in the states of `IPConfigStateFilter`, and whose they are",
    "GET /healthz": "whether the agent's program runs",
    "GET /readyz": "whether it knows its pods, its NodeNetworkConfig and its subnet; if not, 503 and why",
    "GET /metrics": "metrics for Prometheus",
}
"""What each path of the agent is for: its handlers are made per shape of call, and have no words of their own."""


def page() -> Iterator[str]:
    """The page of HTTP APIs."""
    yield "# HTTP APIs"
    yield "Who may call which port, and its limits: [open ports](../ports.md)."
    yield ""
    yield "## The allocator"
    yield ""
    yield "With tokens, all paths but the first ones need `Authorization: Bearer`. A refusal is JSON with an `error`, which is its name, and a `message`. `GET /openapi.json` has bodies and answers in full; [the allocator](../allocator.md) explains them."
    yield ""
    yield from _allocator(asyncio.run(_openapi()))
    yield "## The agent"
    yield ""
    yield "On its unix socket, and on the loopback port of Azure CNS without the first two. The controller's and the agent's `--metrics-listen` have the last three alone. [The node agent](../agent.md) explains them, and the plugin's own calls are in its [protocol](../../plugin/PROTOCOL.md)."
    yield ""
    yield from table(("Path", "What it is"), _agent())


def _allocator(document: dict[str, Any]) -> Iterator[str]:
    rows = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            answers = ", ".join(sorted(operation["responses"]))
            rows.append((code(name), described(operation.get("description"), name), answers))
    yield from table(("Path", "What it does", "Statuses"), rows)
    structs = document["components"]["schemas"]
    yield "### What is sent and answered"
    yield ""
    for name in sorted(structs):
        fields = structs[name].get("properties", {})
        if not fields:
            continue
        needed = structs[name].get("required", ())
        yield f"#### {name}"
        yield ""
        yield described(structs[name].get("description"), name)
        yield ""
        yield from table(
            ("Field", "Type", "Required"),
            [(code(each), _type(field), "yes" if each in needed else "") for each, field in fields.items()],
        )


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(each) for each in field["anyOf"]))
    if "enum" in field:
        return ", ".join(map(code, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}" if isinstance(field.get("items"), dict) else "list"
    return str(field.get("format") or field.get("type", "any"))


def _agent() -> Iterator[tuple[str, str]]:
    for method, path in Routes(cast("AgentApi", None)).table(for_plugin=True):
        name = f"{method} {path}"
        if name not in _AGENT:
            raise Undescribed(
                f"the agent's path {name} has no description: give it one in tools/reference/http_paths.py"
            )
        yield code(name), _AGENT[name]


async def _openapi() -> dict[str, Any]:
    """The description that the service serves. No other path is called, so it needs no allocator."""
    unasked: Any = _NoAllocator()
    service = make_service(
        unasked,
        log=make_logger(StringIO(), SystemClock()),
        clock=SystemClock(),
        randomness=seeded_randomness("reference"),
    )
    application: Any = service.application  # httpx has types of its own for ASGI
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=application), base_url="http://allocator"
    ) as client:
        answer = await client.get("/openapi.json")
        answer.raise_for_status()
        return cast("dict[str, Any]", answer.json())


class _NoAllocator:
    """Stands where an allocator would: the description asks it nothing."""

    async def list_containers(self, **_: object) -> None:
        """Never called: readiness is not asked for."""
