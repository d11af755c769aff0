"""The Allocator port of one program, under the faults that are active."""

from functools import partial

from podtide.allocator.interceptor import AllocatorInterceptor, AllocatorRequest, T
from podtide.allocator.port import Allocator
from podtide.simulation.faults.conditions import Conditions
from podtide.simulation.faults.line_fault import ALLOCATOR, Request


class FaultyAllocator(AllocatorInterceptor):
    """`line` ends with the program; over `wire` goes what has left it already."""

    def __init__(self, line: Allocator, wire: Allocator, program: str, conditions: Conditions) -> None:
        super().__init__(line)
        self._wire = wire
        self._program = program
        self._conditions = conditions

    async def intercept(self, request: AllocatorRequest[T]) -> T:
        """Send the request under the conditions."""
        return await self._conditions.carry(
            Request(program=self._program, port=ALLOCATOR, verb=request.verb, subject=request.subject),
            partial(request.send, self._inner),
            partial(request.send, self._wire),
        )
