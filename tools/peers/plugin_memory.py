"""The most memory that a plugin's process ever had.

The kernel's own figure (`ru_maxrss`) counts what the process had before its exec, which is a copy of whoever started it:
started from Python, the smallest program seems to have Python's tens of megabytes. So a shell forks the process and ends;
the process is handed to us as its subreaper, and only then told to become the plugin. What is left of the error is the
shell's own, less than 1 MB.
"""

import ctypes
import os
import shlex
import subprocess
from pathlib import Path

from peers.plugin_process import PluginCall

_PR_SET_CHILD_SUBREAPER = 36
_SHELL = "/bin/sh"


def peak_plugin_memory_bytes(call: PluginCall, directory: Path) -> int:
    """Run the call, which has to succeed, and tell the peak of its resident memory."""
    _adopt_orphans()
    output = directory / "memory-answer"
    plugin, configuration, answer = map(shlex.quote, map(str, (call.executable, call.configuration, output)))
    told, tell = os.pipe()
    try:
        # A shell that is still there when the process ends may take its exit status from us.
        started = subprocess.run(
            [
                *(_SHELL, "-c"),
                f"{{ read go </dev/fd/{told}; exec {plugin} <{configuration}; }} >{answer} 2>&1 & echo $!",
            ],
            env=dict(call.environment),
            stdout=subprocess.PIPE,
            check=True,
            pass_fds=(told,),
        )
        os.write(tell, b"go\n")
        _, status, usage = os.wait4(int(started.stdout), 0)
    finally:
        os.close(told)
        os.close(tell)
    assert status == 0, f"{call.executable} failed: {output.read_text(errors='replace')}"
    kilobytes: int = usage.ru_maxrss
    return kilobytes * 1024


def _adopt_orphans() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())
