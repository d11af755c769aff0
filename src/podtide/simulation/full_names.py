"""Names of nodes and programs where there are several clusters: `west/node-1`, and `node-1` where there is only one.

Clusters that share a subnet know nothing of each other, so a node of one may have the name of a node of another.
"""

_BETWEEN = "/"


def full_name(cluster: str, name: str) -> str:
    """The name with its cluster's name before it; `cluster` is "" where there is only one."""
    return f"{cluster}{_BETWEEN}{name}" if cluster else name


def parted(name: str) -> tuple[str, str]:
    """The cluster, "" for none, and the name in it."""
    cluster, between, inner = name.partition(_BETWEEN)
    return (cluster, inner) if between else ("", name)
