"""The three kinds of error, by what the reader should do: retry, fix, stop.

Every error podtide raises on purpose is one of them, so that a caller can decide by kind and a
person gets one line that says what was asked, what is so, and what to do.
"""


class PodtideError(Exception):
    """Anything podtide raises on purpose. `str()` of it is one line for a person."""


class RetryError(PodtideError):
    """Transient: the same call may succeed later, unchanged."""


class FixError(PodtideError):
    """What was asked cannot be done as asked, now or later: the asker must change it."""


class StopError(PodtideError):
    """An invariant is broken: going on could give one address to two pods."""


class InvalidInput(FixError, ValueError):
    """An invalid value from a person, a file or an object."""


class InvalidScaler(InvalidInput):
    """An invalid batch, buffer, demand or maximum: no pool can be sized by it."""


class InvalidThresholds(InvalidInput):
    """Exhaustion thresholds or subnet numbers that cannot be compared."""


class InvalidPlan(InvalidInput):
    """Nodes, pods, zones or surges that no plan can be made for."""


class InvalidRange(InvalidInput):
    """An invalid CIDR, range, start, end, exclude or gateway."""


class MixedFamilies(InvalidRange):
    """IPv4 and IPv6 in one range."""


class InvalidSlice(InvalidInput):
    """A slice size that does not fit its range."""


class InvalidConfig(InvalidInput):
    """A CNI or IPAM configuration that cannot be used."""


class RangeFull(RetryError):
    """Every address that a range may hand out is taken."""
