"""The adapters that keep the contract of the Cluster port."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cluster.contract.harness import ClusterUnderTest, OpenCluster
from podtide.cluster.embedded import EmbeddedCluster
from podtide.runtime.clock import LoopClock


@pytest.fixture(params=["embedded", "embedded in a file"])
def open_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> OpenCluster:
    """Opens a cluster in which the test has a namespace to itself."""
    file = tmp_path / "cluster.db" if request.param == "embedded in a file" else None

    @asynccontextmanager
    async def open_embedded() -> AsyncIterator[ClusterUnderTest]:
        cluster = EmbeddedCluster(file, clock=LoopClock())

        async def expire_history() -> None:
            cluster.expire_history()

        try:
            namespace = f"contract-{uuid.uuid4().hex[:8]}"
            yield ClusterUnderTest(cluster, namespace, f"{namespace}-b", expire_history)
        finally:
            cluster.close()

    return open_embedded
