"""A task that can be held up, as a process is that gets no processor for a while."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Stallable(Generic[T]):
    """Awaiting it runs the coroutine; until `stalled_until` it makes no step, though the world goes on."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self.stalled_until = 0.0
        self._steps = coroutine.__await__()

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[], Any] = lambda: self._steps.send(None)  # noqa: E731 - it takes the place of the other below
        while True:
            try:
                while (delay := self.stalled_until - asyncio.get_running_loop().time()) > 0:
                    yield from asyncio.sleep(delay).__await__()
            except asyncio.CancelledError as cancelled:
                step = self._throwing(cancelled)
                continue
            try:
                awaited = step()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                yield awaited
                step = lambda: self._steps.send(None)  # noqa: E731 - as above
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the coroutine
                step = self._throwing(error)

    def _throwing(self, error: BaseException) -> Callable[[], Any]:
        return lambda: self._steps.throw(error)
