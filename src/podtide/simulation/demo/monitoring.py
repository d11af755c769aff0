"""The metrics of a demonstration, for a Prometheus beside it: what charts and alerts are tried on without a cluster.

In a cluster every program has a port of its own. Here all are in one process, so that one port has the metrics of each
under a path, and `/targets` lists them as Prometheus' HTTP service discovery reads it, with the labels that the chart's
ServiceMonitors give. The allocator, which stories call in process, is served as `podtide allocator` serves it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from podtide.allocator.service.application import make_service
from podtide.allocator.service.server import serving as serving_allocator
from podtide.controller.metrics import ControllerMetrics
from podtide.controller.program import Controller
from podtide.runtime.http_port import serving_http
from podtide.runtime.listening import ListenAddress
from podtide.runtime.port_limits import PortLimits
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.world.world import World

_LIMITS = PortLimits(connections=512)
"""Prometheus keeps a connection to each of up to 200 agents."""


class DemoMetrics:
    """The paths of the port."""

    def __init__(self, world: World, controller: Controller, nodes: Path, allocator: str) -> None:
        """`nodes` is the directory of the agents' sockets, `allocator` the URL of its service."""
        self._world = world
        self._controller = ControllerMetrics(controller.metrics)
        self._nodes = nodes
        self._allocator = allocator

    def application(self) -> web.Application:
        """The paths, for an HTTP server."""
        application = web.Application()
        application.add_routes(
            [
                web.get("/targets", self._targets),
                web.get("/controller/metrics", self._of_controller),
                web.get("/agents/{node}/metrics", self._of_agent),
            ]
        )
        return application

    async def _targets(self, request: web.Request) -> web.Response:
        running = [name for name, machine in self._world.machines.items() if machine.agent is not None]
        targets = [
            _target(self._allocator.removeprefix("http://"), "allocator", "/metrics"),
            _target(request.host, "controller", "/controller/metrics"),
            *(
                _target(request.host, "agent", f"/agents/{name}/metrics", instance=name, node=name)
                for name in running
            ),
        ]
        return web.Response(body=msgspec.json.encode(targets), content_type="application/json")

    async def _of_controller(self, _request: web.Request) -> web.Response:
        return _metrics(self._controller.render())

    async def _of_agent(self, request: web.Request) -> web.Response:
        """What the agent itself answers on its socket."""
        node = request.match_info["node"]
        machine = self._world.machines.get(node)
        if machine is None or machine.agent is None:
            raise web.HTTPNotFound(text=f"no agent runs on a node {node!r}: /targets lists those that do")
        connector = aiohttp.UnixConnector(str(self._nodes / node / "agent.sock"))
        try:
            async with (
                aiohttp.ClientSession(connector=connector) as session,
                session.get("http://agent/metrics") as answer,
            ):
                return _metrics(await answer.read())
        except aiohttp.ClientError as error:
            raise web.HTTPBadGateway(text=f"the agent of {node} does not answer: {error}") from error


def _target(address: str, program: str, path: str, **labels: str) -> dict[str, object]:
    return {
        "targets": [address],
        "labels": {"job": f"podtide-{program}", "__metrics_path__": path, **labels},
    }


def _metrics(body: bytes) -> web.Response:
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


@asynccontextmanager
async def serving_metrics(
    address: ListenAddress, world: World, controller: Controller, nodes: Path
) -> AsyncIterator[str]:
    """Serve the metrics of all programs until the context ends; yields the URL of the list of targets."""
    service = make_service(
        world.allocator, log=world.log, clock=world.clock, randomness=seeded_randomness("requests")
    )
    async with serving_allocator(service, ListenAddress(address.host, 0)) as allocator:
        paths = DemoMetrics(world, controller, nodes, allocator)
        async with serving_http(paths.application(), address, limits=_LIMITS) as found:
            yield f"http://{found}/targets"
