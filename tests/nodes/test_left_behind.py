"""Nothing is left of nodes when their time is over, also when the process that made them is killed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from node_bench import cgroups
from node_bench.cluster import Parts
from node_bench.podtide_installation import wait_until

TOOLS = Path(__file__).parents[2] / "tools"
# A node without podtide: what is removed does not depend on what runs there.
PROGRAM = """
import sys, time
from node_bench.bench import NodeBench
from node_bench.cluster import Parts
parts = Parts.built(lambda line: None)
with NodeBench(
    parts.binaries, parts.programs, init=parts.init, images=parts.images, nodes=["node-a"]
) as bench:
    node = bench.nodes[0]
    print(bench.prefix, bench.directory, bench.logs, bench.fabric.name, node.kubelet.pid, flush=True)
    sys.stdin.read()
"""


def routes_and_links() -> set[str]:
    """What this machine has of them, by lines. Other tests have a link for a moment."""
    shown = [
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout  # noqa: S607 - this machine's ip
        for words in (("-brief", "link"), ("route",), ("-6", "route"))
    ]
    return {line for each in shown for line in each.splitlines()}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None])
def test_nothing_is_left_of_a_node(parts: Parts, number: signal.Signals | None) -> None:
    assert parts.images
    before = routes_and_links()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(TOOLS), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(Path.home())},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        prefix, directory, logs, fabric, kubelet = program.stdout.readline().split()
        assert Path(f"/proc/{kubelet}").exists()
        assert list(Path("/sys/fs/cgroup").rglob(f"{prefix}*"))
        if number:
            program.send_signal(number)
        else:
            program.stdin.close()

    def left() -> list[object]:
        groups = [path for each in cgroups.hierarchies() for path in each.glob(f"{prefix}*")]
        files = [
            path
            for path in (directory, logs, f"/run/netns/{fabric}", f"/proc/{kubelet}")
            if Path(path).exists()
        ]
        mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if directory in line]
        return [*groups, *files, *mounts, *(routes_and_links() - before)]

    wait_until(lambda: not left(), "a machine without traces of the node", 60)
