"""A cluster, and beside it an allocator if one is named: if that does not answer, the cluster alone still tells most."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from typing import Any, TypeVar

from msgspec import Struct

from podtide.allocator.errors import AllocatorError
from podtide.allocator.port import AdministeredAllocator, Allocator
from podtide.cli.connections.allocator import AllocatorLocation, optional_allocator_options
from podtide.cli.connections.cluster import ClusterConnection, cluster_options, networks_namespace_option
from podtide.cluster.port import Cluster

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


class AskedPlaces(Struct, frozen=True, kw_only=True):
    """The options that say which cluster, where its secondary networks' pools are, and which allocator."""

    there: ClusterConnection
    location: AllocatorLocation | None
    stated_namespace: str

    @property
    def networks_namespace(self) -> str:
        """The namespace of secondary networks' pools."""
        return self.stated_namespace or self.there.networks_namespace()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Cluster, AdministeredAllocator | None]]:
        """Yields the cluster and the allocator, if one is named, open until the context ends."""
        async with AsyncExitStack() as opened:
            cluster = await opened.enter_async_context(self.there.cluster())
            location = self.location
            yield cluster, await opened.enter_async_context(location.allocator()) if location else None


def places_options(command: Command) -> Command:
    """Adds the options of all of these; the command gets an `AskedPlaces` as `places`."""

    @wraps(command)
    def reaching(
        *,
        networks_namespace: str,
        there: ClusterConnection,
        location: AllocatorLocation | None,
        **others: Any,
    ) -> Any:
        places = AskedPlaces(there=there, location=location, stated_namespace=networks_namespace)
        return command(places=places, **others)

    return networks_namespace_option(cluster_options(optional_allocator_options(reaching)))  # type: ignore[return-value]  # its options are the command's and these


async def ask_both(
    location: AllocatorLocation | None, question: Callable[[Allocator | None], Awaitable[T]]
) -> tuple[T, str]:
    """The answer with the allocator, or without it if it cannot be asked; and why it could not, "" if it could.

    Without a location the question is asked without an allocator from the start, and nothing is said of it.
    """
    if location is None:
        return await question(None), ""
    try:
        async with location.allocator() as allocator:
            return await question(allocator), ""
    except AllocatorError as error:
        return await question(None), location.asked_in_vain(error)
