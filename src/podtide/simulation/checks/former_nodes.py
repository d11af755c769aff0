"""An agent never assigns an address of a Node that was deleted before the agent started.

An agent that runs while its Node is deleted may not have seen that yet: what it assigns meanwhile is protected by the
quarantine (design R5, "A node deleted while its machine lives"). But an agent that starts reads the uids in its records and
in the NodeNetworkConfig, and must not use those of a deleted Node. Such addresses are not in a picture of the cluster (see
`picture`), so the audit does not see them.

Adopted addresses are exempt: an agent without records notes the addresses that pods show (`agent/pool/recovery`), and the
pods have these, of whichever Node they were.
"""

from collections import defaultdict

from podtide.core.audit.invariants import Violation
from podtide.core.pool.address import Address
from podtide.core.pool.adoption import is_stand_in
from podtide.core.pool.states import State
from podtide.resources.container_ids import node_uid

_TAKEN_FROM_UNDER_A_POD = 4
"""The invariant that is broken at once: the pod has an address that is not granted to its node."""


class FormerNodes:
    """The uids of all Nodes of a name that had addresses."""

    def __init__(self) -> None:
        self._uids: defaultdict[str, set[str]] = defaultdict(set)

    def granted(self, node: str, container: str) -> None:
        """Note that a node has a container."""
        self._uids[node].add(node_uid(container))

    def before(self, node: str, uid: str) -> frozenset[str]:
        """The uids of earlier Nodes of that name. `uid` is that of the present one, or "" for none."""
        return frozenset(self._uids[node] - {uid})


def gift_of(former: frozenset[str], node: str, address: Address) -> Violation | None:
    """The violation, if an agent that started after these Nodes were deleted assigns an address of one of them."""
    owner = node_uid(address.container)
    if address.state is not State.ASSIGNED or owner not in former or _is_adopted(address):
        return None
    return Violation(
        _TAKEN_FROM_UNDER_A_POD,
        address.ip,
        f"{address.ip} was given to a pod on {node} as an address of Node {owner}, which was gone before the agent began",
    )


def _is_adopted(address: Address) -> bool:
    return address.owner is not None and is_stand_in(address.owner)
