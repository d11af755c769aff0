"""Waits until the process that started it is gone, or has enough, then removes what is left of its nodes.

A program of its own, as the control plane's guardian is, and for the same reason: the system closes a pipe however its
owner ended, by `kill -9` too.

    python cleaning.py PREFIX DIRECTORY
"""

import shutil
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from node_bench import cgroups

    prefix, directory = sys.argv[1:]
    sys.stdin.read()
    for name in {each.name for hierarchy in cgroups.hierarchies() for each in hierarchy.glob(f"{prefix}*")}:
        cgroups.end(name)
    # Its mounts were in namespaces that ended with the processes.
    shutil.rmtree(directory, ignore_errors=True)
