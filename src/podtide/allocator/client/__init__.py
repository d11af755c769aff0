"""The allocator at the other end of an HTTP connection."""

from podtide.allocator.client.adapter import HttpAllocator
from podtide.allocator.client.connection import AllocatorAddress, AllocatorTimeouts

__all__ = ["AllocatorAddress", "AllocatorTimeouts", "HttpAllocator"]
