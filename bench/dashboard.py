"""What the live page costs with 5,000 nodes that state 150,000 pods: to its server, and to a browser's first paint."""

import asyncio
import gc
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from io import StringIO
from ipaddress import IPv4Address
from pathlib import Path
from time import perf_counter, process_time

import aiohttp

from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS
from podtide.controller.leadership import LEASE
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.statement import Statement, request_at
from podtide.dashboard.options import PageOptions
from podtide.dashboard.program import running_page
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet, ClusterSubnetStatus, ScalerInForce, SubnetCidr
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.statement_annotation import render
from podtide.resources.timestamps import to_micro_time
from podtide.runtime.clock import SystemClock
from podtide.runtime.listening import ListenAddress
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

PART = "dashboard"
NODES = 5_000
PODS = 30
REST_SECONDS = 30.0
_BENCH = "bench"
_FIRST = int(IPv4Address("10.64.0.0"))


def measure() -> Iterator[tuple[str, str]]:
    """Run it in a process of its own, because memory is measured, and print what it found."""
    found = subprocess.run(  # noqa: S603 - this very file
        [sys.executable, str(Path(__file__))], check=True, capture_output=True, text=True
    ).stdout
    yield from json.loads(found).items()


async def _measure() -> dict[str, str]:
    cluster = EmbeddedCluster(kinds=SERVED_KINDS)
    await _fill(cluster)
    gc.collect()
    without = _resident_megabytes()
    clock = SystemClock()
    runtime = Runtime(clock=clock, randomness=seeded_randomness(_BENCH), log=make_logger(StringIO(), clock))
    options = PageOptions(
        listen=ListenAddress("127.0.0.1", 0), name=_BENCH, networks_namespace=SYSTEM_NAMESPACE
    )
    figures: dict[str, str] = {}
    spent = process_time()
    async with (
        running_page(options, cluster, None, runtime=runtime) as address,
        aiohttp.ClientSession() as session,
    ):
        url = f"http://{address}"
        async with session.get(f"{url}/api/stream") as stream:
            await _read_until(stream.content, b'"node-4999"')
            figures["from the start to the first snapshot of 5,000 nodes"] = (
                f"{process_time() - spent:.2f} CPU s"
            )
        began = perf_counter()
        async with session.get(f"{url}/api/stream") as stream:
            snapshot = await _read_until(stream.content, b"\n\n")
            figures["a page that connects: its snapshot"] = (
                f"{1_000 * (perf_counter() - began):.0f} ms, {len(snapshot) / 1e6:.1f} MB"
            )
            began, spent = perf_counter(), process_time()
            while perf_counter() - began < REST_SECONDS:
                await _renew(cluster)
                await asyncio.sleep(2)
            rest = (process_time() - spent) / (perf_counter() - began)
            figures["at rest, a page open, the leader renewing its Lease"] = f"{100 * rest:.2f} % of a core"
            await _change(cluster, 0)
            event = await _read_until(stream.content, b'"node-0000"')
            figures["one node's request, as an event"] = f"{len(event)} bytes"
            spent = process_time()
            for number in range(1_000):
                await _change(cluster, number + 1)
            events = (await _read_until(stream.content, b'"node-1000"')).count(b"event: change")
            figures["1,000 nodes' requests in a burst"] = (
                f"{process_time() - spent:.2f} CPU s with the writes, {events} events"
            )
        began = perf_counter()
        async with session.get(f"{url}/api/subnets/pods/map?from=0&count=256") as answer:
            body = await answer.read()
        figures["the map of a /16"] = f"{1_000 * (perf_counter() - began):.0f} ms, {len(body) / 1e6:.2f} MB"
        gc.collect()
        figures["memory of the page's server, its informers included"] = (
            f"{_resident_megabytes() - without:.0f} MB"
        )
    cluster.close()
    return figures


async def _fill(cluster: EmbeddedCluster) -> None:
    place = ObjectMeta(name="pods", namespace=SYSTEM_NAMESPACE)
    made = await cluster.create(ClusterSubnet(metadata=place), manager=_BENCH)
    status = ClusterSubnetStatus(
        cidr="10.64.0.0/14",
        cidrs=[SubnetCidr(cidr="10.64.0.0/14", gateway="10.64.0.1")],
        capacity=2**18 - 3,
        reserved=NODES * 48,
        scaler=ScalerInForce(batch=16, buffer=0.5, top=16),
    )
    await cluster.replace_status(ClusterSubnet(metadata=made.metadata, status=status), manager=_BENCH)
    for number in range(NODES):
        await cluster.create(Node(metadata=ObjectMeta(name=_name(number))), manager=_BENCH)
        made_config = await cluster.create(_config(number, PODS), manager=_BENCH)
        granted = _config(number, PODS, made_config.metadata.resource_version)
        await cluster.replace_status(granted, manager=_BENCH)
    await cluster.create(_lease(), manager=_BENCH)


def _name(number: int) -> str:
    return f"node-{number:04}"


def _config(number: int, demand: int, version: str = "") -> NodeNetworkConfig:
    request = request_at(demand, Scaler(), 1)
    statement = Statement(
        demand=demand, batch=16, buffer=Fraction(1, 2), max_ips=250, primaries=1, request=request
    )
    first = _FIRST + 10 + 48 * number
    entries = [
        IPAssignment(name=f"grant-{number}-{each}", ip=str(IPv4Address(first + each)))
        for each in range(1, 48)
    ]
    container = NetworkContainer(
        id=_name(number), subnet_name="pods", primary_ip=str(IPv4Address(first)), ip_assignments=entries
    )
    return NodeNetworkConfig(
        metadata=ObjectMeta(
            name=_name(number),
            namespace=SYSTEM_NAMESPACE,
            resource_version=version,
            annotations={STATEMENT_ANNOTATION: render(statement)},
        ),
        spec=NodeNetworkConfigSpec(requested_ip_count=request),
        status=NodeNetworkConfigStatus(network_containers=[container]),
    )


async def _change(cluster: EmbeddedCluster, number: int) -> None:
    """The agent of a node asks for one batch more."""
    now = await cluster.get(NodeNetworkConfig, _name(number), SYSTEM_NAMESPACE)
    await cluster.replace(_config(number, PODS + 20, now.metadata.resource_version), manager=_BENCH)


def _lease() -> Lease:
    now = to_micro_time(SystemClock().wall())
    return Lease(
        metadata=ObjectMeta(name=LEASE.name, namespace=LEASE.namespace),
        spec=LeaseSpec(holder_identity="leader", lease_duration_seconds=15, acquire_time=now, renew_time=now),
    )


async def _renew(cluster: EmbeddedCluster) -> None:
    lease = await cluster.get(Lease, LEASE.name, LEASE.namespace)
    renewed = LeaseSpec(
        holder_identity="leader",
        lease_duration_seconds=15,
        acquire_time=lease.spec.acquire_time,
        renew_time=to_micro_time(SystemClock().wall()),
    )
    await cluster.replace(Lease(metadata=lease.metadata, spec=renewed), manager=_BENCH)


async def _read_until(content: aiohttp.StreamReader, end: bytes) -> bytes:
    """What comes until it ends with an event that has this in it."""
    found = bytearray()
    async for chunk in content.iter_any():
        found += chunk
        if end in found and found.endswith(b"\n\n"):
            return bytes(found)
    raise AssertionError("the stream ended")


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure())))
