"""`podtide release --agent-socket`, asked of a running agent."""

import asyncio
import json
import sys
from pathlib import Path

import aiohttp
import pytest

from cli.processes import running, served_cluster
from cli.test_agent import Place, join
from podtide.cli.shell.exit_status import ExitStatus

pytestmark = pytest.mark.real_time


async def release(place: Place, address: str, *options: str) -> tuple[int, str]:
    """The exit status, and what was printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "podtide", "release", address, "--agent-socket", str(place.socket), *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"KUBECONFIG": "/nowhere"},  # only the agent is asked
    )
    printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, printed.decode()


async def test_the_agent_frees_what_a_sandbox_has_only_by_force_and_the_next_pod_gets_it(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    async with served_cluster(place.kubeconfig) as cluster, running(*place.options) as agent:
        await join(cluster, "10.1.0.5")
        await agent.logged("listening")
        assert await place.add("sandbox") == "10.1.0.5/24"

        status, words = await release(place, "10.1.0.5")
        assert status == ExitStatus.BAD_INPUT
        assert "which pod" in words
        assert "is not released: " in words
        assert "two pods would share one address" in words

        status, words = await release(place, "10.1.0.5", "--force")
        assert (status, "--force needs --yes" in words) == (ExitStatus.BAD_INPUT, True)
        status, words = await release(place, "10.1.0.5", "--dry-run", "-o", "json")
        assert (status, json.loads(words)["released"]) == (0, False)
        assert await place.add("sandbox") == "10.1.0.5/24"  # it still has it

        status, words = await release(place, "10.1.0.5", "--force", "--yes")
        assert (status, words.startswith("10.1.0.5 is free in the node's pool; pod ")) == (0, True)
        status, words = await release(place, "10.1.0.5")
        assert status == 0
        assert words.startswith("there is nothing to release: no sandbox has it")
        assert await place.add("next") == "10.1.0.5/24"

        status, words = await release(place, "10.1.0.77")
        assert (status, words) == (
            ExitStatus.BAD_INPUT,
            "podtide: 10.1.0.77 is not in the pool of node node-1\n",
        )

        connector = aiohttp.UnixConnector(str(place.socket))
        async with aiohttp.ClientSession("http://agent", connector=connector) as session:
            for body in (b"", b"[]", b'{"address": 5}', b'{"address": "ten"}', b"\xff"):
                async with session.post("/addresses/release", data=body) as answer:
                    assert (answer.status, (await answer.text()).strip() != "") == (400, True), body
        assert await place.add("next") == "10.1.0.5/24"
