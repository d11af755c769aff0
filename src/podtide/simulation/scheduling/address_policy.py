"""The admission policy that makes pods request an address when they are created: of all pods, of some, or of none.

Whether a pod takes part follows from its name, as it would follow from its namespace: a pod that is created again under its
name takes part again.
"""

from enum import StrEnum

from podtide.resources.metadata_keys import IPV4_RESOURCE
from podtide.resources.pod import ResourceRequirements
from podtide.runtime.randomness import seeded_randomness

_TAKING_PART = 0.5


class PolicyReach(StrEnum):
    """Which pods the policy makes request an address."""

    ALL = "all"
    SOME = "some"
    """About half of them: namespaces opt in."""
    NONE = "none"


class AddressPolicy:
    """The policy of one cluster. While it is removed, pods are created without a request."""

    def __init__(self, reach: PolicyReach) -> None:
        self.reach = reach
        self.is_removed = False

    def requirements(self, pod: str) -> ResourceRequirements:
        """What a pod of that name requests, if it is created now."""
        if self.is_removed or not self._takes_part(pod):
            return ResourceRequirements()
        return ResourceRequirements(requests={IPV4_RESOURCE: "1"}, limits={IPV4_RESOURCE: "1"})

    def _takes_part(self, pod: str) -> bool:
        if self.reach is PolicyReach.SOME:
            return seeded_randomness(f"namespace of {pod}").random() < _TAKING_PART
        return self.reach is PolicyReach.ALL
