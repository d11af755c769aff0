"""`podtide agent` as a node runs it: a process on a cluster, a socket, and a journal that outlives it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec import structs

from agent.calling import code, config, environment
from cli.conftest import Run
from cli.processes import Program, running, served_cluster
from patience import PATIENCE_SECONDS
from podtide.agent.api.plugin_protocol import Answer, decode_answer, encode_call
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.ip_pool import IPPool, IPPoolSpec
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import BEFORE_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigStatus,
)
from podtide.resources.pod import Pod, PodIP, PodPhase, PodSpec, PodStatus

pytestmark = pytest.mark.slow

MOST_IDLE_BYTES = 40_000_000
NODE = "node-1"
CNS_STATE_FILE = Path(__file__).parents[1] / "recorded" / "cns_endpoints" / "1.7.0-single.json"


async def join(cluster: EmbeddedCluster, *ips: str) -> None:
    """Do for the node what the request controller does."""
    node = await cluster.create(Node(metadata=ObjectMeta(name=NODE)), manager="test")
    owner = OwnerReference(api_version="v1", kind="Node", name=NODE, uid=node.metadata.uid, controller=True)
    place = ObjectMeta(name=NODE, namespace=SYSTEM_NAMESPACE, owner_references=[owner])
    config = await cluster.create(NodeNetworkConfig(metadata=place), manager="test")
    status = NodeNetworkConfigStatus(
        network_containers=[
            NetworkContainer(
                id=node.metadata.uid,
                subnet_name="pods",
                primary_ip="10.1.0.4",
                subnet_address_space="10.1.0.0/24",
                default_gateway="10.1.0.1",
                version=1,
                ip_assignments=[IPAssignment(name=f"name-{ip}", ip=ip) for ip in ips],
            )
        ]
    )
    await cluster.replace_status(structs.replace(config, status=status), manager="test")


class Place:
    """Where the agent of a test lives."""

    def __init__(self, directory: Path) -> None:
        self.kubeconfig = directory / "kubeconfig"
        self.socket = directory / "run" / "agent.sock"
        self.options = (
            *("agent", "--kubeconfig", self.kubeconfig, "--node-name", NODE),
            *("--state-directory", directory / "state", "--socket", self.socket),
        )

    async def acknowledged(
        self, verb: str, sandbox: str, ipam: dict[str, Any] | None = None
    ) -> Coroutine[Any, Any, Answer]:
        """A call that the agent has taken, and whose answer is to be awaited."""
        reader, writer = await asyncio.open_unix_connection(self.socket)
        body = encode_call(environment(verb, sandbox), config(ipam=ipam))
        writer.write(f"POST /cni HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reader.readuntil(b"\r\n\r\n")

        async def rest() -> Answer:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answer = decode_answer(await reader.read())
            writer.close()
            assert answer is not None
            return answer

        return rest()

    async def call(self, verb: str, sandbox: str, ipam: dict[str, Any] | None = None) -> Answer:
        return await (await self.acknowledged(verb, sandbox, ipam))

    async def add(self, sandbox: str) -> str:
        answer = await self.call("ADD", sandbox)
        assert answer.exit_status == 0, answer.output
        address: str = json.loads(answer.output)["ips"][0]["address"]
        return address


def resident_bytes(program: Program) -> int:
    pages = Path(f"/proc/{program.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.real_time
async def test_an_agent_takes_over_the_sandboxes_in_a_state_file_that_cns_wrote(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with served_cluster(place.kubeconfig) as cluster:
        await join(cluster, "10.1.0.10", "10.1.0.13", "10.1.0.14")
        config = await cluster.get(NodeNetworkConfig, NODE, SYSTEM_NAMESPACE)
        metadata = structs.replace(config.metadata, annotations={BEFORE_ANNOTATION: "{}"})
        await cluster.replace(structs.replace(config, metadata=metadata), manager="test")
        pod = Pod(metadata=ObjectMeta(name="web-0", namespace="default"), spec=PodSpec(node_name=NODE))
        pod = await cluster.create(pod, manager="test")
        status = PodStatus(phase=PodPhase.RUNNING, pod_ips=[PodIP(ip="10.1.0.10")])
        await cluster.replace_status(structs.replace(pod, status=status), manager="test")
        async with running(*place.options, "--cns-state-file", CNS_STATE_FILE) as agent:
            await agent.logged("the pool is rebuilt")
            assert await place.add("a" * 64) == "10.1.0.10/24", "shown by its pod"
            assert await place.add("e" * 64) == "10.1.0.13/24", "of a pod that is gone"
            assert await place.add("new") == "10.1.0.14/24"
            assert (await place.call("DEL", "a" * 64)).exit_status == 0
            assert await place.add("newer") == "10.1.0.10/24", "free by its container id"


@pytest.mark.real_time
async def test_an_agent_serves_its_node_through_a_restart(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with served_cluster(place.kubeconfig) as cluster:
        await join(cluster, "10.1.0.5", "10.1.0.6")
        async with running(*place.options, "--listen", "127.0.0.1:0", PODTIDE_ADD_WAIT="30s") as agent:
            address = (await agent.logged("listening"))["address"]
            first = await place.add("first")
            second = await place.add("second")
            assert {first, second} == {"10.1.0.5/24", "10.1.0.6/24"}
            assert resident_bytes(agent) <= MOST_IDLE_BYTES

            async with aiohttp.ClientSession(f"http://{address}") as door:
                for path in ("/healthz", "/readyz", "/metrics"):
                    async with door.get(path) as response:
                        assert response.status == 200, path
                wanted = {"IPConfigStateFilter": ["Assigned"]}
                async with door.post("/debug/ipaddresses", json=wanted) as response:
                    shown: dict[str, Any] = await response.json()
                    assert len(shown["IPConfigurationStatus"]) == 2

            waiting = await place.acknowledged("ADD", "third")
            await agent.stop()
            assert code(await waiting) == 11
            assert not place.socket.exists()

        (place.socket.parent / "deleted" / "second@eth0").write_bytes(
            encode_call(environment("DEL", "second"), config())
        )
        async with running(*place.options) as agent:
            await agent.logged("listening")
            assert await place.add("first") == first, "what was answered is not forgotten"
            assert await place.add("third") == second, "and what was left in a note is carried out"
            await agent.stop()


@pytest.mark.real_time
async def test_an_agent_without_a_pool_serves_secondary_networks(tmp_path: Path) -> None:
    place = Place(tmp_path)
    sliced = {"range": "10.7.0.0/16", "node_slice_size": "/24", "network_name": "blue"}
    async with served_cluster(place.kubeconfig) as cluster:
        await cluster.create(Node(metadata=ObjectMeta(name=NODE)), manager="test")
        pool = IPPool(
            metadata=ObjectMeta(name=f"blue-{NODE}", namespace="networks"),
            spec=IPPoolSpec(range="10.7.3.0/24", allocations={}),
        )
        await cluster.create(pool, manager="test")
        options = (*place.options, "--no-node-pool", "--networks-namespace", "networks")
        async with running(*options) as agent:
            await agent.logged("listening")
            answer = await place.call("ADD", "first", sliced)
            assert json.loads(answer.output)["ips"] == [{"address": "10.7.3.1/16"}]
            assert code(await place.call("ADD", "first")) == 7
            lease = await cluster.get(Lease, f"blue-{NODE}", "networks")
            assert lease.spec.holder_identity == NODE
            assert (await place.call("DEL", "first", sliced)).exit_status == 0
            await agent.stop()
        lease = await cluster.get(Lease, f"blue-{NODE}", "networks")
        assert lease.spec.holder_identity == "", "it is given up by an agent that ends in good order"
        assert (await cluster.get(IPPool, f"blue-{NODE}", "networks")).spec.allocations == {}


@pytest.mark.real_time
async def test_a_second_agent_on_the_node_is_refused_in_one_line(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with served_cluster(place.kubeconfig), running(*place.options) as agent:
        await agent.logged("listening")
        async with running(*place.options) as other:
            assert other.process.stderr is not None
            words = (await other.process.stderr.read()).decode()
            assert (await other.process.wait(), words.count("\n")) == (2, 1)
            assert words.startswith("podtide: ")
            assert "agent.lock" in words
        await agent.stop()


def nowhere(directory: Path) -> tuple[str, ...]:
    """A cluster that does not answer, and a place for state."""
    kubeconfig = directory / "kubeconfig"
    write_kubeconfig(kubeconfig, "http://127.0.0.1:1")
    return "--kubeconfig", str(kubeconfig), "--state-directory", str(directory / "state")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "0.0.0.0:10090"), "listen on 127.0.0.1"),
        (("--listen", "10090"), "not an address to listen on"),
        (("--listen", ""), "not an address to listen on"),
        (("--socket", ""), "the path is empty: give the path of a file"),
        (("--state-directory", ""), "is empty: give the path of a directory"),
        (("--state-directory", "/dev/null"), "/dev/null"),
        (("--socket", "/tmp/" + "x" * 103), "name a shorter one"),  # noqa: S108 - nothing is made there
        (("--shrink-delay", "soon"), "--shrink-delay=soon is refused"),
        (("--contact-timeout", "1h"), "give less than quarantine, which is 6m"),
        (("--kubeconfig", "/none"), "/none cannot be read"),
        (("--context", "elsewhere"), "has no context 'elsewhere'"),
        (("--log-level", "loud"), "'loud' is not one of"),
    ],
)
def test_what_cannot_be_run_by_is_refused_in_one_line(
    podtide: Run, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    outcome = podtide("agent", *nowhere(tmp_path), "--log-level", "error", *options)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1), outcome.err
    assert words in outcome.err


def test_settings_come_from_the_environment_too(podtide: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODTIDE_ADD_WAIT", "never")
    assert "PODTIDE_ADD_WAIT=never is refused" in podtide("agent").err


@pytest.mark.parametrize(
    ("options", "expected"), [(("--node-name", "by-flag"), "by-flag"), ((), "by-variable")]
)
def test_the_nodes_name_is_the_flags_else_what_the_node_says(
    podtide: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    expected: str,
) -> None:
    names = []

    class Enough(Exception):
        pass

    def note(_cluster: object, name: str, *_: object, **__: object) -> None:
        names.append(name)
        raise Enough

    monkeypatch.setattr("podtide.cli.programs.agent.NodeAgent", note)
    monkeypatch.setenv("NODENAME", "by-variable")
    outcome = podtide("agent", *nowhere(tmp_path), *options)
    assert names == [expected]
    assert outcome.status == 1
    assert outcome.err.splitlines()[-1] == (
        "podtide: stopped by an unexpected error (Enough): see the traceback in the log, and please report it"
    )


def test_an_agent_imports_nothing_it_does_not_use() -> None:
    """Its memory is paid for on every node: the cause is held here, and the sum above."""
    code = "import sys, podtide.cli.programs.agent; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = set(out.split())
    assert "podtide.agent.api.server" in loaded
    unused = {
        *(
            "rich",
            "pygments",
            "yaml",
            "litestar",
            "uvicorn",
            "uvloop",
            "aiohttp",
            "yarl",
            "alembic",
            "sqlalchemy",
        ),
        *("asyncpg", "sqlite3", "cryptography", "greenlet", "multiprocessing", "unittest"),
        *("podtide.allocator", "podtide.controller", "podtide.simulation", "podtide.agent.bridge.rtnetlink"),
        *("podtide.cluster.embedded", "podtide.cluster.served", "podtide.cluster.kubernetes.kubeconfig"),
    }
    assert not loaded & unused
