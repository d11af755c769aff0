"""Calls of the plugin that do not reach the agent as they were made."""

import io
from collections.abc import Mapping

import msgspec

from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.faulty_doors import FaultyDoors
from podtide.simulation.faults.kubelet_calls import RepeatedCall
from podtide.simulation.nodes.agents_in_process import AgentsInProcess
from podtide.simulation.nodes.container_runtime import CONFIGURATION

ADD = {
    "CNI_COMMAND": "ADD",
    "CNI_CONTAINERID": "sandbox-1",
    "CNI_IFNAME": "eth0",
    "CNI_NETNS": "/var/run/netns/1",
    "CNI_PATH": "/opt/cni/bin",
}


class AlwaysRepeated(RepeatedCall):
    rate = 1.0


class SwitchedOffMeanwhile(AgentsInProcess):
    """The machine is switched off while its first call is answered."""

    def __init__(self) -> None:
        super().__init__(clock=LoopClock(), log=make_logger(io.StringIO(), LoopClock()))
        self.doors: FaultyDoors
        self.calls = 0

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        self.calls += 1
        self.doors.switch_off(node)
        return await super().call(node, environment, stdin)


async def test_a_call_to_a_machine_that_is_switched_off_reaches_nobody_and_its_caller_can_read_why() -> None:
    struck: list[tuple[str, ...]] = []
    agents = SwitchedOffMeanwhile()
    conditions = Conditions(1, [], lambda *words: struck.append(words))
    conditions.is_bad = True
    agents.doors = FaultyDoors(
        agents, [AlwaysRepeated()], conditions, seed=1, report=lambda *words: struck.append(words)
    )
    exit_status, output = await agents.doors.call("node-0", ADD, CONFIGURATION)
    assert struck == [("repeated-call", "ADD on node-0")]
    assert agents.calls == 1
    assert exit_status == 1
    assert msgspec.json.decode(output)["msg"].startswith("node-0 is switched off")
