"""The ids of podtide's network containers: made from the Node's uid, so that no two Nodes ever share one."""

_SECOND = "-v6"


def container_ids(node_uid: str) -> tuple[str, str]:
    """All ids that containers of a node can have."""
    return node_uid, f"{node_uid}{_SECOND}"


def node_uid(container_id: str) -> str:
    """The uid of the Node that a container belongs to."""
    return container_id.removesuffix(_SECOND)
