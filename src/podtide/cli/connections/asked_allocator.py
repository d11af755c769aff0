"""An allocator that is asked beside a cluster: if it does not answer, the cluster alone still tells most."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from podtide.allocator.errors import AllocatorError
from podtide.allocator.port import Allocator
from podtide.cli.connections.allocator import AllocatorLocation

T = TypeVar("T")


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
