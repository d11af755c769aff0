"""What things of a cluster are called where there are several: `west/node-1`, and `node-1` where there is but one.

Clusters that share a subnet know nothing of each other, so a node of one may have the name of a node of another.
"""

_BETWEEN = "/"


def full_name(cluster: str, name: str) -> str:
    """The name together with its cluster's, which is "" where there is but one."""
    return f"{cluster}{_BETWEEN}{name}" if cluster else name


def parted(name: str) -> tuple[str, str]:
    """The cluster, "" for none, and the name in it."""
    cluster, between, inner = name.partition(_BETWEEN)
    return (cluster, inner) if between else ("", name)
