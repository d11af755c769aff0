"""The ways in which an allocator says no: each is to be retried, or to be fixed by somebody (see `core.errors`)."""

from podtide.core.errors import FixError, PodtideError, RetryError


class AllocatorError(PodtideError):
    """The allocator answered no, or did not answer. Every method of the port raises only these and InvalidInput."""


class NoSuchSubnet(AllocatorError, FixError):
    """No network or subnet of that name."""


class NoSuchContainer(AllocatorError, FixError):
    """No container of that id, or it is another cluster's."""


class SubnetExists(AllocatorError, FixError):
    """A subnet of that name is there with other properties, or its addresses overlap another's."""


class SubnetInUse(AllocatorError, FixError):
    """Containers, or addresses in quarantine, are still in the subnet, or in the CIDR that is to leave it."""


class SubnetFull(AllocatorError, RetryError):
    """Not even a primary is left for a new container. It is remembered among those who are owed."""


class StaleWish(AllocatorError, FixError):
    """A newer wish was taken, or the container was deleted: this one came too late and changes nothing."""


class InForceConflict(AllocatorError, RetryError):
    """Somebody else changed what is in force since it was read: read it again and decide anew."""


class AnotherCluster(AllocatorError, FixError):
    """The name belongs to the cluster with another uid, or the container does."""


class AnotherTerm(AllocatorError, RetryError):
    """Another controller, of a cluster with the same uid, has a term that is not over."""


class StoreRecovering(AllocatorError, RetryError):
    """The store went back, and grants nothing until every cluster has reported what its nodes hold."""


class NotAllowed(AllocatorError, FixError):
    """The credential may not do this."""


class AllocatorUnavailable(AllocatorError, RetryError):
    """No answer: whether the call took effect is unknown. Make it again."""
