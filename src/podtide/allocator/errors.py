"""The errors of an allocator: each is to be retried, or needs a fix by a person (see `core.errors`)."""

from podtide.core.errors import FixError, PodtideError, RetryError


class AllocatorError(PodtideError):
    """The allocator refused, or did not answer. Every method of the port raises only these and InvalidInput."""


class NoSuchSubnet(AllocatorError, FixError):
    """No network or subnet of that name."""


class NoSuchContainer(AllocatorError, FixError):
    """No container of that id, or it is another cluster's."""


class SubnetExists(AllocatorError, FixError):
    """A subnet of that name exists with other properties, or its addresses overlap another's."""


class SubnetInUse(AllocatorError, FixError):
    """Containers, or addresses in quarantine, are still in the subnet, or in the CIDR to be removed."""


class SubnetFull(AllocatorError, RetryError):
    """Not even a primary is left for a new container. Its claim is kept, and is served in its turn."""


class StaleWish(AllocatorError, FixError):
    """A newer wish was accepted, or the container was deleted: this wish is stale and changes nothing."""


class InForceConflict(AllocatorError, RetryError):
    """The batch in force changed since it was read: read it again and decide again."""


class AnotherCluster(AllocatorError, FixError):
    """The cluster name, or the container, belongs to a cluster with another uid."""


class AnotherTerm(AllocatorError, RetryError):
    """Another controller, of a cluster with the same uid, holds a term that has not expired."""


class StoreRecovering(AllocatorError, RetryError):
    """The store was restored from a backup, and grants nothing until every cluster has reported what its nodes hold."""


class NotAllowed(AllocatorError, FixError):
    """The credential may not do this."""


class AllocatorUnavailable(AllocatorError, RetryError):
    """No answer: whether the call took effect is unknown. Retry it."""
