"""A program as it finds itself in a pod: its credential in files at a place that is always the same, and two variables.

The place is the machine's own, so the program gets a view of the file system of its own, as a container does.
"""

import asyncio
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from cli.processes import Program
from podtide.cluster.kubernetes.finding import SERVICE_ACCOUNT

_OWN_VIEW = ("unshare", "--mount", "sh", "-c")
_EMPTY_RUN = "mount -t tmpfs none /run"
"""Where the credential is, nothing else may be made: there is no such directory on a machine that is no pod."""


def lacking() -> str:
    """What this machine lacks to give a program such a view; empty if nothing."""
    try:
        done = subprocess.run([*_OWN_VIEW, _EMPTY_RUN], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return "install unshare (Debian: apt-get install util-linux)"
    return done.stderr and f"run as root, with the right to mount ({done.stderr.strip()})"


@asynccontextmanager
async def running_in_pod(
    credential: Path, api_server: str, *arguments: str | Path, **environment: str
) -> AsyncIterator[Program]:
    """`podtide` with this directory where Kubernetes mounts a service account, on a server that its variables name."""
    there, place = urlsplit(api_server), shlex.quote(str(SERVICE_ACCOUNT))
    mounting = f"mkdir -p {place} && mount --bind {shlex.quote(str(credential))} {place}"
    command = shlex.join([sys.executable, "-m", "podtide", *map(str, arguments)])
    process = await asyncio.create_subprocess_exec(
        *_OWN_VIEW,
        f"{_EMPTY_RUN} && {mounting} && exec {command}",
        env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "KUBERNETES_SERVICE_HOST": str(there.hostname),
            "KUBERNETES_SERVICE_PORT": str(there.port),
            **environment,
        },
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()  # as in cli.processes
