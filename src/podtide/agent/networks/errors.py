"""Why an address of a secondary network was not assigned or freed. All are transient: the runtime retries (CNI code 11)."""

from podtide.cluster.port import Conflict, Gone, Throttled, Unavailable
from podtide.core.errors import RetryError


class NoSlice(RetryError):
    """The node has no slice of the range yet, or there is none left for it."""


class StorageFailed(RetryError):
    """An object that this call needs could not be read or written."""


class Reread(RetryError):
    """An object changed between two calls: read it again and decide again."""


PASSING = (Conflict, Gone, Throttled, Unavailable, Reread)
"""Errors that are worth a retry. For any other a person has to correct something."""
