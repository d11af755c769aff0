import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from control_plane.binaries import Binaries
from patience import PATIENCE_SECONDS

TOOLS = Path(__file__).parent.parent.parent / "tools"


def advice(output: Iterable[str]) -> str:
    """What is printed until it is ready."""
    lines: list[str] = []
    for line in output:
        if line.startswith("Ctrl-C"):
            return "".join(lines)
        lines.append(line)
    pytest.fail(f"it ended before it was ready, and said: {lines}")


def test_it_says_what_to_try_and_leaves_nothing_behind(control_plane_binaries: Binaries) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "control_plane", "run"],
        env={"PYTHONPATH": str(TOOLS), "KUBEBUILDER_ASSETS": str(control_plane_binaries.etcd.parent)},
        stdout=subprocess.PIPE,
        text=True,
    ) as kube:
        assert kube.stdout is not None
        said = advice(kube.stdout)
        commands = "\n".join(re.findall(r"^ {4}(.*)", said, flags=re.MULTILINE))
        try:
            answer = subprocess.run(
                ["/bin/sh", "-ec", commands],
                check=False,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
            )
            kube.send_signal(signal.SIGINT)
            kube.wait(PATIENCE_SECONDS)
        finally:
            kube.kill()  # else the block would wait for it for ever
    assert kube.returncode == 0
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "No resources found\n")
    kubeconfig = re.search(r"KUBECONFIG=(\S+)", said)
    assert kubeconfig is not None
    assert not Path(kubeconfig[1]).parent.parent.exists()
