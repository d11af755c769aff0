"""Times as Kubernetes writes them.

Most are RFC 3339 to the second (`Time`). Leases have microseconds (`MicroTime`), and the API server refuses one that
has not exactly six digits.
"""

from datetime import UTC, datetime
from functools import lru_cache
from math import floor

from podtide.core.errors import InvalidInput


class InvalidTimestamp(InvalidInput):
    """Text that is not an RFC 3339 time."""


def to_time(wall_seconds: float) -> str:
    """Seconds since 1970 as `2026-11-05T12:00:00Z`."""
    return _to_time(floor(wall_seconds))


@lru_cache(maxsize=64)  # a busy cluster stamps thousands of objects within a second
def _to_time(whole_seconds: int) -> str:
    return datetime.fromtimestamp(whole_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_micro_time(wall_seconds: float) -> str:
    """Seconds since 1970 as `2026-11-05T12:00:00.000000Z`."""
    return datetime.fromtimestamp(wall_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def to_wall_seconds(timestamp: str) -> float:
    """Seconds since 1970 of either form."""
    try:
        parsed = datetime.fromisoformat(timestamp)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise InvalidTimestamp(
            f"{timestamp!r} is not a time with a zone: write one such as 2026-11-05T12:00:00Z"
        )
    return parsed.timestamp()
