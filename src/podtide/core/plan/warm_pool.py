"""The pool of the AWS VPC CNI: so many addresses warm, at least so many in all, on interfaces that each take one for themselves.

    secondary  = min(all that the interfaces have, max(minimum, pods + warm))
    interfaces = as many as that takes, at least one

With a warm interface instead (its default), the pool has whole interfaces: those that the pods take, and one more.
"""

from msgspec import Struct

from podtide.core.errors import InvalidPlan


class WarmTarget(Struct, frozen=True, kw_only=True):
    """WARM_IP_TARGET and MINIMUM_IP_TARGET, and what an instance type has."""

    warm_ips: int | None
    """None for WARM_ENI_TARGET=1 instead."""
    minimum_ips: int = 0
    ips_per_interface: int
    """Secondary addresses that an interface can have."""
    interfaces: int

    def __post_init__(self) -> None:
        for name, least in (("warm_ips", 0), ("minimum_ips", 0), ("ips_per_interface", 1), ("interfaces", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InvalidPlan(f"{name.replace('_', ' ')} {value} is refused: give {least} or more")


class WarmHolding(Struct, frozen=True):
    """What a node holds: addresses for pods, and an address for each interface."""

    secondary: int
    interfaces: int


def warm_holding(pods: int, target: WarmTarget) -> WarmHolding:
    """What a node with so many pods holds at rest."""
    each, all_interfaces = target.ips_per_interface, target.interfaces
    if target.warm_ips is None:
        interfaces = min(all_interfaces, -(-pods // each) + 1) if pods else 1
        return WarmHolding(interfaces * each, interfaces)
    secondary = min(each * all_interfaces, max(target.minimum_ips, pods + target.warm_ips))
    return WarmHolding(secondary, max(1, -(-secondary // each)))
