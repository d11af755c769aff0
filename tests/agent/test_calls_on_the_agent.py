"""Both APIs on the real agent of a node: what the port promises, seen from outside."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.calling import SANDBOX, Journal, answer_to, code, config, environment
from agent.node_bench import Bench
from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.cns_api import CnsApi, several
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.api.metrics import Metrics
from podtide.agent.api.plugin_protocol import Answer, encode_call
from podtide.resources.pod import Pod

PRIMARY = config()


class Served(Bench):
    """The bench's node, asked by its APIs."""

    calls: CniCalls
    cns: CnsApi
    notes: DeletionNotes

    @asynccontextmanager
    async def serving(self, directory: Path, *, sync: bool = True) -> AsyncIterator["Served"]:
        async with self.running(sync=sync) as agent:
            log = Journal().log
            self.notes = DeletionNotes.beside(directory / "agent.sock", agent.addresses, log=log)
            self.calls = CniCalls(agent.addresses, self.notes, clock=self.clock, log=log)
            self.cns = CnsApi(agent.addresses, self.notes, clock=self.clock, log=log)
            yield self

    async def call(
        self, verb: str, pod: Pod | None = None, *, stdin: bytes = PRIMARY, late_seconds: float = 0.0
    ) -> Answer:
        """A call that reached the agent a while ago, and is looked at only now."""
        arguments = {}
        if pod is not None:
            name, uid = pod.metadata.name, pod.metadata.uid
            names = f"K8S_POD_NAME={name};K8S_POD_NAMESPACE=default;K8S_POD_UID={uid}"
            arguments = {"CNI_ARGS": f"IgnoreUnknown=1;{names}"}
        arrived = self.clock.monotonic() - late_seconds
        return await answer_to(self.calls, environment(verb, SANDBOX, **arguments), stdin, arrived=arrived)

    def sandboxes(self) -> list[str]:
        """Those that have an address."""
        return [each.owner.sandbox for each in self.agent.addresses.all_addresses() if each.owner]


async def test_a_pod_gets_its_address_keeps_it_and_gives_it_back(tmp_path: Path) -> None:
    bench = Served()
    await bench.join()
    async with bench.controller(), bench.serving(tmp_path):
        pod = await bench.schedule("web")
        added = await bench.call("ADD", pod)
        result = json.loads(added.output)
        assert added.exit_status == 0
        assert result["ips"][0]["gateway"] == "10.0.0.1"
        assert result["ips"][0]["address"].endswith("/16")
        assert await bench.call("ADD", pod) == added
        stated = config(prevResult=result)
        assert await bench.call("CHECK", pod, stdin=stated) == Answer(0)
        assert await bench.call("DEL", pod) == Answer(0)
        assert code(await bench.call("CHECK", pod, stdin=stated)) == 3
        assert bench.sandboxes() == []


async def test_an_add_before_anything_is_known_waits_and_is_served(tmp_path: Path) -> None:
    bench = Served()
    async with bench.serving(tmp_path, sync=False):
        assert code(await bench.call("STATUS")) == 50
        adding = asyncio.create_task(bench.call("ADD"))
        await bench.settle(1)
        await bench.join()
        async with bench.controller():
            assert (await adding).exit_status == 0
            assert await bench.call("STATUS") == Answer(0)


async def test_an_add_whose_caller_went_away_takes_nothing_later(tmp_path: Path) -> None:
    bench = Served()
    await bench.join()
    async with bench.serving(tmp_path):
        adding = asyncio.create_task(bench.call("ADD"))
        await bench.settle(1)
        adding.cancel()
        async with bench.controller():
            await bench.settle(20)
            assert list(bench.agent.addresses.all_addresses())
            assert bench.sandboxes() == []


async def test_a_note_is_carried_out_before_the_add_it_would_undo(tmp_path: Path) -> None:
    bench = Served()
    await bench.join()
    async with bench.controller(), bench.serving(tmp_path):
        assert (await bench.call("ADD")).exit_status == 0
        (tmp_path / "deleted" / f"{SANDBOX}@eth0").write_bytes(encode_call(environment("DEL"), config()))
        assert (await bench.call("ADD", late_seconds=1)).exit_status == 0
        bench.notes.carry_out_all()
        assert bench.sandboxes() == [SANDBOX]


async def test_an_add_that_a_del_overtook_is_void(tmp_path: Path) -> None:
    bench = Served()
    await bench.join()
    async with bench.controller(), bench.serving(tmp_path):
        await bench.settle()
        await bench.call("DEL")
        assert code(await bench.call("ADD", late_seconds=1)) == 11
        assert bench.sandboxes() == []


async def test_both_apis_know_the_same_sandbox(tmp_path: Path) -> None:
    bench = Served()
    await bench.join()
    async with bench.controller(), bench.serving(tmp_path):
        added = json.loads((await bench.call("ADD")).output)["ips"][0]["address"]
        body = json.dumps(
            {"infraContainerID": SANDBOX, "orchestratorContext": {"podName": "p", "podNamespace": "d"}}
        ).encode()
        answer = await bench.cns.request(body, several, arrived=bench.clock.monotonic())
        (info,) = json.loads(answer.document)["podIPInfo"]
        assert f"{info['PodIPConfig']['IPAddress']}/{info['PodIPConfig']['PrefixLength']}" == added
        bench.cns.release(body, arrived=bench.clock.monotonic())
        assert bench.sandboxes() == []


async def test_metrics_are_told_of_the_real_node(tmp_path: Path) -> None:
    bench = Served()
    await bench.join()
    async with bench.controller(), bench.serving(tmp_path):
        await bench.call("ADD", await bench.schedule("web"))
        await bench.settle()
        text = Metrics(bench.agent.addresses).render().decode()
    assert 'cx_ipam_pod_allocated_ips{subnet="pods",subnet_cidr="10.0.0.0/16"} 1.0' in text
    assert "podtide_agent_demand 1.0" in text
    assert "podtide_agent_synced 1.0" in text
