"""Short ways to say what tests of the store ask for."""

from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.subnets import SubnetSpec


def spec(*cidrs: str, name: str = "pods", network: str = "blue", **more: object) -> SubnetSpec:
    """A subnet's definition."""
    return SubnetSpec(network=network, name=name, cidrs=cidrs, **more)  # type: ignore[arg-type]  # as SubnetSpec checks


def wish(container: str, count: int, generation: int = 1, **more: object) -> Wish:
    """A wish of a node of cluster east."""
    fields = {
        "network": "blue",
        "subnet": "pods",
        "cluster": "east",
        "node": f"node-{container}",
        "request_uid": f"request-{container}",
        **more,
    }
    return Wish(id=container, count=count, generation=generation, **fields)  # type: ignore[arg-type]  # as Wish checks


def named(container: AllocatedContainer) -> dict[str, str]:
    """Its secondary addresses by name."""
    return {address.name: address.ip for address in container.addresses}
