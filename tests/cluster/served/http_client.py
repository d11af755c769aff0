"""A served cluster, and a client that speaks plain HTTP to it: what comes back is looked at as it is on the wire."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from patience import PATIENCE_SECONDS
from podtide.cluster.embedded import ApiServer, ApiServerLimits, EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.runtime.listening import ListenAddress

CONFIGS = "/apis/acn.azure.com/v1alpha/namespaces/kube-system/nodenetworkconfigs"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


class Answer(Struct, frozen=True):
    """An answer with its body decoded."""

    code: int
    document: Any
    content_type: str

    @property
    def reason(self) -> str:
        """What a Status gives as the reason."""
        assert self.document["kind"] == "Status"
        assert self.document["code"] == self.code
        return str(self.document["reason"])


class Client:
    """Asks the server; `server` is what stands behind it."""

    def __init__(self, url: str, session: aiohttp.ClientSession, server: ApiServer) -> None:
        self.url = url
        self.session = session
        self.server = server

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        **headers: str,
    ) -> Answer:
        """Send a request; a body that is not bytes already is sent as JSON."""
        data = body if isinstance(body, (bytes, BytesIO)) or body is None else msgspec.json.encode(body)
        if data is not None:
            headers["Content-Type"] = content_type
        async with self.session.request(method, self.url + path, data=data, headers=headers) as response:
            content = await response.read()
            document = (
                msgspec.json.decode(content) if response.content_type == "application/json" else content
            )
            return Answer(response.status, document, response.content_type)

    @asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncIterator[AsyncIterator[Any]]:
        """The events of a watch, decoded."""
        async with self.session.get(self.url + path, headers=headers) as response:
            assert response.status == 200
            yield _events(response)

    async def until_watches(self, count: int) -> None:
        """Wait until the server has so many watchers."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(list(self.server.store.watchers())) != count:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.005)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    async for line in response.content:
        yield msgspec.json.decode(line)


@asynccontextmanager
async def open_client(
    file: Path | None = None, limits: ApiServerLimits | None = None
) -> AsyncIterator[Client]:
    """A client of a cluster of its own."""
    embedded = EmbeddedCluster(file, kinds=SERVED_KINDS, limits=limits)
    try:
        async with (
            serving(embedded.server, ListenAddress("127.0.0.1", 0)) as url,
            aiohttp.ClientSession() as session,
        ):
            yield Client(url, session, embedded.server)
    finally:
        embedded.close()


def config(name: str = "node-a", **more: object) -> dict[str, Any]:
    """A NodeNetworkConfig."""
    return {
        "apiVersion": "acn.azure.com/v1alpha",
        "kind": "NodeNetworkConfig",
        "metadata": {"name": name},
        "spec": {"requestedIPCount": 16},
        **more,
    }


def pod(name: str = "web") -> dict[str, Any]:
    """A pod with fields of which podtide knows nothing."""
    container = {
        "name": "main",
        "image": "registry.invalid/web",
        "env": [{"name": "A", "value": "1"}],
        "resources": {"limits": {"cpu": "100m"}},
    }
    spec = {"nodeName": "node-a", "containers": [container], "tolerations": [{"operator": "Exists"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": spec,
    }
