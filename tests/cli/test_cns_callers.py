"""The CNS API on the loopback: any user of the machine reaches it, and only root may use it."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.processes import running, served_cluster
from cli.test_agent import Place, join
from left_out import leave_out

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

NOBODY = 65534
SANDBOX = "sandbox-of-another-pod"
RELEASE = {
    "infraContainerID": SANDBOX,
    "ifname": "eth0",
    "orchestratorContext": {"podName": "web", "podNamespace": "shop"},
}
ASK = """
import json, sys, urllib.error, urllib.request
url, body = sys.argv[1], sys.argv[2].encode() or None
try:
    with urllib.request.urlopen(urllib.request.Request(url, body)) as response:
        print(json.dumps([response.status, response.read().decode()]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
"""


async def ask(url: str, body: dict[str, Any] | None, *, uid: int) -> tuple[int, str]:
    """What a process of this user is answered."""
    process = await asyncio.create_subprocess_exec(
        *("setpriv", f"--reuid={uid}", "--clear-groups", sys.executable, "-I", "-c", ASK),
        *(url, json.dumps(body) if body else ""),
        stdout=asyncio.subprocess.PIPE,
    )
    status, text = json.loads((await process.communicate())[0])
    return status, text


async def test_no_other_user_can_take_a_pods_address_from_it(tmp_path: Path) -> None:
    if os.geteuid() or not shutil.which("setpriv"):
        leave_out("callers of other users", "only root can be another user: run the tests as root")
    place = Place(tmp_path)
    async with (
        served_cluster(place.kubeconfig) as cluster,
        running(*place.options, "--listen", "127.0.0.1:0") as agent,
    ):
        await join(cluster, "10.1.0.5")
        url = f"http://{(await agent.logged('listening'))['address']}"
        assert await place.add(SANDBOX) == "10.1.0.5/24"

        for path in ("releaseipconfigs", "releaseipconfig", "requestipconfigs", "requestipconfig"):
            status, words = await ask(f"{url}/network/{path}", RELEASE, uid=NOBODY)
            assert (status, "is for root, and user 65534 asks" in words) == (403, True)
        assert (await ask(f"{url}/debug/ipaddresses", {"IPConfigStateFilter": []}, uid=NOBODY))[0] == 403
        assert (await ask(f"{url}/healthz", None, uid=NOBODY)) == (200, "ok")
        assert await place.add(SANDBOX) == "10.1.0.5/24"  # it still has it: the pool has no other

        status, answer = await ask(f"{url}/network/releaseipconfigs", RELEASE, uid=0)
        assert (status, json.loads(answer)["response"]["ReturnCode"]) == (200, 0)
        assert await place.add("next") == "10.1.0.5/24"
