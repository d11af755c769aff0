"""Pods that come and go all the time, while a test does something else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

from node_bench.cluster import NodeCluster

SIZES = (12, 4, 16, 8)
STEP_SECONDS = 4.0


@contextmanager
def churning(cluster: NodeCluster, app: str = "churn") -> Iterator[None]:
    """Another number of pods every few seconds; afterwards all that are wanted are ready.

    What `kubectl` answers meanwhile is not looked at: a test may have ended the program that it asks.
    """
    cluster.workloads.deploy(app, SIZES[0])
    enough = threading.Event()

    def churn() -> None:
        sizes = cycle(SIZES)
        while not enough.wait(STEP_SECONDS):
            cluster.bench.kubectl("scale", f"deployment/{app}", f"--replicas={next(sizes)}")

    worker = threading.Thread(target=churn, name="churn")
    worker.start()
    try:
        yield
    finally:
        enough.set()
        worker.join()
    cluster.workloads.scale(app, SIZES[0])
    cluster.workloads.wait_until_ready(app, SIZES[0])
    cluster.workloads.remove(f"deployment/{app}")
