"""The secondary networks that a simulated cluster may have, each of another kind."""

import msgspec
from msgspec import Struct

from podtide.cni.ipam_config import parse_config
from podtide.cni.versions import LATEST
from podtide.core.ranges import parse_network
from podtide.networks.network import Network, network_of
from podtide.resources.base import ObjectMeta
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.simulation.nodes.pods import NAMESPACE

_SLICE_V4 = 24
_SLICE_V6 = 120


class Definition(Struct, frozen=True):
    """A network, and the interface that pods have in it."""

    name: str
    interface: str
    config: str

    @property
    def network(self) -> Network:
        """The network that the configuration describes."""
        network = network_of(parse_config(self.config))
        assert network is not None  # all of them have ranges
        return network

    @property
    def stdin(self) -> bytes:
        """The configuration that the plugin reads from stdin."""
        return self.config.encode()

    def attachment(self) -> NetworkAttachmentDefinition:
        """The network's NetworkAttachmentDefinition."""
        place = ObjectMeta(name=self.name, namespace=NAMESPACE)
        return NetworkAttachmentDefinition(
            metadata=place, spec=NetworkAttachmentDefinitionSpec(config=self.config)
        )


def definitions(count: int, *, nodes: int) -> tuple[Definition, ...]:
    """The first `count` networks of a cluster with that many nodes. There is a slice for each node, and few to spare."""
    bits = nodes.bit_length()
    known: dict[str, dict[str, object]] = {
        "sliced": {
            "network_name": "sliced",
            "range": _cut("10.10.0.0", _SLICE_V4 - bits),
            "node_slice_size": f"/{_SLICE_V4}",
        },
        "shared": {"range": "10.20.0.0/22"},
        "both-families": {
            "network_name": "both-families",
            "enable_overlapping_ranges": False,
            "ipRanges": [
                {"range": _cut("10.30.0.0", _SLICE_V4 - bits), "node_slice_size": f"/{_SLICE_V4}"},
                {"range": _cut("fd00:30::", _SLICE_V6 - bits), "node_slice_size": f"/{_SLICE_V6}"},
            ],
        },
        "overlapping": {"range": "10.20.0.0/23", "gateway": "10.20.0.1"},
    }
    return tuple(
        Definition(name, f"net{number}", _configuration(name, ipam))
        for number, (name, ipam) in enumerate(known.items(), 1)
        if number <= count
    )


MOST_NETWORKS = 4


def described_network(name: str, number: int, addresses: str, slice_size: str = "") -> Definition:
    """A network of that name and range, cut into slices or, without a size of them, shared; InvalidInput if it cannot be.

    `number` is that of pods' interface in it.
    """
    ipam: dict[str, object] = {"network_name": name, "range": addresses}
    if slice_size:
        ipam["node_slice_size"] = slice_size
    found = Definition(name, f"net{number}", _configuration(name, ipam))
    parse_config(found.config)
    return found


def _cut(address: str, prefix_length: int) -> str:
    return str(parse_network(f"{address}/{prefix_length}"))


def _configuration(name: str, ipam: dict[str, object]) -> str:
    document = {"cniVersion": LATEST, "name": name, "type": "macvlan", "ipam": {"type": "podtide", **ipam}}
    return msgspec.json.encode(document).decode()
