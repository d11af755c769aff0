"""The plugin's calls on a node with secondary networks: environment and standard input in, what is printed out."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent.calling import NoNotes, answer_to, code
from agent.networks.network_bench import NODE, Bench, Machine, configuration
from agent.pool_addresses import PoolAddresses
from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.api.plugin_protocol import Answer
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.port import Addresses


class NodeCalls:
    """What a runtime calls."""

    def __init__(
        self,
        bench: Bench,
        networks: SecondaryNetworks,
        notes: DeletionNotes | None = None,
        addresses: Addresses | None = None,
    ) -> None:
        self.bench = bench
        self.pool = PoolAddresses(bench.clock)
        self.calls = CniCalls(
            addresses or self.pool,
            notes or NoNotes(),
            networks,
            clock=bench.clock,
            log=bench.journal.log,
        )

    async def call(
        self,
        verb: str,
        stdin: bytes,
        sandbox: str = "c1",
        *,
        ifname: str = "net1",
        pod: str = "",
        arguments: str = "",
    ) -> Answer:
        pod = pod or f"pod-of-{sandbox}"
        environment = {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": sandbox,
            "CNI_NETNS": "/run/netns/x",
            "CNI_IFNAME": ifname,
            "CNI_PATH": "/opt/cni/bin",
            "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod};K8S_POD_UID=uid-of-{pod}{arguments}",
        }
        return await answer_to(self.calls, environment, stdin, arrived=self.bench.clock.monotonic())

    async def add(self, ipam: dict[str, Any], sandbox: str = "c1", **more: Any) -> dict[str, Any]:
        """An ADD that succeeds: the result."""
        answer = await self.call("ADD", configuration(ipam), sandbox, **more)
        assert answer.exit_status == 0, answer.output
        document: dict[str, Any] = json.loads(answer.output)
        return document

    async def addresses_of(self, ipam: dict[str, Any], sandbox: str = "c1") -> list[str]:
        """The addresses of an ADD that succeeds."""
        return [each["address"] for each in (await self.add(ipam, sandbox))["ips"]]

    async def refused(self, ipam: dict[str, Any], verb: str = "ADD", sandbox: str = "c1") -> tuple[int, str]:
        """The code and the sentence of a call that fails."""
        answer = await self.call(verb, configuration(ipam), sandbox)
        return code(answer), json.loads(answer.output)["msg"]

    async def delete(self, ipam: dict[str, Any], sandbox: str = "c1") -> None:
        """A DEL that succeeds."""
        answer = await self.call("DEL", configuration(ipam), sandbox)
        assert answer == Answer(0), answer.output


class MachineCalls(NodeCalls):
    """The calls on a machine of the bench."""

    def __init__(self, bench: Bench, machine: Machine, notes: DeletionNotes | None = None) -> None:
        super().__init__(bench, machine.networks, notes)
        self.line = machine.line


@asynccontextmanager
async def calling(bench: Bench | None = None, node: str = NODE) -> AsyncIterator[MachineCalls]:
    bench = bench or Bench()
    async with bench.machine(node) as machine:
        yield MachineCalls(bench, machine)
