"""Waits until the process that started it is gone, then removes a directory and ends its own process group.

A program of its own: the control plane's programs are started into this one's process group, and the end of standard
input is the sign, because the system closes a pipe however its owner ended, by `kill -9` too. (A parent-death signal
would not do: it is sent when the *thread* that started a program ends, and tests start some from threads.)
"""

import os
import shutil
import signal
import sys

if __name__ == "__main__":
    # A group that loses its starter while one of its programs is stopped is sent this by the system.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    sys.stdin.read()
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    os.killpg(0, signal.SIGKILL)
