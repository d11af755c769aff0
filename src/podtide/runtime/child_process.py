"""How a child process is ended: `asyncio`'s own way may log a warning about a child that has just ended by itself.

`Process.kill` asks first whether the child has ended, and so takes the exit status away from the thread that waits for it,
which then says "Unknown child process". A signal by number asks nothing.
"""

import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress


async def kill(process: Process) -> None:
    """End the process, and wait until it has."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    await process.wait()
