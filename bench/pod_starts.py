"""How long pods take from their creation to running on a real node, with podtide and with host-local.

One kubelet starts them by the same runtime and the same `ptp`; only who gives the address differs. The two take turns, with the
same number of pods at once, so that whatever else the machine does happens to both.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).parent.parent / "tools"))

from control_plane.errors import CannotBuild
from node_bench.cluster import ClusterSpec, NodeCluster, Parts, node_cluster
from node_bench.programs import say_on_stderr
from node_bench.workloads import pod_template

PART = "nodes"
AT_ONCE = (1, 20, 40)
ROUNDS = {1: 10, 20: 3, 40: 3}
LIMIT_SECONDS = 300.0
PODTIDE, HOST_LOCAL = "podtide", "host-local"
PODS = "/api/v1/namespaces/default/pods"
NODE = "node-a"
# containerd takes the first file by name, so this one's presence decides.
CONFLIST = "/etc/cni/net.d/05-host-local.conflist"
NETWORK = {
    "cniVersion": "1.0.0",
    "name": "host-local",
    "plugins": [
        {
            "type": "ptp",
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": "10.200.0.0/24"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
    ],
}


def measure() -> Iterator[tuple[str, str]]:
    """One line for each number of pods: the median and the last pod, of both, and the ratio of the medians."""
    try:
        parts = Parts.built(say_on_stderr)
    except CannotBuild as lack:
        yield f"left out: {lack}", ""
        return
    with (
        tempfile.TemporaryDirectory() as directory,
        node_cluster(parts, Path(directory), ClusterSpec(nodes=[NODE])) as cluster,
    ):
        for count in AT_ONCE:
            times: dict[str, list[float]] = {PODTIDE: [], HOST_LOCAL: []}
            last: dict[str, list[float]] = {PODTIDE: [], HOST_LOCAL: []}
            for _ in range(ROUNDS[count]):
                for who in times:
                    _choose(cluster, who)
                    taken = _start(cluster, count)
                    times[who] += taken
                    last[who].append(max(taken))
            pods = "1 pod" if count == 1 else f"{count} pods at once"
            for who, taken in times.items():
                figure = f"{median(taken):.2f} s, last {median(last[who]):.2f} s"
                yield f"{pods}, {who}: median to running", figure
            yield (
                f"{pods}: podtide to host-local, medians",
                f"{median(times[PODTIDE]) / median(times[HOST_LOCAL]):.2f}",
            )


def _choose(cluster: NodeCluster, who: str) -> None:
    """Let the runtime attach the next pods by this one; it looks at its directory when it is told of a change."""
    machine = cluster.bench.nodes[0].machine
    if who == HOST_LOCAL:
        machine.write(CONFLIST, json.dumps(NETWORK))
    else:
        machine.path(CONFLIST).unlink(missing_ok=True)
    time.sleep(1)


def _start(cluster: NodeCluster, count: int) -> list[float]:
    """Make pods, and how long each took until its kubelet reported it running; they are gone then."""
    admin = cluster.bench.control_plane.admin
    template = pod_template(
        "started", command=("sleep", "1000"), nodeName=NODE, terminationGracePeriodSeconds=0
    )
    began = dict[str, float]()
    for number in range(count):
        name = f"started-{number}"
        metadata = {**template["metadata"], "name": name}
        admin.request("POST", PODS, {"metadata": metadata, "spec": template["spec"]})
        began[name] = time.monotonic()
    taken = dict[str, float]()
    deadline = time.monotonic() + LIMIT_SECONDS
    while taken.keys() != began.keys():
        now = time.monotonic()
        for pod in cluster.workloads.pods("started"):
            if pod.document["status"].get("phase") == "Running":
                taken.setdefault(pod.name, now - began[pod.name])
        assert now < deadline, f"{count - len(taken)} pods do not run"
        time.sleep(0.02)
    for name in began:
        admin.request("DELETE", f"{PODS}/{name}")
    while cluster.workloads.pods("started"):
        time.sleep(0.1)
    return list(taken.values())
