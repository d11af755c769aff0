"""Waits until the process that started it is gone, or has enough, then removes the namespaces that it is told.

A program of its own, as the control plane's guardian is, and for the same reason: the system closes a pipe however its
owner ended, by `kill -9` too. A namespace that does not exist is no concern of it.
"""

import subprocess
import sys

if __name__ == "__main__":
    sys.stdin.read()
    for name in sys.argv[1:]:
        subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)  # noqa: S607 - this machine's ip
