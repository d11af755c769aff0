"""An agent that takes over from Azure CNS, with CNS' own state file on the node."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from agent.node_bench import MANAGER, Bench, ips, owner
from podtide.agent.pool.cns_state import parse_cns_state
from podtide.agent.port import NotAssigned
from podtide.core.errors import InvalidInput
from podtide.core.pool.adoption import RecordedEndpoint
from podtide.core.pool.states import State
from podtide.resources.metadata_keys import BEFORE_ANNOTATION
from podtide.resources.pod import Pod, PodPhase
from podtide.runtime.memory_disk import MemoryDisk

RECORDED = Path(__file__).parents[1] / "recorded" / "cns_endpoints"
CONTRADICTION = "what another program recorded contradicts the cluster"
UNREADABLE = "cannot read CNS' state file; the pool is rebuilt from the pods alone"


def recorded(file: str) -> dict[str, tuple[str, str, str, tuple[str, ...]]]:
    endpoints = parse_cns_state((RECORDED / file).read_bytes())
    assert {len(each.sandbox) for each in endpoints} <= {64}
    return {
        each.sandbox[0]: (each.interface, each.namespace, each.name, each.addresses) for each in endpoints
    }


# What CNS wrote


def test_every_version_s_file_says_the_pods_their_sandboxes_and_both_addresses() -> None:
    assert recorded("1.5.0-dual.json") == {
        "a": ("eth0", "default", "web-0", ("10.1.0.15",)),
        "b": ("eth0", "default", "web-1", ("10.1.0.13", "fd00:1::12")),
        "c": ("eth0", "kube-system", "dns-7d9", ("10.1.0.14", "fd00:1::13")),
        "d": ("eth0", "default", "without-ifname", ("10.1.0.11", "fd00:1::10")),
    }
    assert recorded("1.7.0-dual.json") == {
        "a": ("eth0", "default", "web-0", ("10.1.0.10",)),
        "b": ("eth0", "default", "web-1", ("10.1.0.14", "fd00:1::10")),
        "c": ("eth0", "kube-system", "dns-7d9", ("10.1.0.11", "fd00:1::13")),
        "d": ("eth0", "default", "without-ifname", ("10.1.0.12", "fd00:1::11")),
    }


@pytest.mark.parametrize("version", ["1.5.0", "1.7.0"])
def test_a_sandbox_that_was_released_is_not_in_the_file(version: str) -> None:
    assert {name for _, _, name, _ in recorded(f"{version}-single.json").values()} == {"web-0", "gone"}
    assert "gone" not in {name for _, _, name, _ in recorded(f"{version}-dual.json").values()}
    assert recorded(f"{version}-empty.json") == {}


def test_an_interface_that_is_named_later_is_the_one_that_had_no_name() -> None:
    state = cns_state({"x": ("web", ["10.0.0.1"])})
    interfaces = state["Endpoints"]["x"]["IfnameToIPMap"]
    interfaces[""] = {"IPv4": [{"IP": "10.0.0.1"}, {"IP": "10.0.0.2"}]}
    assert parse_cns_state(json.dumps(state).encode()) == (
        RecordedEndpoint("x", "eth0", "default", "web", ("10.0.0.1", "10.0.0.2")),
    )


FOREIGN = {
    "empty": b"",
    "torn": (RECORDED / "1.7.0-dual.json").read_bytes()[:400],
    "a database": b"\0" * 16 + b"\xed\xda\x0c\xed" + b"\xff" * 4096,
    "CNS' other file": b'{"ContainerNetworkService":{"Location":"","ContainerStatus":{}}}',
    "another shape": b'{"Endpoints":{"x":{"PodName":"web","PodNamespace":"default","Interfaces":[]}}}',
    "no address": b'{"Endpoints":{"x":{"PodName":"w","PodNamespace":"d","IfnameToIPMap":{"":{"IPv4":[{"IP":"?"}]}}}}}',
    "too large": b'{"Endpoints":{}}' + b" " * 16 * 1024 * 1024,
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_what_is_not_such_a_file_is_refused_as_a_whole(content: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_cns_state(content)


# What the agent makes of it


def cns_state(sandboxes: dict[str, tuple[str, list[str]]]) -> Any:
    """A state file in the form of the recorded ones: pod and addresses of each sandbox."""
    return {
        "Endpoints": {
            sandbox: {
                "PodName": pod,
                "PodNamespace": "default",
                "IfnameToIPMap": {
                    "eth0": {"IPv4": [{"IP": ip, "Mask": "////AA=="} for ip in ips], "NICType": ""}
                },
            }
            for sandbox, (pod, ips) in sandboxes.items()
        }
    }


class HandedOver:
    """A node that was handed over with running pods. CNS' sandbox of pod-0 was cns-pod-0, and so on."""

    def __init__(self, bench: Bench, pods: list[Pod], addresses: list[str], file: Path) -> None:
        self.bench = bench
        self.pods = pods
        self.addresses = addresses
        self.file = file
        self.sandboxes = {
            f"cns-{pod.metadata.name}": (pod.metadata.name, [ip])
            for pod, ip in zip(pods, addresses, strict=True)
        }
        self.write()

    def write(self) -> None:
        self.file.write_text(json.dumps(cns_state(self.sandboxes)))

    def counts(self) -> tuple[int, int]:
        """How many addresses are assigned, and quarantined."""
        counts = self.bench.agent.addresses.state().counts
        return counts[State.ASSIGNED], counts[State.QUARANTINED]

    def holder(self, ip: str) -> str:
        """The sandbox that has the address; "" if none has."""
        address = self.bench.agent.pool.find(ip)
        assert address is not None
        return address.owner.sandbox if address.owner is not None else ""

    def alarms(self) -> list[str]:
        return [line["alarm"] for line in self.bench.log(CONTRADICTION)]


async def handed_over(tmp_path: Path, shown: int = 3, silent: int = 0, *, mark: bool = True) -> HandedOver:
    file = tmp_path / "azure-endpoints.json"
    bench = Bench(cns_state_file=file)
    await bench.join()
    addresses: list[str] = []
    async with bench.controller(), bench.running():
        await bench.settle()
        pods = await bench.schedule_many(shown + silent)
        for pod in pods:
            addresses += await bench.add(f"cns-{pod.metadata.name}", pod)
    for pod, address in zip(pods[:shown], addresses, strict=False):
        await bench.report(pod, PodPhase.RUNNING, [address])
    if mark:
        config = await bench.config()
        metadata = structs.replace(config.metadata, annotations={BEFORE_ANNOTATION: "{}"})
        await bench.server.replace(structs.replace(config, metadata=metadata), manager=MANAGER)
    bench.disk = MemoryDisk()
    return HandedOver(bench, pods, addresses, file)


async def test_pods_keep_their_addresses_in_the_sandboxes_that_cns_gave_them_to(tmp_path: Path) -> None:
    node = await handed_over(tmp_path)
    bench = node.bench
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert [node.holder(ip) for ip in node.addresses] == list(node.sandboxes)
        assert node.counts() == (3, 0)
        assert (agent.addresses.state().demand, agent.addresses.state().waiting_pods) == (3, 0)
        assert await bench.add("cns-pod-0", node.pods[0]) == (node.addresses[0],), "the same ADD again"
        assert bench.delete("another-sandbox", node.pods[0]) == ()
        assert bench.delete("cns-pod-0", node.pods[0]) == (node.addresses[0],), (
            "by its id, while the pod lives"
        )
        assert node.alarms() == []
        assert agent.addresses.state().alarms == 0
    async with bench.controller(), bench.running():
        await bench.settle()
        assert [node.holder(ip) for ip in node.addresses] == ["", "cns-pod-1", "cns-pod-2"], "by the journal"
    assert len(bench.log("read CNS' state file")) == 1


async def test_a_node_that_was_not_handed_over_does_not_read_the_file(tmp_path: Path) -> None:
    node = await handed_over(tmp_path, mark=False)
    async with node.bench.controller(), node.bench.running():
        await node.bench.settle()
        assert node.holder(node.addresses[0]).startswith("pod-")
        assert not node.bench.log("read CNS' state file")


async def test_a_silent_pod_is_waited_for_and_its_recorded_address_is_nobody_else_s(tmp_path: Path) -> None:
    node = await handed_over(tmp_path, shown=1, silent=1)
    bench = node.bench
    async with bench.controller(), bench.running():
        await bench.settle()
        assert node.counts() == (0, 15), "the file does not prove that the silent pod has no other address"
        assert await bench.add("its-next-sandbox", node.pods[1]) != (node.addresses[1],)
        await bench.settle()
        assert [node.holder(ip) for ip in node.addresses] == ["cns-pod-0", "cns-pod-1"]
        assert bench.delete("cns-pod-1", node.pods[1]) == (node.addresses[1],)


async def test_a_sandbox_that_is_deleted_before_it_is_adopted_is_not_adopted(tmp_path: Path) -> None:
    node = await handed_over(tmp_path, shown=1, silent=1)
    bench = node.bench
    async with bench.controller(), bench.running():
        await bench.settle()
        bench.delete("cns-pod-1", node.pods[1])
        await bench.remove(node.pods[1])
        await bench.settle()
        assert [node.holder(ip) for ip in node.addresses] == ["cns-pod-0", ""]
        assert node.counts() == (1, 0)


async def test_a_stale_entry_is_freed_alone_after_the_grace_of_a_leak(tmp_path: Path) -> None:
    node = await handed_over(tmp_path)
    bench = node.bench
    await bench.remove(node.pods[2])
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert node.holder(node.addresses[2]) == "cns-pod-2"
        await bench.settle(310)
        assert [node.holder(ip) for ip in node.addresses] == ["cns-pod-0", "cns-pod-1", ""]
        assert agent.addresses.state().collected_leaks == 1


async def test_an_entry_of_another_pod_is_an_alarm_and_withheld_until_its_sandbox_is_deleted(
    tmp_path: Path,
) -> None:
    node = await handed_over(tmp_path)
    bench, ip = node.bench, node.addresses[0]
    node.sandboxes["cns-former"] = ("former", node.sandboxes.pop("cns-pod-0")[1])
    node.write()
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert node.counts() == (2, 1)
        assert node.alarms() == [
            f"{ip} is recorded for pod default/former in sandbox cns-former; the pods that show it: default/pod-0"
        ]
        assert agent.addresses.state().alarms == 1
        assert ip not in {(await bench.add(f"new-{number}"))[0] for number in range(12)}
        bench.delete("cns-former")
        await bench.settle()
        assert node.holder(ip).startswith("pod-")
        assert node.counts()[1] == 0
        assert len(node.alarms()) == 1, "said once"
        assert len(bench.log("read CNS' state file")) == 1, "the other program does not write it any more"


async def test_two_sandboxes_with_one_address_and_an_address_of_another_node_are_alarms(
    tmp_path: Path,
) -> None:
    node = await handed_over(tmp_path)
    bench, ip = node.bench, node.addresses[0]
    node.sandboxes |= {"cns-twice": ("pod-0", [ip]), "cns-stranger": ("pod-9", ["192.0.2.1"])}
    node.write()
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        assert node.counts() == (2, 1)
        assert agent.addresses.state().alarms == len(node.alarms()) == 2
        assert any(
            "192.0.2.1" in words and "is not an address of this node" in words for words in node.alarms()
        )
        bench.delete("cns-twice", node.pods[0])
        await bench.settle()
        assert node.holder(ip) == "cns-pod-0"


@pytest.mark.parametrize("content", [*FOREIGN.values(), None], ids=[*FOREIGN, "missing"])
async def test_a_file_that_cannot_be_read_is_one_line_and_pods_alone_are_gone_by(
    tmp_path: Path, content: bytes | None
) -> None:
    node = await handed_over(tmp_path)
    node.file.unlink()
    if content is not None:
        node.file.write_bytes(content)
    async with node.bench.controller(), node.bench.running():
        await node.bench.settle(60)
        assert node.counts() == (3, 0)
        assert all(node.holder(ip).startswith("pod-") for ip in node.addresses)
    [line] = node.bench.log(UNREADABLE)
    assert (line["level"], line["file"]) == ("warning", str(node.file))
    assert "\n" not in line["error"]


async def test_check_of_a_sandbox_from_before_finds_its_address(tmp_path: Path) -> None:
    node = await handed_over(tmp_path)
    async with node.bench.controller(), node.bench.running() as agent:
        await node.bench.settle()
        assert ips(agent.addresses.check(owner("cns-pod-0", node.pods[0]))) == (node.addresses[0],)
        with pytest.raises(NotAssigned):
            agent.addresses.check(owner("another", node.pods[0]))
