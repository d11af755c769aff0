"""Nothing of a Node that is gone is given to a pod by an agent that began after the Node's end.

An agent that was at work when its Node was deleted may not have heard of it: what it gives meanwhile is kept from others
by the quarantine (design R5, "A node deleted while its machine lives"). But an agent that begins reads whose the records
and the NodeNetworkConfig are that it finds, and those of a Node which is no more are nothing to go by, however alive
they look. Such addresses are no part of a picture of the cluster (see `observing`), so the audit does not see them.

What it adopts is not given: an agent without records notes what pods show to have (`agent/recovery`), and they have it,
whoever's it was.
"""

from collections import defaultdict

from podtide.agent.pool.recovery import is_stand_in
from podtide.controller.nodes.subnet_choice import node_uid
from podtide.core.audit.invariants import Violation
from podtide.core.pool.address import Address
from podtide.core.pool.states import State

_TAKEN_FROM_UNDER_A_POD = 4
"""The invariant that is broken as soon as it happens: nobody grants what the pod has."""


class FormerNodes:
    """Which Nodes of a name had addresses, by uid."""

    def __init__(self) -> None:
        self._uids: defaultdict[str, set[str]] = defaultdict(set)

    def granted(self, node: str, container: str) -> None:
        """A node has a container."""
        self._uids[node].add(node_uid(container))

    def before(self, node: str, uid: str) -> frozenset[str]:
        """The Nodes of that name that are no more, now that the one with this uid is there, or "" for none."""
        return frozenset(self._uids[node] - {uid})


def gift_of(former: frozenset[str], node: str, address: Address) -> Violation | None:
    """What is wrong with a move of an address in the pool of an agent that began when these Nodes were gone."""
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
