"""The plugin and the real agent: both keep to PROTOCOL.md, or these fail."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from plugin.executables import Outcome, Plugin
from plugin.node import plugin_node
from podtide.cni.versions import SUPPORTED, at_least

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

FIRST, SECOND = "10.1.0.5", "10.1.0.6"


def configuration(version: str = "1.1.0", more: dict[str, Any] | None = None) -> bytes:
    document = {"cniVersion": version, "name": "pods", "type": "ptp", "ipam": {"type": "podtide"}}
    return json.dumps(document | (more or {})).encode()


def environment(sandbox: str, verb: str) -> dict[str, str | bytes]:
    return {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": sandbox,
        "CNI_IFNAME": "eth0",
        "CNI_NETNS": f"/var/run/netns/{sandbox}",
        "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web;K8S_POD_UID=uid",
    }


class Runtime:
    """A container runtime that calls the plugin."""

    def __init__(self, executable: Path, socket: Path) -> None:
        self._plugin = Plugin(executable, socket)

    async def call(self, verb: str, sandbox: str, stdin: bytes | None = None, **more: str | bytes) -> Outcome:
        stdin = configuration() if stdin is None else stdin
        return await asyncio.to_thread(
            self._plugin.run, verb, environment(sandbox, verb) | more, configuration=stdin
        )

    def add_without_stdout(self, sandbox: str) -> Outcome:
        """What becomes of an ADD whose answer has nowhere to go."""
        closed = ("/bin/sh", "-c", 'exec "$0" >&-')
        with self._plugin.start("ADD", environment(sandbox, "ADD"), before=closed) as started:
            return started.outcome(configuration())

    async def add(self, sandbox: str) -> str:
        """The address that the sandbox gets."""
        outcome = await self.call("ADD", sandbox)
        assert outcome.exit_status == 0, outcome.stdout
        address: str = outcome.document["ips"][0]["address"]
        return address.partition("/")[0]


def addresses(result: dict[str, Any]) -> list[str]:
    """The addresses of a result, whatever its version."""
    if "ip4" in result:
        return [result["ip4"]["ip"]]
    return [each["address"] for each in result["ips"]]


DONE = Outcome(0, b"")


async def test_what_an_add_got_that_could_not_be_told_is_freed_by_the_del_that_follows(
    executable: Path, directory: Path
) -> None:
    async with plugin_node(directory) as node, node.agent():
        await node.grant(FIRST)
        runtime = Runtime(executable, node.socket)
        assert await asyncio.to_thread(runtime.add_without_stdout, "unheard") == Outcome(1, b"")
        held = {"prevResult": {"cniVersion": "1.1.0", "ips": [{"address": f"{FIRST}/24"}]}}
        assert await runtime.call("CHECK", "unheard", configuration(more=held)) == DONE  # it was given
        assert await runtime.call("DEL", "unheard") == DONE
        assert await runtime.add("next") == FIRST


async def test_every_verb_is_answered_in_every_version(executable: Path, directory: Path) -> None:
    async with plugin_node(directory) as node, node.agent():
        await node.grant(FIRST)
        runtime = Runtime(executable, node.socket)
        for version in SUPPORTED:
            stdin = configuration(version)
            added = await runtime.call("ADD", "one", stdin)
            assert added.exit_status == 0, added.stdout
            assert addresses(added.document) == [f"{FIRST}/24"]
            assert added.document["cniVersion"] == version
            assert await runtime.call("ADD", "one", stdin) == added

            with_result = configuration(version, {"prevResult": added.document})
            checked = await runtime.call("CHECK", "one", with_result)
            assert checked == DONE if at_least(version, "0.4.0") else checked.error.code == 1

            status = await runtime.call("STATUS", "", stdin)
            assert status == DONE if at_least(version, "1.1.0") else status.error.code == 1

            assert await runtime.call("DEL", "one", stdin) == DONE
            assert await runtime.call("DEL", "one", stdin) == DONE
            version_told = await runtime.call("VERSION", "", stdin)
            assert version_told.document == {"cniVersion": version, "supportedVersions": list(SUPPORTED)}

        await runtime.add("one")
        nobody_lives = configuration(more={"cni.dev/valid-attachments": []})
        assert await runtime.call("GC", "", nobody_lives) == DONE
        assert await runtime.add("two") == FIRST


async def test_what_does_not_make_sense_is_the_agents_to_refuse(executable: Path, directory: Path) -> None:
    async with plugin_node(directory) as node, node.agent():
        runtime = Runtime(executable, node.socket)
        for stdin in (b"", b"garbage", b"\0" * 2**20):
            assert (await runtime.call("ADD", "one", stdin)).error.code == 6
        assert (await runtime.call("ADD", "one", CNI_ARGS=b"\xff")).error.code == 4
        assert (await runtime.call("ADD", "")).error.code == 4
        assert (await runtime.call("DEL", "../..")).error.code == 4
        assert (await runtime.call("NONSENSE", "one")).error.code == 4
        assert (await runtime.call("ADD", "one", configuration("7.0.0"))).error.code == 1


async def test_an_add_waits_for_the_address_that_is_on_its_way(executable: Path, directory: Path) -> None:
    async with plugin_node(directory) as node, node.agent():
        adding = asyncio.create_task(Runtime(executable, node.socket).add("one"))
        await asyncio.sleep(0.5)  # so that it waits; one that comes later is served all the same
        assert not adding.done()
        await node.grant(FIRST)
        assert await adding == FIRST


async def test_a_del_without_an_agent_is_carried_out_when_it_is_back(
    executable: Path, directory: Path
) -> None:
    async with plugin_node(directory) as node:
        await node.grant(FIRST)
        runtime = Runtime(executable, node.socket)
        async with node.agent() as agent:
            assert await runtime.add("one") == FIRST
            agent.process.kill()
            await agent.process.wait()
            assert (await runtime.call("STATUS", "")).error.code == 50
            assert (await runtime.call("ADD", "two")).error.code == 11
            assert await runtime.call("DEL", "one") == DONE
        async with node.agent():
            assert await runtime.add("two") == FIRST
            assert list((node.socket.parent / "deleted").iterdir()) == []


async def test_an_agent_that_is_killed_while_an_add_waits_has_given_nothing(
    executable: Path, directory: Path
) -> None:
    async with plugin_node(directory) as node:
        runtime = Runtime(executable, node.socket)
        async with node.agent() as agent:
            waiting = asyncio.create_task(runtime.call("ADD", "one"))
            await asyncio.sleep(0.5)  # so that it waits; one that comes later finds nobody, and fails as well
            agent.process.kill()
            assert (await waiting).error.code == 11
        await node.grant(FIRST)
        async with node.agent():
            assert await runtime.add("two") == FIRST
