"""Why a secondary network gave or took back nothing. All of them pass: the runtime tries again (CNI code 11)."""

from podtide.cluster.port import Conflict, Gone, Throttled, Unavailable
from podtide.core.errors import RetryError


class NoSlice(RetryError):
    """The node has no slice of the range yet, or there is none left for it."""


class StorageFailed(RetryError):
    """What has to be written for this call, or read, could not be."""


class Reread(RetryError):
    """Things changed between two calls: look again."""


PASSING = (Conflict, Gone, Throttled, Unavailable, Reread)
"""What is over after another look, or after a while. Anything else somebody has to see to."""
