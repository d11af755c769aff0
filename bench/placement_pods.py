"""More pods than addresses on two real nodes, without placement and with it: how many hang, and how many sandboxes fail.

In both runs the same happens, each on new nodes, with kube-scheduler and kubelets as they are:

    all at once     20 pods come into a subnet that has addresses for 11
    into a full one 11 pods run, and a minute later 9 more come
    some end        three of those that run are deleted: as many others take their addresses
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct, structs

sys.path.append(str(Path(__file__).parents[1] / "tools"))

from control_plane.errors import CannotBuild
from node_bench.cluster import ClusterSpec, NodeCluster, Parts, node_cluster
from node_bench.podtide_installation import wait_until
from node_bench.programs import say_on_stderr
from node_bench.workloads import Pod

PART = "placement"
SPEC = ClusterSpec(subnets={"pods": ["10.1.0.0/28"]})
FOR_PODS = 11
"""Of 14 usable addresses the gateway has one and each node one."""
TOO_MANY = 20
ENDED = 3
APP = "many"
LOOK_AFTER_SECONDS = 60.0
"""So long after pods came they are counted: those that are in flight have arrived by then."""


class _Seen(Struct, frozen=True):
    """Pods as they are, and sandboxes that failed since the step began."""

    running: int
    hanging: int
    pending: int
    failed_sandboxes: int

    def __str__(self) -> str:
        return f"{self.hanging} hang, {self.pending} Pending, {self.failed_sandboxes} failed"


class _Run:
    """The steps, in a cluster with or without placement."""

    def __init__(self, cluster: NodeCluster) -> None:
        self._cluster = cluster
        self._workloads = cluster.workloads

    def all_at_once(self) -> _Seen:
        return self._seen_after(lambda: self._workloads.deploy(APP, TOO_MANY))

    def into_a_full_one(self) -> _Seen:
        self._workloads.remove(f"deployment/{APP}")
        self._workloads.deploy(APP, FOR_PODS)
        self._workloads.wait_until_ready(APP, FOR_PODS)
        time.sleep(LOOK_AFTER_SECONDS)
        return self._seen_after(lambda: self._workloads.scale(APP, TOO_MANY))

    def until_others_run(self) -> float:
        """How long it takes from when pods ended until as many others run."""
        before = {pod.uid for pod in self._ready()}
        ended = self._ready()[:ENDED]
        for pod in ended:
            self._cluster.bench.kubectl("delete", "pod", pod.name, "--namespace=default", "--wait=false")
        gone = {pod.uid for pod in ended}
        wait_until(lambda: not gone & {pod.uid for pod in self._workloads.pods(APP)}, "pods that ended")
        begin = time.monotonic()
        wait_until(lambda: len({pod.uid for pod in self._ready()} - before) == ENDED, "others in their place")
        return time.monotonic() - begin

    def _seen_after(self, work: Callable[[], None]) -> _Seen:
        failed = self._failed_sandboxes()
        work()
        time.sleep(LOOK_AFTER_SECONDS)
        pods = self._workloads.pods(APP)
        return _Seen(
            running=len(self._ready()),
            hanging=sum(bool(pod.node) and not pod.addresses for pod in pods),
            pending=sum(not pod.node for pod in pods),
            failed_sandboxes=self._failed_sandboxes() - failed,
        )

    def _ready(self) -> list[Pod]:
        return [pod for pod in self._workloads.pods(APP) if pod.is_ready]

    def _failed_sandboxes(self) -> int:
        """How often a kubelet has failed to make a sandbox: it counts repetitions in one Event."""
        return sum(each.get("count") or 1 for each in self._workloads.events("FailedCreatePodSandBox"))


def measure() -> Iterator[tuple[str, str]]:
    """The steps without placement, and with it."""
    try:
        parts = Parts.built(say_on_stderr)
    except CannotBuild as lack:
        yield f"placement on real nodes: left out, {lack}", "-"
        return
    for name, is_enabled in (("without placement", False), ("with placement", True)):
        spec = structs.replace(SPEC, values={"placement.enabled": is_enabled})
        with (
            tempfile.TemporaryDirectory() as directory,
            node_cluster(parts, Path(directory), spec) as cluster,
        ):
            if is_enabled:
                wait_until(lambda: _publish(cluster), "numbers on every Node")
            run = _Run(cluster)
            seen = run.all_at_once()
            assert seen.running == FOR_PODS, seen
            yield f"{TOO_MANY} pods, {FOR_PODS} addresses, {name}", f"{seen}"
            yield f"{FOR_PODS} pods run, {TOO_MANY - FOR_PODS} more come, {name}", f"{run.into_a_full_one()}"
            yield f"{ENDED} pods end: others run, {name}", f"after {run.until_others_run():.1f} s"


def _publish(cluster: NodeCluster) -> bool:
    path = "--output=jsonpath={.items[*].status.allocatable.podtide\\.io/ipv4}"
    return len(cluster.podtide.kubectl("get", "nodes", path).split()) == len(SPEC.nodes)
