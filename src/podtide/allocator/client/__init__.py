"""The allocator at the other end of an HTTP connection."""

from podtide.allocator.client.adapter import HttpAllocator
from podtide.allocator.client.connection import Patience, Server

__all__ = ["HttpAllocator", "Patience", "Server"]
