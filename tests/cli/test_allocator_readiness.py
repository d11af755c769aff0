"""The allocator is ready while its database takes writes, and only then: shown on the program, whose file cannot grow."""

import json
import resource
from pathlib import Path

import aiohttp
import pytest

from cli.processes import Program, running, until

pytestmark = [pytest.mark.real_time, pytest.mark.slow]


def let_files_grow(program: Program, *, allowed: bool) -> None:
    """Whether the program can write anything new: without, it is as if its disk were full."""
    _, hard = resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (hard if allowed else 0, hard))


async def test_an_allocator_whose_every_write_fails_is_not_ready(tmp_path: Path) -> None:
    options = ("--database", f"sqlite:///{tmp_path}/subnets.db", "--listen", "127.0.0.1:0")
    async with running("allocator", *options) as program:
        url = (await program.logged("listening"))["url"]
        async with aiohttp.ClientSession(url) as door:

            async def readiness() -> tuple[int, str]:
                async with door.get("/readyz") as response:
                    return response.status, await response.text()

            async def status_of_write() -> int:
                body = json.dumps({"cidrs": ["10.1.0.0/24"]}).encode()
                headers = {"Content-Type": "application/json"}
                async with door.put("/networks/blue/subnets/pods", data=body, headers=headers) as response:
                    return response.status

            async def is_ready() -> bool:
                return (await readiness())[0] == 200

            async def is_not_ready() -> bool:
                return not await is_ready()

            assert await readiness() == (200, "ok")
            let_files_grow(program, allowed=False)
            assert await status_of_write() == 503
            async with door.get("/subnets") as response:
                assert response.status == 200  # it still answers what is asked
            await until(is_not_ready)
            assert "the database cannot be written" in (await readiness())[1]
            let_files_grow(program, allowed=True)
            await until(is_ready)
            assert await status_of_write() == 200
