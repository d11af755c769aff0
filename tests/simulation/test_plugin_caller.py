"""The real plugin, started as a process, for nodes whose agent is away."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from podtide.runtime.plugin_executable import find_plugin
from podtide.simulation.nodes.container_runtime import CONFIGURATION
from podtide.simulation.nodes.plugin_caller import ExecutablePlugin

ENVIRONMENT = {
    "CNI_CONTAINERID": "sandbox-1",
    "CNI_IFNAME": "eth0",
    "CNI_NETNS": "/var/run/netns/1",
    "CNI_PATH": "/opt/cni/bin",
}


@pytest.mark.real_time
async def test_the_plugin_is_told_the_socket_of_its_nodes_agent(tmp_path: Path) -> None:
    plugin = ExecutablePlugin(find_plugin(), {"node-0": tmp_path / "agent.sock"})
    exit_status, output = await plugin.call("node-0", {**ENVIRONMENT, "CNI_COMMAND": "ADD"}, CONFIGURATION)
    assert (exit_status, msgspec.json.decode(output)["code"]) == (1, 11)
    assert await plugin.call("node-0", {**ENVIRONMENT, "CNI_COMMAND": "DEL"}, CONFIGURATION) == (0, b"")
    assert [note.name for note in (tmp_path / "deleted").iterdir()] == ["sandbox-1@eth0"]


@pytest.mark.real_time
async def test_a_call_that_is_given_up_leaves_no_process_behind(tmp_path: Path) -> None:
    slow, telling = tmp_path / "slow", tmp_path / "pid"
    os.mkfifo(telling)
    slow.write_text(f"#!/bin/sh\necho $$ > {telling}\nexec sleep 600\n")
    slow.chmod(0o755)
    calling = asyncio.create_task(ExecutablePlugin(slow, {"node-0": tmp_path}).call("node-0", {}, b""))
    process = int(await asyncio.to_thread(telling.read_text))
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
