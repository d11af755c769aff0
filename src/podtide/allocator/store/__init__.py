"""The allocator on a database: SQLite, or PostgreSQL where several replicas serve at once."""

from podtide.allocator.store.allocator import DatabaseAllocator
from podtide.allocator.store.connection import open_allocator
from podtide.allocator.store.drivers.database import InvalidDatabaseUrl
from podtide.allocator.store.drivers.executors import InlineExecutor, ThreadExecutor
from podtide.allocator.store.migration import UnusableDatabase
from podtide.allocator.store.rules import StoreRules

__all__ = [
    "DatabaseAllocator",
    "InlineExecutor",
    "InvalidDatabaseUrl",
    "StoreRules",
    "ThreadExecutor",
    "UnusableDatabase",
    "open_allocator",
]
