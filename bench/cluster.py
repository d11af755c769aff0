"""What it costs to follow a cluster: CPU and memory of an informer, through the adapter that speaks to API servers.

Events and lists come from a server in a process of its own, so that its work is not counted; and so does what is
measured, because a process's peak memory is that of all it ever did.
"""

import asyncio
import json
import multiprocessing
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, TypeVar

from podtide.cluster.informer import Informer
from podtide.cluster.kubernetes import Access, KubernetesCluster
from podtide.cluster.kubernetes.access import Endpoint
from podtide.resources.base import Resource
from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

PART = "cluster"
PODS = 5_000
EVENTS = 50_000
NODES = 5_000
PAGE = 500

R = TypeVar("R", bound=Resource)
Work = Callable[[str], Coroutine[Any, Any, None]]

_spawn = multiprocessing.get_context("spawn")


def measure() -> Iterator[tuple[str, str]]:
    """Watching pods, and listing nodes."""
    port: SimpleQueue[int] = _spawn.SimpleQueue()
    server = _spawn.Process(target=_serve, args=(port,), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{port.get()}"
        cpu_seconds, idle_mb, peak_mb = _in_a_process(_follow_pods, url)
        yield f"informer: {EVENTS:,} watch events of 4.4 kB pods", f"{cpu_seconds:.2f} CPU s"
        yield f"informer: peak memory, {PODS:,} pods in its copy", f"{peak_mb:.0f} MB, idle {idle_mb:.0f}"
        cpu_seconds, idle_mb, peak_mb = _in_a_process(_list_nodes, url)
        yield f"informer: list of {NODES:,} nodes of 10 kB, in pages", f"{cpu_seconds:.2f} CPU s"
        yield f"informer: peak memory, {NODES:,} nodes in its copy", f"{peak_mb:.0f} MB, idle {idle_mb:.0f}"
    finally:
        server.terminate()
        server.join()


def _in_a_process(work: Work, url: str) -> tuple[float, float, float]:
    """CPU seconds, and memory before and at the peak."""
    results: SimpleQueue[tuple[float, float, float]] = _spawn.SimpleQueue()
    process = _spawn.Process(target=_report, args=(work, url, results))
    process.start()
    figures = results.get()
    process.join()
    return figures


def _report(work: Work, url: str, results: "SimpleQueue[tuple[float, float, float]]") -> None:
    idle_mb, begin = _peak_mb(), process_time()
    asyncio.run(work(url))
    results.put((process_time() - begin, idle_mb, _peak_mb()))


def _peak_mb() -> float:
    """Not by `getrusage`: a new process inherits there what its parent had."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


async def _follow_pods(url: str) -> None:
    told, all_told = 0, asyncio.Event()

    def count(_old: Pod | None, _new: Pod | None) -> None:
        nonlocal told
        told += 1
        if told == EVENTS:
            all_told.set()

    async with _cluster(url) as cluster:
        informer = _informer(cluster, Pod)
        informer.add_handler(count)
        running = asyncio.create_task(informer.run())
        await all_told.wait()
        running.cancel()
        assert len(informer.items()) == PODS


async def _list_nodes(url: str) -> None:
    async with _cluster(url) as cluster:
        informer = _informer(cluster, Node)
        running = asyncio.create_task(informer.run())
        await informer.synced.wait()
        running.cancel()
        assert len(informer.items()) == NODES


def _informer(cluster: KubernetesCluster, kind: type[R]) -> Informer[R]:
    clock = SystemClock()
    log = make_logger(sys.stderr, clock)
    return Informer(cluster, kind, runtime=Runtime(clock=clock, randomness=system_randomness(), log=log))


def _cluster(url: str) -> KubernetesCluster:
    access = Access(endpoint=Endpoint(server=url), found_in="the benchmark")
    return KubernetesCluster(access, clock=SystemClock(), randomness=system_randomness())


def _serve(port: "SimpleQueue[int]") -> None:
    asyncio.run(_serve_for_ever(port))


async def _serve_for_ever(port: "SimpleQueue[int]") -> None:
    """Just enough of an API server: lists of no pods and of many nodes, and watches."""
    nodes = [_node(number) for number in range(NODES)]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):  # the client has what it wanted
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                target = request.split(b" ")[1].decode()
                if "watch=true" in target:
                    await _send_events(writer, EVENTS if "/pods" in target else 0)
                else:
                    await _send_page(writer, nodes if "/nodes" in target else [], target)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port.put(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _send_page(writer: asyncio.StreamWriter, items: list[bytes], target: str) -> None:
    start = int(target.partition("continue=")[2] or 0)
    end = start + PAGE
    more = b"%d" % end if end < len(items) else b""
    page = b",".join(items[start:end])
    body = b'{"metadata":{"resourceVersion":"1","continue":"%s"},"items":[%s]}' % (more, page)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()


async def _send_events(writer: asyncio.StreamWriter, count: int) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    template = json.dumps({"type": "CHANGE", "object": _pod("NAME", "VERSION")}).encode()
    for number in range(count):
        line = (
            template.replace(b"CHANGE", b"ADDED" if number < PODS else b"MODIFIED")
            .replace(b"NAME", b"web-%d" % (number % PODS))
            .replace(b"VERSION", b"%d" % (number + 2))
        )
        writer.write(b"%x\r\n%s\n\r\n" % (len(line) + 1, line))
        await writer.drain()


def _pod(name: str, version: str) -> dict[str, Any]:
    """A pod as clusters have them: most of it is of no interest to podtide."""
    mounts = [{"name": f"volume-{n}", "mountPath": f"/data/{n}", "readOnly": True} for n in range(6)]
    variables = [{"name": f"SETTING_{n}", "value": f"value of setting {n}"} for n in range(36)]
    managed = {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {f"f:label-{n}": {} for n in range(10)}},
            "f:spec": {f"f:field-{n}": {} for n in range(30)},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "resourceVersion": version,
            "creationTimestamp": "2026-11-05T12:00:00Z",
            "labels": {"app": "web", "pod-template-hash": "5d4f8c7b9"},
            "managedFields": [managed],
        },
        "spec": {
            "nodeName": "node-17",
            "containers": [
                {"name": "main", "image": "registry.invalid/web:1", "env": variables, "volumeMounts": mounts}
            ],
            "volumes": [{"name": f"volume-{n}", "configMap": {"name": f"map-{n}"}} for n in range(6)],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.17",
            "podIPs": [{"ip": "10.0.0.17"}],
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-11-05T12:00:00Z"}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
        },
    }


def _node(number: int) -> bytes:
    """A node of about 10 kB, most of it the images it has."""
    images = [{"names": [f"registry.invalid/image-{n}@sha256:{n:064x}"], "sizeBytes": n} for n in range(80)]
    name = f"node-{number}"
    return json.dumps(
        {
            "metadata": {"name": name, "uid": f"uid-of-{name}", "resourceVersion": "1"},
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}], "images": images},
        }
    ).encode()
