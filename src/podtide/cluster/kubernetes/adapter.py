"""The Cluster port on a Kubernetes API server.

The port's promises are mostly the API server's own. What this adds: refusals become the port's errors, in words; what
the server would take for something else is refused before it is sent (see `requests`); and a watch that has fallen
silent is not trusted (see `watch`).
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from random import Random
from typing import Self, TypeVar, Unpack

from podtide.cluster.kubernetes import requests
from podtide.cluster.kubernetes.access import Access
from podtide.cluster.kubernetes.connection import ApiServerConnection, ApiServerTimeouts, Silence
from podtide.cluster.kubernetes.credentials import credentials_of
from podtide.cluster.kubernetes.decoding import LineSplitter, decode_event, decode_item, decode_page
from podtide.cluster.kubernetes.requests import ApiRequest, ListSelection, version_number
from podtide.cluster.port import (
    Conflict,
    DeletePreconditions,
    Gone,
    NotFound,
    Page,
    Patch,
    Selectors,
    Unavailable,
    WatchEvent,
)
from podtide.resources.base import Resource
from podtide.resources.codec import InvalidObject, decode
from podtide.resources.pod import Pod, PodPhase
from podtide.runtime.clock import Clock

R = TypeVar("R", bound=Resource)

_FINISHED = (PodPhase.SUCCEEDED, PodPhase.FAILED)
_DEFAULT_TIMEOUTS = ApiServerTimeouts()


class KubernetesCluster:
    """An API server. Close it, or use it in `async with`, so that its connections end."""

    def __init__(
        self,
        access: Access,
        *,
        clock: Clock,
        randomness: Random,
        timeouts: ApiServerTimeouts = _DEFAULT_TIMEOUTS,
    ) -> None:
        self._connection = ApiServerConnection(access, credentials_of(access.user, clock), timeouts)
        self._randomness = randomness
        self._watch_seconds = timeouts.watch_seconds

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; watches end."""
        await self._connection.close()

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        return await self._item(kind, requests.get(kind.api, namespace, name))

    async def read(self, path: str, **query: str) -> bytes:
        """The answer to a GET of a path that the port has no kind for: versions, pods' logs, a pod's metrics by proxy."""
        return await self._connection.ask(
            ApiRequest(doing=f"read {path}", method="GET", path=path, query=query)
        )

    async def list(
        self, kind: type[R], namespace: str = "", *, limit: int = 0, more: str = "", **by: Unpack[Selectors]
    ) -> Page[R]:
        of = ListSelection(api=kind.api, namespace=namespace, **by)
        return await self._list(kind, of, limit=limit, more=more)

    async def watch(
        self, kind: type[R], namespace: str = "", *, resource_version: str, **by: Unpack[Selectors]
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """The changes after `resource_version`, in order, each once.

        A watch that said nothing for longer than bookmarks take to come may be one whose server is long gone, behind
        a load balancer that is not. It ends then, so that its reader resumes it over another connection, and no
        sooner than a server has answered that has come as far as this watch: one whose data was put back from a
        backup would accept a version from its own future, and keep silent until it got there.
        """
        of = ListSelection(api=kind.api, namespace=namespace, **by)
        # Drawn at random, so that a thousand watches that began together do not end together for ever after.
        lasting = self._randomness.randint(self._watch_seconds, 2 * self._watch_seconds)
        request = requests.watch(of, resource_version=resource_version, timeout_seconds=lasting)
        splitter = LineSplitter()
        try:
            async with aclosing(self._connection.follow(request)) as pieces:
                async for piece in pieces:
                    for line in splitter.feed(piece):
                        event = decode_event(kind, line, request.doing)
                        resource_version = event.resource_version
                        yield event
        except Silence:
            await self._check_not_ahead(kind, of, resource_version)
        if splitter.is_within_a_line:
            raise Unavailable(f"cannot {request.doing}: it was cut off in the midst of an event")

    async def create(self, item: R, *, manager: str) -> R:
        return await self._item(type(item), requests.create(item, manager))

    async def replace(self, item: R, *, manager: str) -> R:
        return await self._item(type(item), requests.replace(item, manager))

    async def replace_status(self, item: R, *, manager: str) -> R:
        return await self._item(type(item), requests.replace_status(item, manager))

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        return await self._item(type(item), requests.apply(item, manager, force=force))

    async def patch(self, patch: Patch[R], *, manager: str) -> R:
        return await self._item(patch.kind, requests.patch(patch, manager))

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Delete the object; Conflict when uid or resourceVersion differ.

        A pod that was marked before it had finished is its kubelet's to remove: an API server that is asked again, as
        we ask, changes nothing. What the kubelet asks in the end is what is asked here for a pod that has finished.
        """
        request = requests.delete(
            kind.api, namespace, name, DeletePreconditions(uid=uid, resource_version=resource_version)
        )
        answer = await self._connection.ask(request)
        if kind is Pod and (left := _left_to_its_kubelet(answer)):
            with suppress(NotFound, Conflict):  # then it is gone by now
                await self._connection.ask(
                    requests.delete(kind.api, namespace, name, DeletePreconditions(uid=left, grace_seconds=0))
                )

    async def _item(self, kind: type[R], request: ApiRequest) -> R:
        return decode_item(kind, await self._connection.ask(request), request.doing)

    async def _list(self, kind: type[R], of: ListSelection, *, limit: int, more: str = "") -> Page[R]:
        request = requests.list_page(of, limit=limit, more=more)
        return decode_page(kind, await self._connection.ask(request), request.doing)

    async def _check_not_ahead(self, kind: type[Resource], of: ListSelection, resource_version: str) -> None:
        now = (await self._list(kind, of, limit=1)).resource_version
        theirs, ours = version_number(now), version_number(resource_version)
        if theirs is not None and ours is not None and theirs < ours:
            raise Gone(
                f"version {resource_version} of {of.api.kind} is ahead of the server's {now}: list anew"
            )


def _left_to_its_kubelet(answer: bytes) -> str:
    """The uid of the pod that a delete answered with, if it has finished and is only marked."""
    try:
        pod = decode(Pod, answer)
    except InvalidObject:  # but a Status, which says that nothing is left
        return ""
    is_left = pod.status.phase in _FINISHED and pod.metadata.deletion_grace_period_seconds
    return pod.metadata.uid if is_left else ""
