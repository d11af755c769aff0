"""Why a pod waits for its address, in words: one sentence for each obstacle on the address' way. No I/O.

`podtide why` and the live page find the obstacle, each from what it has read, and tell it in these words: what is so, and what happens
next or what a person should do. The obstacle of a missing leader is in `leadership`.
"""

from collections.abc import Sequence


def no_node(requested: Sequence[str]) -> str:
    """No node yet; `requested` are the resources for addresses that the pod requests."""
    if not requested:
        return "the scheduler has to find it a node; nothing asks for its address before that"
    return (
        f"the scheduler has to find it a node that publishes {' and '.join(requested)}: if its Events say that there is not "
        "enough, pods have to end or the subnet has to grow (docs/placement.md)"
    )


def node_gone(node: str) -> str:
    """Its node is not there any more."""
    return f"node {node} is gone: Kubernetes removes its pods, and whatever made them makes others elsewhere"


def addresses_free(node: str, free: int, waiting: int) -> str:
    """The node has an address for each pod that waits: to be completed with what keeps the plugin from it."""
    return f"node {node} has {free} free for the {waiting} that wait"


def plugin_takes_one(node: str, free: int, waiting: int) -> str:
    """The node has an address for each pod that waits, and nothing keeps the plugin from it."""
    return f"{addresses_free(node, free, waiting)}: the next call of the plugin takes one"


def node_at_its_maximum(node: str, most: int, pods: int) -> str:
    """The node may not hold as many addresses as it has pods."""
    return f"node {node} may have {most} addresses and has {pods} pods: raise max_ips, or move pods to other nodes"


def about_to_be_asked_for(node: str, count: int | None = None) -> str:
    """The agent has not asked yet; `count` is what it should ask for, where that is known."""
    return f"the agent on node {node} asks{'' if count is None else f' for {count}'} within a second"


def allocator_away(error: str, is_so: str = "does not answer") -> str:
    """The allocator cannot be reached."""
    return f"the allocator {is_so}, and nothing is granted until it does: start it, or repair the connection to it ({error})"


def about_to_be_granted() -> str:
    """The request is not answered yet."""
    return "the request controller answers the request within seconds; if this lasts, its log says why"


def subnet_full(subnet: str, capacity: int | None, parts: Sequence[str], grow: str) -> str:
    """The subnet has nothing left. `parts` say where its addresses are, `grow` is the command that grows it."""
    said = ", ".join((f"subnet {subnet} is full: all {capacity} addresses are reserved", *parts))
    return f"{said}; grow it with `{grow}`, or remove pods"
